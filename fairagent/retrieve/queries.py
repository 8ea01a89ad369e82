"""The weighted terms of queries."""

from collections.abc import Callable

from fairagent.errors import DataError, UsageError
from fairagent.types import Query

MAX_TERMS = 1 << 16
"""The most distinct terms that a query may have."""


def term_weights(query: Query, analyze: Callable[[str], list[str]]) -> dict[str, float]:
    """The terms of a query with their weights, those of repeated terms added up.

    Raises UsageError for a weight that is no usual number above 0, DataError for more than `MAX_TERMS` terms.
    """
    weights: dict[str, float] = {}
    for text, weight in query.weighted:
        if not 1e-30 < weight < 1e30:
            raise UsageError(f"the weight of a keyword is a (usual) number above 0; that of {text[:60]!r} is {weight}")
        for term in analyze(text):
            weights[term] = weights.get(term, 0.0) + weight
    if len(weights) > MAX_TERMS:
        raise DataError(f"a query may have {MAX_TERMS:,} distinct terms; this one has {len(weights):,}")
    return weights
