"""Lucene queries of weighted terms in the field `contents`, which Anserini searches, and which our index has."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from fairagent.errors import DataError, UsageError
from fairagent.retrieve.java import java_class
from fairagent.types import Query

CONTENTS = "contents"
"""The field that is searched."""
MAX_TERMS = 1 << 16
"""The most distinct terms that a query may have (Lucene's own default is 1,024)."""


def term_weights(query: Query, analyze: Callable[[str], list[str]]) -> dict[str, float]:
    """The terms of a query with their weights, those of repeated terms added up."""
    weights: dict[str, float] = {}
    for text, weight in query.weighted:
        if not 1e-30 < weight < 1e30:
            raise UsageError(f"the weight of a keyword is a (usual) number above 0; that of {text[:60]!r} is {weight}")
        for term in analyze(text):
            weights[term] = weights.get(term, 0.0) + weight
    return weights


def weighted_query(weights: Mapping[str, float]) -> Any:
    """The query for terms with weights above 0; Java must be in use (`using_java`)."""
    if len(weights) > MAX_TERMS:
        raise DataError(f"a query may have {MAX_TERMS:,} distinct terms; this one has {len(weights):,}")
    boost = java_class("org.apache.lucene.search.BoostQuery")
    should = java_class("org.apache.lucene.search.BooleanClause$Occur").SHOULD
    builder = java_class("org.apache.lucene.search.BooleanQuery$Builder")()
    for term, weight in weights.items():
        clause = boost(_term_query(term), weight)
        builder.add(clause, should)
    return builder.build()


@lru_cache(maxsize=50_000)
def _term_query(term: str) -> Any:
    """The immutable Lucene query for one term: expanded queries repeat them, and creating Java objects is slow."""
    return java_class("org.apache.lucene.search.TermQuery")(java_class("org.apache.lucene.index.Term")(CONTENTS, term))
