"""A model that answers from a script."""

import copy
import threading
from collections.abc import Callable, Sequence

from fairagent.errors import ModelError, UsageError
from fairagent.llm import ModelReply, ModelRequest
from fairagent.llm.budget import charged
from fairagent.llm.request import estimate_tokens

Scripted = str | ModelReply | ModelError
"""What a scripted model does: answer with a text or a whole reply, or raise."""


class ScriptedModel:
    """A `Model` that answers from a script: the next of a sequence, or what a function of the request says.

    `requests` are all requests so far, in order. A request after the end of the sequence raises UsageError. As with a
    real model, open ledgers count what the answers and errors say that they took.

    >>> model = ScriptedModel(['{"keywords": ["judge"]}'])
    >>> model.complete(ModelRequest((("user", "Keywords, please."),))).text
    '{"keywords": ["judge"]}'
    """

    def __init__(self, script: Sequence[Scripted] | Callable[[ModelRequest], Scripted]) -> None:
        self.requests: list[ModelRequest] = []
        self._script = script
        self._lock = threading.Lock()

    def complete(self, request: ModelRequest) -> ModelReply:
        """The scripted answer; tokens are estimated for a text."""
        with self._lock:
            self.requests.append(request)
            number = len(self.requests)
        return charged(request, lambda: self._answer(request, number), "scripted")

    def _answer(self, request: ModelRequest, number: int) -> ModelReply:
        if callable(self._script):
            scripted = self._script(request)
        elif number <= len(self._script):
            scripted = self._script[number - 1]
        else:
            raise UsageError(f"the script of this model has {len(self._script)} replies; request {number} came")
        if isinstance(scripted, ModelError):
            # A new one: whoever catches an error may add to it, and the script may hold it twice.
            raise copy.copy(scripted)
        if isinstance(scripted, ModelReply):
            return scripted
        read = estimate_tokens(*(text for _, text in request.messages))
        return ModelReply(scripted, read, estimate_tokens(scripted), "scripted", estimated=True)
