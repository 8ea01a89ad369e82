"""Models that judge documents as a test wrote down, and the documents that a request shows them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable

from fairagent.guests.testing import Scripted, ScriptedModel
from fairagent.llm import ModelRequest
from fairagent.llm.prompts import Prompts

Data = dict[str, str]
"""One document as a request shows it: id, title, text."""

STEPS = ("fairness_filter", "utility_filter")

_DOCUMENT = re.compile(r'\{\s*"id":')


def documents_in(request: ModelRequest) -> list[Data]:
    """The documents of a request, read from the JSON in its last message."""
    return [data for data, _, _ in _found(request.messages[-1][1])]


def outside(request: ModelRequest) -> str:
    """All text of a request but its documents."""
    user = request.messages[-1][1]
    for _, start, end in reversed(_found(user)):
        user = user[:start] + user[end:]
    return "\n".join([*(text for _, text in request.messages[:-1]), user])


def step_of(request: ModelRequest, prompts: Prompts) -> str:
    """Which template the request was made from."""
    (step,) = (name for name in STEPS if prompts.render(name, query="", documents=[])[0] == request.messages[0])
    return step


def verdicts(documents: Iterable[Data], passes: Callable[[Data], bool], reason: str = "") -> str:
    """The reply that judges the documents by `passes`."""
    found = [{"id": document["id"], "pass": passes(document), "reason": reason} for document in documents]
    return json.dumps({"verdicts": found})


def judge(prompts: Prompts, fair: Callable[[Data], bool], useful: Callable[[Data], bool]) -> ScriptedModel:
    """A model that answers both steps, about however many documents."""

    def answer(request: ModelRequest) -> Scripted:
        step = step_of(request, prompts)
        return verdicts(documents_in(request), fair if step == STEPS[0] else useful, f"by {step}")

    return ScriptedModel(answer)


def says(*words: str) -> Callable[[Data], bool]:
    """Whether the document's text holds one of the words."""
    return lambda document: any(word in document["text"] for word in words)


def _found(text: str) -> list[tuple[Data, int, int]]:
    decoder, found, end = json.JSONDecoder(), [], 0
    while match := _DOCUMENT.search(text, end):
        try:
            data, end = decoder.raw_decode(text, match.start())
        except ValueError:
            # An example of the form in the prompt's own words.
            end = match.end()
            continue
        if data.keys() == {"id", "title", "text"}:
            found.append((data, match.start(), end))
    return found
