"""How often a search asks: groups once a list, texts once a result, re-rankers once for each order of candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from loop_engine import FEW, LAWYERS, Dense, agent, finding
from numpy.typing import NDArray

from fairagent.collection import GroupTable
from fairagent.search.document_types import TypeSource
from fairagent.search.relevance import Weighing
from fairagent.search.rerank.base import Pool
from fairagent.search.rerank.exposure import ExposureReranker
from fairagent.search.rerank.relevance import ChainReranker
from fairagent.types import Document, FloatArray, Ranking


class Counted(GroupTable):
    """Groups that count how often they are asked."""

    asked = 0

    def memberships(self, dimension: str, ids: Sequence[str], topic: str = "") -> FloatArray:
        self.asked += 1
        return super().memberships(dimension, ids, topic)

    def of_type(self, dimension: str, ids: Sequence[str], topic: str = "") -> NDArray[np.bool_]:
        return np.asarray(super().memberships(dimension, ids, topic)[:, 1:].any(axis=1))


class Shown(Dense):
    """An engine that shows many documents at once."""

    def __init__(self) -> None:
        super().__init__(LAWYERS, FEW)
        self.calls: list[int] = []

    def document(self, id: str) -> Document:
        self.calls.append(1)
        return super().document(id)

    def documents(self, ids: Sequence[str]) -> list[Document]:
        self.calls.append(len(ids))
        return [Document(id, self.texts[id]) for id in ids]


class Seen:
    """A re-ranker that leaves the order and notes the pools."""

    def __init__(self) -> None:
        self.pools: list[tuple[tuple[str, ...], bytes]] = []

    def rerank(self, pool: Pool) -> Ranking:
        self.pools.append((pool.ranking.ids, np.asarray(pool.ranking.scores).tobytes()))
        return pool.ranking.top(pool.n)


def test_a_search_looks_up_the_groups_of_its_list_once_and_shows_all_hits_at_once() -> None:
    groups: Any = Counted.from_rows(
        [(id, {"gender": {"f": "female", "m": "male"}.get(id[0])}) for id in LAWYERS], ["gender"]
    )
    engine, seen = Shown(), Seen()
    made = agent(engine, finding("f2"), finding("f3", "documents"), groups=groups)
    types = TypeSource(made.collection, {"gender": 0.5}, frozenset({"gender"}))
    weighing = Weighing(None, types, made.settings.types)
    result = replace(made, weighing=weighing, reranker=ChainReranker((seen, ExposureReranker()))).search("law")
    assert len(result.trace.steps) > 1
    assert groups.asked == 4, "those of the served, for the meter, those of the list, and of what each action finds"
    assert engine.calls == [len(result.hits)]
    assert len(seen.pools) == len(set(seen.pools)) > 1
