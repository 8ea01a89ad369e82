"""The first documents of a query, exactly and always in the same order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairagent.retrieve.encoder import Embeddings


def top(queries: Embeddings, documents: Embeddings, count: int) -> NDArray[np.intp]:
    """The places of the `count` documents (n, d) with the largest inner products, (q, count), for each query (q, d).

    The largest first; ties by place. There are at least `count` documents.

    >>> top(np.array([[1.0, 0.0]]), np.array([[0.5, 0], [0.9, 0], [0.5, 1]]), 2).tolist()
    [[1, 0]]
    """
    found = np.empty((len(queries), count), np.intp)
    for row, query in zip(found, queries, strict=True):
        scores = documents @ query
        least = np.partition(scores, -count)[-count]
        close = np.flatnonzero(scores >= least)
        row[:] = close[np.argsort(-scores[close], kind="stable")[:count]]
    return found
