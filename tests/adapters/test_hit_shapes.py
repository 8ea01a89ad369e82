"""`fair_rerank` on what engines answer: their own objects, whole answers, nested fields, and what is no hit."""

from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from openai.pagination import SyncPage
from openai.types import VectorStoreSearchResponse
from openai.types.responses import ResponseFileSearchToolCall
from pydantic import BaseModel

from adapters.test_hits import EVEN, GENDERS, ORDER
from fairagent import DataError, FairHits, UsageError, fair_rerank
from fairagent.types import Hit

SCORES = [1.0 - place / 20 for place in range(len(GENDERS))]
ROWS = list(enumerate(zip(GENDERS, SCORES, strict=True)))


class ScoredPoint(BaseModel):
    """As qdrant_client 1.17 declares it."""

    id: int | str
    version: int = 0
    score: float
    payload: dict[str, Any] | None = None
    vector: list[float] | None = None


class Named(NamedTuple):
    docid: str
    score: float
    gender: str


OPENAI = [
    VectorStoreSearchResponse(
        file_id=f"file-{n}", filename="a.md", score=s, attributes={"gender": g} if g else None, content=[]
    )
    for n, (g, s) in ROWS
]
BODY = [{"_index": "a", "_id": str(n), "_score": s, "_source": {"author": {"gender": g}}} for n, (g, s) in ROWS]
MILVUS = [{"id": n, "distance": score, "entity": {"gender": gender}} for n, (gender, score) in ROWS]
POINTS = [ScoredPoint(id=n, score=score, payload={"gender": gender}) for n, (gender, score) in ROWS]
DEEP = [ScoredPoint(id=n, score=s, payload={"meta": {"author": [{"sex": g}]}}) for n, (g, s) in ROWS]
NAMED = [Named(f"d{n}", score, gender) for n, (gender, score) in ROWS]
OWN = [Hit(n + 1, f"d{n}", score, "", {"gender": {one: 1.0} if one else {}}) for n, (one, score) in ROWS]
PAIRS = [(SimpleNamespace(id=None, page_content="x", metadata={"gender": gender}), s) for _, (gender, s) in ROWS]
PASSAGES = [{"ref_doc_id": f"d{n // 2}", "id": f"p{n}", "score": s, "gender": g} for n, (g, s) in ROWS]


CALL = ResponseFileSearchToolCall.model_validate(
    {
        "id": "fs_1",
        "type": "file_search_call",
        "status": "completed",
        "queries": ["jazz"],
        "results": [{"file_id": f"f{n}", "score": s, "attributes": {"gender": g}} for n, (g, s) in ROWS],
    }
)
CHROMA = {
    "ids": [[str(n) for n, _ in ROWS]],
    "distances": [[1 - score for score in SCORES]],
    "metadatas": [[{"gender": gender} for gender in GENDERS]],
    "documents": [["x"] * len(GENDERS)],
    "embeddings": None,
    "included": ["metadatas", "documents", "distances"],
}

SHAPES: list[tuple[Any, Any, list[Any]]] = [
    (POINTS, "gender", POINTS),
    (SimpleNamespace(points=POINTS), "payload.gender", POINTS),
    (DEEP, {"sex": "payload.meta.author.sex"}, DEEP),
    (SyncPage(data=OPENAI, object="page"), "gender", OPENAI),
    (iter(OPENAI), "attributes.gender", OPENAI),
    (CALL, "gender", CALL.results or []),
    (BODY, {"gender": "author.gender"}, BODY),
    ({"took": 1, "hits": {"total": 12, "hits": BODY}}, "_source.author.gender", BODY),
    (SimpleNamespace(body={"hits": {"hits": BODY}}), "author.gender", BODY),
    ([MILVUS], "entity.gender", MILVUS),
    (MILVUS, "gender", MILVUS),
    ({"documents": POINTS}, "gender", POINTS),
    (NAMED, "gender", NAMED),
    (OWN, "gender", OWN),
    (PAIRS, "gender", PAIRS),
    # Two passages of a document are two hits.
    (PASSAGES, "gender", PASSAGES),
]


@pytest.mark.parametrize(("found", "groups", "hits"), SHAPES)
def test_the_engine_s_own_objects_come_back(found: Any, groups: Any, hits: list[Any]) -> None:
    fair = fair_rerank(found, groups, EVEN, n=5, fairness=2)
    assert [next(n for n, hit in enumerate(hits) if hit is one) for one in fair.hits] == ORDER
    assert fair.before[0].labels == ("female", "male")
    assert fair.after[0].divergence < fair.before[0].divergence


def test_columns_become_a_dict_for_each_hit() -> None:
    """Chroma's distances rise, so that the order stands for the scores."""
    flat = {name: column[0] if column and column != CHROMA["included"] else column for name, column in CHROMA.items()}
    for columns in (CHROMA, flat):
        fair = fair_rerank(columns, "gender", EVEN, n=5, fairness=2)
        assert [int(hit["id"]) for hit in fair.hits] == ORDER
        assert fair.hits[1] == {"id": "4", "distance": 1 - SCORES[4], "metadata": {"gender": "female"}, "document": "x"}


def test_an_answer_that_found_nothing() -> None:
    for found in (SimpleNamespace(points=[]), {"hits": {"hits": []}}, [[]], {"ids": [[]], "documents": [[]]}, iter(())):
        assert fair_rerank(found, "gender", EVEN) == FairHits([], (), ())


class Slotted:
    """An object that names its fields in `__slots__`."""

    __slots__ = ("id", "properties")

    def __init__(self, id: str, gender: str) -> None:
        self.id, self.properties = id, {"gender": gender}


@pytest.mark.parametrize(
    ("hits", "groups"),
    [
        ([{"gender": "female"}, {"gender": "male"}], "gender"),
        ([SimpleNamespace(metadata=SimpleNamespace(gender=one)) for one in EVEN], "gender"),
        ([SimpleNamespace(id=one, properties={"gender": one}) for one in EVEN], "properties.gender"),
        ([Slotted(one, one) for one in EVEN], "properties.gender"),
    ],
)
def test_what_is_enough(hits: Any, groups: Any) -> None:
    fair = fair_rerank(hits, groups, EVEN)
    assert sorted(map(id, fair.hits)) == sorted(map(id, hits))
    assert fair.after[0].shares.tolist() == [0.5, 0.5]


MOVED = [SimpleNamespace(uid="a", relevance=1.0, properties={"gender": "female"})]
BAD: list[tuple[Any, Any, str]] = [
    (MOVED, "gender", "no hit has a field 'gender' for dimension 'gender'; there are: uid, relevance, properties.g"),
    (MOVED, {"gender": {"a": "female"}}, "hit 1 has no id, by which its groups are known; ids are in ref_doc_id, id,"),
    (5, "gender", "is no list of hits, and holds none in body, hits, points, data, results, documents"),
    ([MILVUS, MILVUS], "gender", "the hits of 2 queries"),
    (CHROMA | {"distances": [[0.5]]}, "gender", "differ in length (id 12, distance 1, metadata 12, document 12)"),
    ([{}], "gender", "hit 1 is a dict ({}), which has no id"),
    ([Slotted("a", "female")], "gender", "there are: id, properties"),
    (SimpleNamespace(items=[{"id": 1}]), "gender", "holds none in body, hits, points"),
]


@pytest.mark.parametrize(("found", "groups", "said"), BAD)
def test_what_is_no_hit_says_what_was_looked_for(found: Any, groups: Any, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        fair_rerank(found, groups, EVEN)
    assert said in str(raised.value)


def test_a_field_that_raises() -> None:
    class Raising:
        id = "a"

        @property
        def score(self) -> float:
            raise RuntimeError("gone in 3.0: use .relevance")

    with pytest.raises(DataError, match=r"hit 1 cannot be read: .*gone in 3\.0"):
        fair_rerank([Raising()], "gender", EVEN)
