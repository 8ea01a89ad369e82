"""Pools of one or two dimensions, written as letters, for re-rankers that order by groups; what FA*IR asks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from fairagent.search.rerank.base import Pool
from fairagent.types import Document, FloatArray, Query, Ranking

ROW = {"f": (0.0, 1.0, 0.0), "m": (0.0, 0.0, 1.0), "u": (1.0, 0.0, 0.0), "b": (0.0, 1.0, 1.0), "x": (0.0, 0.0, 0.0)}
"""Unknown, female, male; b is both, x has a row without anything."""


def pool(
    letters: str,
    n: int = 10,
    target: Sequence[float] = (0.5, 0.5),
    second: str = "",
    scores: Sequence[float] | None = None,
    other: Sequence[float] = (0.5, 0.5),
    query: Query | None = None,
) -> Pool:
    """Documents f0, m1 ... with the scores m, m - 1 ... 1; `second` are the letters of a second dimension."""
    ids = tuple(f"{letter}{i}" for i, letter in enumerate(letters))
    dimensions = [letters, second] if second else [letters]
    rows = tuple(np.array([ROW[letter] for letter in line], dtype=np.float64).reshape(-1, 3) for line in dimensions)
    values = np.array(range(len(ids), 0, -1) if scores is None else scores, dtype=np.float64)
    targets = tuple(np.array(shares, dtype=np.float64) for shares in (target, other)[: len(rows)])
    return Pool(query or Query("q", "7"), Ranking(ids, values), rows, targets, n)


@st.composite
def pools(draw: st.DrawFn) -> Pool:
    """Up to 9 documents of one or two dimensions, with ties, any cut-off, and targets of which one may be 0."""
    size = draw(st.integers(0, 9))
    lines = [draw(st.text("fmubx", min_size=size, max_size=size)) for _ in range(2)]
    shares = [draw(st.sampled_from([0.0, 0.1, 0.25, 1 / 3, 0.5, 1.0])) for _ in range(2)]
    scores = sorted(draw(st.lists(st.integers(0, 4), min_size=size, max_size=size)), reverse=True)
    second = lines[1] if draw(st.booleans()) else ""
    target, other = ((share, 1 - share) for share in shares)
    return pool(lines[0], draw(st.integers(1, 12)), target, second, scores, other)


class Texts:
    """An engine that knows the title and the text of each document, and finds none."""

    def search(self, query: Query, n: int) -> Ranking:
        raise NotImplementedError

    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        raise NotImplementedError

    def document(self, id: str) -> Document:
        return Document(id, f"text of {id}", f"title of {id}")


def is_fair(protected: np.ndarray, table: np.ndarray) -> bool:
    """Whether every prefix of `protected` (n,), in rank order, has what `table` (k,) asks; over the shorter of both."""
    ranks = min(len(protected), len(table))
    return bool((np.cumsum(protected[:ranks]) >= table[:ranks]).all())
