"""The numbers behind the page, by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fairagent.evaluate.findings import findings, main_measure
from fairagent.evaluate.outcome import Outcome
from fairagent.evaluate.results import means_table, not_judged
from fairagent.report.topics import gains

from .runs import MEASURES, ORACLE, SYSTEMS, failed, made_run, tiny_run

NDCG, AWRF, PRODUCT = map(str, MEASURES)


def changed(run, place: int, **changes):
    """`run` with one outcome changed."""
    outcomes: list[Outcome] = list(run.outcomes)
    outcomes[place] = replace(outcomes[place], **changes)
    return replace(run, outcomes=tuple(outcomes))


def test_counted_topics_leave_out_what_failed_what_is_excluded_and_what_is_not_done():
    run = tiny_run()
    assert run.counted_topics == ("t1", "t2")
    assert replace(run, excluded={"t1": "why"}).counted_topics == ("t2",)
    assert replace(run, outcomes=run.outcomes[:3]).counted_topics == ("t1",)
    assert replace(run, outcomes=(*run.outcomes[:3], failed(run.outcomes[3], "no"))).counted_topics == ("t1",)


def test_a_dimension_is_won_by_the_product_or_else_by_awrf():
    run = tiny_run()
    assert main_measure(run, "gender") == PRODUCT
    without = tuple(row for row in run.comparisons if row.measure != PRODUCT)
    assert main_measure(replace(run, comparisons=without), "gender") == AWRF
    assert main_measure(replace(run, comparisons=()), "gender") is None


def test_gains_topic_by_topic():
    gained = gains(tiny_run(), "gender", PRODUCT)
    assert list(gained) == ["B"]
    assert gained["B"] == pytest.approx({"t1": 0.6 * 0.9 - 0.5 * 0.8, "t2": 0.5 * 0.8 - 0.7 * 1.0})


def test_mean_exposures():
    a, b = tiny_run().mean_exposures("gender")
    assert a.labels == ("female", "male")
    np.testing.assert_allclose(a.shares, [0.3, 0.7])
    np.testing.assert_allclose(b.shares, [0.45, 0.55])
    np.testing.assert_allclose(b.target, [0.5, 0.5])


def test_mean_exposures_are_over_the_topics_that_count_for_the_dimension():
    run = tiny_run()
    for place in (2, 3):
        run = changed(run, place, values={"": run.outcomes[place].values[""]})
    a, _ = run.mean_exposures("gender")
    np.testing.assert_allclose(a.shares, [0.2, 0.8])
    assert a.topics == 1
    assert not_judged(run) == {"gender": ("t2",)}


def test_the_finding_is_the_best_system_that_saw_no_judgments():
    for finding in findings(made_run()):
        assert finding.best.system == "agent, exposure"
        assert finding.best.system != ORACLE
        assert finding.baseline.system == SYSTEMS[0]
        assert finding.verdict == "better"
        assert [best.measure for best, _ in finding.others] == [NDCG, AWRF]
    (finding,) = findings(tiny_run())
    assert finding.best.difference == pytest.approx((0.54 - 0.40 + 0.40 - 0.70) / 2)
    assert finding.verdict == ""


def test_the_best_mean_is_never_an_oracles():
    rows = means_table(made_run()).rows
    assert [row[0] for row in rows if any(cell.best for cell in row[1:])] == ["agent, exposure"]
