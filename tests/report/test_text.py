"""Rankings, exposures, bars and verdicts as text."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairagent.report.record import result_record
from fairagent.report.text import draw_bar, exposure_table, hits_table, plain, verdict_text
from fairagent.types import NO_LABEL, Exposure, ExposureChange, Hit, Ranking, SearchResult, Trace
from fairagent.types.change import Rows, exposure_change, percent, seen_change

from .conftest import make_trace

LONG = "Latin America and the Caribbean"


def test_the_ranking_by_hand(result: SearchResult) -> None:
    """Scores are the engine's: what a re-ranker's list has in their place encodes the rank, and is never printed."""
    ids = tuple(hit.id for hit in result.hits)

    def shown(engines: Ranking | None) -> list[list[str]]:
        lines = plain(hits_table(result.hits, engines), 60).splitlines()
        return [lines[number].split() for number in (1, 3, 4)]

    assert shown(None) == [["rank", "title", "gender"], ["1", "First", "female"], ["2", "d1", "-"]]
    head, *rows = shown(Ranking(ids, np.array([7.5, 2.25])))
    assert head == ["rank", "title", "gender", "score"]
    assert [row[-1] for row in rows] == ["7.500", "2.250"]
    head, first, second = shown(Ranking(("x", ids[1]), np.array([7.5, 2.25])))
    assert head == ["rank", "was", "title", "gender", "score"]
    assert (first, second) == (["1", "new", "First", "female", "-"], ["2", "2", "d1", "-", "2.250"])


def test_the_exposure_by_hand(trace: Trace) -> None:
    lines = plain(exposure_table(trace), 60).splitlines()
    assert lines[0].split() == ["exposure", "before", "after", "target"]
    assert lines[1] == "gender"
    numbers = [[word for word in line.split() if word[0].isalnum()] for line in lines[2:6]]
    assert numbers == [
        ["female", "10%", "45%", "50%"],
        ["male", "90%", "55%", "50%"],
        ["no", "label", "25%", "0%"],
        ["divergence", "0.3700", "0.0050"],
    ]
    assert lines[6] == "| is the target: uniform"
    # One scale for all: the longest bar (90%) fills its column, 10% is a ninth of it.
    female, male = (line.split("  ") for line in lines[2:4])
    assert "".join(male).count("█") > 5 * "".join(female[:6]).count("█")


def between(before: Exposure, after: Exposure) -> Trace:
    """A search with these exposures."""
    trace = make_trace()
    return replace(trace, steps=(replace(trace.steps[0], exposures=(before,)),), exposures=(after,))


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_numbers_survive_any_width(width: int) -> None:
    before = Exposure("region", (LONG, "Africa"), np.array([0.876, 0.124]), np.array([0.5, 0.5]), 0.1, 0.3)
    after = replace(before, shares=np.array([0.543, 0.457]), unknown=0.0, divergence=0.01)
    text = plain(exposure_table(between(before, after)), width)
    assert max(map(len, text.splitlines())) <= width
    for number in ("88%", "12%", "54%", "46%", "50%", "0.3000", "0.0100", "│"):
        assert number in text
    # The columns of both bars are as wide as each other, up to the numbers of two digits behind them.
    head = text.splitlines()[0]
    first, second, third = (head.index(word) for word in ("before", "after", "target"))
    assert second - first == third - second
    assert (LONG in text) == (width >= 100)
    # Long titles and labels take one line.
    groups = {"gender": {"female": 1.0}, "region": {LONG: 0.5, "Northern America": 0.3, "Western Asia": 0.2}}
    hits = [Hit(rank, f"d{rank}", 1 / rank, "A very long title " * 10, groups) for rank in (1, 2, 1000)]
    own = Ranking(tuple(hit.id for hit in hits), np.array([hit.score for hit in hits]))
    lines = plain(hits_table(hits, own), width).splitlines()
    assert len([line for line in lines if line.strip()]) == 6
    assert max(map(len, lines)) <= width
    assert (lines[5].split()[0], lines[5].split()[-1]) == ("1000", "0.001")


def test_titles_are_no_markup() -> None:
    hits = [Hit(1, "d1", 1.0, "[red]x[/] [/]", {"[bold]": {"[b]y[/b]": 1.0}})]
    text = plain(hits_table(hits), 80)
    assert all(literal in text for literal in ("[red]x[/] [/]", "[bold]", "[b]y[/b]"))


def test_percent_rounds_nothing_away() -> None:
    shares = {0: "0%", 1e-9: "<1%", 0.005: "<1%", 0.0051: "1%", 0.5: "50%", 0.999: "100%", 1: "100%"}
    assert {share: percent(share) for share in shares} == shares


@pytest.mark.parametrize(("due", "shown"), [(0.2, "20%"), (None, "-")])
def test_documents_without_a_label_have_a_bar_and_a_target(trace: Trace, due: float | None, shown: str) -> None:
    before = replace(trace.steps[0].exposures[0], unknown=0.4, unknown_target=due)
    after = replace(trace.exposures[0], unknown=0.3, unknown_target=due)
    lines = plain(exposure_table(between(before, after)), 80).splitlines()
    assert max(map(len, lines)) <= 80
    row = lines[4]
    assert row.startswith("  no label")
    assert [word for word in row.split() if word.endswith("%")] == ["40%", "30%", *([shown] if due else [])]
    assert row.endswith(shown)
    assert row.count("│") == (2 if due else 0)
    # The same scale as the groups' bars: .4 of .9, .3 of .9.
    bars = [part.count("█") for part in (row[: row.index("40%")], row[row.index("40%") :])]
    assert 0 < bars[1] < bars[0] < lines[3].count("█")


SHARES = st.floats(0, 1)


@pytest.mark.parametrize(
    ("share", "target", "drawn"),
    [
        (0.0, 0.0, "│   "),
        (0.0, 1.0, "   │"),
        (1.0, 1.0, "███│"),
        (0.5, 0.5, "██│ "),
        (0.5, 0.0, "│█  "),
        (0.28125, 0.75, "█▏ │"),
        (0.99, 0.25, "█│██"),
    ],
)
def test_drawn_by_hand(share: float, target: float, drawn: str) -> None:
    assert draw_bar(share, target, 4)[0] == drawn


@given(SHARES, SHARES, st.integers(1, 60))
def test_the_width_is_kept_and_the_tick_is_where_it_is_said_to_be(share: float, target: float, width: int) -> None:
    for ascii_only, tick in ((False, "│"), (True, "|")):
        drawn, place = draw_bar(share, target, width, ascii_only)
        assert len(drawn) == width
        assert [i for i, cell in enumerate(drawn) if cell == tick] == [place]
        assert drawn.isascii() == ascii_only


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
        (after(0.2), after(0.1), f"{FEMALE} 10% of the attention instead of 20%; it should have 33%{NO_LESS}"),
        (after(0.5), after(0.4), "gender: male gets 60% of the attention instead of 50%; it should have 67%"),
        (after(0.335), after(0.334), "gender: every group gets about the attention that it should have"),
        (after(0.2), after(0.2), "gender: female gets 20% of the attention, as before; it should have 33%"),
        (None, after(0.2), "gender: female gets 20% of the attention; it should have 33%"),
    ],
)
def test_it_names_the_group_that_lacked_most(before: Rows | None, now: Rows, sentence: str) -> None:
    assert str(exposure_change("gender", before, now)) == sentence


def test_worse_names_who_moved_furthest_from_the_target() -> None:
    change = exposure_change("gender", after(0.3), after(0.1), verdict="less fair")
    assert str(change) == ("gender is less fair: female gets 10% of the attention instead of 30%; it should have 33%")
    # Those without a label too, where they have a target.
    change = exposure_change("gender", after(0.3, 0.1, 0.1), after(0.3, 0.5, 0.1), verdict="less fair")
    assert (change.label, change.before, change.after, change.target) == (NO_LABEL, 0.1, 0.5, 0.1)


@pytest.mark.parametrize(
    ("shares", "rise", "verdict"),
    [
        # .9704 to .9702 is nothing, whatever the shares do; nor is what no group's percents show.
        ((0.3, 0.29), 0.0002, "no measurable difference"),
        ((0.3, 0.296), 0.02, "no measurable difference"),
        ((0.3, 0.29), 0.006, "less fair"),
        ((0.3, 0.32), -0.006, "fairer"),
        ((0.0, 0.0), math.nan, "no measurable difference"),
        ((0.3, 0.0), math.inf, "less fair"),
    ],
)
def test_of_one_query_what_rounding_hides_is_no_difference(
    shares: tuple[float, float], rise: float, verdict: str
) -> None:
    assert seen_change(after(shares[0]), after(shares[1]), rise) == verdict


def test_a_search_has_its_verdict(result: SearchResult) -> None:
    """By hand (tests/report/conftest.py): 10% of the exposure before, 45% after, and half is the target."""
    (change,) = result.trace.changes
    assert change == ExposureChange("gender", "female", 0.1, 0.45, 0.5, "fairer")
    record = result_record(result)["changes"]
    assert record[0]["text"] == "gender: female gets 45% of the attention instead of 10%; it should have 50%"
    assert (record[0]["before"], record[0]["worse"], record[0]["verdict"]) == (0.1, False, "fairer")
    trace = make_trace()
    worse = between(trace.exposures[0], trace.steps[0].exposures[0])
    assert worse.changes[0].worse
    assert verdict_text(worse.changes).spans[0].style == "bold red"
    assert plain(verdict_text(worse.changes)).startswith("gender is less fair: ")
    assert replace(worse, steps=()).changes == ()
    # A list that lost all labels is worse; labels steer no terminal.
    seen = Exposure("gender", ("a", "b"), np.array([0.5, 0.5]), np.array([0.5, 0.5]), 0.0, 0.0)
    none = replace(seen, shares=np.zeros(2), unknown=1.0, divergence=float("inf"))
    assert [between(one, none).changes[0].worse for one in (seen, none)] == [True, False]
    shown = plain(verdict_text([ExposureChange("gender", "\x1b[31mfemale\nx", 0.1, 0.2, 0.5)]))
    assert ("\x1b" in shown, len(shown.splitlines())) == (False, 1)
