"""Engines that are kept to some documents: the same lists as those of the engine, filtered."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from fairagent.errors import SettingsError, UsageError
from fairagent.retrieve.where import AskedDeeper, Conditions, restricted
from fairagent.search.agent import FairAgent
from fairagent.settings import SearchOptions
from fairagent.types import Document, FloatArray, Query, Ranking

CITIES = ("Oslo", "Bergen", "Rome")
WORDS = ("court", "judge", "law", "trial", "jury")


def row(i: int) -> dict[str, Any]:
    text = " ".join([WORDS[i % 5]] * (1 + i % 4) + [WORDS[(i + 2) % 5], f"word{i % 17}", "lawyer"])
    tags = ["even"] * (i % 2 == 0) + ["third"] * (i % 3 == 0)
    about = {"city": CITIES[i % 3], "year": 1990 + i % 10, "alive": i % 4 == 0, "tags": tags}
    return {"id": f"d{i:03}", "text": text, "gender": ("f", "m", "")[i % 3 if i % 7 else 2], **about}


ROWS = [row(i) for i in range(240)]


@pytest.fixture(scope="module")
def agent() -> FairAgent:
    return FairAgent.from_records(ROWS, groups=["gender"], target="uniform", n=10)


def having(**where: Any) -> set[str]:
    def of(row: dict[str, Any], name: str, wanted: Any) -> bool:
        cell = row[name] if isinstance(row[name], list) else [row[name]]
        return any(one in cell for one in (wanted if isinstance(wanted, list) else [wanted]))

    return {row["id"] for row in ROWS if all(of(row, name, wanted) for name, wanted in where.items())}


@pytest.mark.parametrize(
    "where",
    [{"city": "Oslo"}, {"city": ["Oslo", "Rome"], "year": 1994}, {"tags": "third"}],
    ids=["text", "two-columns", "list"],
)
def test_only_what_meets_the_conditions_is_found(agent: FairAgent, where: dict[str, Any]) -> None:
    expected = having(**where)
    found = agent.search("lawyer court", n=len(ROWS), where=where)
    # The word `lawyer` is in every document: all that meet the conditions are found.
    assert set(found.ranking.ids) == expected
    assert len(agent.search("lawyer court", where=where).hits) == min(10, len(expected))
    assert any(f"{len(expected)} document" in note for note in found.trace.notes)
    assert set(found.trace.steps[0].ranking.ids) <= expected


@pytest.mark.parametrize("engine", ["bm25", "dense", "rm3"])
def test_a_list_is_the_engines_own_filtered(engine: str) -> None:
    made = FairAgent.from_records(ROWS, groups=["gender"], target="uniform", engine={"kind": engine}, profile="engine")
    whole = made.retriever.search(Query("court judge"), len(ROWS))
    expected = [id for id in whole.ids if id in having(city="Rome")]
    kept, _ = restricted(made.retriever, Conditions.of({"city": "Rome"}, made.collection.groups))
    found = kept.search(Query("court judge"), 20)
    assert list(found.ids) == expected[:20]
    score = dict(zip(whole.ids, whole.scores.tolist(), strict=True))
    assert found.scores.tolist() == pytest.approx([score[id] for id in found.ids])
    assert list(kept.search(Query("court judge"), len(ROWS)).ids) == expected


def test_conditions_are_added_to_each_other_and_may_be_met_by_nothing(agent: FairAgent) -> None:
    twice = agent.under(SearchOptions(where={"city": "Oslo"})).under(SearchOptions(where={"alive": True}))
    assert set(twice.search("lawyer", n=240).ranking.ids) == having(city="Oslo", alive=True)
    found = agent.search("lawyer", where={"city": "Paris"})
    assert found.hits == ()
    assert any("city = 'Paris': 0 documents" in note for note in found.trace.notes)


@pytest.mark.parametrize(
    ("where", "error", "named"),
    [
        ({"citty": "Oslo"}, UsageError, "did you mean 'city'"),
        ({"city": 5}, UsageError, "'city' has texts"),
        ({"year": "Oslo"}, UsageError, "'year' has numbers"),
        ({"city": []}, SettingsError, "where"),
    ],
    ids=["column", "number", "text", "empty"],
)
def test_conditions_that_cannot_be(agent: FairAgent, where: Any, error: type[Exception], named: str) -> None:
    with pytest.raises(error, match=named):
        agent.search("lawyer", where=where)


class Elsewhere:
    """An engine that is none of ours: documents in their order, with texts."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def search(self, query: Query, n: int) -> Ranking:
        self.asked.append(n)
        return Ranking(tuple(row["id"] for row in ROWS[:n]), np.arange(len(ROWS), 0, -1.0)[:n])

    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        return np.zeros(len(ids))

    def document(self, id: str) -> Document:
        found = ROWS[int(id[1:])]
        return Document(id, found["text"], "", {name: found[name] for name in ("city", "year")})


def test_any_engine_is_asked_deeper_until_enough_is_found(agent: FairAgent) -> None:
    engine: Any = Elsewhere()
    kept, count = restricted(engine, Conditions.of({"city": "Oslo"}, agent.collection.groups))
    assert isinstance(kept, AskedDeeper)
    assert count is None
    assert list(kept.search(Query("q"), 10).ids) == sorted(having(city="Oslo"))[:10]
    # Of the first four, two are of Oslo: just enough.
    assert len(kept.search(Query("q"), 2)) == 2
    assert engine.asked == [20, 80, 4]
    assert list(kept.search(Query("q"), 500).ids) == sorted(having(city="Oslo"))
    for where, named in (({"town": "Oslo"}, "no column"), ({"city": 5}, "has texts")):
        wrong, _ = restricted(engine, Conditions.of(where, agent.collection.groups))
        with pytest.raises(UsageError, match=named):
            wrong.search(Query("q"), 5)
