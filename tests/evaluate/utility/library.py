"""A small library in the format of TREC Deep Learning, a run over it, and answers that are compared word by word."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from evaluate import words  # its import adds the kind `words`, a search engine without Java
from fairagent.evaluate.check import check_experiment
from fairagent.evaluate.run import Results

__all__ = ["PASSAGES", "SameWords", "means", "run", "write"]

PASSAGES = {
    "p1": "the judge wrote the law",
    "p2": "a judge reads law books",
    "p3": "the court is a house of law",
    "p4": "painters paint walls",
    "p5": "the singer sang a song",
    "p6": "songs are sung by a choir",
    "p7": "tenors perform",
    "p8": "a wall of paint",
}
QUERIES = {"q1": "judge law", "q2": "singer song", "q3": "nobody here", "q4": "opera"}
QRELS = {
    "q1": {"p1": 3, "p2": 2, "p3": 1, "p4": 0, "p8": 0},
    "q2": {"p5": 3, "p4": 0},
    # Nothing that helps; and something that shares no word with the question.
    "q3": {"p4": 1},
    "q4": {"p7": 2, "p8": 0},
}
RUN = {"q1": ("p3", "p1", "p4"), "q2": ("p6", "p5"), "q4": ("p8", "p7")}
COLLECTION = """\
name: library
documents: {path: passages.tsv, columns: [id, text]}
topics: {path: queries.tsv, columns: [id, text], query: text}
qrels: {path: qrels.txt, format: trec, relevant: 1}
"""
EXPERIMENT = """\
kind: utility
name: small utility
collection: collection.yaml
seed: 5
utility: {ks: [0, 1, 2], relevant: 2}
baseline: Rel
systems:
  Rel: {profile: engine, engine: oracle}
  words: {profile: engine, engine: words}
  run: {profile: engine, engine: {kind: run-file, path: run.txt, tag: mine}}
  NRel: {profile: engine, engine: {kind: adversarial, reading: sorted}}
"""


class SameWords:
    """The Dice coefficient of two texts' words: 2 x shared / all."""

    name = "same words"

    def f1(self, text: str, references: Sequence[str]) -> list[float]:
        ours = _words(text)
        return [2 * len(ours & _words(one)) / ((len(ours) + len(_words(one))) or 1) for one in references]


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))


def write(folder: Path, experiment: str = EXPERIMENT) -> Path:
    """Write collection, run file and experiment; return the experiment's file."""
    folder.mkdir(parents=True, exist_ok=True)
    ranked = [
        f"{topic} Q0 {id} {rank} {10 - rank} mine\n" for topic, ids in RUN.items() for rank, id in enumerate(ids, 1)
    ]
    files = {
        "collection.yaml": COLLECTION,
        "passages.tsv": "".join(f"{id}\t{text}\n" for id, text in PASSAGES.items()),
        "queries.tsv": "".join(f"{id}\t{text}\n" for id, text in QUERIES.items()),
        "qrels.txt": "".join(f"{q} 0 {id} {grade}\n" for q, of in QRELS.items() for id, grade in of.items()),
        "run.txt": "".join([*ranked, "q1 Q0 p8 1 9 other\n"]),
        "experiment.yaml": experiment,
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder / "experiment.yaml"


def run(file: Path, folder: Path, workers: int = 2) -> Results:
    """Check and run the experiment."""
    return words.run_checked(check_experiment(file, environ={}), folder, workers)


def means(of: Results) -> dict[tuple[str, str], float]:
    """(system, measure's label) -> mean."""
    return {(row.system, row.measure.split("(")[0] + row.measure[-2:]): row.mean for row in of.comparisons}
