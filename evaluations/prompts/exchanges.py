"""What became of a model's first replies: exchanges kept in a file of JSON lines, and the models that write them."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from fairagent.errors import ModelError, ReplyError, ReplyInvalid, ReplyTruncated
from fairagent.llm import ModelReply, ModelRequest
from fairagent.llm.capabilities import json_schema
from fairagent.llm.models import CachingModel, Models
from fairagent.llm.openai import OpenAIModel
from fairagent.llm.prompts import Prompts
from fairagent.llm.prompts.template import specimens
from fairagent.llm.replies import read_reply
from fairagent.settings import ModelSettings

PATTERN = '"..."'
CORRECTION = "Your previous reply could not be used"
GOOD = ("ok", "echo")


class Enough(Exception):
    """The template has had its calls, or its time."""


@dataclass(frozen=True)
class Exchange:
    """A request, by the hash of all that it asks, and what became of the first reply to it."""

    template: str
    key: str
    what: str
    tokens: int
    text: str


class Exchanges:
    """All exchanges with a model, kept in a file of JSON lines; threads share it."""

    def __init__(self, file: Path, model: str) -> None:
        self.file, self.model = file, model
        self._lock = threading.Lock()
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else ()
        self.kept = {one.key: one for one in (Exchange(**json.loads(line)) for line in lines)}
        prompts = Prompts()
        self._lines = {id: _lines(prompts.render(id, **values)) for id, values in specimens().items()}
        self.schemas = {id: prompts[id].head.reply for id in prompts.ids}

    def template(self, request: ModelRequest) -> str:
        """The template that the request was made from: the one that it shares most of its lines with."""
        lines = _lines(request.messages)
        return max(self._lines, key=lambda id: len(lines & self._lines[id]) / len(lines | self._lines[id]))

    def key(self, request: ModelRequest) -> str:
        """The hash of what is asked of whom."""
        asked = [self.model, request.messages, request.reply and json_schema(request), request.temperature]
        return hashlib.sha256(json.dumps([*asked, request.max_tokens]).encode()).hexdigest()

    def note(self, request: ModelRequest, what: str, tokens: int, text: str) -> None:
        """Keep one more."""
        found = Exchange(self.template(request), self.key(request), what, tokens, text)
        with self._lock:
            if found.key not in self.kept:
                self.kept[found.key] = found
                with self.file.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(found)) + "\n")

    def count(self, template: str) -> Counter[str]:
        """What became of the calls of a template."""
        return Counter(one.what for one in self.kept.values() if one.template == template)

    def table(self) -> Iterator[str]:
        """One line a template whose replies have a schema."""
        yield "| template | calls | in the schema | share | echoes | invalid | truncated | failed | tokens a reply |"
        yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|"
        for template in (id for id, reply in self.schemas.items() if reply != "text"):
            found = self.count(template)
            calls, good = found.total(), sum(found[what] for what in GOOD)
            if not calls:
                continue
            tokens = sum(one.tokens for one in self.kept.values() if one.template == template)
            faults = [found[what] for what in ("echo", "invalid", "truncated", "failed")]
            cells = [f"`{template}`", calls, good, f"{good / calls:.0%}", *faults, f"{tokens / calls:.0f}"]
            yield f"| {' | '.join(map(str, cells))} |"


class Recorder:
    """Asks a model for one reply to each request of one template, and no second; what is kept is not asked again."""

    def __init__(self, model: OpenAIModel, exchanges: Exchanges, template: str, calls: int, seconds: float) -> None:
        self.model, self.exchanges, self.template, self.calls = model, exchanges, template, calls
        self.end = time.monotonic() + seconds

    def open(self, settings: object) -> Recorder:
        """It stands in for `Models`, whatever the settings."""
        return self

    def complete(self, request: ModelRequest) -> ModelReply:
        """The model's reply, or the one that is kept; one that is not in its schema is final."""
        kept = self.exchanges.kept.get(self.exchanges.key(request))
        if kept:
            if kept.what not in GOOD:
                error = ReplyInvalid(kept.text)
                error.final = True
                raise error
            return ModelReply(kept.text, 0, kept.tokens)
        if self.exchanges.count(self.template).total() >= self.calls or time.monotonic() > self.end:
            raise Enough
        return recorded(self.model, request, self.exchanges, once=True)


@dataclass(frozen=True)
class Watched:
    """A model whose exchanges are written down, and which is asked as ever."""

    model: Any
    exchanges: Exchanges

    def identity(self, request: ModelRequest) -> dict[str, Any]:
        """The model's own."""
        identity: dict[str, Any] = self.model.identity(request)
        return identity

    def cost(self, input_tokens: int, output_tokens: int) -> float | None:
        """The model's own."""
        cost: float | None = self.model.cost(input_tokens, output_tokens)
        return cost

    def complete(self, request: ModelRequest) -> ModelReply:
        """The model's reply; a correction is no first reply, and not written down."""
        if CORRECTION in request.messages[-1][1] or request.reply is None:
            reply: ModelReply = self.model.complete(request)
            return reply
        return recorded(self.model, request, self.exchanges)


class WatchedModels(Models):
    """Models whose exchanges are written down."""

    exchanges: Exchanges

    def open(self, settings: ModelSettings) -> CachingModel:
        """See `Models.open`."""
        door = super().open(settings)
        if not isinstance(door.model, Watched):
            door.model = Watched(door.model, self.exchanges)
        return door


def recorded(model: OpenAIModel, request: ModelRequest, exchanges: Exchanges, once: bool = False) -> ModelReply:
    """The model's reply to a request, written down; `once`: one that cannot be used is not asked for again."""
    note = partial(exchanges.note, request)
    try:
        reply = model.complete(replace(request, whole=False) if once else request)
    except ModelError as error:
        raw = error.raw if isinstance(error, ReplyError) else ""
        note(
            "truncated" if isinstance(error, ReplyTruncated) else "failed", error.usage.output_tokens, f"{error}|{raw}"
        )
        raise
    # With one attempt more than one call means that the first reply was cut off.
    if reply.finish == "length" or reply.calls > 1:
        note("truncated", reply.output_tokens, reply.text)
        if once:
            raise ReplyTruncated(f"cut off after {reply.output_tokens} tokens", raw=reply.text)
        return reply
    try:
        if request.reply is not None:
            read_reply(request, reply.text)
    except ReplyInvalid as error:
        note("invalid", reply.output_tokens, f"{error}|{reply.text}")
        if once:
            error.final = True
            raise
    else:
        note("echo" if PATTERN in reply.text else "ok", reply.output_tokens, reply.text)
    return reply


def _lines(messages: Sequence[tuple[str, str]]) -> set[str]:
    return {line for _, text in messages for line in text.splitlines()}
