"""A made-up collection of any size: texts about topics, with the words of Zipf's law, and two dimensions of groups.

A third of a text's words are of the two topics that it is about, as texts have neighbors: vectors of words drawn
independently have none, and no index finds any. A query has a frequent word and some of a topic.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

COLLECTION = """\
name: made-up
documents: {path: docs.jsonl, title: title}
topics: {path: topics.jsonl}
groups: {path: groups.tsv, dimensions: {gender: {}, region: {separator: "|"}}}
target: {gender: {female: 0.5, male: 0.5}, region: uniform}
"""
VOCABULARY = 50_000
TOPICS = 150
SUBJECTS, OF_SUBJECT, ABOUT = 2_000, 40, 0.35
"""What texts are about, the words of each, and the share of a text's words that are of them."""


def write_made_up(folder: Path, documents: int, words: int = 100) -> Path:
    """Write so many documents, their groups and queries of two to four words; the path of the collection's file."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(1)
    subjects = rng.integers(100, VOCABULARY, (SUBJECTS, OF_SUBJECT))
    with (folder / "docs.jsonl").open("w") as texts, (folder / "groups.tsv").open("w") as groups:
        groups.write("id\tgender\tregion\n")
        for start in range(0, documents, 10_000):
            size = min(10_000, documents - start)
            # The first words of a subject are more frequent; of its two, a text is more about the first.
            which = rng.integers(0, SUBJECTS, (size, 2))[
                np.arange(size)[:, None], (rng.random((size, words)) ** 2 > 0.5).astype(int)
            ]
            own = subjects[which, (OF_SUBJECT * rng.random((size, words)) ** 2).astype(int)]
            common = rng.zipf(1.2, (size, words)) % VOCABULARY
            ranks = np.where(rng.random((size, words)) < ABOUT, own, common).tolist()
            genders = rng.choice(["female", "male", "nonbinary", ""], size, p=[0.2, 0.5, 0.02, 0.28]).tolist()
            regions = rng.choice(["Africa", "Asia", "Europe", "Africa|Asia", ""], size).tolist()
            for number in range(size):
                text = " ".join(f"w{rank}" for rank in ranks[number])
                record = {"id": f"d{start + number}", "title": f"Page {start + number}", "text": text}
                texts.write(json.dumps(record) + "\n")
                groups.write(f"d{start + number}\t{genders[number]}\t{regions[number]}\n")
    with (folder / "topics.jsonl").open("w") as topics:
        for number in range(TOPICS):
            ranks = [int(rng.integers(5, 500)), *subjects[rng.integers(SUBJECTS), : 1 + number % 3].tolist()]
            query = " ".join(f"w{rank}" for rank in ranks)
            topics.write(json.dumps({"id": str(number + 1), "query": query}) + "\n")
    (folder / "collection.yaml").write_text(COLLECTION)
    return folder / "collection.yaml"
