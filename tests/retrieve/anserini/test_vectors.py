"""Anserini's HNSW: exact inner products, whichever segment an embedding is in; its impacts: sums by hand."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from fairagent.errors import IndexMismatch
from fairagent.guests.lucene.bm25 import AnseriniRetriever
from fairagent.guests.lucene.vectors import HnswRetriever, ImpactRetriever
from fairagent.types import Query, Term

from .conftest import IDS, ROWS, WEIGHTS, unit_rows


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


def test_a_pool_has_the_scores_of_the_search_and_the_stored_embeddings(built):
    engine = HnswRetriever(built / "hnsw", Told(QUERY))
    found = engine.search(Query("any"), 12)
    turned = [*reversed(found.ids), found.ids[3]]
    assert engine.score(Query("any"), turned).tolist() == [*reversed(found.scores.tolist()), found.scores[3]]
    assert engine.score(Query("any"), []).shape == (0,)
    assert engine.vectors([IDS[8], IDS[0], IDS[11], IDS[8]]) == pytest.approx(unit_rows()[[8, 0, 11, 8]])
    assert engine.query_vector(Query("any")).tolist() == QUERY.tolist()


def test_another_encoder_is_found_by_its_dimensions_or_by_the_texts(built):
    with pytest.raises(IndexMismatch, match=r"have 8 numbers, not 3 as 'told'; name the encoder"):
        HnswRetriever(built / "hnsw", Told([1, 0, 0]))
    words = AnseriniRetriever(built / "raw")
    texts = [row["contents"] for row in ROWS]
    same = Told(QUERY, dict(zip(texts, unit_rows() + 0.1, strict=True)))
    engine = HnswRetriever(built / "hnsw", same, words=words)
    assert (engine.document(IDS[3]).text, engine.analyze("lawyers")) == (texts[3], ["lawyer"])
    other = Told(QUERY, dict(zip(texts, unit_rows(seed=77), strict=True)))
    with pytest.raises(IndexMismatch, match=r"mean cosine -?0\.\d\d\) are not of 'told'"):
        HnswRetriever(built / "hnsw", other, words=words)


class Weighed:
    """Gives every query the weights of `row`."""

    name = "weighed"

    def __init__(self, vocabulary: Sequence[str], row: Sequence[float]) -> None:
        self.vocabulary, self.row = vocabulary, row

    def queries(self, texts: Sequence[str]) -> csr_array:
        return csr_array(np.array([self.row] * len(texts), np.float32))


def test_words_as_they_stand_and_keywords_with_their_weights(built):
    engine, weights = ImpactRetriever(built / "impact"), {"lawyer": 2, "bonn": 1, "judge": 0.5}
    query = Query("lawyer lawyer bonn", terms=(Term("judge", 0.5),))
    sums = [sum(weight * own.get(term, 0) for term, weight in weights.items()) for own in WEIGHTS]
    found = engine.search(query, 12)
    assert dict(zip(found.ids, found.scores.tolist(), strict=True)) == {
        id: score for id, score in zip(IDS, sums, strict=True) if score
    }
    assert engine.score(query, IDS).tolist() == sums


def test_weights_are_quantized_as_pyserini_does(built):
    # 2.5 / 5 * 256 = 128; .009 / 5 * 256 = .46 is 0, and not searched.
    engine = ImpactRetriever(built / "impact", Weighed(["##s", "bonn", "judge", "lawyer"], [0.009, 0, 0, 2.5]))
    assert engine.weights(Query("any")) == {"lawyer": 128}
    assert engine.score(Query("any"), IDS).tolist() == [128 * own["lawyer"] for own in WEIGHTS]
    coarse = ImpactRetriever(built / "impact", Weighed(["##s", "bonn", "judge", "lawyer"], [0, 1, 0, 0]), 2.0, 10)
    assert coarse.weights(Query("any")) == {"bonn": 5}


def test_an_encoder_of_another_vocabulary_is_refused(built):
    with pytest.raises(IndexMismatch, match=r"vocabulary of 'weighed', which lacks '##s'.*name the encoder"):
        ImpactRetriever(built / "impact", Weighed(["lawyer", "a", "b", "c"], [1, 0, 0, 0]))


def test_texts_are_its_own_and_terms_are_borrowed(built):
    own = ImpactRetriever(built / "impact")
    assert own.document(IDS[1]).text == ROWS[1]["contents"]
    assert not hasattr(own, "postings")
    borrowed = ImpactRetriever(built / "impact", words=AnseriniRetriever(built / "full"))
    assert borrowed.words(borrowed.postings([IDS[1]]).vocabulary) == ["berlin", "heard", "judge", "lawyer"]
