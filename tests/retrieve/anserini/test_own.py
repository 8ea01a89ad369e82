"""Lucene indexes that earlier versions of fairagent built, with Lucene's plain classes."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from anserini_indexes import written

from fairagent.errors import DataError
from fairagent.retrieve.anserini.bm25 import AnseriniRetriever, open_own
from fairagent.retrieve.strings import IdTable
from fairagent.types import Document, Query

DOCUMENTS = (
    Document("p2", "The lawyer wins in court.", "Lawyers", {"year": 1990, "tags": ["law"]}),
    Document("p1", "A judge and a lawyer.", "", {}),
    Document("p3", "The and of.", "", {}),
)


@pytest.fixture
def own(tmp_path: Path) -> AnseriniRetriever:
    rows = [
        {
            "id": one.id,
            "contents": f"{one.title} {one.text}",
            "raw": json.dumps({"id": one.id, "title": one.title, "contents": one.text, "extra": dict(one.extra)}),
        }
        for one in DOCUMENTS
    ]
    written(tmp_path / "lucene", rows)
    IdTable.save(tmp_path, [one.id.encode() for one in DOCUMENTS])
    return open_own(tmp_path)


def test_documents_are_as_they_were(own):
    assert own.documents([one.id for one in DOCUMENTS]) == list(DOCUMENTS)
    assert [name.decode() for name in own.ids.names(np.arange(3)).tolist()] == ["p2", "p1", "p3"]
    with pytest.raises(DataError, match="'nobody'"):
        own.document("nobody")


def test_scores_by_hand(own):
    # "lawyer" is in 2 of 3 documents, twice in the first; "p3" holds stop words alone and is not counted by Lucene.
    idf, mean = math.log(1 + 0.5 / 2.5), 6 / 2
    expected = {
        "p2": idf * 2 / (2 + 0.9 * (0.6 + 0.4 * 4 / mean)),
        "p1": idf * 1 / (1 + 0.9 * (0.6 + 0.4 * 2 / mean)),
    }
    found = own.search(Query("lawyers"), 3)
    assert dict(zip(found.ids, found.scores.tolist(), strict=True)) == pytest.approx(expected, rel=1e-6)
    assert own.score(Query("lawyers"), ["p3", "p1"]).tolist() == [0.0, found.scores[1]]


def test_terms_are_those_of_the_texts(own):
    postings = own.postings(["p2", "p3"])
    words = [own.analyze(word)[0] for word in own.words(postings.vocabulary)]
    assert Counter(dict(zip([words[i] for i in postings.term], postings.count.tolist(), strict=True))) == Counter(
        lawyer=2, win=1, court=1
    )
    assert postings.length.tolist() == [4, 0]
