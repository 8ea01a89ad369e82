"""Relevance feedback by vectors, by hand: what it adds to which queries, on the scale of the engine's scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loop_engine import LAWYERS, Dense, Scores, Words, agent, finding
from scripted import by_letter, collection

from fairagent.collection import GroupTable
from fairagent.collection.exposure import ExposureMeter, UnlabeledTarget
from fairagent.collection.table import TableBuffer
from fairagent.measures import LOG2_MAX2
from fairagent.retrieve.base import EngineScores
from fairagent.retrieve.catalog import IdTable
from fairagent.retrieve.encoders import Embeddings
from fairagent.retrieve.graph import Graph
from fairagent.search.relevance import (
    TypePrior,
    TypeSource,
    VectorFeedback,
    Weighed,
    Weighing,
    type_chances,
    type_prior,
)
from fairagent.search.run import moved_by_types
from fairagent.storage.threads import Memo
from fairagent.types import FloatArray, Query, Ranking

VECTORS = {"a": (3, 4), "b": (2, 0), "c": (1, 5), "d": (0, 5)}
OWN, PRODUCTS = ("a", "b", "c"), np.array([3.0, 2.0, 1.0])
"""What the query's vector (1, 0) finds. Its mean with that of a, (.6, .8), is (.8, .4), whose products are 4, 1.6 and
2.8 (d: 2): at the old mean of 2 and the old spread they are 3, 1 and 2 (d: 4 / 3)."""
FEEDBACK = VectorFeedback(None, mix=0.5, documents=1, longest=2)
METER = ExposureMeter(None, "", (), 3, LOG2_MAX2, "js")  # type: ignore[arg-type]
"""Of no dimension."""


class Plane:
    """Documents and queries as vectors in the plane; scores are their products, with this zero and unit."""

    def __init__(self, shift: float = 0, scale: float = 1) -> None:
        self.shift, self.scale = shift, scale

    def search(self, query: Query, n: int) -> Ranking:
        return Ranking(OWN[:n], self.score(query, OWN[:n]))

    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        return np.asarray((self.vectors(ids) @ self.query_vector(query) + self.shift) * self.scale, dtype=np.float64)

    def vectors(self, ids: Sequence[str]) -> Embeddings:
        return np.array([VECTORS[id] for id in ids], dtype=np.float32)

    def query_vector(self, query: Query) -> Embeddings:
        return np.array([1, 0], dtype=np.float32)


class Fused(Plane):
    """Words, and a tenth of the products of those that the vectors list: not of c."""

    engines = Scores({}), Plane()

    def parts(self, query: Query) -> EngineScores:
        return EngineScores(OWN, np.array([[0.5, 0.3], [0.4, 0.2], [0.3, 0.0]]))

    def failures(self, query: Query) -> Mapping[str, str]:
        return {}


class FusedWords(Fused):
    """A fusion that has vectors and does not search by them."""

    engines = Scores({}), Scores({})  # type: ignore[assignment]


def weighed(engine: Any, text: str = "law", feedback: VectorFeedback = FEEDBACK) -> Weighed:
    query = Query(text)
    return Weighing(feedback, None, 0).of(engine, query, engine.search(query, 3), METER)


@pytest.mark.parametrize(("shift", "scale"), [(0, 1), (-20, 1), (100, 8), (3, 1 / 16)])
def test_feedback_by_hand_whatever_the_zero_and_the_unit_of_the_scores(shift: float, scale: float) -> None:
    made = weighed(Plane(shift, scale))
    assert made.candidates.ids == ("a", "c", "b")
    assert made.candidates.scores == pytest.approx((np.array([3, 2, 1]) + shift) * scale)
    # The engine's last has a score of 1, d one of 0.
    joined = made.joined(made.candidates, ["d"])
    assert joined.ids == ("a", "c", "d", "b")
    assert joined.scores == pytest.approx((np.array([3, 2, 4 / 3, 1]) + shift) * scale)


@pytest.mark.parametrize(("engine", "unit"), [(Plane(), 1), (Fused(), 0.1), (FusedWords(), 0)])
def test_of_a_fusion_feedback_counts_as_its_vectors_do(engine: Any, unit: float) -> None:
    gains = FEEDBACK.gains(engine, Query("law"), Ranking(OWN, PRODUCTS))
    assert gains
    assert gains[0] == pytest.approx(unit * np.array([0, -1, 1]), abs=1e-6)
    assert gains[1](["a", "b", "c", "d"]) == pytest.approx(unit * np.array([0, -1, 1, 4 / 3]), abs=1e-6)


def test_long_queries_and_engines_without_vectors_are_left_as_they_are() -> None:
    by_words = VectorFeedback(Words({}), mix=0.5, documents=1, longest=2)
    assert weighed(Plane(), "the law of the sea", by_words).candidates.ids == ("a", "c", "b"), "two words, as analyzed"
    without = weighed(Scores({"a": 3, "b": 2, "c": 1}, law="a b c"))
    for made in (weighed(Plane(), "law of sea"), weighed(Plane(), "the law of the sea court", by_words), without):
        assert (made.candidates.ids, made.candidates.scores.tolist()) == (OWN, PRODUCTS.tolist())
        assert made.gains == ()
    assert FEEDBACK.gains(Plane(), Query("law"), Ranking(("a",), np.array([3.0]))) is None, "nothing to tell it from"


RELEVANCE = np.array([1.0, 0.6, 0.3, 0.0])
IDS = ["a", "b", "c", "d"]


class Types:
    """Documents of these probabilities to be of the type that has a gender; `chance` is that of all."""

    def __init__(self, of: Sequence[float] | dict[str, float], chance: float) -> None:
        self.of = of if isinstance(of, dict) else dict(zip(IDS, of, strict=True))
        self.chance, self.table = chance, dict[str, FloatArray]()

    def document_types(self, ids: Sequence[str], topic: str) -> list[tuple[str, FloatArray, float]]:
        return [("gender", np.array([self.of[id] for id in ids]), self.chance)]


def prior(of: Sequence[float], chance: float, weight: float = 0.5) -> TypePrior:
    types: Any = Types(of, chance)
    return type_prior(types, "t1", IDS, RELEVANCE, weight)


def test_the_likelihood_ratio_by_hand_and_a_query_that_is_not_about_the_type() -> None:
    # Chance .2; 2 of 4 documents are of the type, shrunk by 5 documents to (2 + 5 * .2) / 9 = 1 / 3.
    made = prior([1, 1, 0, 0], 0.2)
    yes, no = 0.5 * np.log((1 / 3) / 0.2), 0.5 * np.log((2 / 3) / 0.8)
    assert made.gain(["b", "d"]) == pytest.approx([yes, no])
    assert made.importance == {"gender": 1.0}
    assert made.listed == pytest.approx([yes, yes, no, no])
    assert prior([1, 1, 0, 0], 0.2, weight=0).gain(IDS).tolist() == [0] * 4
    # One of four, where chance alone would bring more than three.
    made = prior([0, 0, 0, 1], 0.8)
    assert made.gain(IDS).tolist() == [0] * 4
    assert made.importance == {"gender": 0.25 / 0.8}


@given(st.lists(st.floats(0, 1), min_size=4, max_size=4), st.floats(0.05, 0.9))
def test_who_is_more_surely_of_the_type_never_gets_less(of: list[float], chance: float) -> None:
    assert (np.diff(prior(of, chance).gain(IDS)[np.argsort(of)]) >= -1e-12).all()
    assert prior(of[:1] * 4, chance).gain(IDS).tolist() == [0] * 4


@pytest.mark.parametrize(("shift", "scale"), [(-20, 1), (100, 1), (0, 8), (-3, 1 / 16)])
def test_a_gain_is_in_units_of_relevance_whatever_the_zero_and_unit_of_scores(shift: float, scale: float) -> None:
    scores = {"m1": 4.0, "u1": 3.5, "m2": 2.0, "u2": 1.0, "m3": 0.0, "f1": 1.5}
    types = Types({id: float(id[0] != "u") for id in scores}, 0.3)

    def weighed(shift: float, scale: float) -> dict[str, float]:
        engine = Scores({id: (score + shift) * scale for id, score in scores.items()}, q="m1 u1 m2 u2 m3")
        served = agent(engine, finding("f1"), groups=by_letter(scores), types=types).find("q", 4).loop.reranked
        assert served
        return dict(served.estimates)

    plain = weighed(0, 1)
    yes, no = (plain["m1"] - 1, plain["u2"] - 0.25)
    assert yes > 0 > no
    assert plain["f1"] == pytest.approx(yes), "no more than the last of the engine's list, and of the type"
    assert weighed(shift, scale) == pytest.approx(plain)


def test_types_follow_labels_and_neighbors() -> None:
    labeled = np.array([1.0, 0.0, 0.0])
    own, beside, apart = type_chances(labeled, np.array([[0, 0], [0, 0], [2, 2]], dtype=np.int32)).tolist()
    assert own == pytest.approx(1 / (1 + np.exp(-10 * (1.0 - 0.4))))
    assert beside == pytest.approx(1 / (1 + np.exp(-10 * (0.5 - 0.4))))
    assert apart == pytest.approx(1 / (1 + np.exp(10 * 0.4)))


ROWS = [(f"{letter}{number}", letter) for letter in "fr" for number in range(60)]
"""People, all but f55 to f59 with a gender, and rivers."""


def table(typed: bool) -> GroupTable:
    buffer = TableBuffer({"gender": ("f", "m")}, typed=["gender"] if typed else [])
    for line, (id, letter) in enumerate(ROWS, start=1):
        named = letter == "f" and int(id[1:]) < 55
        buffer.add(id, {"gender": "f" if named else None}, line, ["gender"] if typed and letter == "f" else [])
    return GroupTable(*buffer.finish())


def graph(apart: bool) -> Graph:
    """Each document beside the next two of its type, or beside some of each."""
    places = {id: place for place, (id, _) in enumerate(ROWS)}
    near = [
        [places[f"{letter if apart else 'fr'[step % 2]}{(int(id[1:]) + step) % 60}"] for step in (1, 2)]
        for id, letter in ROWS
    ]
    names = np.array([id.encode() for id, _ in ROWS])
    return Graph(IdTable(names, np.argsort(names).astype(np.uint32)), np.array(near, dtype=np.int32))


def test_a_collection_declares_which_documents_can_have_a_label() -> None:
    types = TypeSource.of_collection(collection(table(typed=True)), None, Memo())
    ((dimension, of, chance),) = types.document_types(["f0", "f59", "r0"], "t1")
    assert (dimension, of.tolist(), chance) == ("gender", [1, 1, 0], 0.5)
    assert (types.table, list(types.notes)) == ({}, [])


def test_missing_labels_that_cluster_tell_a_type_and_others_do_not() -> None:
    types = TypeSource.of_collection(collection(table(typed=False)), graph(apart=True), Memo())
    ((_, of, _),) = types.document_types(["f0", "f59", "r0"], "t1")
    named, unnamed, river = of.tolist()
    assert named > 0.9 > unnamed > 0.6 > 0.1 > river
    assert types.table.keys() == {"gender"}
    assert "54 % of the documents have no label of 'gender'; near documents lack it together" in next(types.notes)
    mixed = TypeSource.of_collection(collection(table(typed=False)), graph(apart=False), Memo())
    assert list(mixed.document_types(["f0", "r0"], "t1")) == []
    assert "taken for documents whose label nobody gave" in next(mixed.notes)


def test_groups_of_the_judgments_never_tell_a_type() -> None:
    judged: Any = table(typed=True)
    judged.oracle = frozenset({"gender"})
    types = TypeSource.of_collection(collection(judged), graph(apart=True), Memo())
    assert list(types.document_types(["f0", "r0"], "t1")) == []


def test_a_target_that_types_have_moved_is_said() -> None:
    made = agent(Dense(LAWYERS))
    own = made.find("law", 4).engine_list
    meter = ExposureMeter.make(made.collection, "t1", made.settings, own)
    before = replace(meter, unlabeled=(UnlabeledTarget(np.array([0.4]), np.array([0.4, 0.3, 0.3])),))
    for share, type in ((0.1, "have labels"), (0.9, "have none")):
        after = replace(before, unlabeled=(before.unlabeled[0].by_type(np.array([share]), clustered=True),))
        assert moved_by_types(before, after) == [
            f"in gender the target of documents without a label is {share:.0%}, not the 40% of the engine's list: "
            f"the query asks for the type of documents that {type}"
        ]
    assert moved_by_types(before, before) == moved_by_types(meter, replace(meter, unlabeled=())) == []
