"""Who answers: a language model from what it knows and what it is given, or sentences taken from the documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from fairagent.clean import query_shown
from fairagent.evaluate.asking import answer_to
from fairagent.generate.citations import without_citations
from fairagent.generate.extractive import ExtractiveGenerator
from fairagent.llm import Model
from fairagent.prompts import Prompts
from fairagent.types import Answer, Document, Query

PROMPT = "utility_answer"


class Writer(Protocol):
    """Writes answers for the utility experiment: any object with this method will do. Several threads may call it."""

    def answer(self, query: Query, documents: Sequence[Document], run: int) -> Answer:
        """An answer from `documents`, shown in this order, or from none; `run` counts from 0."""
        ...


@dataclass(frozen=True, slots=True)
class ModelWriter:
    """Asks `model` with the template `utility_answer`; each run has a seed of its own."""

    model: Model
    prompts: Prompts
    temperature: float
    seed: int

    def answer(self, query: Query, documents: Sequence[Document], run: int) -> Answer:
        """See `Writer.answer`; an answer that is cut off at the template's limit is one.

        Raises what `Model.complete` raises, and ReplyTruncated where nothing but thoughts came.
        """
        passages = [{"title": one.title, "text": one.text} for one in documents] or None
        messages = self.prompts.render(PROMPT, query=query_shown(query.text), passages=passages)
        return answer_to(self.model, self.prompts[PROMPT], messages, self.temperature, self.seed + run)


@dataclass(frozen=True, slots=True)
class ExtractWriter:
    """Takes sentences from the documents; without any, or where none holds a word of the question, repeats that.

    So what stands for the answer of a model that knows nothing is the question itself, and utility says how much closer
    to the relevant passages the extracts are than the words that were searched for.
    """

    generator: ExtractiveGenerator

    def answer(self, query: Query, documents: Sequence[Document], run: int) -> Answer:
        """See `Writer.answer`; every run is the same, and no citation is left in the text.

        >>> writer = ExtractWriter(ExtractiveGenerator())
        >>> writer.answer(Query("roses"), [Document("d1", "It has roses.")], 0).text
        'It has roses.'
        >>> writer.answer(Query("roses"), [], 0).text
        'roses'
        """
        extract = without_citations(self.generator.answer(query, documents).text)
        return Answer(extract or query.text, source="extractive")
