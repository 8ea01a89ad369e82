"""What an answer's citations give the groups while it is being written, and how far the cited documents hold it up."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fairagent.answer.aim import Aim
from fairagent.answer.citations import CITATION, CitationReader, OnText, numbers_in, sentences, without_citations, words
from fairagent.measures.answers import citation_support
from fairagent.types import Answer, Document, Exposure
from fairagent.types.clean import visible

_FIRST = re.compile(rf"(?:{CITATION.pattern})+[.,;]?")


@dataclass(frozen=True, slots=True, eq=False)
class CitedSoFar:
    """The documents that an unfinished answer cites, by their numbers, what they give the groups, and the gap."""

    cited: tuple[int, ...]
    exposures: tuple[Exposure, ...]
    gap: float


OnCited = Callable[[CitedSoFar], None]
"""Called whenever an answer that is being written cites one more document."""


def telling(on_text: OnText | None, on_cited: OnCited | None, aim: Aim | None, documents: int) -> OnText | None:
    """Who hears an answer's pieces so that both hear what is theirs; None where nobody listens."""
    if on_cited is None:
        return on_text
    told = 0

    def hear(piece: str) -> None:
        nonlocal told
        if on_text:
            on_text(piece)
        reader.read(piece)
        if len(reader.cited) > told:
            told = len(reader.cited)
            exposures = aim.exposures(reader.cited) if aim else ()
            on_cited(CitedSoFar(tuple(reader.cited), exposures, aim.gap(reader.cited) if aim else 0.0))

    reader = CitationReader(documents)
    return hear


def support_of(answer: Answer, documents: Sequence[Document]) -> float:
    """`citation_support` of an answer from these documents; a title is part of its document.

    >>> context = [Document("d1", "She grew roses.", "Ada Roe"), Document("d2", "A court.")]
    >>> support_of(Answer("Ada Roe grew roses [1]. She was a judge [2]."), context)
    0.625
    """
    held = [frozenset(words(visible(f"{one.title} {one.text}"))) for one in documents]
    claims: list[tuple[list[str], list[int]]] = []
    for sentence in sentences(visible(answer.text)):
        first = _FIRST.match(sentence)
        if first and claims:
            # A citation behind the mark that ends its sentence.
            claims[-1][1].extend(numbers_in(first[0], len(documents)))
            sentence = sentence[first.end() :]
        if said := words(without_citations(sentence)):
            claims.append((said, numbers_in(sentence, len(documents))))
    return citation_support(claims, held)
