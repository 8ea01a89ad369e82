"""Answers without a language model: the context's most relevant sentences, with citations."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from fairagent.generate.citations import without_citations
from fairagent.generate.generator import OnText
from fairagent.generate.sentences import sentences
from fairagent.query import as_query
from fairagent.retrieve.relevance_model import TermSource
from fairagent.settings import Part
from fairagent.site import Site
from fairagent.types import Answer, Document, Query

LENGTH_PENALTY = 0.75
"""BM25's b: how much long sentences are held back."""
MOST_ALIKE = 0.5
"""A sentence whose terms are, to more than this share (Jaccard), those of one that was taken says nothing new."""

_WORD = re.compile(r"\w+")


def words(text: str) -> list[str]:
    """The words of a text without case, for engines that do not tell how they analyze."""
    return _WORD.findall(text.casefold())


@dataclass(frozen=True, slots=True)
class ExtractiveGenerator:
    """Takes the best sentence of each document, the `most` best in all: no document speaks twice, as long as it may be.

    A sentence counts by the weights of the query's words and keywords that it holds, each by how rare it is among the
    context's sentences, as in BM25. Sentences that repeat one another are taken once. The answer has them in rank
    order, the document's title before one that does not name its subject. `analyze` gives a text's terms.
    """

    most: int = 10
    analyze: Callable[[str], list[str]] = words

    def answer(self, query: str | Query, documents: Sequence[Document], on_text: OnText | None = None) -> Answer:
        """See `Generator.answer`; empty, with a note, where no sentence holds a word of the query.

        >>> context = [Document("d1", "A town. It has roses."), Document("d2", "She grew roses.", "Ada Roe")]
        >>> answer = ExtractiveGenerator().answer("roses", context)
        >>> answer.text, answer.cited
        ('It has roses [1]. Ada Roe: She grew roses [2].', (1, 2))
        """
        pool = [
            _Sentence(number, place, text, frozenset(self.analyze(text)))
            for number, document in enumerate(documents, start=1)
            for place, text in enumerate(sentences(without_citations(document.text)))
        ]
        chosen = self._chosen(pool, self._weights(as_query(query)))
        told = [_cited(sentence, documents[sentence.number - 1].title) for sentence in chosen]
        text = " ".join(told)
        if on_text and text:
            on_text(text)
        notes = () if chosen or not documents else ("no sentence of the context holds a word of the query",)
        return Answer(text, tuple(one.number for one in chosen), notes, source="extractive")

    def _weights(self, query: Query) -> Mapping[str, float]:
        """The weight of each term of the query."""
        weights: dict[str, float] = defaultdict(float)
        for text, weight in query.weighted:
            for term in self.analyze(text):
                weights[term] += weight
        return weights

    def _chosen(self, pool: Sequence[_Sentence], weights: Mapping[str, float]) -> list[_Sentence]:
        """The best sentences in rank order."""
        scores = _scores(pool, weights)
        best = sorted((one for one in pool if scores[one] > 0), key=lambda one: (-scores[one], one.number, one.place))
        chosen: dict[int, _Sentence] = {}
        for one in best:
            if len(chosen) < self.most and one.number not in chosen and not any(map(one.repeats, chosen.values())):
                chosen[one.number] = one
        return [chosen[number] for number in sorted(chosen)]


@dataclass(frozen=True, slots=True)
class _Sentence:
    """One sentence: its document's number, its place there, its text and its terms."""

    number: int
    place: int
    text: str
    terms: frozenset[str]

    def repeats(self, other: _Sentence) -> bool:
        """Whether it says what the other says."""
        return len(self.terms & other.terms) > MOST_ALIKE * len(self.terms | other.terms)


def _scores(pool: Sequence[_Sentence], weights: Mapping[str, float]) -> dict[_Sentence, float]:
    """Each sentence's score; 0 where it holds no term of the query."""
    holding = Counter(term for one in pool for term in one.terms & weights.keys())
    rarity = {term: math.log1p((len(pool) - count + 0.5) / (count + 0.5)) for term, count in holding.items()}
    mean = sum(len(one.terms) for one in pool) / max(len(pool), 1) or 1.0
    return {
        one: math.fsum(weights[term] * rarity[term] for term in one.terms & weights.keys())
        / (1 - LENGTH_PENALTY + LENGTH_PENALTY * len(one.terms) / mean)
        for one in pool
    }


def _cited(sentence: _Sentence, title: str) -> str:
    """The sentence with its citation before its last mark, and its title where it names none of it."""
    named = set(words(title)) & set(words(sentence.text))
    subject = f"{title}: " if title and not named else ""
    text = sentence.text.rstrip(".!?")
    return f"{subject}{text} [{sentence.number}]{sentence.text[len(text) :] or '.'}"


class ExtractiveConfig(Part):
    """The best sentences of the documents as they stand."""

    kind: Literal["extractive"] = "extractive"
    sentences: int = Field(10, ge=1)
    """How many at most, one a document."""

    def build(self, site: Site) -> ExtractiveGenerator:
        """The generator; it reads words as the engine does, where that tells how."""
        if isinstance(site.engine, TermSource):
            return ExtractiveGenerator(self.sentences, site.engine.analyze)
        return ExtractiveGenerator(self.sentences)
