"""Searching embeddings on a server: nearest documents, inner products, and a fusion that is wholly there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from fairagent.errors import DataError, IndexMismatch, UsageError
from fairagent.guests.opensearch.bulk import LoadRecord, LoadSettings, load
from fairagent.guests.opensearch.index import LOADED, ServerIndex
from fairagent.guests.opensearch.search import OpenSearchRetriever
from fairagent.guests.opensearch.server import Server
from fairagent.guests.opensearch.vectors import OpenSearchVectors, likeness
from fairagent.retrieve.base import ManyTexts, full_text
from fairagent.retrieve.dense import VectorEngine
from fairagent.retrieve.encoders import Embeddings
from fairagent.retrieve.fused import FusedRetriever
from fairagent.types import Query, Term

from .made import MADE


@dataclass(frozen=True)
class Letters:
    """Embeds a text by its letters; vectors have length 1."""

    name: str = "letters"
    size: int = 26

    def documents(self, texts: Sequence[str]) -> Embeddings:
        counts = np.array([[text.lower().count(chr(97 + n)) for n in range(self.size)] for text in texts])
        rows = np.asarray(counts + 0.01, dtype=np.float32)
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)

    def queries(self, texts: Sequence[str]) -> Embeddings:
        return self.documents(texts)


@pytest.fixture(scope="module")
def embedded(server: Server) -> Iterator[ServerIndex]:
    index = ServerIndex(server, "fairagent-test-embedded", LOADED)
    server.ask("DELETE", f"/{index.name}", ignore_unavailable="true")
    load(index, MADE, LoadSettings(shards=2, replicas=0), encoder=Letters())
    yield index
    server.ask("DELETE", f"/{index.name}")


@pytest.fixture(scope="module")
def vectors(embedded: ServerIndex) -> OpenSearchVectors:
    return OpenSearchVectors(OpenSearchRetriever(embedded), Letters())


def expected(query: Query) -> dict[str, float]:
    rows = Letters().documents([full_text(one) for one in MADE.made]).astype(float)
    scores = rows @ Letters().queries([str(query)])[0].astype(float)
    return dict(zip((one.id for one in MADE.made), scores.tolist(), strict=True))


def test_the_nearest_documents_with_their_inner_products(vectors: OpenSearchVectors) -> None:
    query = Query("harbor", terms=(Term("lawyers"),))
    scores = expected(query)
    found = vectors.search(query, 8)
    assert found.scores.tolist() == pytest.approx(sorted(scores.values(), reverse=True)[:8], abs=1e-5)
    assert found.scores.tolist() == pytest.approx([scores[id] for id in found.ids], abs=1e-5)
    assert list(found.ids) == [id for _, id in sorted(zip(-found.scores, found.ids, strict=True))]
    assert vectors.score(query, found.ids).tolist() == pytest.approx(found.scores.tolist(), abs=1e-5)


def test_it_tells_its_embeddings(vectors: OpenSearchVectors) -> None:
    assert isinstance(vectors, VectorEngine)
    assert isinstance(vectors, ManyTexts)
    rows = Letters().documents([full_text(one) for one in MADE.made])
    assert vectors.vectors([one.id for one in MADE.made]) == pytest.approx(rows, abs=1e-6)
    assert vectors.vectors([]).shape == (0, 26)
    assert vectors.query_vector(Query("law")) == pytest.approx(Letters().queries(["law"])[0])
    with pytest.raises(DataError, match=r"1 document id\(s\) are not in"):
        vectors.vectors(["law1", "nobody"])


def test_a_blank_query_finds_nothing(vectors: OpenSearchVectors) -> None:
    assert len(vectors.search(Query("  "), 5)) == 0
    assert vectors.score(Query(""), ["law1"]).tolist() == [0]
    with pytest.raises(UsageError, match="at most 10,000"):
        vectors.search(Query("law"), 10_001)


def test_a_fusion_is_wholly_on_the_server(embedded: ServerIndex, vectors: OpenSearchVectors) -> None:
    fused = FusedRetriever((OpenSearchRetriever(embedded), vectors), ("opensearch", "opensearch (embeddings)"))
    found = fused.search(Query("lawyers of the harbor"), 5)
    assert not fused.failures(Query("lawyers of the harbor"))
    assert found.ids[0] == "law3"
    assert isinstance(fused, VectorEngine)
    assert [one.id for one in fused.documents(found.ids)] == list(found.ids)


def test_another_encoder_is_noticed(embedded: ServerIndex) -> None:
    words = OpenSearchRetriever(embedded)
    with pytest.raises(DataError, match="have 26 numbers, and short makes 5"):
        OpenSearchVectors(words, Letters("short", 5)).search(Query("law"), 3)
    origin = LoadRecord.read(embedded)
    assert origin is not None
    assert (origin.encoder, len(origin.probe)) == ("letters", 8)
    with pytest.raises(IndexMismatch, match="encoder: index letters, now others"):
        load(embedded, MADE, LoadSettings(), encoder=Letters("others"))


OPENSEARCH = {"type": "knn_vector", "dimension": 4}


@pytest.mark.parametrize(
    ("version", "field", "read"),
    [
        (("elasticsearch", "8.15.3"), {"type": "dense_vector", "dims": 4}, ("cosine", 4)),
        (("elasticsearch", "9.2.0"), {"type": "dense_vector", "dims": 4, "similarity": "max_inner_product"}, None),
        (("elasticsearch", "8.0.0"), {"type": "dense_vector", "dims": 4, "similarity": "l2_norm"}, "by l2_norm"),
        (("elasticsearch", "7.17.0"), {"type": "dense_vector", "dims": 4}, "version 8 and later"),
        (("elasticsearch", "8.15.3"), {"type": "dense_vector", "dims": 4, "index": False}, "is not indexed"),
        (("elasticsearch", "8.15.3"), {"type": "text"}, "is of type text; embeddings are in a dense_vector"),
        (("opensearch", "2.19.1"), {**OPENSEARCH, "method": {"engine": "lucene", "space_type": "cosinesimil"}}, None),
        (("opensearch", "3.1.0"), {**OPENSEARCH, "space_type": "innerproduct"}, ("innerproduct", 4)),
        (("opensearch", "2.19.1"), OPENSEARCH, r"by l2 \(its own\)"),
        (
            ("opensearch", "2.9.0"),
            {**OPENSEARCH, "method": {"engine": "nmslib", "space_type": "cosinesimil"}},
            "nmslib",
        ),
    ],
)
def test_what_a_mapping_says_of_embeddings(
    monkeypatch: pytest.MonkeyPatch, version: tuple[str, str], field: dict[str, Any], read: Any
) -> None:
    answers = {
        "/": {"version": {"distribution": version[0], "number": version[1]}},
        "/i/_mapping": {"i": {"mappings": {"properties": {"vector": field}}}},
    }
    monkeypatch.setattr(Server, "ask", lambda self, method, path: answers[path])
    from fairagent.guests.opensearch.server import Address, Credentials

    index = ServerIndex(Server(Address.find("http://127.0.0.1:1", Credentials(), {})), "i", LOADED)
    if isinstance(read, str):
        with pytest.raises(DataError, match=read):
            likeness(index)
    else:
        assert likeness(index) == (read or (field.get("similarity") or "cosinesimil", 4))


def test_opensearch_is_asked_in_its_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """What noida-db does not speak: the request, and scores of inner products below and above 0."""
    asked: list[Any] = []
    hits = [
        {"_index": "i", "_id": id, "_score": score, "_source": {"id": id}}
        for id, score in {"b": 3.0, "a": 3.0, "c": 0.25}.items()
    ]
    field = {**OPENSEARCH, "dimension": 26, "method": {"engine": "faiss", "space_type": "innerproduct"}}
    text = {name: {"type": "text"} for name in ("id", "title", "text", "contents")}
    answers = {
        "/": {"version": {"distribution": "opensearch", "number": "2.19.1"}},
        "/i/_mapping": {"i": {"mappings": {"properties": {"vector": field, **text}}}},
        "/i/_settings": {"i": {"settings": {"index": {}}}},
        "/i/_search": {"_shards": {"total": 1, "successful": 1, "failed": 0}, "hits": {"hits": hits}},
    }

    def ask(self: Server, method: str, path: str, body: Any = None, **params: Any) -> Any:
        asked.append((body, params))
        return answers[path]

    monkeypatch.setattr(Server, "ask", ask)
    from fairagent.guests.opensearch.server import Address, Credentials

    index = ServerIndex(Server(Address.find("http://127.0.0.1:1", Credentials(), {})), "i", LOADED)
    found = OpenSearchVectors(OpenSearchRetriever(index), Letters()).search(Query("law"), 3)
    assert (found.ids, found.scores.tolist()) == (("a", "b", "c"), [2, 2, -3])
    body, params = asked[-1]
    vector = Letters().queries(["law"])[0].tolist()
    assert body["query"] == {"knn": {"vector": {"vector": vector, "k": 3}}}
    # A server sets the type of such a search itself, and refuses another.
    assert "search_type" not in params
