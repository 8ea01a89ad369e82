"""The lists of Lucene 9.9.1 (Anserini 1.6.0, k1 .9, b .4), which the matrix gives without Java: order, ties and scores.

`lucene_lists.jsonl.gz` has the best 100 documents that Lucene gave for 72 queries on the made-up collection, 40 of them
of words drawn from its documents, some with weighted keywords; and for every topic of eight collections a digest of the
ids and the scores at ranks 1, 10 and 100.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairagent import load_collection, write_demo
from fairagent.retrieve.bm25.build import build_index
from fairagent.retrieve.bm25.search import BM25Retriever
from fairagent.types import Query, Term

ROOT = Path(__file__).resolve().parents[2]
LISTS: Mapping[str, list[dict[str, Any]]] = defaultdict(list)
with gzip.open(Path(__file__).with_name("files") / "lucene_lists.jsonl.gz", "rt", encoding="utf-8") as file:
    for line in file:
        row = json.loads(line)
        LISTS[row["collection"]].append(row)


def test_every_list_of_the_made_up_collection(tmp_path: Path) -> None:
    collection = load_collection(write_demo(tmp_path / "demo"))
    build_index(collection, tmp_path / "index")
    engine = BM25Retriever(tmp_path / "index", collection)
    assert len(LISTS["demo"]) > 50
    for row in LISTS["demo"]:
        query = Query(row["query"], "", tuple(Term(*term) for term in row["terms"]))
        ranking = engine.search(query, 100)
        assert list(ranking.ids) == row["ids"], row["topic"]
        np.testing.assert_allclose(ranking.scores, row["scores"], rtol=1e-6)
        # The scores of a pool are those of the list.
        assert engine.score(query, ranking.ids).tolist() == ranking.scores.tolist()


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in LISTS if name != "demo"])
def test_every_topic_of_the_real_collections(name: str, shared: Path, tmp_path: Path) -> None:
    collection = load_collection(ROOT / "evaluations" / "collections" / f"{name}.yaml")
    build_index(collection, tmp_path / "index")
    engine = BM25Retriever(tmp_path / "index", collection)
    for row in LISTS[name]:
        ranking = engine.search(Query(collection.topics[row["topic"]].query), 100)
        digest = hashlib.sha256(" ".join(ranking.ids).encode()).hexdigest()[:16]
        assert (len(ranking), digest) == (row["found"], row["ids"]), row["topic"]
        np.testing.assert_allclose(ranking.scores[[0, 9, 99][: len(row["scores"])]], row["scores"], rtol=1e-6)
