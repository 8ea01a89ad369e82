"""A made collection of 40 short texts, and a search engine in Python for it: experiments without Java, with ties.

As a program it runs an experiment on it, so that a test can kill it: `python words.py FILE FOLDER WORKERS`.
"""

from __future__ import annotations

import csv
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from fairagent.errors import FairAgentError
from fairagent.evaluate.check import CheckedExperiment, check_experiment
from fairagent.evaluate.experiment import run_experiment
from fairagent.evaluate.run import Results
from fairagent.evaluate.workers import threads
from fairagent.retrieve.site import Site
from fairagent.settings import Part
from fairagent.settings.parts import BUILT_IN
from fairagent.types import Document, FloatArray, Query, Ranking

SUBJECTS = ("judge", "singer", "painter", "miner", "nurse", "pilot", "writer", "cook", "runner", "tailor")
COLLECTION = """\
name: words
documents: {path: docs.jsonl, title: title}
topics: {path: topics.jsonl, query: title}
qrels: {path: qrels.tsv}
groups:
  path: groups.tsv
  dimensions: {gender: {labels: [female, male]}, era: {}}
population: {gender: {female: 0.5, male: 0.5}}
target: trec-estimated
"""
EXPERIMENT = """\
name: small experiment
collection: collection.yaml
seed: 7
systems:
  plain: {profile: engine, engine: words}
  fair: {profile: engine, engine: {kind: words, order: exposure}, rerank: {kind: exposure, fairness: 0.5, unlabeled: 1}}
  random: {profile: engine, engine: {kind: words, order: random}, rerank: plackett-luce}
"""


def documents() -> list[dict[str, str]]:
    """Four texts about each subject: the first three of men, the last of a woman; every fifth says no gender."""
    texts = []
    for number in range(40):
        subject, other = SUBJECTS[number // 4], SUBJECTS[(number // 4 + 1) % 10]
        pronoun = "" if number % 5 == 4 else "she" if number % 4 == 3 else "he"
        texts.append(
            {"id": f"d{number:02d}", "title": f"{subject} {number}", "text": f"{pronoun} the {subject} met a {other}"}
        )
    return texts


def write(folder: Path, experiment: str = EXPERIMENT) -> Path:
    """Write collection and experiment; return the experiment's file."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = documents()
    gender = {"she": "female", "he": "male", "the": ""}
    topics = [{"id": f"T{n:02d}", "title": f"{SUBJECTS[n % 10]} {SUBJECTS[(n + n // 10) % 10]}"} for n in range(20)]
    files = {
        "collection.yaml": COLLECTION,
        "docs.jsonl": "".join(json.dumps(text) + "\n" for text in texts),
        "topics.jsonl": "".join(json.dumps(topic) + "\n" for topic in topics),
        # Three of the four texts about the topic's subject are relevant; nothing is for the last topic.
        "qrels.tsv": "".join(f"T{n:02d} 0 d{4 * (n % 10) + k:02d} 1\n" for n in range(19) for k in (0, 1, 3)),
        "groups.tsv": "id\tgender\tera\n"
        + "".join(
            f"{text['id']}\t{gender[text['text'].split()[0]]}\t{'old' if n % 3 else 'new'}\n"
            for n, text in enumerate(texts)
        ),
        "experiment.yaml": experiment,
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder / "experiment.yaml"


trouble: dict[str, Callable[[], Exception]] = {}
"""Topic id, or "order topic-id" for one system alone -> the error that searching raises, for tests to set."""


@dataclass
class Words:
    """Counts how many words of the query a text has, after `delay` seconds: small numbers, so ties everywhere."""

    texts: dict[str, Document]
    delay: float
    order: str

    def search(self, query: Query, n: int) -> Ranking:
        time.sleep(self.delay)
        for key in (query.id, f"{self.order} {query.id}"):
            if key in trouble:
                raise trouble[key]()
        ids = sorted(self.texts)
        scores = self.score(query, ids)
        order = sorted((i for i in range(len(ids)) if scores[i] > 0), key=lambda i: (-scores[i], ids[i]))[:n]
        return Ranking(tuple(ids[i] for i in order), scores[order])

    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        wanted = set(query.text.split())
        return np.array([float(len(wanted & set(self.texts[id].text.split()))) for id in ids])

    def document(self, id: str) -> Document:
        return self.texts[id]


class WordsConfig(Part):
    """`order` only tells systems apart: it is what `trouble` knows them by."""

    kind: Literal["words"] = "words"
    order: str = "plain"
    delay: float = 0.0

    def build(self, site: Site) -> Words:
        return Words({document.id: document for document in site.collection.documents()}, self.delay, self.order)


BUILT_IN["engine"]["words"] = f"{__name__}:WordsConfig"


def refused(file: Path) -> str:
    """What is wrong with the experiment in `file`."""
    with pytest.raises(FairAgentError) as caught:
        check_experiment(file, environ={})
    return str(caught.value)


def rows(path: Path) -> list[dict[str, str]]:
    """The lines of a table (CSV), column -> cell."""
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def run(file: Path, folder: Path, workers: int = 2, *, new: bool = False, limit: int | None = None) -> Results:
    """Check and run the experiment in `file`."""
    return run_checked(check_experiment(file, limit, environ={}), folder, workers, new=new, environ={})


def run_checked(
    checked: CheckedExperiment, folder: Path, workers: int = 2, *, new: bool = False, environ: Any = None
) -> Results:
    with threads(workers) as workers:
        return run_experiment(checked, folder, workers, new, environ=environ)


if __name__ == "__main__":
    run(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
