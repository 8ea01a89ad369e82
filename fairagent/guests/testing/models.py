"""A model that replays recorded replies from a file. A model that answers from a script."""

import json
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from pydantic import TypeAdapter

from fairagent.errors import DataError, Fault, ModelError, UsageError
from fairagent.llm import Model, ModelReply, ModelRequest
from fairagent.llm.budget import charged
from fairagent.llm.reply import schema_of
from fairagent.llm.request import estimate_tokens
from fairagent.storage.files import open_to_write
from fairagent.storage.readers import Malformed, file_text, parse_json

LARGEST_FILE = 1 << 28


class ReplayModel:
    """A `Model` that replays the replies in a file that `ReplayModel.record` wrote; nothing is sent.

    A request that was made several times gets its replies in their order, and the last one from then on. One that was
    not recorded raises UsageError. As with a real model, open ledgers count what the replies took.

    >>> from tempfile import TemporaryDirectory
    >>> from fairagent.guests.testing import ScriptedModel
    >>> request = ModelRequest((("user", "Which color?"),))
    >>> with TemporaryDirectory() as folder:
    ...     recorder = ReplayModel.record(ScriptedModel(["red"]), f"{folder}/colors.jsonl")
    ...     _ = recorder.complete(request)
    ...     ReplayModel(f"{folder}/colors.jsonl").complete(request).text
    'red'
    """

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)
        self._replies: dict[str, list[ModelReply]] = defaultdict(list)
        self._lock = threading.Lock()
        try:
            lines = file_text(self._path, LARGEST_FILE).splitlines()
        except (OSError, Malformed) as error:
            fault = Fault(self._path, None, f"cannot be read ({error})")
            raise DataError("a recording of a model's replies cannot be read", [fault]) from None
        for number, line in enumerate(lines, 1):
            try:
                record = parse_json(line)
                reply = _REPLY.validate_python(record["reply"])
                self._replies[_key(record["request"])].append(reply)
            except (ValueError, KeyError, TypeError) as error:
                fault = Fault(self._path, number, f"not a recorded reply ({error}); record it again")
                raise DataError("a recording of a model's replies cannot be read", [fault]) from None

    @staticmethod
    def record(model: Model, path: Path | str) -> Model:
        """`model`, with every request and its reply added to the file at `path`; errors are not recorded."""
        return _Recorder(model, Path(path))

    def complete(self, request: ModelRequest) -> ModelReply:
        """The recorded reply, with what it took when it was recorded."""
        return charged(request, lambda: self._reply(request))

    def _reply(self, request: ModelRequest) -> ModelReply:
        plain = _plain(request)
        with self._lock:
            replies = self._replies.get(_key(plain))
            if replies:
                return replies.pop(0) if len(replies) > 1 else replies[0]
        start = request.messages[-1][1][:80] if request.messages else ""
        raise UsageError(f"{self._path} holds no reply to this request ({start!r} ...); record it again")


_REPLY = TypeAdapter(ModelReply)


class _Recorder:
    def __init__(self, model: Model, path: Path) -> None:
        self._model = model
        self._path = path
        self._lock = threading.Lock()

    def complete(self, request: ModelRequest) -> ModelReply:
        reply = self._model.complete(request)
        line = json.dumps({"request": _plain(request), "reply": asdict(reply)})
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        with self._lock, os.fdopen(open_to_write(self._path, flags, private=True), "ab") as file:
            file.write(f"{line}\n".encode())
        return reply


def _plain(request: ModelRequest) -> dict[str, object]:
    """The request as JSON has it."""
    return {
        "messages": [list(message) for message in request.messages],
        "reply": request.reply and schema_of(request.reply, request.narrowed),
        "temperature": request.temperature,
        "max_tokens": request.max_tokens,
        "seed": request.seed,
    }


def _key(plain: dict[str, object]) -> str:
    return json.dumps(plain, sort_keys=True)


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
            # A new one: whoever catches an error may add to it, and the script may hold it twice. Not `copy`: where a
            # library has changed how errors are pickled (Dask brings one), a copy shares the original's contents.
            kind = type(scripted)
            error = kind.__new__(kind, *scripted.args)
            error.__dict__.update(scripted.__dict__)
            raise error
        if isinstance(scripted, ModelReply):
            return scripted
        read = estimate_tokens(*(text for _, text in request.messages))
        return ModelReply(scripted, read, estimate_tokens(scripted), "scripted", estimated=True)
