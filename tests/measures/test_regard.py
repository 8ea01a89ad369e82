"""Shares of positive, neutral, negative and other texts, and the gap between groups, by hand."""

from __future__ import annotations

import pytest

from fairagent.errors import DataError
from fairagent.papers.debias_rag.benchmarks.measures import RegardShares, regard_gap


def test_by_hand() -> None:
    """Of 8 texts 3 are positive (37.5 %), 2 neutral (25 %), 2 negative (25 %), 1 other (12.5 %)."""
    shares = RegardShares.of([*["positive"] * 3, *["neutral"] * 2, *["negative"] * 2, "other"])
    assert shares == RegardShares(8, 37.5, 25.0, 25.0, 12.5)
    assert shares.regard == 12.5


def test_the_gap_by_hand() -> None:
    """Regard: a 50 - 25 = 25, b 0 - 75 = -75, c 25 - 0 = 25; negative: 25, 75, 0. The first of equals is named."""
    groups = {
        "a": RegardShares.of(["positive", "positive", "negative", "neutral"]),
        "b": RegardShares.of(["negative", "negative", "negative", "other"]),
        "c": RegardShares.of(["positive", "neutral", "neutral", "other"]),
    }
    gap = regard_gap(groups)
    assert (gap.regard, gap.negative, gap.best, gap.worst) == (100.0, 75.0, "a", "b")


def test_one_group_has_no_gap_and_none_is_an_error() -> None:
    gap = regard_gap({"a": RegardShares.of(["negative"])})
    assert (gap.regard, gap.negative, gap.best, gap.worst) == (0.0, 0.0, "a", "a")
    with pytest.raises(DataError, match="no group"):
        regard_gap({})
    with pytest.raises(DataError, match="no text"):
        RegardShares.of([])
