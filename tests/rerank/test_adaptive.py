"""Adaptive re-ranking: GAR and each policy by hand, a slow GAR written out anew, and what holds for every policy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import Engine, agent, by_letter, collection

from fairagent.errors import SettingsError
from fairagent.measures import UNIFORM
from fairagent.papers.rivals import adaptive
from fairagent.papers.rivals.adaptive import AdaptiveConfig, AdaptiveReranker, GroupPolicy
from fairagent.retrieve.site import Site
from fairagent.search.rerank.base import Pool
from fairagent.settings import Settings
from fairagent.types import Document, FloatArray, Query, Ranking

from .greedy_pools import ROW


def genders(query: Query, ids: Sequence[str]) -> tuple[FloatArray, ...]:
    return (np.array([ROW[id[0]] for id in ids], dtype=np.float64).reshape(len(ids), 3),)


@dataclass
class Graph:
    """The neighbors written down for each document."""

    near: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def neighbors(self, ids: Sequence[str]) -> list[tuple[str, ...]]:
        return [tuple(self.near.get(id, ())) for id in ids]


@dataclass
class Scores:
    """The score written down for each document, and which were asked for, batch by batch."""

    of: Mapping[str, float]
    batches: list[tuple[str, ...]] = field(default_factory=list)

    def __call__(self, query: Query, ids: Sequence[str]) -> FloatArray:
        self.batches.append(tuple(ids))
        return np.array([self.of[id] for id in ids], dtype=np.float64)


def pool(ids: str, n: int = 10, target: Sequence[float] = (0.5, 0.5)) -> Pool:
    """Documents of one dimension, by the first letter of their ids, with the scores m, m - 1 ... 1."""
    listed = tuple(ids.split())
    ranking = Ranking(listed, np.arange(len(listed), 0, -1.0))
    return Pool(Query("q", "7"), ranking, genders(Query("q"), listed), (np.array(target, dtype=np.float64),), n)


def reranker(near: Mapping[str, Sequence[str]], score: Scores, **more: Any) -> AdaptiveReranker:
    return AdaptiveReranker(Graph(near), score, genders, **({"discount": UNIFORM} | more))


# --- the policies by hand ---------------------------------------------------------------------------------------


# budget, target (1/2, 1/2), everybody labeled. The list is m1 m2 m3 m4 f1 f2, b = 3.
# Place 1: each lacks 1/2, so the first: m1. Place 2: f lacks 2/2, m nothing: f1. Place 3: each 3/2 - 1 = 1/2: m2.
# Then, of the frontier, with the neighbors of m1 m5 m6 (waiting with 4) and of f1 m7 f3 (with 2; m2's score is 3):
# Place 4: f lacks 4/2 - 1 = 1: f3. Place 5: each 5/2 - 2: m5. Place 6: f lacks 1, but none of it waits there, and m
# has 3 of 6/2: nothing lacks that could be had, so the first: m6.
def test_budget_by_hand() -> None:
    score = Scores({"m1": 4, "f1": 2, "m2": 3, "f3": 1, "m5": 1, "m6": 1, "f2": 1, "m3": 1, "m4": 1, "m7": 1})
    near = {"m1": ("m5", "m6"), "f1": ("m7", "f3")}
    reranker(near, score, budget=8, batch=3).rerank(pool("m1 m2 m3 m4 f1 f2"))
    # Place 7: f lacks 7/2 - 2: f2. Place 8: f lacks 1 and none is left; m has 4 of 8/2: the first, m3.
    assert score.batches == [("m1", "f1", "m2"), ("f3", "m5", "m6"), ("f2", "m3")]


def test_documents_without_a_label_keep_their_share_of_the_budget() -> None:
    # Of the first 4 candidates 2 have no label: the target is 1/2, 1/4, 1/4 (unknown, f, m).
    # Place 1: u lacks 1/2: u1. Place 2: u 0, f and m 2/4: m1. Place 3: u 1/2, f 3/4: f1. Place 4: u 1: u2.
    score = Scores(dict.fromkeys(["u1", "m1", "u2", "m2", "f1"], 1))
    reranker({}, score, budget=4, batch=4).rerank(pool("u1 m1 u2 m2 f1"))
    assert score.batches == [("u1", "m1", "f1", "u2")]


# Two dimensions, the second by the second letter of the id, both with targets 1/2, 1/2. The list is ma ma' mb fb fa.
# Place 1: all lack 1/2 + 1/2: ma. Place 2: m and a lack nothing, f and b 1: fb gives 2. Place 3: 1/2 + 1/2 again for
# all: ma'. Place 4: f and b lack 1: none is both, fa and mb give 1 each: mb is better placed.
def test_two_dimensions_by_hand() -> None:
    def both(query: Query, ids: Sequence[str]) -> tuple[FloatArray, ...]:
        return (*genders(query, ids), np.array([(0.0, id[1] == "a", id[1] == "b") for id in ids], dtype=np.float64))

    made = pool("ma1 ma2 mb1 fb1 fa1", 5)
    ids, half = made.ranking.ids, made.targets[0]
    made = replace(made, memberships=both(Query("q"), ids), targets=(half, half))
    score = Scores(dict.fromkeys(ids, 1))
    AdaptiveReranker(Graph(), score, both, budget=4, batch=4).rerank(made)
    assert score.batches == [("ma1", "fb1", "ma2", "mb1")]


# exposure, n = 2, two ranks of the same weight. The list is m1 m2 m3 f1 f2, b = 2, target (1/2, 1/2).
# Batch 1: m1 m2 would be served, f lacks 1/2: f1 f2, with scores 1 and 2; f3, f4 and m4 are neighbors of f1.
# Batch 2: f2 f1 would be served, m lacks 1/2: of the frontier m4, and then, to fill the batch, f3; 3 and 0.
# Batch 3: m4 f2 would be served, nobody lacks anything: the first of the list, m1 m2.
def test_exposure_by_hand() -> None:
    score = Scores({"f1": 1, "f2": 2, "m4": 3, "f3": 0, "m1": -1, "m2": -2, "m3": -3})
    made = reranker({"f1": ("f3", "f4", "m4")}, score, policy="exposure", budget=6, batch=2)
    found = made.rerank(pool("m1 m2 m3 f1 f2", n=2))
    assert score.batches == [("f1", "f2"), ("m4", "f3"), ("m1", "m2")]
    assert found.ids == ("m4", "f2")


# --- GAR written out anew, and what holds for every policy -------------------------------------------------------


def slow_gar(ids: Sequence[str], near: Mapping[str, Any], of: Mapping[str, float], c: int, b: int) -> list[str]:
    """The order in which GAR scores: every time all that waits is gathered and sorted again, from the history alone."""
    history: list[list[str]] = []
    source = 0
    while True:
        scored = [id for batch in history for id in batch]
        seen: dict[str, float] = {}
        for batch in history:
            for id in sorted(batch, key=lambda one: (-of[one], one)):
                for other in near.get(id, ()):
                    seen[other] = max(of[id], seen.get(other, -math.inf))
        waiting = [
            [id for id in ids if id not in scored],
            sorted((id for id in seen if id not in scored), key=lambda id: -seen[id]),
        ]
        if not any(waiting) or len(scored) >= c:
            return scored
        if waiting[source]:
            history.append(waiting[source][: min(b, c - len(scored))])
        source = 1 - source


DOCUMENTS = [letter + str(number) for number in range(4) for letter in "fmub"]


Case = tuple[Pool, dict[str, tuple[str, ...]], dict[str, float], int, int]
"""A pool, who is near whom, the scores, the budget and the size of a batch."""


@st.composite
def cases(draw: st.DrawFn) -> Case:
    listed = draw(st.lists(st.sampled_from(DOCUMENTS), unique=True, max_size=10))
    others = st.lists(st.sampled_from(DOCUMENTS), unique=True, max_size=4).map(tuple)
    near = draw(st.dictionaries(st.sampled_from(DOCUMENTS), others))
    # Few different scores: ties happen.
    of = {id: float(draw(st.integers(-3, 3))) for id in DOCUMENTS}
    share = draw(st.sampled_from([0.0, 0.25, 1 / 3, 0.5, 1.0]))
    made = pool(" ".join(listed), n=draw(st.integers(1, 12)), target=(share, 1 - share))
    return made, near, of, draw(st.integers(1, 20)), draw(st.integers(1, 6))


# A neighbor comes to wait at its place behind those found before, also where it waited with less at first; `slow_gar`
# keeps that order too, since a dictionary does.
@given(cases())
@settings(max_examples=200, deadline=None)
def test_without_a_policy_it_is_gar(case: Case) -> None:
    made, near, of, budget, batch = case
    score = Scores(of)
    reranker(near, score, policy="none", budget=budget, batch=batch).rerank(made)
    assert [id for ids in score.batches for id in ids] == slow_gar(made.ranking.ids, near, of, budget, batch)


def reachable(listed: Sequence[str], near: Mapping[str, Sequence[str]]) -> set[str]:
    found, new = set(listed), set(listed)
    while new:
        new = {other for id in new for other in near.get(id, ())} - found
        found |= new
    return found


@given(cases(), st.sampled_from(["none", "budget", "exposure"]))
@settings(max_examples=200, deadline=None)
def test_laws(case: Case, policy: GroupPolicy) -> None:
    made, near, of, budget, batch = case
    score = Scores(of)
    method = reranker(near, score, policy=policy, budget=budget, batch=batch)
    found = method.rerank(made)
    asked = [id for ids in score.batches for id in ids]
    reach = reachable(made.ranking.ids, near)
    # Each document is scored once, as many as the budget or as there are, no batch is larger than it may be.
    assert len(set(asked)) == len(asked) == min(budget, len(reach))
    assert set(asked) <= reach
    assert all(0 < len(ids) <= batch for ids in score.batches)
    # What was scored comes first, by score, ties by id; then the candidates that were not, in their order.
    left = [id for id in made.ranking.ids if id not in asked]
    whole = sorted(asked, key=lambda id: (-of[id], id)) + left
    assert list(found.ids) == whole[: made.n]
    assert (np.diff(found.scores) <= 0).all()
    # A budget for all makes policies one.
    if budget >= len(reach):
        assert list(found.ids) == sorted(reach, key=lambda id: (-of[id], id))[: made.n]
    assert method.rerank(made).ids == found.ids


# --- from settings ----------------------------------------------------------------------------------------------


class Texts(Engine):
    """An engine that knows the text of each document."""

    def document(self, id: str) -> Document:
        return Document(id, f"text of {id}", f"title of {id}")


class Numbers:
    """A pair scorer: the number at the end of the text."""

    name = "numbers"

    def score(self, query: str, texts: Sequence[str]) -> FloatArray:
        assert (query, texts[0][:9]) == ("who", "title of ")
        return np.array([float(text[-1]) for text in texts])


def site(**more: Any) -> Any:
    models: Any = None
    held, engine = collection(by_letter(["f1", "f9", "m1", "m2"])), Texts({"who": "m1 m2 f1"})
    return Site(held, Settings(**more), Path("index"), models, engine=engine)


@pytest.fixture
def graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the place of the real corpus graph: m1 and f9 are neighbors."""
    monkeypatch.setattr(adaptive, "graph_of", lambda site, encoder: Graph({"m1": ("f9",), "f9": ("m1",)}))


def made_pool(site: Site) -> Pool:
    made = pool("m1 m2 f1", 5)
    rows = (site.collection.groups.memberships("gender", made.ranking.ids),)
    return replace(made, query=Query("who", "7"), memberships=rows)


@pytest.mark.usefixtures("graph")
def test_the_engines_own_score_and_the_collections_groups() -> None:
    place = site(rerank={"kind": "adaptive", "budget": 4, "batch": 2})
    made = place.settings.rerank.build(place)
    assert [rows.tolist() for rows in made.groups(Query("who"), ["f9", "m1"])] == [[[0, 1, 0], [0, 0, 1]]]
    assert (made.policy, made.budget, made.batch) == ("budget", 4, 2)
    # The engine gives 3, 2, 1, and 0 to f9, which it did not find: batches m1 f1, f9, m2.
    found = made.rerank(made_pool(place))
    assert (found.ids, found.scores.tolist()) == (("m1", "m2", "f1", "f9"), [3, 2, 1, 0])


@pytest.mark.usefixtures("graph")
def test_a_pair_scorer_reads_titles_and_texts() -> None:
    place = site(rerank={"kind": "adaptive", "scorer": "numbers", "batch": 3})
    place.memo.get(("pair scorer", "numbers"), Numbers)
    place.settings.rerank.check(place)
    assert place.settings.rerank.build(place).rerank(made_pool(place)).ids == ("f9", "m2", "f1", "m1")


def test_an_agent_serves_and_measures_what_the_engine_did_not_find() -> None:
    engine = Texts({"who": "m1 m2 m3"})
    labels = collection(by_letter(["m1", "m2", "m3", "f9"])).groups
    of = Scores({"m1": 1, "m2": 3, "m3": 0, "f9": 2})
    plain = agent(engine, None, groups=labels, refine="none", reranker=lambda engine: None, n=2)
    assert plain.search("who").trace.exposures[0].shares.tolist() == [0, 1]
    adaptive = AdaptiveReranker(Graph({"m1": ("f9",)}), of, genders)
    found = replace(plain, reranker=adaptive).search("who")
    assert [(hit.id, hit.groups["gender"]) for hit in found.hits] == [("m2", {"male": 1.0}), ("f9", {"female": 1.0})]
    assert found.trace.exposures[0].shares.tolist() == [0.5, 0.5]


class Lengths:
    """An encoder: how many letters a text has, and 1."""

    name = "lengths"

    def documents(self, texts: Sequence[str]) -> FloatArray:
        return np.array([[len(text), 1.0] for text in texts])

    queries = documents


@pytest.mark.usefixtures("graph")
def test_an_encoder_scores_query_and_document(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(adaptive, "encoder", lambda site, name: asked.append(name) or Lengths())
    monkeypatch.setattr(adaptive, "check_vectors", lambda site, name: asked.append(name))
    place = site(rerank={"kind": "adaptive", "scorer": "similarity:lengths", "encoder": "other"})
    place.settings.rerank.check(place)
    assert asked == ["other", "lengths"]
    # "who" has 3 letters, "title of m1 text of m1" 22: 3 * 22 + 1.
    found = place.settings.rerank.build(place).rerank(made_pool(place))
    assert found.scores.tolist() == [67.0] * 4


def test_without_a_graph_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adaptive, "graph_of", lambda site, encoder: None)
    with pytest.raises(SettingsError, match="adaptive needs a corpus graph; `fairagent index` builds it"):
        AdaptiveConfig().build(site())


@pytest.mark.usefixtures("graph")
def test_nothing_follows_it_in_a_chain() -> None:
    adaptive = {"kind": "adaptive"}
    for parts in ([adaptive, "exposure"], [[adaptive], "original"], ["mmr", [adaptive, "exposure"]]):
        place = site(rerank=parts)
        for ask in (AdaptiveConfig().check, AdaptiveConfig().build):
            with pytest.raises(SettingsError, match="nothing can follow it in a chain"):
                ask(place)
    for parts in (["original", adaptive], ["exposure", [adaptive]], [adaptive, "none"]):
        place = site(rerank=parts)
        assert place.settings.rerank.build(place).rerank(made_pool(place)).ids == ("m1", "m2", "f1", "f9")


@pytest.mark.parametrize(
    ("engine", "own", "whose"),
    [("bm25", "", "light"), ("bm25", "minilm", "minilm"), ("fused", "", ""), ("fused", "minilm", "minilm")],
)
def test_whose_neighbors(monkeypatch: pytest.MonkeyPatch, engine: str, own: str, whose: str) -> None:
    # Empty: the engine's own embeddings; BM25 has none, so the setting `encoder` says.
    asked: list[str] = []
    monkeypatch.setattr(adaptive, "graph_of", lambda site, encoder: asked.append(encoder) or Graph())
    monkeypatch.setattr(adaptive, "prepare_graphs", lambda site, progress, encoder: asked.append(encoder))
    place = site(engine=engine, rerank={"kind": "adaptive", "encoder": own})
    place.settings.rerank.prepare(place, lambda what, done: None)
    place.settings.rerank.build(place)
    assert asked == [whose, whose]
