"""A made-up collection of any size: texts with the words of Zipf's law, two dimensions of groups, and drawn embeddings.

The embeddings are random vectors beside the packaged encoder's vector of the test text: what they are makes no
difference to what storing and searching them takes, but an approximate index finds them less well than those of texts,
which lie in clusters, and looks at more of them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fairagent.retrieve.encoded import PROBE_TEXT
from fairagent.retrieve.encoder import BUNDLED, Embeddings, open_encoder

COLLECTION = """\
name: made-up
documents: {path: docs.jsonl, title: title}
topics: {path: topics.jsonl}
groups: {path: groups.tsv, dimensions: {gender: {}, region: {separator: "|"}}}
population: {gender: {female: 0.5, male: 0.5}}
"""
VOCABULARY = 50_000
TOPICS = 150


class Made:
    """An encoder with the packaged one's name and vector of the test text; every other vector is drawn."""

    name = BUNDLED

    def __init__(self) -> None:
        (self._probe,) = open_encoder(BUNDLED).documents([PROBE_TEXT])
        self._rng = np.random.default_rng(3)

    def documents(self, texts: Sequence[str]) -> Embeddings:
        """Vectors (n, d) of length 1."""
        if list(texts) == [PROBE_TEXT]:
            return self._probe[np.newaxis]
        drawn = self._rng.standard_normal((len(texts), self._probe.size), np.float32)
        return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)

    def queries(self, texts: Sequence[str]) -> Embeddings:
        """The same; nobody asks."""
        return self.documents(texts)


def write_made_up(folder: Path, documents: int, words: int = 100) -> Path:
    """Write so many documents, their groups and topics of two to four words; the path of the collection's file."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(1)
    with (folder / "docs.jsonl").open("w") as texts, (folder / "groups.tsv").open("w") as groups:
        groups.write("id\tgender\tregion\n")
        for start in range(0, documents, 10_000):
            size = min(10_000, documents - start)
            ranks = (rng.zipf(1.2, (size, words)) % VOCABULARY).tolist()
            genders = rng.choice(["female", "male", "nonbinary", ""], size, p=[0.2, 0.5, 0.02, 0.28]).tolist()
            regions = rng.choice(["Africa", "Asia", "Europe", "Africa|Asia", ""], size).tolist()
            for number in range(size):
                text = " ".join(f"w{rank}" for rank in ranks[number])
                record = {"id": f"d{start + number}", "title": f"Page {start + number}", "text": text}
                texts.write(json.dumps(record) + "\n")
                groups.write(f"d{start + number}\t{genders[number]}\t{regions[number]}\n")
    with (folder / "topics.jsonl").open("w") as topics:
        for number in range(TOPICS):
            query = " ".join(f"w{rank}" for rank in rng.integers(5, 500, 2 + number % 3).tolist())
            topics.write(json.dumps({"id": str(number + 1), "query": query}) + "\n")
    (folder / "collection.yaml").write_text(COLLECTION)
    return folder / "collection.yaml"
