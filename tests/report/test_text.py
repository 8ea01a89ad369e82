from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fairagent.report.text import exposure_table, hits_table, plain
from fairagent.types import Exposure, Hit, Ranking, SearchResult, Trace
from fairagent.types.change import percent

LONG = "Latin America and the Caribbean"


def test_the_ranking_by_hand(result: SearchResult) -> None:
    lines = plain(hits_table(result.hits), 60).splitlines()
    assert lines[1].split() == ["rank", "title", "gender"]
    assert lines[3].split() == ["1", "First", "female"]
    assert lines[4].split() == ["2", "d1", "-"]


def test_scores_are_the_engines_and_ranks_are_ranks(result: SearchResult) -> None:
    """What a re-ranker's list has in the place of scores encodes the rank: it is never printed as a score."""
    ids = tuple(hit.id for hit in result.hits)
    same = plain(hits_table(result.hits, Ranking(ids, np.array([7.5, 2.25]))), 60).splitlines()
    assert same[1].split() == ["rank", "title", "gender", "score"]
    assert [line.split()[-1] for line in same[3:5]] == ["7.500", "2.250"]
    other = Ranking(("x", ids[1]), np.array([7.5, 2.25]))
    moved = plain(hits_table(result.hits, other), 60).splitlines()
    assert moved[1].split() == ["rank", "was", "title", "gender", "score"]
    assert moved[3].split() == ["1", "new", "First", "female", "-"]
    assert moved[4].split() == ["2", "2", "d1", "-", "2.250"]


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


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
def test_numbers_survive_any_width(width: int) -> None:
    labels = (LONG, "Africa")
    before = Exposure("region", labels, np.array([0.876, 0.124]), np.array([0.5, 0.5]), 0.1, 0.3)
    after = Exposure("region", labels, np.array([0.543, 0.457]), np.array([0.5, 0.5]), 0.0, 0.01)
    from .conftest import make_trace

    trace = make_trace()
    trace = replace(trace, steps=(replace(trace.steps[0], exposures=(before,)),), exposures=(after,))
    text = plain(exposure_table(trace), width)
    assert max(map(len, text.splitlines())) <= width
    for number in ("88%", "12%", "54%", "46%", "50%", "0.3000", "0.0100"):
        assert number in text
    assert "│" in text
    assert (LONG in text) == (width >= 100)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_long_titles_and_labels_take_one_line_and_leave_the_numbers(width: int) -> None:
    groups = {"gender": {"female": 1.0}, "region": {LONG: 0.5, "Northern America": 0.3, "Western Asia": 0.2}}
    hits = [Hit(rank, f"d{rank}", 1 / rank, "A very long title " * 10, groups) for rank in (1, 2, 1000)]
    own = Ranking(tuple(hit.id for hit in hits), np.array([hit.score for hit in hits]))
    lines = plain(hits_table(hits, own), width).splitlines()
    assert len([line for line in lines if line.strip()]) == 6
    assert max(map(len, lines)) <= width
    assert lines[5].split()[0] == "1000"
    assert lines[5].split()[-1] == "0.001"


def test_titles_are_no_markup() -> None:
    hits = [Hit(1, "d1", 1.0, "[red]x[/] [/]", {"[bold]": {"[b]y[/b]": 1.0}})]
    text = plain(hits_table(hits), 80)
    for literal in ("[red]x[/] [/]", "[bold]", "[b]y[/b]"):
        assert literal in text


def test_percent_rounds_nothing_away() -> None:
    shares = {0: "0%", 1e-9: "<1%", 0.005: "<1%", 0.0051: "1%", 0.5: "50%", 0.999: "100%", 1: "100%"}
    assert {share: percent(share) for share in shares} == shares


@pytest.mark.parametrize(("due", "shown"), [(0.2, "20%"), (None, "-")])
def test_documents_without_a_label_have_a_bar_and_a_target(trace: Trace, due: float | None, shown: str) -> None:
    before = replace(trace.steps[0].exposures[0], unknown=0.4, unknown_target=due)
    after = replace(trace.exposures[0], unknown=0.3, unknown_target=due)
    trace = replace(trace, steps=(replace(trace.steps[0], exposures=(before,)),), exposures=(after,))
    lines = plain(exposure_table(trace), 80).splitlines()
    assert max(map(len, lines)) <= 80
    row = lines[4]
    assert row.startswith("  no label")
    assert [word for word in row.split() if word.endswith("%")] == ["40%", "30%", *([shown] if due else [])]
    assert row.endswith(shown)
    assert row.count("│") == (2 if due else 0)
    # The same scale as the groups' bars: .4 of .9, .3 of .9.
    bars = [part.count("█") for part in (row[: row.index("40%")], row[row.index("40%") :])]
    assert 0 < bars[1] < bars[0] < lines[3].count("█")
