"""Asking a question of LaMP: with the items of a ranking, or without any, in few tokens (seed_systems.md, 1.9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairagent.clean import visible
from fairagent.collection.lamp import Item, LampQuestion, LampTask
from fairagent.errors import ReplyError
from fairagent.evaluate.asking import answer_to
from fairagent.generate.context import shortened
from fairagent.llm import Message, Model
from fairagent.llm.request import estimate_tokens
from fairagent.prompts import Prompts
from fairagent.types import Answer

TOKENS = 512
"""What a whole prompt may have, by our estimate; its question gets half of it at the most."""
NO_ANSWER = "the model gave no answer"


def answer_from(
    model: Model, prompts: Prompts, question: LampQuestion, items: Sequence[Item], tokens: int = TOKENS
) -> Answer:
    """The model's answer to `question` from `items`, best first; there may be none.

    A model that declines, says nothing, or had not finished thinking at the template's limit has answered with nothing:
    "", and the notes begin with NO_ANSWER. Raises what else `Model.complete` raises.
    """
    messages = messages_for(prompts, question, items, tokens)
    try:
        return answer_to(model, prompts[question.task.prompt], messages)
    except ReplyError as error:
        return Answer("", notes=(f"{NO_ANSWER}: {error}",), usage=error.usage, source="llm")


def messages_for(
    prompts: Prompts, question: LampQuestion, items: Sequence[Item], tokens: int = TOKENS
) -> tuple[Message, ...]:
    """The prompt, of about `tokens` at the most: the question is cut to half of them, the items to what is left.

    Every item gets the same room; of its fields the long one is cut first. (Fair RAG's code leaves the template's own
    words out of this sum and cuts the whole at its end, where the question stands.) A template that itself takes more
    than `tokens` is not cut.
    """
    asked = shortened(visible(question.input), tokens // 2)
    room = (tokens - estimate_tokens(asked)) // len(items) if items else 0
    while True:
        shown = [_within(item, question.task, room) for item in items]
        messages = prompts.render(question.task.prompt, query=asked, items=shown)
        beyond = estimate_tokens(*(text for _, text in messages)) - tokens
        if beyond <= 0 or not room:
            return messages
        # Quotation marks and line breaks take more room in JSON than they have themselves.
        room = max(0, room - -(-beyond // len(items)))


def _within(item: Item, task: LampTask, room: int) -> Mapping[str, str]:
    """The item's fields in `room` tokens: half of them for those that are short, what is left for the long one."""
    short = {name: shortened(visible(text), room // 2) for name, text in item.fields.items() if name != task.long}
    left = max(0, room - estimate_tokens(*short.values()))
    return {**short, task.long: shortened(visible(item.fields[task.long]), left)}
