"""Small engines whose every number can be told: a document is a bag of a few words, its vector their counts."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scripted import by_letter, collection

from fairagent.collection import Groups
from fairagent.llm import ModelRequest
from fairagent.retrieve.encoders import Embeddings
from fairagent.retrieve.relevance_model import Postings
from fairagent.search.agent import FairAgent
from fairagent.search.loop.widen import Action, Widen, widening
from fairagent.search.relevance import Weighing
from fairagent.search.rerank.exposure import ExposureReranker
from fairagent.settings import Settings
from fairagent.types import Dial, Document, FloatArray, Query, Ranking, SearchResult, Step

VOCABULARY = ("law", "woman", "man", "court", "ship", "sea")


def encoded(text: str) -> Embeddings:
    """The counts of the vocabulary's words as a vector of length 1."""
    counts = Counter(text.split())
    vector = np.array([counts[word] for word in VOCABULARY], dtype=np.float32)
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-9), dtype=np.float32)


class Dense:
    """Vector search over `texts` (id -> words), with texts; only `reachable` documents are found by a search."""

    def __init__(self, texts: Mapping[str, str], reachable: Sequence[str] | None = None) -> None:
        self.texts = dict(texts)
        self.reachable = list(self.texts if reachable is None else reachable)

    def search(self, query: Query, n: int) -> Ranking:
        return _best(self.reachable, self.score(query, self.reachable), n)

    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        return np.asarray(self.vectors(ids) @ self.query_vector(query), dtype=np.float64)

    def vectors(self, ids: Sequence[str]) -> Embeddings:
        return np.array([encoded(self.texts[id]) for id in ids], dtype=np.float32).reshape(-1, len(VOCABULARY))

    def query_vector(self, query: Query) -> Embeddings:
        return encoded(str(query).replace(",", " "))

    def nearest(self, vector: Embeddings, n: int) -> Ranking:
        ids = list(self.texts)
        return _best(ids, np.asarray(self.vectors(ids) @ vector, dtype=np.float64), n)

    def document(self, id: str) -> Document:
        return Document(id, self.texts[id], f"Title of {id}")


class Words:
    """An engine of words: a document scores the sum of the query's weights times its counts. It tells its terms."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = dict(texts)

    def search(self, query: Query, n: int) -> Ranking:
        ids = list(self.texts)
        scores = self.score(query, ids)
        found = [place for place, score in enumerate(scores.tolist()) if score > 0]
        return _best([ids[place] for place in found], scores[found], n)

    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        weighted = [(word, weight) for text, weight in query.weighted for word in text.split()]
        return np.array([sum(weight * self.texts[id].split().count(word) for word, weight in weighted) for id in ids])

    def postings(self, ids: Sequence[str]) -> Postings:
        counts = [Counter(self.texts[id].split()) for id in ids]
        entries = [
            (row, place, count[word])
            for row, count in enumerate(counts)
            for place, word in enumerate(VOCABULARY)
            if count[word]
        ]
        row, term, count = (np.array(column) for column in zip(*entries, strict=True))
        holders = [sum(word in text.split() for text in self.texts.values()) for word in VOCABULARY]
        share = np.array(holders) / len(self.texts)
        length = np.array([float(one.total()) for one in counts])
        return Postings(row, term, count.astype(np.float64), length, np.arange(len(VOCABULARY)), share)

    def words(self, vocabulary: Any) -> list[str]:
        return [VOCABULARY[number] for number in vocabulary]

    def analyze(self, text: str) -> list[str]:
        return [word for word in text.split() if word in VOCABULARY]


class Texts:
    """The same without its terms: an engine that takes text alone."""

    def __init__(self, engine: Words) -> None:
        self.texts, self.search, self.score = engine.texts, engine.search, engine.score


def _best(ids: Sequence[str], scores: FloatArray, n: int) -> Ranking:
    order = sorted(range(len(ids)), key=lambda place: (-scores[place], ids[place]))[:n]
    return Ranking(tuple(ids[place] for place in order), np.array([scores[place] for place in order]))


LAWYERS = {f"m{number}": "law law man" for number in range(1, 7)}
LAWYERS |= {
    f"f{number}": f"law woman woman{' woman' * (number == 3)}{' court' * (number == 4)}" for number in range(1, 5)
}
"""Six men, whom the query "law" finds first, and four women."""
FEW = [f"m{number}" for number in range(1, 7)] + ["f1"]
"""Whom a search reaches: one woman, where half of four places are due to women."""


class Scores:
    """Tells each document the score that was written down; a query finds its own line of `lists`, best first."""

    def __init__(self, scores: Mapping[str, float], **lists: str) -> None:
        self.texts, self.lists = dict(scores), lists
        self.asked: list[str] = []

    def search(self, query: Query, n: int) -> Ranking:
        self.asked.append(query.text)
        ids = self.lists.get(query.text, "").split()
        return _best(ids, self.score(query, ids), n)

    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        return np.array([self.texts[id] for id in ids], dtype=np.float64)


def finding(ids: str, name: str = "group") -> Action:
    """An action that finds these documents for any group."""
    return widening(name, lambda search, state, lack, n: ids.split())


def agent(
    engine: Any, *actions: Action, fairness: float = 16, groups: Groups | None = None, types: Any = None, **more: Any
) -> FairAgent:
    """The real agent on this engine; four ranks that weigh the same, half of them each, and fairness first."""
    chosen = {"n": 4, "depth": 100, "target": "uniform", "discount": "uniform", "expansion": {"documents": 0}}
    loop = Widen(actions, more.pop("on_error", "fallback"), more.pop("policy", None))
    reranker = ExposureReranker(Dial(fairness=fairness))
    made = collection(groups or by_letter(engine.texts))
    settings = Settings(**(chosen | more))
    weighing = Weighing(None, types, settings.types) if types else None
    return FairAgent(made, engine, loop if actions or loop.policy else None, reranker, settings, weighing=weighing)


def step_of(result: SearchResult, name: str) -> Step:
    """The only step of this action."""
    (step,) = (step for step in result.trace.steps if step.source == name)
    return step


def verdicts(passes: Callable[[str], bool]) -> Callable[[ModelRequest], str]:
    """Answers every call about documents by what `passes` says of a text."""

    def answer(request: ModelRequest) -> str:
        array = re.search(r"^\[.*\]$", request.messages[-1][1], re.MULTILINE)
        assert array
        found = [
            {"id": document["id"], "pass": passes(document["text"]), "reason": "so it is"}
            for document in json.loads(array[0])
        ]
        return json.dumps({"verdicts": found})

    return answer
