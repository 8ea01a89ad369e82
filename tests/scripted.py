"""A search engine, a refiner and a clock that do what a test wrote down: the loop without Java, exactly.

The first letter of a document's id is its group: `f1` is female, `m1` male, `n1` nonbinary, `u1` has no label.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import fairagent.collection
from fairagent.collection import Groups, GroupTable
from fairagent.collection.collection import Documents
from fairagent.collection.config import DocumentsFile
from fairagent.retrieve.stochastic import RequestCounter
from fairagent.search.agent import FairAgent
from fairagent.search.loop.fair_qr import FairQR
from fairagent.search.refine import RefineState
from fairagent.search.rerank.base import Reranker
from fairagent.search.rerank.relevance import OriginalReranker
from fairagent.settings import Settings
from fairagent.types import FloatArray, Query, Ranking, Refinement, Term

GENDERS = {"f": "female", "m": "male", "n": "nonbinary"}


class Engine:
    """Answers each query (its line of keywords) with the list written for it; the first document scores highest.

    `absent` are the words that do not occur; `searched` the queries so far.
    """

    def __init__(self, lists: Mapping[str, str], absent: Collection[str] = ()) -> None:
        self.lists = {query: line.split() for query, line in lists.items()}
        self.absent = absent
        self.searched: list[str] = []

    def search(self, query: Query, n: int) -> Ranking:
        self.searched.append(str(query))
        return ranking(self.lists[str(query)][:n])

    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        """That of the list for the user's words; 0 for documents that are not in it."""
        found = self.lists[query.text]
        return np.array([len(found) - found.index(id) if id in found else 0.0 for id in ids])

    def document_frequency(self, word: str) -> int:
        return 0 if word in self.absent else 1


class Proposals:
    """A refiner that proposes the next line of words (or the next refinement) and remembers what it was told."""

    def __init__(self, *script: str | Refinement) -> None:
        self.script = script
        self.states: list[RefineState] = []

    def refine(self, state: RefineState) -> Refinement:
        self.states.append(state)
        proposed = self.script[len(self.states) - 1]
        return proposed if isinstance(proposed, Refinement) else refinement(proposed)


class Clock:
    """Time that passes when it is told to: `perf_counter` of the modules that a test puts it into."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def refinement(words: str, **more: Any) -> Refinement:
    return Refinement(tuple(Term(word) for word in words.split()), "scripted", **more)


def ranking(ids: Sequence[str], scores: Iterable[float] | None = None) -> Ranking:
    """The list with these scores, by default n, n - 1 ... 1."""
    values = range(len(ids), 0, -1) if scores is None else scores
    return Ranking(tuple(ids), np.array(list(values), dtype=np.float64))


def collection(
    groups: Groups, population: Mapping[str, Mapping[str, float]] | None = None, **more: Any
) -> fairagent.collection.Collection:
    source = Documents("made", (Path("none.jsonl"),), DocumentsFile(path=("none.jsonl",)))
    return fairagent.collection.Collection("made", {}, {}, groups, population or {}, (), source, **more)


def by_letter(ids: Iterable[str], labels: Sequence[str] = ("female", "male"), **more: str) -> GroupTable:
    """The gender of each id by its first letter; `more` are further dimensions, each by a letter of the id.

    `by_letter(["fa1"], region="1")` takes letter 1 ("a") as the region.
    """

    def row(id: str) -> dict[str, Any]:
        return {"gender": GENDERS.get(id[0])} | {name: id[int(place)] for name, place in more.items()}

    return GroupTable.from_rows([(id, row(id)) for id in dict.fromkeys(ids)], {"gender": labels} | dict.fromkeys(more))


def agent(
    engine: Any,
    refiner: Any,
    *,
    groups: Groups | None = None,
    population: Mapping[str, Mapping[str, float]] | None = None,
    reranker: Callable[[Any], Reranker | None] = OriginalReranker,
    **settings: Any,
) -> FairAgent:
    """The real agent on the scripted parts, in FAIR-QR's loop; unless told otherwise: 4 ranks that weigh the same, half
    of them each.

    As in a pipeline, there is no loop without a refiner, and none with settings that have none.
    """
    if groups is None:
        groups = by_letter(sorted({id for found in engine.lists.values() for id in found} | {"f0", "m0"}))
    plain = {"n": 4, "depth": 100, "target": "uniform", "discount": "uniform"}
    chosen = Settings(**(plain | ({} if "profile" in settings else {"loop": "fair-qr"}) | settings))
    looping = refiner is not None and chosen.loops
    loop = FairQR(refiner, chosen.iterations, chosen.threshold, chosen.candidates) if looping else None
    return FairAgent(collection(groups, population), engine, loop, reranker(engine), chosen)


def drawing(made: FairAgent, alpha: float) -> FairAgent:
    """The agent, with a ranking that is drawn for each request."""
    sampling = made.settings.sampling.model_copy(update={"alpha": alpha})
    settings = made.settings.model_copy(update={"sampling": sampling})
    return replace(made, settings=settings, requests=RequestCounter())
