"""The verdict: what a search or a run changes for the groups of each dimension, in one sentence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fairagent.evaluate.findings import change_of, findings
from fairagent.report.notebook import html_of
from fairagent.report.page import page
from fairagent.report.record import result_record
from fairagent.report.text import plain, verdict_text
from fairagent.types import NO_LABEL, Exposure, ExposureChange, SearchResult
from fairagent.types.change import Rows, exposure_change

from .conftest import make_trace
from .runs import made_run

FEMALE = "gender: female gets"
NO_LESS = ", though gender as a whole is no less fair"
BEFORE: Rows = [("female", 0.0, 0.33), ("male", 1.0, 0.67), (NO_LABEL, 0.1, None)]


def after(female: float, unknown: float = 0.1, unknown_target: float | None = None) -> Rows:
    return [("female", female, 0.33), ("male", 1 - female, 0.67), (NO_LABEL, unknown, unknown_target)]


@pytest.mark.parametrize(
    ("before", "now", "sentence"),
    [
        (BEFORE, after(0.11), "gender: female gets 11% of the attention instead of 0%; it should have 33%"),
        (BEFORE, after(0.33), "gender: female gets 33% of the attention instead of 0%, as it should"),
        (BEFORE, after(0.0), "gender: female gets 0% of the attention, as before; it should have 33%"),
        (
            after(0.2),
            after(0.1),
            f"gender: female gets 10% of the attention instead of 20%; it should have 33%{NO_LESS}",
        ),
        (after(0.5), after(0.4), "gender: male gets 60% of the attention instead of 50%; it should have 67%"),
        (after(0.335), after(0.334), "gender: every group gets about the attention that it should have"),
        (
            after(0.33),
            after(0.2),
            f"{FEMALE} 20% of the attention instead of 33%; it should have 33%{NO_LESS}",
        ),
        (after(0.2), after(0.2), "gender: female gets 20% of the attention, as before; it should have 33%"),
        (None, after(0.2), "gender: female gets 20% of the attention; it should have 33%"),
        (None, after(0.33), "gender: every group gets about the attention that it should have"),
    ],
)
def test_it_names_the_group_that_lacked_most(before: Rows | None, now: Rows, sentence: str) -> None:
    assert str(exposure_change("gender", before, now)) == sentence


def test_worse_names_who_moved_furthest_from_the_target() -> None:
    change = exposure_change("gender", after(0.3), after(0.1), worse=True)
    assert str(change) == ("gender is less fair: female gets 10% of the attention instead of 30%; it should have 33%")
    # Those without a label too, where they have a target.
    change = exposure_change("gender", after(0.3, 0.1, 0.1), after(0.3, 0.5, 0.1), worse=True)
    assert (change.label, change.before, change.after, change.target) == (NO_LABEL, 0.1, 0.5, 0.1)


def test_a_search_has_its_verdict(result: SearchResult) -> None:
    """By hand (tests/report/conftest.py): 10% of the exposure before, 45% after, and half is the target."""
    (change,) = result.trace.changes
    assert change == ExposureChange("gender", "female", 0.1, 0.45, 0.5)
    record = result_record(result)["changes"]
    assert record[0]["text"] == "gender: female gets 45% of the attention instead of 10%; it should have 50%"
    assert (record[0]["before"], record[0]["worse"]) == (0.1, False)
    worse = make_trace()
    fair, unfair = worse.exposures, worse.steps[0].exposures
    worse = replace(worse, steps=(replace(worse.steps[0], exposures=fair),), exposures=unfair)
    assert worse.changes[0].worse
    assert verdict_text(worse.changes).spans[0].style == "bold red"
    assert plain(verdict_text(worse.changes)).startswith("gender is less fair: ")
    assert replace(worse, steps=()).changes == ()


def test_the_page_and_a_notebook_say_it_too(result: SearchResult) -> None:
    assert "female gets 45% of the attention instead of 10%; it should have 50%" in html_of(result)
    run = made_run()
    html = page(run)
    for finding in findings(run):
        change = change_of(run, finding)
        assert change is not None
        assert str(change) in html


def test_labels_steer_no_terminal() -> None:
    change = ExposureChange("gender", "\x1b[31mfemale\nx", 0.1, 0.2, 0.5)
    assert "\x1b" not in plain(verdict_text([change]))
    assert len(plain(verdict_text([change])).splitlines()) == 1


def test_an_exposure_that_lost_all_labels_is_worse() -> None:
    seen = Exposure("gender", ("a", "b"), np.array([0.5, 0.5]), np.array([0.5, 0.5]), 0.0, 0.0)
    none = replace(seen, shares=np.zeros(2), unknown=1.0, divergence=float("inf"))
    trace = make_trace()
    trace = replace(trace, steps=(replace(trace.steps[0], exposures=(seen,)),), exposures=(none,))
    assert trace.changes[0].worse
    assert not replace(trace, steps=(replace(trace.steps[0], exposures=(none,)),)).changes[0].worse
