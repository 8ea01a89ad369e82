"""AWRF under missing labels, as tables of a run."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fairagent.evaluate.findings import Unaware, base_of, fairness_bounds, unawareness, under_label_error
from fairagent.evaluate.findings import unawareness_tables as tables
from fairagent.evaluate.outcome import GroupShares, from_value, to_line
from fairagent.measures import jensen_shannon, parse_measure
from fairagent.report.page import page

from . import words
from .made_runs import outcome, run_of, shares

ALL_IN_ONE = 1 - (math.log(4 / 3) / 2 + math.log(2 / 3) / 4 + math.log(2) / 4)
"""AWRF of (1, 0) for a target of (1/2, 1/2)."""
NOTHING = 1 - math.log(2)


def awrf(first: float) -> float:
    """That of (first, 1 - first)."""
    terms = [(share * math.log(2 * share / (share + 0.5)), math.log(1 / (share + 0.5))) for share in (first, 1 - first)]
    return 1 - sum(a / 2 + b / 4 for a, b in terms)


def rows_of(*shown: GroupShares) -> list[Unaware]:
    """Those of one system, a topic each."""
    run = run_of([outcome(f"T{n}", "a", {}, [one]) for n, one in enumerate(shown)])
    return unawareness(run, math.e)


def test_one_system_by_hand() -> None:
    """Missing, labeled, lowest and highest.

    (1, 0) and as much again without a label can become anything from all in one to even. Of the second topic's exposure
    a half has no label, and half of that is rivers: known are 1/4 and 1/4, missing is 1/4, thus a third of what has a
    group; it is even as it stands, and at worst 2/3 to 1/3. A ranking without a label counts as the lowest value, and
    can be anything from all in one to even; rivers alone can be nothing.
    """
    two = shares(1.0, unknown=0.5), shares(0.5, unknown=0.5, missing=0.25)
    people, rivers = shares(None, unknown=1.0), (shares(None, 1.0, 0.0), shares(0.5, 0.5))
    for shown, expected in (
        (two, (5 / 12, (ALL_IN_ONE + 1) / 2, (ALL_IN_ONE + awrf(2 / 3)) / 2, 1.0)),
        ((people,), (1.0, NOTHING, ALL_IN_ONE, 1.0)),
        (rivers, (0.25, (NOTHING + 1) / 2, (NOTHING + awrf(0.75)) / 2, (NOTHING + 1.0) / 2)),
    ):
        (row,) = rows_of(*shown)
        assert (row.system, row.dimension, row.topics, row.estimate) == ("a", "gender", len(shown), None)
        assert (row.missing, row.labeled, row.lowest, row.highest) == pytest.approx(expected)
    assert rows_of(shares(0.7, unknown=0.0), shares(0.7, 0.4, 0.0)) == []


def test_predicted_labels_are_an_estimate_and_nothing_else_is_known() -> None:
    shown = shares(0.7, unknown=0.0, predicted=True)
    (row,) = rows_of(shown)
    assert (row.missing, row.labeled) == (1.0, None)
    assert (row.lowest, row.highest) == pytest.approx((ALL_IN_ONE, 1.0))
    assert (row.estimate, row.low, row.high) == pytest.approx((awrf(0.7),) * 3)


def test_the_interval_is_over_topics_and_systems_share_the_resamples() -> None:
    outcomes = [
        outcome(f"T{n}", system, {}, [shares(n / 20, 0.0, predicted=True)]) for n in range(20) for system in ("a", "b")
    ]
    first, second = unawareness(run_of(outcomes), math.e)
    assert first.low < first.estimate < first.high  # type: ignore[operator]
    assert (first.low, first.high) == (second.low, second.high)
    assert unawareness(run_of(outcomes), math.e) == [first, second]


def test_a_target_that_labels_are_missing_for() -> None:
    """Shown is all of one group, and all is labeled; the target is even and .2 of it is missing: .4 to .6 is due.

    Half of T2's exposure is missing as well: it can be anything from all in one, where .4 is due of it, to as due.
    """
    some = (0.4, 0.4)
    run = run_of([outcome("T1", "a", {}, [shares(1.0, 0.0, target_known=some)])])
    (row,) = unawareness(run, math.e)
    ends = [1 - jensen_shannon(np.array([1.0, 0.0]), np.array([due, 1 - due])) for due in (0.4, 0.6)]
    assert (row.missing, row.labeled) == (0, pytest.approx(ALL_IN_ONE))
    assert (row.lowest, row.highest) == pytest.approx(tuple(ends))
    (table,) = tables(run, unawareness(run, math.e), math.e)
    assert "20.0% of the target would come from documents without a label" in table.text().replace("\n", " ")
    shown = shares(1.0, 0.5, target_known=some)
    assert fairness_bounds(shown) == pytest.approx((ends[0], 1.0))
    assert fairness_bounds(shares(1.0, 0.5)) == pytest.approx((ALL_IN_ONE, 1.0))
    # Rivers alone: nothing that is missing of the target changes that nobody is shown.
    assert fairness_bounds(shares(None, 1.0, 0.0, target_known=some)) == pytest.approx((NOTHING, NOTHING))
    assert from_value(json.loads(to_line(run.outcomes[0]))) == run.outcomes[0]


def test_only_topics_of_all_systems_count() -> None:
    run = run_of(
        [
            outcome("T1", "a", {}, [shares(1.0, 0.5)]),
            outcome("T1", "b", {}, [shares(0.5, 0.0)]),
            outcome("T2", "a", {}, [shares(0.5, 0.5)]),
        ]
    )
    first, second = unawareness(run, math.e)
    assert (first.topics, first.labeled) == (1, pytest.approx(ALL_IN_ONE))
    assert (second.missing, second.lowest, second.labeled, second.highest) == pytest.approx((0.0, 1.0, 1.0, 1.0))


def test_the_text_and_the_file() -> None:
    run = run_of([outcome("T1", "a", {}, [shares(1.0, unknown=0.5)])])
    (table,) = tables(run, unawareness(run, math.e), math.e)
    lines = table.text().splitlines()
    assert lines[:3] == [
        "gender, AWRF(unknown=ignore)@20 under missing labels (1 topic)",
        "system  missing  labeled  lowest  highest",
        "a        0.5000   0.7842  0.7842   1.0000",
    ]
    assert run.of_kind.files["unawareness.csv"].csv().splitlines()[0] == (
        "system,dimension,topics,missing,labeled,lowest,highest,estimate,low,high,likely,likely_low,likely_high"
    )
    predicted = run_of([outcome("T1", "a", {}, [shares(0.7, 0.0, predicted=True)])])
    (table,) = tables(predicted, unawareness(predicted, math.e), math.e)
    row = next(line for line in table.text().splitlines() if line.startswith("a "))
    assert row.split() == ["a", "1.0000", "-", "0.7842", "1.0000", "0.9790", "[0.9790,", "0.9790]"]


def test_awrf_under_label_error_is_a_column() -> None:
    """The mean of two topics, which err by themselves: sqrt(.1^2 + .06^2) / 2 below, half of that above."""
    likely = [(0.9, 0.8, 0.95, 0.0), (0.96, 0.9, 0.99, 0.0)]
    ends = 0.93, 0.93 - math.hypot(0.1, 0.06) / 2, 0.93 + math.hypot(0.05, 0.03) / 2
    run = run_of(
        [
            outcome(f"T{n}", "a", {}, [replace(shares(0.7, 0.0, predicted=True), likely=one)])
            for n, one in enumerate(likely)
        ]
    )
    (table,) = tables(run, unawareness(run, math.e), math.e)
    row = next(line for line in table.text().splitlines() if line.startswith("a "))
    assert row.endswith("0.9300 [0.8717, 0.9592]")
    (line, *_) = unawareness(run, math.e)
    assert (line.likely, line.likely_low, line.likely_high) == pytest.approx(ends)
    # One topic without an interval: no mean over others.
    assert under_label_error(run, "gender") == {"a": pytest.approx(ends)}
    more = outcome("T9", "a", {}, [shares(0.7, 0.0, predicted=True)])
    assert under_label_error(run_of([*run.answered, more]), "gender") == {}


def test_what_holds_whatever_the_missing_are() -> None:
    """A quarter of the middle's exposure is missing: it is between 3/8 and 5/8, the others are even and far off."""
    shown = {"middle": shares(0.5, 0.25), "even": shares(0.5, 0.0), "far": shares(0.9, 0.0), "near": shares(0.45, 0.0)}
    run = run_of([outcome("T1", name, {}, [one]) for name, one in shown.items()])
    (table,) = tables(run, unawareness(run, math.e), math.e)
    assert not any("whatever" in note for note in table.notes[:2])
    assert table.notes[2:] == ("below middle, whatever the missing are: far",)
    turned = {"far": shares(0.9, 0.0), "middle": shares(0.5, 0.25)}
    run = run_of([outcome("T1", name, {}, [one]) for name, one in turned.items()])
    (table,) = tables(run, unawareness(run, math.e), math.e)
    assert table.notes[2:] == ("above far, whatever the missing are: middle",)


def test_the_base_of_the_logarithm_is_that_of_the_first_awrf() -> None:
    assert base_of([parse_measure("nDCG@20"), parse_measure("nDCG@20*AWRF(log=2)@20")]) == 2.0
    assert base_of([parse_measure("nDCG@20"), parse_measure("AWRF@20")]) == math.e
    assert base_of([]) == math.e
    run = run_of([outcome("T1", "a", {}, [shares(None, unknown=1.0)])])
    assert unawareness(run, 2.0)[0].labeled == 0.0


# --- experiments --------------------------------------------------------------------------------------------------

MEASURES = "measures: ['AWRF(unknown=ignore)@10', 'unlabeled@10', 'unlabeled(of=type)@10']\n"


def write(folder: Path, collection: str) -> Path:
    """The collection of words: every second document without a gender is of a person, topics are of law or of art."""
    file = words.write(folder, words.EXPERIMENT + MEASURES)
    (folder / "collection.yaml").write_text(collection.replace("query: title", "query: title, group: of"), "utf-8")
    rows = [line.split("\t") for line in (folder / "groups.tsv").read_text("utf-8").splitlines()[1:]]
    table = ["id\tgender\tera\tabout"]
    table += ["\t".join([*row, "person" if row[1] or n % 10 == 4 else ""]) for n, row in enumerate(rows)]
    (folder / "groups.tsv").write_text("\n".join(table) + "\n", "utf-8")
    topics = [json.loads(line) for line in (folder / "topics.jsonl").read_text("utf-8").splitlines()]
    grouped = [{**topic, "of": "law" if n < 12 else "art"} for n, topic in enumerate(topics)]
    (folder / "topics.jsonl").write_text("".join(json.dumps(topic) + "\n" for topic in grouped), "utf-8")
    return file


def test_an_experiment_with_missing_labels(tmp_path: Path) -> None:
    """The table says of the labeled documents what the measure says, and what is missing is of people alone."""
    collection = words.COLLECTION.replace(
        "labels: [female, male]", "labels: [female, male], applies_to: {column: about}"
    )
    folder = tmp_path / "run"
    run = words.run(write(tmp_path, collection), folder)
    rows = {(row["system"], row["dimension"]): row for row in words.rows(folder / "unawareness.csv")}
    assert list(rows) == [(system, "gender") for system in run.systems]
    for (system, _), row in rows.items():
        of_gender = [one for one in run.comparisons if (one.system, one.dimension) == (system, "gender")]
        (measured,) = (one for one in of_gender if one.measure.startswith("AWRF"))
        assert float(row["labeled"]) == pytest.approx(measured.mean, abs=1e-12)
        assert float(row["lowest"]) < float(row["labeled"]) < float(row["highest"])
        of_topics = [one.values["gender"] for one in run.answered if one.system == system]
        names = [f"unlabeled(discount=log2-max2, of={of})@10" for of in ("type", "all")]
        unlabeled = [[values[name] for name in names] for values in of_topics]
        missing = [of_type / (1 - of_all + of_type) for of_type, of_all in unlabeled]
        assert float(row["missing"]) == pytest.approx(float(np.mean(missing)), abs=1e-12)
        assert float(row["missing"]) > 0
    text = (folder / "results.txt").read_text(encoding="utf-8")
    assert "gender, AWRF(unknown=ignore)@10 under missing labels (19 topics)" in text
    assert "era, AWRF@10" not in text
    assert "by group of the query" in text
    assert "gender, exposure by group of the query" in text
    page_of = page(run)
    assert "AWRF(unknown=ignore)@10 under missing labels" in page_of
    assert "What the means do not show" in page_of
    assert {row["query_group"] for row in words.rows(folder / "query_groups.csv")} == {"law", "art", ""}
