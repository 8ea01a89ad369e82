"""The numbers behind the page, by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fairagent.evaluate.comparison import compare
from fairagent.evaluate.findings import change_of, findings, main_measure, mark, verdict_lines
from fairagent.evaluate.outcome import GroupShares
from fairagent.evaluate.ranking import RankingKind
from fairagent.evaluate.results import means_table, notes
from fairagent.report.page import gains, page

from .runs import MEASURES, ORACLE, SYSTEMS, failed, made_run, tiny_run

NDCG, AWRF, PRODUCT = map(str, MEASURES)


def test_what_counts_by_hand():
    run = tiny_run()
    assert run.counted_topics == ("t1", "t2")
    # Not what failed, what is excluded and what is not done.
    assert replace(run, excluded={"t1": "why"}).counted_topics == ("t2",)
    assert replace(run, outcomes=run.outcomes[:3]).counted_topics == ("t1",)
    assert replace(run, outcomes=(*run.outcomes[:3], failed(run.outcomes[3], "no"))).counted_topics == ("t1",)
    # A dimension is won by the product, or else by AWRF.
    assert main_measure(run, "gender") == PRODUCT
    without = tuple(row for row in run.comparisons if row.measure != PRODUCT)
    assert main_measure(replace(run, comparisons=without), "gender") == AWRF
    assert main_measure(replace(run, comparisons=()), "gender") is None
    gained = gains(run, "gender", PRODUCT)
    assert list(gained) == ["B"]
    assert gained["B"] == pytest.approx({"t1": 0.6 * 0.9 - 0.5 * 0.8, "t2": 0.5 * 0.8 - 0.7 * 1.0})
    a, b = run.mean_exposures("gender")
    assert a.labels == ("female", "male")
    for found, expected in ((a.shares, [0.3, 0.7]), (b.shares, [0.45, 0.55]), (b.target, [0.5, 0.5])):
        np.testing.assert_allclose(found, expected)
    # Over the topics that count for the dimension.
    bare = [replace(one, values={"": one.values[""]}) for one in run.outcomes[2:]]
    run = replace(run, outcomes=(*run.outcomes[:2], *bare))
    a, _ = run.mean_exposures("gender")
    np.testing.assert_allclose(a.shares, [0.2, 0.8])
    assert a.topics == 1
    assert "not judged for gender, 1 topic: t2" in list(notes(run, details=False))


def test_the_finding_is_the_best_system_that_saw_no_judgments():
    for finding in findings(made_run()):
        assert finding.best.system == "agent, exposure"
        assert finding.best.system != ORACLE
        assert finding.baseline.system == SYSTEMS[0]
        assert finding.test.says == "better"
        assert [best.measure for best, _ in finding.others] == [NDCG, AWRF]
    rows = means_table(made_run()).rows
    assert [row[0] for row in rows if any(cell.best for cell in row[1:])] == ["agent, exposure"]
    (finding,) = findings(tiny_run())
    assert finding.best.difference == pytest.approx((0.54 - 0.40 + 0.40 - 0.70) / 2)
    assert (finding.test.says, finding.fairness and finding.fairness.measure) == ("", AWRF)
    # Two topics, +.1 and -.2: 95 % of the means of two draws lie between both.
    assert finding.fairness
    assert (finding.fairness.low, finding.fairness.high) == pytest.approx((-0.2, 0.1))


def judged(differences: list[float], measure: str = AWRF, women: float = 0.45):
    """Two systems of which the second's AWRF differs by so much on each topic, and gives women this exposure."""
    run, outcomes = tiny_run(), []
    for number, difference in enumerate(differences):
        for system, value in (("A", 0.9), ("B", 0.9 + difference)):
            share = 0.44 if system == "A" else women
            own = GroupShares("gender", ("female", "male"), (share, 1 - share), (0.5, 0.5), 0)
            made = replace(run.outcomes[0], topic=str(number), system=system, exposures=(own,))
            outcomes.append(replace(made, values={"": {NDCG: 0.5}, "gender": {measure: value}}))
    answers = {(one.topic, one.system): one for one in outcomes}
    kind = RankingKind(name="made", systems={"-": {}}, measures=(NDCG, measure))
    topics = [str(number) for number in range(len(differences))]
    columns = [("", NDCG), ("gender", measure)]
    lower = {one.name for one in kind.measured(("gender",)) if one.lower_is_better}
    changed = {"measures": (NDCG, measure), "outcomes": tuple(outcomes), "kind": kind}
    return replace(run, **changed, comparisons=compare(answers, topics, ("A", "B"), columns, 1, lower))


LESS = "NDKL@2"


@pytest.mark.parametrize(
    ("differences", "measure", "women", "verdict"),
    [
        ([-0.0002] * 4 + [0.0001], AWRF, 0.44, "no measurable difference"),
        ([-0.02, -0.03, -0.01, -0.02, -0.04, -0.01, -0.03], AWRF, 0.3, "less fair"),
        ([0.02, 0.03, 0.01, 0.02, 0.04, 0.01, 0.03], AWRF, 0.48, "fairer"),
        ([0.02, 0.03, 0.01, 0.02, 0.04, 0.01, 0.03], LESS, 0.3, "less fair"),
        # A large mean, and topics that contradict each other.
        ([0.3, -0.2, 0.25, -0.1, 0.1, -0.05, 0.02], AWRF, 0.48, "no measurable difference"),
        # Of one topic nothing is tested: what rounding shows of it decides.
        ([-0.0004], AWRF, 0.4, "no measurable difference"),
        ([-0.1], AWRF, 0.2, "less fair"),
        ([-0.1], LESS, 0.47, "fairer"),
    ],
)
def test_every_verdict_is_that_of_the_test(differences: list[float], measure: str, women: float, verdict: str) -> None:
    run = judged(differences, measure, women)
    (finding,) = findings(run)
    change = change_of(run, finding)
    assert change
    assert (change.verdict, change.worse) == (verdict, verdict == "less fair")
    test = finding.fairness
    assert test
    assert test.low <= test.difference <= test.high
    told = "\n".join(verdict_lines(run))
    assert told.startswith(str(change))
    if len(differences) > 1:
        assert (mark(run, finding.best) == "") == (verdict == "no measurable difference") == (test.says == "")
        assert verdict in told
        assert f"{test.low:+.4f} to {test.high:+.4f}" in told
        assert finding.record()["verdict"] == verdict
    assert str(change).replace("<", "&lt;") in page(run)
