"""Scoring the items of a question's own profile: each profile is a little corpus."""

from typing import Literal

import numpy as np
from scipy.sparse import issparse

from fairagent.collection.lamp import LampQuestion
from fairagent.errors import DataError
from fairagent.retrieve.encoder import Encoder
from fairagent.retrieve.okapi import okapi_scores
from fairagent.retrieve.splade_encoder import SparseTextEncoder
from fairagent.types import FloatArray


def score_items(question: LampQuestion, engine: Literal["okapi"] | Encoder | SparseTextEncoder) -> FloatArray:
    """The score of each item of the question for its query, (n,), finite: Okapi's, or inner products of vectors.

    Raises DataError where an encoder gives what is no number.
    """
    texts = [item.text for item in question.items]
    if engine == "okapi":
        return okapi_scores(question.query, texts)
    if not texts:
        return np.zeros(0)
    products = engine.documents(texts) @ engine.queries([question.query]).T
    dense = products.toarray() if issparse(products) else products
    scores: FloatArray = np.asarray(dense, dtype=np.float64)[:, 0]
    if not np.isfinite(scores).all():
        item = question.items[int(np.argmin(np.isfinite(scores)))]
        raise DataError(f"question {question.id!r}: {engine.name} gives item {item.id!r} a score that is no number")
    return scores
