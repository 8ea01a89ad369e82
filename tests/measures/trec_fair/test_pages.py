from __future__ import annotations

import pytest

from fairagent.errors import DataError
from fairagent.measures.trec_fair import Pages
from fairagent.types import UNKNOWN

from .worlds import G, X


def test_pages_are_sorted_and_the_first_entry_of_a_page_counts() -> None:
    pages = Pages.from_alignments(
        [G, X],
        [
            (30, {"g": {"f": 1.0}, "x": {"b": 1.0}}, "FA"),
            (4, {"g": {"f": 0.5, "m": 0.5}}, None),
            (30, {"g": {"m": 1.0}, "x": {"a": 1.0}}, "Stub"),
            (5, {"g": {UNKNOWN: 0.25, "m": 2.0}, "x": {"a": 0.0}}, "Stub"),
        ],
    )
    assert (len(pages), pages.ids.tolist(), pages.quality.tolist()) == (3, [4, 5, 30], [-1, 0, 5])
    assert pages.matrix("g").tolist() == [[0.0, 0.5, 0.5], [0.25, 0.0, 2.0], [0.0, 1.0, 0.0]]
    assert pages.matrix("x").tolist() == [[0.0, 0.0], [0.0, 0.0], [0.0, 1.0]]
    assert pages.dimension("x") is X


def test_equal_rows_are_kept_once() -> None:
    pages = Pages.from_alignments([G], [(page, {"g": {"fm"[page % 2]: 1.0}}, None) for page in range(100)])
    assert len(pages.rows_of("g").counts) == 2
    assert pages.rows_of("g").plain


@pytest.mark.parametrize(
    ("page", "weights", "quality", "message"),
    [
        (7, {"x": 1.0}, None, "page 7: 'x' is no label of 'g'"),
        (7, {"f": -1.0}, None, "page 7: the weight of 'f' is -1.0, expected a finite number of 0 or more"),
        (7, {"f": 1.0}, "Great", "page 7: quality 'Great' is none of Stub, Start, C, B, GA, FA"),
        (-1, {"f": 1.0}, None, "page -1: page ids are from 0 to 2147483647"),
    ],
)
def test_what_is_no_page_is_refused(page: int, weights: dict[str, float], quality: str | None, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Pages.from_alignments([G], [(page, {"g": weights}, quality)])
