"""What an experiment asserts of its numbers: read, checked before anything runs, and judged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairagent.errors import ModelError, UsageError
from fairagent.evaluate.check import check_experiment
from fairagent.evaluate.results import results_text
from fairagent.evaluate.run import Results, load_run
from fairagent.evaluate.tables import WIDTH
from fairagent.evaluate.thresholds import Bound, Threshold, summary, thresholds_table, verdicts
from fairagent.report.page import page

from . import words

RELEVANCE = "nDCG(discount=log2-max2)@20"
FAIRNESS = "AWRF(discount=log2-max2, log=e, unknown=ignore)@20"
ASSERT = """\
assert:
  nDCG@20: ">= baseline - .01"
  gender: {AWRF(unknown=ignore)@20: ">= .98", female: ">= .27"}
  fair: {era: {"AWRF(discount=log2-max2, log=e, unknown=ignore)@20": "> baseline", old: "< .7"}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("thresholds")
    words.run(words.write(folder, words.EXPERIMENT + ASSERT), folder / "run")
    return folder


@pytest.fixture(scope="module")
def run(folder: Path) -> Results:
    return load_run(folder / "run")


def problems(folder: Path, more: str) -> str:
    """What is wrong with the small experiment and `more`."""
    return words.refused(words.write(folder, words.EXPERIMENT + more))


def thresholds(folder: Path, more: str, experiment: str = words.EXPERIMENT) -> tuple[Threshold, ...]:
    return check_experiment(words.write(folder, experiment + more), environ={}).plan.thresholds


@pytest.mark.parametrize(
    ("text", "bound", "again"),
    [
        (">= .95", Bound(">=", 0.95), ">= 0.95"),
        ("<=1", Bound("<=", 1.0), "<= 1"),
        ("  > -.5 ", Bound(">", -0.5), "> -0.5"),
        ("< 1e-3", Bound("<", 0.001), "< 0.001"),
        (">= baseline", Bound(">=", 0.0, True), ">= baseline"),
        (">= baseline - .01", Bound(">=", -0.01, True), ">= baseline - 0.01"),
        ("> baseline+0.125", Bound(">", 0.125, True), "> baseline + 0.125"),
    ],
)
def test_bounds_are_read_and_written(text: str, bound: Bound, again: str) -> None:
    assert Bound.parse(text) == bound
    assert str(bound) == again
    assert Bound.parse(again) == bound


def test_what_is_no_bound_is_refused_with_the_forms() -> None:
    for text in ("0.4", "=> .4", ">= ", ">= nan", ">= .4 .5", ">= 40 %", ">= baseline .01", ">= BM25 - .01", 0.4, None):
        with pytest.raises(UsageError, match=r"is no bound; the forms are: '>= \.95'"):
            Bound.parse(text)


@pytest.mark.parametrize(
    ("sign", "below", "equal", "above"),
    [(">=", False, True, True), ("<=", True, True, False), (">", False, False, True), ("<", True, False, False)],
)
def test_each_sign_alone_and_from_the_baseline(sign: str, below: bool, equal: bool, above: bool) -> None:
    absolute, relative = Bound.parse(f"{sign} .5"), Bound.parse(f"{sign} baseline - .25")
    for value, met in ((0.4999, below), (0.5, equal), (0.5001, above)):
        assert absolute.holds(value) is met
        assert relative.holds(value, baseline=0.75) is met


def test_without_a_system_all_but_the_baseline_are_asked(tmp_path: Path) -> None:
    found = thresholds(tmp_path, "assert: {nDCG@20: '> baseline', fair: {nDCG@20: '> .5'}, plain: {nDCG@20: '> .4'}}\n")
    relative = Bound(">", 0.0, True)
    assert found == (
        Threshold("fair", "", RELEVANCE, False, relative, "plain"),
        Threshold("random", "", RELEVANCE, False, relative, "plain"),
        Threshold("fair", "", RELEVANCE, False, Bound(">", 0.5), "plain"),
        Threshold("plain", "", RELEVANCE, False, Bound(">", 0.4), "plain"),
    )
    other = thresholds(tmp_path, "baseline: random\nassert: {nDCG@20: '> baseline'}\n")
    assert [(one.system, one.baseline) for one in other] == [("plain", "random"), ("fair", "random")]


def test_another_variant_is_another_measure(tmp_path: Path) -> None:
    """AWRF@20 means one thing everywhere: documents without a label are a group."""
    said = problems(tmp_path, "assert: {fair: {gender: {AWRF@20: '> .9'}}}\n")
    assert "assert.fair.gender: 'AWRF@20' is not computed, but: AWRF(unknown=ignore)@20" in said
    both = "measures: ['AWRF(unknown=ignore, log=2)@10', 'AWRF(unknown=ignore)@10']\n"
    said = problems(tmp_path, both + "assert: {fair: {gender: {AWRF@10: '> .9'}}}\n")
    assert "'AWRF@10' is not computed, but: AWRF(log=2, unknown=ignore)@10, AWRF(unknown=ignore)@10" in said
    (found,) = thresholds(tmp_path, both + "assert: {fair: {gender: {'AWRF(unknown=ignore, log=2)@10': '> .9'}}}\n")
    assert found.name == "AWRF(discount=log2-max2, log=2, unknown=ignore)@10"


@pytest.mark.parametrize(
    ("asserted", "said"),
    [
        ("nDCG@2: '> .1'", "assert: no measure 'nDCG@2'; did you mean 'nDCG@20'?"),
        ("gender: {femal: '> .1'}", "assert.gender: no measure or group 'femal'; did you mean 'female'?"),
        ("gendr: {female: '> .1'}", "assert: no system and no dimension 'gendr'; did you mean 'gender'?"),
        ("gender: '> .1'", "assert: 'gender' is a dimension: write measures or groups, with their bounds, under it"),
        ("gender: {nDCG@20: '> .1'}", "assert.gender: 'nDCG@20' stands beside the dimensions, not under one"),
        ("AWRF(unknown=ignore)@20: '> .1'", "assert: 'AWRF(unknown=ignore)@20' stands under a dimension"),
        ("fair: {gender: {female: at least half}}", "assert.fair.gender.female: 'at least half' is no bound"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(tmp_path: Path, asserted: str, said: str) -> None:
    found = problems(tmp_path, f"assert: {{{asserted}}}\n")
    assert "1 problem, nothing was run" in found
    assert said in found


def test_verdicts_by_hand(run: Results) -> None:
    """Each value taken from the outcomes anew."""

    def share(system: str, dimension: str, label: str) -> float:
        shown = [e for o in run.answered if o.system == system for e in o.exposures if e.dimension == dimension]
        return float(np.mean([one.shares[one.labels.index(label)] for one in shown]))

    limit = run.compared["plain", "", RELEVANCE].mean - 0.01
    expected = [
        ("fair", run.compared["fair", "", RELEVANCE].mean, limit, True),
        ("random", run.compared["random", "", RELEVANCE].mean, limit, False),
        ("fair", run.compared["fair", "gender", FAIRNESS].mean, 0.98, True),
        ("random", run.compared["random", "gender", FAIRNESS].mean, 0.98, False),
        ("fair", share("fair", "gender", "female"), 0.27, True),
        ("random", share("random", "gender", "female"), 0.27, False),
        ("fair", run.compared["fair", "era", FAIRNESS].mean, run.compared["plain", "era", FAIRNESS].mean, True),
        ("fair", share("fair", "era", "old"), 0.7, True),
    ]
    found = verdicts(run)
    assert [(one.threshold.system, one.met) for one in found] == [(system, met) for system, *_, met in expected]
    assert [one.value for one in found] == pytest.approx([value for _, value, *_ in expected], abs=1e-12)
    assert [one.limit for one in found] == pytest.approx([limit for *_, limit, _ in expected], abs=1e-12)


def test_values_are_compared_in_full_precision(run: Results) -> None:
    mean = run.compared["fair", "", RELEVANCE].mean
    bound = Bound("<=" if mean > round(mean, 4) else ">=", round(mean, 4))
    (verdict,) = verdicts(replace(run, thresholds=(Threshold("fair", "", RELEVANCE, False, bound, "plain"),)))
    assert not verdict.met
    # But what differs by rounding is equal.
    assert 0.1 + 0.2 != 0.3
    assert Bound.parse("<= .3").holds(0.1 + 0.2)
    assert not Bound.parse("> .3").holds(0.1 + 0.2)
    assert not Bound.parse("<= .3").holds(0.3 + 2e-9)
    assert Bound.parse("<= baseline - .1").holds(0.2, baseline=0.3)


def test_the_table_stands_in_the_text_and_on_the_page(folder: Path, run: Results) -> None:
    assert summary(run) == "5 of 8 thresholds are met"
    text = (folder / "run" / "results.txt").read_text(encoding="utf-8")
    assert thresholds_table(run).text(WIDTH) in text
    missed = thresholds_table(run, met=False)
    assert [(row[0], row[1], row[2], row[4]) for row in missed.rows] == [
        ("random", "relevance", "nDCG@20", ">= baseline - 0.01"),
        ("random", "gender", "AWRF(unknown=ignore)@20", ">= 0.98"),
        ("random", "gender", "female", ">= 0.27"),
    ]
    assert missed.title == summary(run)
    html = page(run)
    assert "5 of 8 thresholds are met." in html
    assert html.count("MISSED") == 3
    assert 'href="#thresholds"' in html


def test_a_number_that_no_topic_has_is_missed(tmp_path: Path) -> None:
    """Every topic of one system fails: there is nothing to compare, and nothing is reached."""
    words.trouble["exposure T00"] = lambda: ModelError("no")
    experiment = words.EXPERIMENT + "topics: [T00]\nassert: {nDCG@20: '>= 0', gender: {female: '>= baseline'}}\n"
    try:
        run = words.run(words.write(tmp_path, experiment), tmp_path / "run")
    finally:
        words.trouble.clear()
    assert not run.partial
    assert [(one.value, one.limit, one.met) for one in verdicts(run)] == [(None, None, False)] * 4
    assert "0 of 4 thresholds are met" in results_text(run)


def test_other_thresholds_are_no_other_run(folder: Path, tmp_path: Path) -> None:
    """They may be changed without starting over."""
    file = words.write(tmp_path, words.EXPERIMENT + "assert: {nDCG@20: '> .99'}\n")
    assert summary(words.run(file, tmp_path / "run")) == "0 of 2 thresholds are met"
    before = (tmp_path / "run" / "journal.jsonl").read_bytes()
    file.write_text(words.EXPERIMENT + "assert: {nDCG@20: '> .1'}\n", encoding="utf-8")
    assert summary(words.run(file, tmp_path / "run")) == "2 of 2 thresholds are met"
    assert (tmp_path / "run" / "journal.jsonl").read_bytes() == before
    head: dict[str, Any] = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))
    assert head["plan"]["experiment"]["assert"] == {"nDCG@20": "> .1"}
