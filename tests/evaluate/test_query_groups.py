"""Results by group of the query."""

from __future__ import annotations

import pytest

from fairagent.evaluate.findings import DIFFERENCE, by_query_group
from fairagent.evaluate.outcome import Outcome

from .made_runs import outcome, run_of, shares


def values(quality: float, fairness: float | None = None) -> dict[str, dict[str, float]]:
    return {"": {"nDCG@20": quality}} | ({} if fairness is None else {"gender": {"AWRF@20": fairness}})


@pytest.fixture
def outcomes() -> list[Outcome]:
    """Three topics about law and two about art; one of no group, and one that only the baseline has answered."""
    return [
        outcome("T1", "a", values(0.2, 0.8), [shares(1.0, 0.5)], "law", [shares(0.5, 0.0)]),
        outcome("T2", "a", values(0.4), [], "law"),
        outcome("T3", "a", values(0.6, 0.6), [shares(0.0, 0.1)], "law", [shares(1.0, 0.0)]),
        outcome("T4", "a", values(0.9, 1.0), [shares(0.25, 0.0)], "art", [shares(0.25, 0.0)]),
        outcome("T5", "a", values(0.7, 0.5), [shares(0.75, 0.2)], "art", [shares(0.25, 0.0)]),
        outcome("T6", "a", values(0.0, 0.0), [shares(0.5, 0.0)]),
        outcome("T7", "a", values(0.0, 0.0), [shares(0.5, 0.0)], "art"),
        *(outcome(f"T{n}", "b", values(0.5, 0.5), [shares(0.5, 0.0)], "law" if n < 4 else "art") for n in range(1, 6)),
        outcome("T6", "b", values(0.0, 0.0), [shares(0.5, 0.0)]),
    ]


def test_means_of_each_group_over_finished_topics_and_the_largest_difference(outcomes: list[Outcome]) -> None:
    rows = by_query_group(run_of(outcomes))
    assert list(rows) == [(system, group) for system in "ab" for group in ("art", "law", DIFFERENCE)]
    law, apart = rows["a", "law"], rows["a", DIFFERENCE]
    assert law["measure", "", "nDCG@20"] == (pytest.approx(0.4), 3)
    assert law["measure", "gender", "AWRF@20"] == (pytest.approx(0.7), 2)
    assert law["exposure", "gender", "female"][0] == pytest.approx(0.5)
    assert law["exposure", "gender", "no label"][0] == pytest.approx(0.3)
    assert law["attribution", "gender", "female"][0] == pytest.approx(0.75)
    assert rows["a", "art"]["exposure", "gender", "male"][0] == pytest.approx(0.5)
    assert not any(place[0] == "attribution" for place in rows["b", "law"])
    assert apart["measure", "", "nDCG@20"][0] == pytest.approx(0.4)
    assert apart["attribution", "gender", "female"][0] == pytest.approx(0.5)
    assert {value for value, _ in rows["b", DIFFERENCE].values()} == {0.0}
