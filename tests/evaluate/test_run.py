"""Two runs side by side: hand-computed means, over the topics that a system answered in both."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fairagent.evaluate.run import Run, differences, side_by_side

from .made_runs import outcome, run_of


def run(values: dict[str, list[float | None]], **systems: object) -> Run:
    """System -> P@1 of the topics t0, t1, ...; None: the topic failed."""
    outcomes = [
        replace(outcome(f"t{n}", name, {"": {"P@1": one or 0.0}}), failed=None if one is not None else "broken")
        for name, of in values.items()
        for n, one in enumerate(of)
    ]
    return replace(run_of(outcomes), provenance={"systems": systems})


def test_a_system_is_compared_over_the_topics_that_both_runs_answered() -> None:
    left = run({"A": [0.5, 0.25, 1.0, 0.0], "B": [1.0]})
    right = run({"A": [0.75, 0.0, None, 1.0, 1.0], "C": [1.0]})
    (row,) = side_by_side(left, right)
    assert (row.system, row.left.measure, row.left.dimension) == ("A", "P@1", "")
    # t0, t1 and t3: .5, .25 and 0 against .75, 0 and 1; t2 failed on the right, t4 is not on the left.
    assert row.right.topics == 3
    assert row.left.mean == pytest.approx(0.25)
    assert row.right.mean == pytest.approx(1.75 / 3)
    assert row.right.difference == pytest.approx(1 / 3)
    assert (row.right.wins, row.right.ties, row.right.losses) == (2, 0, 1)
    # Of the 8 ways to turn .25, -.25 and 1 round, 6 have a mean at least as far from 0 as 1/3 is: |.25 - .25 - 1| too.
    assert row.right.randomization_p == pytest.approx(0.75, abs=0.02)


def test_runs_with_nothing_in_common() -> None:
    assert side_by_side(run({"A": [1.0]}), run({"B": [1.0]})) == ()
    assert side_by_side(run({"A": [1.0]}), run({"A": [None]})) == ()


def test_excluded_topics_do_not_count() -> None:
    left = replace(run({"A": [1.0, 0.0]}), excluded={"t1": "no relevant document"})
    (row,) = side_by_side(left, run({"A": [0.0, 0.0]}))
    assert (row.left.mean, row.right.topics) == (1.0, 1)


def test_what_is_different_is_named_value_by_value() -> None:
    left = run({"A": [1.0]}, A={"n": 5, "prompts": {"x.j2": "a"}}, B={})
    right = run({"A": [1.0]}, A={"n": 6, "prompts": {"x.j2": "a"}})
    assert differences(left, right) == ["systems.A.n: was 5, is 6"]
