"""The second search: documents come in that no list had, and what goes wrong there leaves the first list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from loop_engine import LAWYERS, VOCABULARY, Dense, Texts, Words, agent
from numpy.typing import NDArray
from scripted import by_letter

from fairagent import BM25Retriever, Collection, build_index, open_agent
from fairagent.errors import BackendUnavailable
from fairagent.retrieve.catalog import IdTable
from fairagent.retrieve.encoders import Embeddings
from fairagent.search.loop.actions import RefineAction
from fairagent.search.loop.candidates import Mixer
from fairagent.search.loop.controller import Controller
from fairagent.search.loop.second_search import SecondSearch
from fairagent.storage.threads import Memo
from fairagent.types import FloatArray, Query, Ranking, SearchResult, Step

HIDDEN = {f"f{number}": "woman woman woman court court court law" for number in range(5, 9)}
"""Women that the query's own list, cut to a depth of 10, does not hold."""
PAGES = LAWYERS | HIDDEN


class Near(Dense):
    """Vector search by any vector; `failing` it fails."""

    failing = False

    def nearest(self, vector: Embeddings, n: int) -> Ranking:
        if self.failing:
            raise BackendUnavailable("the server is gone")
        ids = list(self.texts)
        products = np.asarray(self.vectors(ids) @ vector, dtype=np.float64)
        order = np.argsort(-products, kind="stable")[:n]
        return Ranking(tuple(ids[place] for place in order), products[order])


def searched(engine: object, mixer: Mixer | None = None, depth: int = 10, **more: int) -> SearchResult:
    groups = by_letter(PAGES)
    second = SecondSearch(groups, Memo(), **({"depth": 20} | more))
    loop = Controller((RefineAction(3, 0.5),), mixer=mixer or Mixer(0.5), drift=0.9, second=second)
    return agent(engine, loop, groups, depth=depth).search("law")


def first(result: SearchResult) -> Step:
    return result.trace.steps[1]


def test_the_refined_vector_finds_what_the_query_did_not() -> None:
    result = searched(Near(PAGES))
    assert set(result.trace.steps[0].ranking.ids).isdisjoint(HIDDEN)
    assert first(result).entered == len(HIDDEN)
    assert [step.entered for step in result.trace.steps[2:]] == [0] * (len(result.trace.steps) - 2)
    assert result.trace.gap == pytest.approx(0, abs=1e-6)


def test_who_comes_in_has_the_engines_score_for_the_users_query() -> None:
    """A document near the evidence and far from the query stays behind those that answer it."""
    away = {"f9": "woman woman woman woman"}
    result = searched(Near(PAGES | away))
    assert first(result).entered == len(HIDDEN) + 1
    assert "f9" not in result.ranking.ids


@pytest.mark.parametrize("text_alone", [False, True])
def test_words_find_them_and_who_has_none_of_the_users_is_no_answer(text_alone: bool) -> None:
    """By weighted words where the engine tells its terms, else by a query for each group."""
    away = {"f9": "woman woman woman woman"}
    source = Words(PAGES | away | {f"s{number}": "ship sea" for number in range(40)})
    result = searched(Texts(source) if text_alone else source, Mixer(0.5, source, terms=0.5))
    assert 0 < first(result).entered <= len(HIDDEN)
    assert "f9" not in result.ranking.ids


def test_the_words_of_a_group_count_by_its_weight() -> None:
    def weight(female: float) -> float:
        source, queries = Words(PAGES | {f"s{number}": "ship sea" for number in range(40)}), list[Query]()
        plain = source.search
        source.search = lambda query, n: (queries.append(query), plain(query, n))[1]  # type: ignore[method-assign]
        loop = Controller((RefineAction(),), mixer=Mixer(source=source), second=SecondSearch(by_letter(PAGES), Memo()))
        target = {"gender": {"female": female, "male": 1 - female}}
        agent(source, loop, by_letter(PAGES), depth=10, target=target).search("law")
        return {term.text: term.weight for term in queries[1].terms}["woman"]

    assert weight(0.9) > weight(0.6)


class NearAmong(Near):
    """Searches among some documents, too; `wanted` are their ids, how many were wanted, and the vector."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        super().__init__(texts)
        names = np.array(sorted(texts), dtype=np.bytes_)
        self.ids = IdTable(names, np.arange(len(names), dtype=np.uint32))
        self.wanted: list[tuple[set[str], int, Embeddings]] = []

    def nearest(self, vector: Embeddings, n: int) -> Ranking:
        return super().nearest(vector, min(n, 1))

    def nearest_among(self, vector: Embeddings, n: int, numbers: NDArray[np.intp]) -> Ranking:
        members = [id for id in self.ids.texts() if id in {self.ids.texts()[number] for number in numbers.tolist()}]
        self.wanted.append((set(members), n, vector))
        return Near({id: self.texts[id] for id in members}).nearest(vector, n)


def test_vectors_of_a_group_with_too_few_candidates_are_searched_for_among_its_own() -> None:
    """The list holds six men and a woman: toward her, one other woman is looked for among all women."""
    engine = NearAmong(PAGES)
    result = searched(engine, depth=7)
    ((members, lacking, toward),) = engine.wanted
    assert members == {id for id in PAGES if id.startswith("f")}
    assert lacking == 2
    assert toward[VOCABULARY.index("woman")] > toward[VOCABULARY.index("man")] == 0
    assert first(result).entered == 1


def test_an_engine_that_fails_keeps_its_first_list_and_says_so() -> None:
    engine = Near(PAGES)
    engine.failing = True
    result = searched(engine)
    assert first(result).notes == (
        "the engine failed at the second search, so its first list stays: the server is gone",
    )
    assert set(result.ranking.ids) <= set(result.trace.steps[0].ranking.ids)
    assert {step.entered for step in result.trace.steps} == {0}


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> tuple[Collection, Path]:
    """Forty men, and three women whom "law" finds last."""
    rows = [{"id": f"m{n}", "text": f"law law man number{n}", "gender": "male"} for n in range(40)]
    rows += [{"id": f"f{n}", "text": f"law woman court town street number{n}", "gender": "female"} for n in range(3)]
    rows += [{"id": f"s{n}", "text": f"ship sea number{n}", "gender": ""} for n in range(20)]
    collection = Collection.from_records(rows, groups="gender", population={"gender": {"female": 0.5, "male": 0.5}})
    index = tmp_path_factory.mktemp("people") / "index"
    build_index(collection, index, engine="bm25")
    return collection, index


def test_a_group_with_too_few_candidates_is_searched_for_itself(people: tuple[Collection, Path]) -> None:
    collection, index = people
    agent = open_agent(collection, index, engine="bm25", depth=20, n=10, loop={"again": 1}, target="population")
    result = agent.search("law")
    assert not any(id.startswith("f") for id in result.trace.steps[0].ranking.ids)
    # The men that the refined query finds, one, and all women.
    assert 3 <= first(result).entered <= 4
    alone = open_agent(collection, index, engine="bm25", depth=20, n=10, loop={"again": 0}, target="population")
    assert {step.entered for step in alone.search("law").trace.steps} == {0}


def among(retriever: BM25Retriever, ids: Sequence[str]) -> tuple[str, ...]:
    return retriever.search_among(Query("law court"), 5, np.sort(retriever.ids.known(ids))).ids


def test_bm25_among_some_documents_is_its_list_of_them(people: tuple[Collection, Path]) -> None:
    collection, index = people
    retriever = BM25Retriever(index, collection)
    wanted = ["m3", "f1", "s4", "m30"]
    found = among(retriever, wanted)
    everything: FloatArray = retriever.score(Query("law court"), wanted)
    expected = [
        id
        for _, id in sorted(zip(-everything, wanted, strict=True))
        if retriever.score(Query("law court"), [id])[0] > 0
    ]
    assert list(found) == expected == ["f1", "m3", "m30"]
