"""What the laws are tried on: distributions, memberships and rankings, the same ones at every run."""

from __future__ import annotations

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fairagent.measures import LOG2_MAX2, LOG2_PLUS1, UNIFORM, Discount
from fairagent.types import FloatArray

law = settings(derandomize=True, database=None, deadline=None, max_examples=100)

# Either nothing at all or an amount that a sum does not swallow, so that "equal" and "differs" are plain to see.
AMOUNTS = st.one_of(st.just(0.0), st.floats(0.01, 1.0))

DISCOUNTS: st.SearchStrategy[Discount] = st.one_of(
    st.sampled_from([LOG2_MAX2, LOG2_PLUS1, UNIFORM]),
    st.floats(0.01, 1.0).map(lambda patience: Discount("geometric", (patience,))),
    st.integers(1, 1000).map(lambda k: Discount("step", (k,))),
)
BROWSING = DISCOUNTS | st.lists(st.floats(0.0, 9.0), max_size=5).map(lambda rest: Discount("given", (1.0, *rest)))
"""Those too whose weights rise again."""


def masses(groups: int) -> st.SearchStrategy[FloatArray]:
    """Some mass on `groups` groups, of which some may be empty, but not all."""
    return arrays(np.float64, groups, elements=AMOUNTS).filter(np.any)


def distributions(groups: int) -> st.SearchStrategy[FloatArray]:
    return masses(groups).map(lambda mass: mass / mass.sum())


@st.composite
def pairs(draw: st.DrawFn) -> tuple[FloatArray, FloatArray]:
    """Two distributions over the same 1 to 8 groups."""
    groups = draw(st.integers(1, 8))
    return draw(distributions(groups)), draw(distributions(groups))


@st.composite
def rankings(draw: st.DrawFn) -> tuple[FloatArray, FloatArray]:
    """Memberships (n, g) whose rows add up to 1, n from 1 to 12, and a target (g,), g from 2 to 6."""
    n, groups = draw(st.integers(1, 12)), draw(st.integers(2, 6))
    rows = draw(arrays(np.float64, (n, groups), elements=AMOUNTS))
    rows[~rows.any(axis=1), 0] = 1.0  # a document without any label is unknown
    return rows / rows.sum(axis=1, keepdims=True), draw(distributions(groups))
