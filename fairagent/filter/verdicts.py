"""The `Filter` protocol, and asking a model for verdicts on documents."""

from collections.abc import Sequence
from typing import Annotated, Protocol

from pydantic import Field

from fairagent.clean import visible
from fairagent.errors import ReplyInvalid
from fairagent.filter.pages import Page, as_data, call_ids
from fairagent.llm import Model, Reply, ask
from fairagent.llm.reply import one_for_each, text_within
from fairagent.prompts import Prompts
from fairagent.types import Document, Filtered, Usage

TEMPERATURE = 0.0
"""The paper's: a verdict is to be the same whenever it is asked for."""

LONGEST_REASON = 200
"""Characters of a model's reason that are kept."""
Reason = Annotated[str, text_within(160)]
"""Twenty words, where a server holds bounds."""


class DocumentVerdict(Reply):
    """What a model says about one document, under the id it was sent with."""

    id: str
    passed: bool = Field(alias="pass")
    reason: Reason


class Verdicts(Reply):
    """The reply of the prompts that judge documents one by one."""

    verdicts: list[DocumentVerdict]


def ask_verdicts(
    model: Model, prompts: Prompts, prompt: str, pages: Sequence[Page], **asked: str
) -> tuple[tuple[DocumentVerdict, ...], Usage]:
    """The model's verdicts on `pages`, in their order, and what they took; `asked` are the template's other variables.

    The reply has to hold each id of the call once, in the documents' order: where one is unknown, missing, repeated
    or in another's place, no verdict can be told to be its document's. The model is asked again then, and after that
    ReplyInvalid raised; and what else `ask` raises.
    """
    ids = call_ids(prompt, tuple(asked.values()), pages)

    def accept(reply: Verdicts) -> None:
        check_ids(ids, [verdict.id for verdict in reply.verdicts])

    narrowed = {"verdicts": one_for_each(DocumentVerdict, "id", ids)}
    request = prompts.request(prompt, {"documents": as_data(ids, pages), **asked}, TEMPERATURE, accept, narrowed)
    reply, usage = ask(model, request, Verdicts)
    return tuple(reply.verdicts), usage


def check_ids(expected: Sequence[str], found: Sequence[str]) -> None:
    """Raise ReplyInvalid, saying what to do, unless `found` are the `expected` ids in their order.

    >>> check_ids(["a", "b"], ["b", "a"])
    Traceback (most recent call last):
    fairagent.errors.ReplyInvalid: the verdicts must have the ids of the documents in their order: a, b
    """
    if list(found) == list(expected):
        return
    missing = [id for id in expected if id not in found]
    unknown = sum(id not in expected for id in found)
    faults = [
        f"; missing: {', '.join(missing)}" if missing else "",
        f"; unknown: {unknown}" if unknown else "",
        "; an id is repeated" if len(set(found)) < len(found) else "",
    ]
    order = ", ".join(expected)
    raise ReplyInvalid(f"the verdicts must have the ids of the documents in their order: {order}{''.join(faults)}")


def reason_text(reason: str) -> str:
    """A model's reason as one short line."""
    text = " ".join(visible(reason).split())
    return text if len(text) <= LONGEST_REASON else f"{text[:LONGEST_REASON]} ..."


class Filter(Protocol):
    """Takes documents out of a context that would do harm to an answer: any object with this method will do."""

    def filter(self, query: str, documents: Sequence[Document]) -> Filtered:
        """The documents that stay, in the order given, and a verdict on every one of `documents`, in their order.

        Nothing is added and nothing changes its place. Raises FatalModelError and BudgetExceeded where a model was
        asked and none of its calls can succeed.
        """
        ...
