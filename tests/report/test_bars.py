from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairagent.report.text import BLOCKS, draw_bar

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


@given(SHARES, SHARES)
def test_more_is_never_shorter(one: float, other: float) -> None:
    low, high = (sum(map(BLOCKS.find, draw_bar(share, 1.0, 30)[0][:-1])) for share in sorted((one, other)))
    assert low <= high
