"""Recall by group, and retrievability: of what was retrieved, over topics, in an experiment's tables and files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fairagent.collection import load_collection
from fairagent.evaluate.outcome import GroupRecall, HitRecord, Outcome
from fairagent.evaluate.ranking import group_recall, mean_recalls
from fairagent.evaluate.retrievability import retrievabilities, retrievability_tables
from fairagent.evaluate.run import Results
from fairagent.types import UNKNOWN

from . import words
from .made_runs import outcome, run_of

LABELS = (UNKNOWN, "female", "male")


def with_recall(topic: str, system: str, found: tuple[float, ...], relevant: tuple[float, ...], n: int = 0) -> Outcome:
    made = outcome(topic, system, {"": {"nDCG@20": 0.5}, "gender": {"AWRF@20": 0.5}})
    return replace(made, recall=(GroupRecall("gender", LABELS, found, relevant),), entered=n)


def two_topics() -> Results:
    """Of t1 are relevant: 2 women, 4 men; of t2 1 woman, 1 document without a label."""
    return run_of(
        [
            with_recall("t1", "A", (0, 1, 4), (0, 2, 4)),
            with_recall("t1", "B", (0, 2, 3), (0, 2, 4), 30),
            with_recall("t2", "A", (1, 0, 0), (1, 1, 0)),
            with_recall("t2", "B", (0, 1, 0), (1, 1, 0), 10),
        ]
    )


def test_means_by_hand() -> None:
    """A: 5 of 6 and 1 of 2; women 1 of 2 and 0 of 1. B: 5 of 6 and 1 of 2; women all. Men count on t1 alone."""
    a, b = [
        {row.group: (row.topics, pytest.approx(row.recall)) for row in mean_recalls(two_topics()) if row.system == name}
        for name in ("A", "B")
    ]
    assert a == {"": (2, (5 / 6 + 1 / 2) / 2), UNKNOWN: (1, 1.0), "female": (2, 0.25), "male": (1, 1.0)}
    assert b == {"": (2, (5 / 6 + 1 / 2) / 2), UNKNOWN: (1, 0.0), "female": (2, 1.0), "male": (1, 0.75)}
    assert {row.entered for row in mean_recalls(two_topics()) if row.system == "B"} == {20.0}


def test_groups_of_documents(tmp_path: Path) -> None:
    """d00 to d02 are men, d03 is a woman, d04 says nothing; a document that nobody knows has no label."""
    words.write(tmp_path)
    groups = load_collection(tmp_path / "collection.yaml").groups
    relevant = ["d00", "d01", "d03", "d04"]
    found = group_recall(groups, "gender", "T00", relevant, ["d04", "d00", "d07", "d03"])
    assert found == GroupRecall("gender", LABELS, (1.0, 1.0, 1.0), (1.0, 1.0, 2.0))
    assert group_recall(groups, "gender", "T00", relevant, []).retrieved == (0.0, 0.0, 0.0)


def test_retrievability_by_hand() -> None:
    """Of 4 women, 3 men and one without a label A retrieves f1, m1 for both topics, u1 for one: 2, 2, 1, five 0.

    Gini of all: the mean absolute difference of two documents, over twice their mean, 5/8. Of 64 pairs 20 differ by 2,
    14 by 1: (20 * 2 + 14) / 64 / (10 / 8) = 27/40. Where one of n has all it is 1 - 1/n.
    """
    female, male, none = {"gender": {"female": 1.0}}, {"gender": {"male": 1.0}}, {"gender": {}}
    shown = {"t1": [("f1", female), ("m1", male), ("u1", none)], "t2": [("m1", male), ("f1", female)]}
    outcomes = []
    for topic, documents in shown.items():
        hits = tuple(HitRecord(id, id, 1.0, False, groups) for id, groups in documents)
        made = with_recall(topic, "A", (0, 0, 0), (0, 1, 0))
        outcomes += [replace(made, hits=hits), replace(made, system="B")]
    run = run_of(outcomes)
    assert retrievabilities(run) == []
    sizes = {"gender": {UNKNOWN: 1.0, "female": 4.0, "male": 3.0}}
    run = replace(run, provenance={"collection": {"sizes": sizes}})
    rows = retrievabilities(run)
    found = {row.group: (row.gini, row.reached, row.beside_all) for row in rows if row.system == "A"}
    assert found == {
        "": pytest.approx((27 / 40, 3 / 8, 1)),
        UNKNOWN: pytest.approx((0, 1, 8 / 5)),
        "female": pytest.approx((3 / 4, 1 / 4, 4 / 5)),
        "male": pytest.approx((2 / 3, 1 / 3, 16 / 15)),
    }
    (table,) = retrievability_tables(rows, 2)
    assert table.rows == (("A", *(pytest.approx(value) for value in (27 / 40, 3 / 8, 8 / 5, 4 / 5, 16 / 15))),)
