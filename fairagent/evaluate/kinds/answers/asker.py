"""Asking a benchmark's questions: as they stand, greedily, with documents or without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairagent.clean import query_shown
from fairagent.evaluate.asking import answer_to
from fairagent.generate import OnText
from fairagent.generate.context import Order, numbered
from fairagent.llm import Model
from fairagent.prompts import Prompts
from fairagent.query import as_query
from fairagent.types import Answer, Document, Query

PROMPT = "ask"


@dataclass(frozen=True, slots=True)
class Asker:
    """A `Generator` that asks `model` with the template `ask`; `brief` adds CRAG's guidelines for short answers."""

    model: Model
    prompts: Prompts
    brief: bool
    order: Order = "rank"

    def answer(self, query: str | Query, documents: Sequence[Document], on_text: OnText | None = None) -> Answer:
        """See `Generator.answer`; without documents the references are empty, as in FairFilter. It cites nothing."""
        answer = self.ask(as_query(query).text, documents)
        if on_text:
            on_text(answer.text)
        return answer

    def ask(self, question: str, documents: Sequence[Document] | None = None) -> Answer:
        """The model's answer; None: no documents are spoken of.

        An answer that is cut off at the template's limit is one. Raises what `Model.complete` raises, and
        ReplyTruncated where a model had not finished thinking by then.
        """
        references = None if documents is None else numbered(documents, self.order)
        asked = query_shown(question)
        messages = self.prompts.render(PROMPT, query=asked, documents=references, brief=self.brief)
        return answer_to(self.model, self.prompts[PROMPT], messages)
