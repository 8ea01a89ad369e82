"""Several engines as one: weights by hand, an engine that fails, and that a score is what the search says."""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from scripted import ranking

from fairagent.errors import BackendUnavailable, DataError
from fairagent.retrieve.base import texts_for
from fairagent.retrieve.bm25.part import BM25Config
from fairagent.retrieve.dense import EmbeddingSource, VectorEngine
from fairagent.retrieve.fused import FusedConfig, FusedRetriever, weight_of
from fairagent.retrieve.graph import engine_encoders
from fairagent.retrieve.relevance_model import RM3Config
from fairagent.retrieve.vectors import DenseConfig
from fairagent.settings import Settings
from fairagent.settings.parts import read_part
from fairagent.types import Document, FloatArray, Query, Ranking

Q = Query("q")


class Table:
    """Finds the documents of a table, best first, ties by id, or fails; `asked` is how many were wanted."""

    def __init__(self, scores: Mapping[str, float], error: Exception | None = None) -> None:
        self.scores, self.error, self.asked = scores, error, list[int]()

    def search(self, query: Query, n: int) -> Ranking:
        if self.error:
            raise self.error
        self.asked.append(n)
        found = sorted(self.scores, key=lambda id: (-self.scores[id], id))[:n]
        return ranking(found, [self.scores[id] for id in found])

    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        return np.array([self.scores.get(id, 0.0) for id in ids])

    def bound(self, query: Query) -> float:
        return 10.0


def fused(*engines: Any, **more: Any) -> FusedRetriever:
    return FusedRetriever(engines, [f"engine {number}" for number in range(1, 1 + len(engines))], **more)


def told(found: Ranking) -> dict[str, float]:
    return dict(zip(found.ids, found.scores.tolist(), strict=True))


# Two lists: a 9, b 5, c 1 and d 4, b 2.
FIRST, SECOND = {"a": 9.0, "b": 5.0, "c": 1.0}, {"d": 4.0, "b": 2.0}


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        # First: 1, 1/2, 0. Second: 1, 0. A document that a list lacks gets nothing from it; ties are by id.
        ({}, {"a": 1.0, "d": 1.0, "b": 0.5, "c": 0.0}),
        ({"weights": (0.5, 2.0)}, {"d": 2.0, "a": 0.5, "b": 0.25, "c": 0.0}),
        # The first one's mean, 5, is half of its bound: 3 * (1 - 1/2).
        ({"most": 3.0}, {"d": 1.5, "a": 1.0, "b": 0.5, "c": 0.0}),
    ],
)
def test_by_hand(how: dict[str, Any], expected: dict[str, float]) -> None:
    ranking = fused(Table(FIRST), Table(SECOND), **how).search(Q, 10)
    assert told(ranking) == pytest.approx(expected, rel=1e-15)
    assert ranking.ids == tuple(expected)


@given(st.lists(st.floats(0, 1e30), max_size=8), st.floats(0, 1e30), st.floats(0, 10))
def test_a_weight_is_from_0_to_the_most_whatever_the_scores(scores: list[float], bound: float, most: float) -> None:
    assert 0 <= weight_of(np.sort(scores)[::-1], bound, most) <= most
    assert weight_of(np.zeros(0), bound, most) == most


def test_each_engine_is_asked_once_a_query_and_for_its_depth() -> None:
    first, second = Table(FIRST), Table(SECOND)
    engine = fused(first, second, depth=2)
    found = engine.search(Q, 1)
    # c is the first list's third.
    assert set(engine.search(Q, 10).ids) == {"a", "b", "d"}
    assert engine.score(Q, ["c", *found.ids]).tolist() == [0.0, *found.scores]
    assert (first.asked, second.asked) == ([2], [2])
    engine.search(Query("another"), 1)
    assert first.asked == [2, 2]


tables = st.dictionaries(st.sampled_from("abcdefgh"), st.floats(-50, 50), max_size=8)


@given(st.lists(tables, min_size=2, max_size=3), st.integers(1, 10), st.data())
def test_scores_are_those_of_the_search(lists: list[dict[str, float]], n: int, data: Any) -> None:
    weights = data.draw(st.lists(st.floats(0.1, 10), min_size=len(lists), max_size=len(lists)))
    engine = fused(*map(Table, lists), weights=weights)
    found = engine.search(Q, n)
    assert engine.score(Q, found.ids).tolist() == found.scores.tolist()
    assert engine.score(Q, ["nobody"]).tolist() == [0.0]
    every = engine.search(Q, 100)
    assert (every.ids[:n], set(every.ids)) == (found.ids, set().union(*lists))
    assert list(every.ids) == sorted(every.ids, key=lambda id: (-told(every)[id], id))
    # A document's score is the sum of its parts.
    parts = engine.parts(Q)
    assert told(every) == dict(zip(parts.ids, parts.scores.sum(axis=1).tolist(), strict=True))
    assert parts.scores.shape == (len(parts.ids), len(lists))


@pytest.mark.parametrize("error", [BackendUnavailable("the server is down"), DataError("a list of nonsense")])
def test_the_others_serve_where_one_engine_fails(error: Exception) -> None:
    engine = fused(Table({}, error), Table(SECOND), weights=(5, 2))
    assert told(engine.search(Q, 10)) == {"d": 2.0, "b": 0.0}
    assert engine.failures(Q) == {"engine 1": str(error)}
    assert engine.score(Q, ["d"]).tolist() == [2.0]
    engine = fused(Table({}, error), Table({}, BackendUnavailable("two is down")))
    for ask in (lambda: engine.search(Q, 5), lambda: engine.score(Q, ["a"])):
        with pytest.raises(type(error), match=str(error)):
            ask()


def test_an_engine_that_is_there_again_serves_again() -> None:
    first = Table(FIRST, BackendUnavailable("the server is down"))
    engine = fused(first, Table(SECOND))
    assert engine.search(Q, 10).ids == ("d", "b")
    first.error = None
    # Whoever asks for the scores of that list gets those.
    assert engine.score(Q, ["a", "d"]).tolist() == [0.0, 1.0]
    assert engine.search(Query("another"), 10).ids == ("a", "d", "b", "c")
    assert (engine.failures(Query("another")), len(engine.failures(Q))) == ({}, 1)
    assert engine.search(Q, 10).ids == ("a", "d", "b", "c")
    assert engine.failures(Q) == {}


def test_texts_words_and_embeddings_come_from_the_engine_that_has_them() -> None:
    able = Table(SECOND)
    able.document = lambda id: Document(id, f"the text of {id}")  # type: ignore[attr-defined]
    able.document_frequency = lambda word: 3  # type: ignore[attr-defined]
    near = Table(FIRST)
    near.vectors = lambda ids: np.array([[float(ord(id[0])), 1.0] for id in ids])  # type: ignore[attr-defined]
    near.query_vector = lambda query: np.array([1.0, 0.0])  # type: ignore[attr-defined]
    engine = fused(Table(FIRST), able, near)
    assert texts_for(Q, ["d", "b"], engine) == [Document("d", "the text of d"), Document("b", "the text of b")]
    assert engine.document_frequency("court") == 3
    assert (engine.vectors(["b"]).tolist(), engine.query_vector(Q).tolist()) == ([[98.0, 1.0]], [1.0, 0.0])
    assert isinstance(engine, EmbeddingSource)
    assert isinstance(engine, VectorEngine)


def test_the_engines_that_are_fused() -> None:
    def encoders_of(**settings: Any) -> tuple[str, ...]:
        site: Any = SimpleNamespace(settings=Settings(**settings))
        return engine_encoders(site)

    assert FusedConfig().inner == (BM25Config(), DenseConfig())
    assert str(FusedConfig()) == "fused (bm25 + dense)"
    engine = {"kind": "fused", "engines": ["rm3", {"kind": "dense", "encoder": "mine"}], "depth": 9}
    assert Settings(engine=engine).engine == FusedConfig(engines=(RM3Config(), DenseConfig(encoder="mine")), depth=9)
    assert encoders_of(engine=engine) == ("mine",)
    assert encoders_of(engine=RM3Config()) == ()
    # One that names none has that of the settings.
    assert encoders_of(engine="fused") == (Settings().encoder,)
    assert encoders_of(engine="fused", encoder="minilm") == ("minilm",)


@pytest.mark.parametrize(
    ("values", "message"),
    [({"engines": ["bm25"]}, "a fusion is of two engines or more"), ({"weights": [1, 0]}, "every weight is above 0")],
)
def test_settings_that_make_no_sense(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        read_part("engine", {"kind": "fused", **values})
