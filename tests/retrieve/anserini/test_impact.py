"""Impact indexes: sums of weights by hand, the query's quantization, and encoders of another vocabulary."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from scipy.sparse import csr_array

from fairagent.errors import IndexMismatch
from fairagent.guests.lucene.bm25 import AnseriniRetriever
from fairagent.guests.lucene.vectors import ImpactRetriever
from fairagent.types import Query, Term

from .conftest import IDS, ROWS, WEIGHTS


class Weighed:
    """Gives every query the weights of `row`."""

    name = "weighed"

    def __init__(self, vocabulary: Sequence[str], row: Sequence[float]) -> None:
        self.vocabulary, self.row = vocabulary, row

    def queries(self, texts: Sequence[str]) -> csr_array:
        return csr_array(np.array([self.row] * len(texts), np.float32))


def by_hand(weights: dict[str, float]) -> dict[str, float]:
    sums = [sum(weight * own.get(term, 0) for term, weight in weights.items()) for own in WEIGHTS]
    return dict(zip(IDS, sums, strict=True))


def test_words_as_they_stand_and_keywords_with_their_weights(built):
    engine = ImpactRetriever(built / "impact")
    query = Query("lawyer lawyer bonn", terms=(Term("judge", 0.5),))
    expected = by_hand({"lawyer": 2, "bonn": 1, "judge": 0.5})
    found = engine.search(query, 12)
    above = {id: score for id, score in expected.items() if score}
    assert 5 < len(above) < 12
    assert dict(zip(found.ids, found.scores.tolist(), strict=True)) == above
    assert engine.score(query, IDS).tolist() == list(expected.values())


def test_weights_are_quantized_as_pyserini_does(built):
    # 2.5 / 5 * 256 = 128; .009 / 5 * 256 = .46 is 0, and not searched.
    engine = ImpactRetriever(built / "impact", Weighed(["##s", "bonn", "judge", "lawyer"], [0.009, 0, 0, 2.5]))
    assert engine.weights(Query("any")) == {"lawyer": 128}
    assert engine.score(Query("any"), IDS).tolist() == [128 * own["lawyer"] for own in WEIGHTS]
    coarse = ImpactRetriever(built / "impact", Weighed(["##s", "bonn", "judge", "lawyer"], [0, 1, 0, 0]), 2.0, 10)
    assert coarse.weights(Query("any")) == {"bonn": 5}


def test_an_encoder_of_another_vocabulary_is_refused(built):
    with pytest.raises(IndexMismatch, match=r"not made with the vocabulary of 'weighed' .*'##s'.*name the encoder"):
        ImpactRetriever(built / "impact", Weighed(["lawyer", "a", "b", "c"], [1, 0, 0, 0]))


def test_texts_are_its_own_and_terms_are_borrowed(built):
    own = ImpactRetriever(built / "impact")
    assert own.document(IDS[1]).text == ROWS[1]["contents"]
    assert not hasattr(own, "postings")
    borrowed = ImpactRetriever(built / "impact", words=AnseriniRetriever(built / "full"))
    assert borrowed.words(borrowed.postings([IDS[1]]).vocabulary) == ["berlin", "heard", "judge", "lawyer"]
