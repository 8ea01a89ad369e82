"""Asking a benchmark's questions: as they stand, greedily, with documents or without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairagent.errors import ReplyTruncated
from fairagent.generate import OnText
from fairagent.generate.context import Order, numbered
from fairagent.llm import Message, Model, ModelRequest
from fairagent.llm.clean import THOUGHTS, query_shown, visible
from fairagent.prompts import Prompt, Prompts
from fairagent.query import as_query
from fairagent.types import Answer, Document, Query

PROMPT = "ask"
TEMPERATURE = 0.0


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


def answer_to(
    model: Model,
    prompt: Prompt,
    messages: tuple[Message, ...],
    temperature: float = TEMPERATURE,
    seed: int | None = None,
) -> Answer:
    """The model's answer to the `messages` that `prompt` was filled to; one that is cut off at its limit will do.

    Raises what `Model.complete` raises, and ReplyTruncated where a model had not finished thinking by then.
    """
    most = prompt.head.max_tokens
    request = ModelRequest(messages, temperature=temperature, max_tokens=most, seed=seed, whole=False)
    reply = model.complete(request)
    text = said(reply.text)
    if not text:
        error = ReplyTruncated(
            f"nothing but thoughts came within {most} tokens; let the model think less, or raise max_tokens in "
            f"the template {prompt.head.id}",
            raw=reply.text,
        )
        error.usage = reply.usage
        raise error
    return Answer(text, usage=reply.usage, source="llm")


def said(reply: str) -> str:
    """What a model says, without what it thinks aloud before; "" where it never comes to say anything.

    >>> said("<think>A stereotype.</think> No."), said("<think>Let me see")
    ('No.', '')
    """
    begin, end = THOUGHTS
    _, found, after = reply.rpartition(end)
    text = visible(after).strip()
    return "" if not found and text.startswith(begin) else text
