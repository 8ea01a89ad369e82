"""Answers by a language model that cites the documents it was shown."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from pydantic import Field

from fairagent.clean import query_shown, visible
from fairagent.errors import BudgetExceeded, ModelError, ReplyInvalid, ReplyTruncated
from fairagent.filter.pages import LONGEST_TITLE
from fairagent.generate.citations import CitationReader
from fairagent.generate.context import Order, numbered
from fairagent.generate.extractive import ExtractiveGenerator
from fairagent.generate.generator import OnText
from fairagent.llm import Model, tell
from fairagent.llm.on_error import attempt
from fairagent.prompts import Prompts
from fairagent.prompts.calls import LETTER, Calls, Case
from fairagent.query import as_query
from fairagent.settings import Part
from fairagent.site import Site
from fairagent.types import Answer, Document, Query, Usage

PROMPT = "answer"
TEMPERATURE = 0.0
"""FairFilter's: the same question is to have the same answer."""


@dataclass(frozen=True, slots=True)
class LlmGenerator:
    """Asks `model` with the template `answer`, which is given the query and the documents with their numbers.

    `order` is that in which the documents are shown; their numbers are those of rank order all the same. Of citations
    that are no document's number, "remove" takes them out and says so in the notes, "error" raises ReplyInvalid.
    `length` is the most words, 0 leaves it open; `language` is the answer's, "" the question's.

    `on_error` says what is done where the answer is cut off or none comes: "keep" what has come of it, marked as
    truncated (an error where nothing has), take sentences of the documents ("fallback"; not for one that was streamed),
    or "fail".
    """

    model: Model
    prompts: Prompts
    order: Order = "rank"
    citations: Literal["remove", "error"] = "remove"
    length: int = 0
    language: str = ""
    on_error: Literal["keep", "fallback", "fail"] = "keep"

    def answer(self, query: str | Query, documents: Sequence[Document], on_text: OnText | None = None) -> Answer:
        """See `Generator.answer`. Without documents the model is asked with empty references, as in FairFilter.

        Raises FatalModelError and BudgetExceeded, and as `on_error` says what else `Model.complete` raises, and
        ReplyInvalid where nothing is left of the answer.
        """
        variables = {
            "query": query_shown(as_query(query).text),
            "documents": numbered(documents, self.order),
            "length": self.length or None,
            "language": self.language or None,
        }
        request = self.prompts.request(PROMPT, variables, TEMPERATURE)
        reader = CitationReader(len(documents), on_text)

        def read(piece: str) -> None:
            reader.read(visible(piece))

        def whole() -> Answer:
            if on_text:
                reply = tell(self.model, request, read)
            else:
                reply = self.model.complete(request)
                read(reply.text)
            reader.close()
            notes = self._notes(reader, reply.text, reply.usage)
            return Answer(reader.text, tuple(reader.cited), notes, reply.usage, "llm")

        def instead(error: ModelError | BudgetExceeded) -> Answer:
            told = bool(on_text and reader.text)
            if self.on_error == "fallback" and not told:
                found = ExtractiveGenerator().answer(query, documents, on_text)
                return replace(found, notes=(f"sentences of the documents: {error}", *found.notes), usage=error.usage)
            if isinstance(error, ReplyTruncated) and not told:
                read(error.text)
                reader.close()
            if not reader.text or isinstance(error, ReplyInvalid):
                raise error
            notes = (f"the answer is cut off: {error}", *self._notes(reader, reader.text, error.usage))
            return Answer(reader.text, tuple(reader.cited), notes, error.usage, "llm", truncated=True)

        return attempt(whole, self.on_error, instead)

    def _notes(self, reader: CitationReader, raw: str, usage: Usage) -> tuple[str, ...]:
        invented = ", ".join(f"[{number}]" for number in dict.fromkeys(reader.invented))
        fault = ""
        if not reader.text:
            fault = "the answer is empty"
        elif invented and self.citations == "error":
            fault = f"the answer cites {invented}, but its context has {reader.documents} documents"
        if fault:
            error = ReplyInvalid(f"{fault}; ask again, with another model, or change the template {PROMPT}", raw=raw)
            error.usage = usage
            raise error
        if invented:
            return (f"citations of no document were taken out: {invented}",)
        return () if reader.cited or not reader.documents else ("it cites no document",)


class LlmGeneratorConfig(Part):
    """The language model writes the answer."""

    template: ClassVar[str] = PROMPT
    kind: Literal["llm"] = "llm"
    length: int = Field(0, ge=0)
    """How many words at most; 0 is as many as the question needs."""
    language: str = ""
    """The answer's language; empty is that of the question."""
    citations: Literal["remove", "error"] = "remove"
    """What becomes of the citation of a document that there is not."""
    on_error: Literal["keep", "fallback", "fail"] = "keep"
    """What is done where the answer is cut off or none comes. keep: what has come of it is the answer, marked as
    truncated. fallback: sentences of the documents."""

    def worst_case(self, case: Case) -> Iterator[Calls]:
        """A call for each query, with a context as long as it may be."""
        context = case.settings.context
        text = LETTER * 4 * math.ceil(context.tokens / context.documents)
        shown = [{"number": context.documents, "title": LETTER * LONGEST_TITLE, "text": text}] * context.documents
        yield case.calls(PROMPT, documents=shown, length=self.length or None, language=self.language or None)

    def build(self, site: Site) -> LlmGenerator:
        """The generator."""
        order = site.settings.context.order
        return LlmGenerator(site.model, site.prompts, order, self.citations, self.length, self.language, self.on_error)
