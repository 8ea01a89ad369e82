"""Vector search over Anserini's HNSW: exact inner products, whichever segment an embedding is in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from fairagent.errors import IndexMismatch
from fairagent.guests.lucene.bm25 import AnseriniRetriever
from fairagent.guests.lucene.vectors import HnswRetriever
from fairagent.types import Query

from .conftest import IDS, ROWS, unit_rows


class Told:
    """An encoder of one vector for all queries; documents have those of `rows`, by their texts."""

    name = "told"

    def __init__(self, query: Any, rows: dict[str, Any] | None = None) -> None:
        self.query, self.rows = np.asarray(query, np.float32), rows or {}

    def queries(self, texts: Sequence[str]) -> Any:
        return np.array([self.query] * len(texts))

    def documents(self, texts: Sequence[str]) -> Any:
        return np.array([self.rows[text] for text in texts], np.float32)


QUERY = unit_rows(1, seed=21)[0]
EXACT = dict(zip(IDS, (unit_rows().astype(float) @ QUERY.astype(float)).tolist(), strict=True))


@pytest.mark.parametrize("name", ["hnsw", "hnsw-int8"])
def test_the_nearest_with_their_exact_products(built, name):
    found = HnswRetriever(built / name, Told(QUERY)).search(Query("any"), 5)
    best = sorted(EXACT, key=EXACT.__getitem__, reverse=True)[:5]
    assert list(found.ids) == best
    assert found.scores == pytest.approx([EXACT[id] for id in best], abs=1e-6)


def test_a_pool_has_the_scores_of_the_search_in_the_order_asked_for(built):
    engine = HnswRetriever(built / "hnsw", Told(QUERY))
    found = engine.search(Query("any"), 12)
    turned = [*reversed(found.ids), found.ids[3]]
    assert engine.score(Query("any"), turned).tolist() == [*reversed(found.scores.tolist()), found.scores[3]]
    assert engine.score(Query("any"), []).shape == (0,)


def test_embeddings_are_the_stored_ones(built):
    engine = HnswRetriever(built / "hnsw", Told(QUERY))
    asked = [IDS[8], IDS[0], IDS[11], IDS[8]]
    assert engine.vectors(asked) == pytest.approx(unit_rows()[[8, 0, 11, 8]])
    assert engine.query_vector(Query("any")).tolist() == QUERY.tolist()


def test_another_encoder_is_found_by_its_dimensions(built):
    with pytest.raises(IndexMismatch, match=r"embeddings of 8 numbers, and those of 'told' have 3; name the encoder"):
        HnswRetriever(built / "hnsw", Told([1, 0, 0]))


def test_another_encoder_of_as_many_dimensions_is_found_by_the_texts(built):
    words = AnseriniRetriever(built / "raw")
    texts = [row["contents"] for row in ROWS]
    same = Told(QUERY, dict(zip(texts, unit_rows() + 0.1, strict=True)))
    engine = HnswRetriever(built / "hnsw", same, words=words)
    assert engine.document(IDS[3]).text == texts[3]
    assert engine.analyze("lawyers") == ["lawyer"]
    other = Told(QUERY, dict(zip(texts, unit_rows(seed=77), strict=True)))
    with pytest.raises(IndexMismatch, match=r"are not those of 'told': the mean cosine of 3 documents' is -?0\.\d\d"):
        HnswRetriever(built / "hnsw", other, words=words)
