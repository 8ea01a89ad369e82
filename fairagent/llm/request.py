"""Requests to a model and its replies: the `Model` protocol, and forms of replies with their JSON schemas."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema, model_validator

from fairagent.errors import ModelError
from fairagent.settings import ModelSettings
from fairagent.types import Usage

Narrowed = Mapping[str, Mapping[str, Any]]
"""What one request adds to the schema of its reply: the JSON Schema of some of its fields, by their names."""

BOUNDS = frozenset({"minItems", "maxItems", "minLength", "maxLength", "pattern", "prefixItems"})
"""The keywords of JSON Schema by which a server keeps a reply from running away."""


class Reply(BaseModel):
    """The form of a reply: one JSON object, without other keys or values of other types.

    Bounds (`text_within`, `list_within`) are for the server; a longer reply is read all the same.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


R = TypeVar("R", bound=Reply)


def text_within(most: int) -> WithJsonSchema:
    """The annotation of a text of one to `most` characters, of any script."""
    return WithJsonSchema({"type": "string", "minLength": 1, "maxLength": most})


def text_like(pattern: str) -> WithJsonSchema:
    """The annotation of a text that matches a `pattern`, which begins with ^, ends with $ and bounds the length.

    Servers that make a grammar of it ignore a length next to a pattern.
    """
    return WithJsonSchema({"type": "string", "pattern": pattern})


def list_within(most: int) -> Any:
    """The annotation of a list of at most `most` items."""
    return Field(json_schema_extra={"maxItems": most})


def one_of(values: Sequence[str] | Sequence[int]) -> dict[str, Any]:
    """The schema of one of these texts or numbers."""
    return {"type": "integer" if isinstance(values[0], int) else "string", "enum": list(values)}


def one_for_each(item: type[Reply], field: str, values: Sequence[str] | Sequence[int], **more: Any) -> dict[str, Any]:
    """The schema of a list with one `item` for each of the `values` of its `field`, in their order.

    `more` are the schemas of other fields. A server without bounds gets `items` of it: with any of the values.
    """
    schema = schema_of(item, more)

    def of(some: Sequence[Any]) -> dict[str, Any]:
        return {**schema, "properties": {**schema["properties"], field: one_of(some)}}

    bounds = {"prefixItems": [of([value]) for value in values], "minItems": len(values), "maxItems": len(values)}
    return {"type": "array", "items": of(values), **bounds}


def schema_of(reply: type[Reply], narrowed: Narrowed | None = None) -> dict[str, Any]:
    """The JSON Schema of a `reply`, some of its fields `narrowed`: bare, every property required.

    Servers refuse anything else as not strict.
    """
    schema: dict[str, Any] = without({"title", "default", "description"}, reply.model_json_schema())
    for part in (schema, *schema.get("$defs", {}).values()):
        if "properties" in part:
            part["required"] = list(part["properties"])
    for name, narrow in (narrowed or {}).items():
        schema["properties"][name] = {**schema["properties"][name], **narrow}
    return schema


def with_bounds(schema: Any) -> Any:
    """The schema with all bounds: where every item has a schema of its own, none has that of all."""
    if isinstance(schema, list):
        return [with_bounds(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: with_bounds(part) for key, part in schema.items() if key != "items" or "prefixItems" not in schema}


def without(keywords: Set[str], schema: Any) -> Any:
    """The schema without these keywords; names of properties and definitions are no keywords."""
    if isinstance(schema, list):
        return [without(keywords, part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    bare = {key: part for key, part in schema.items() if key not in keywords}
    for key, part in bare.items():
        named = key in ("properties", "$defs")
        bare[key] = {name: without(keywords, one) for name, one in part.items()} if named else without(keywords, part)
    return bare


class ToolCall(Reply):
    """A call of a tool: what it is given is an object, or a text that is none."""

    name: str
    arguments: dict[str, Any] | str = {}

    @property
    def text(self) -> str:
        """The arguments as they are written."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments, ensure_ascii=False)


class ToolCalls(Reply):
    """The tools that a model calls, in this order; one call alone will do. Each is checked when it is carried out."""

    calls: Annotated[list[ToolCall], WithJsonSchema({"type": "array", "items": {}})]

    @model_validator(mode="before")
    @classmethod
    def _one_alone(cls, value: Any) -> Any:
        return {"calls": [value]} if isinstance(value, dict) and "name" in value else value


class Tool(NamedTuple):
    """What a model may call: its name, what it does, and the JSON Schema of what it is given."""

    name: str
    does: str
    arguments: dict[str, Any]


def any_of(tools: Iterable[Tool]) -> dict[str, Any]:
    """The schema of a call of one of these tools."""
    each = [
        {
            "type": "object",
            "properties": {"name": one_of([tool.name]), "arguments": tool.arguments},
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }
        for tool in tools
    ]
    return {"anyOf": each}


def calls_of(tools: Iterable[Tool], most: int) -> Narrowed:
    """What a request adds to the schema of `ToolCalls`: at most so many calls of these tools."""
    return {"calls": {"items": any_of(tools), "minItems": 1, "maxItems": most}}


Message = tuple[str, str]
"""(role, text); the roles are "system", "user", "assistant" for the answers of examples, and where there are tools for
the model's `ToolCalls`, each of which a "tool" follows with what it came to."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request to a model.

    `reply` is the form of the answer, None for free text. `temperature` None leaves it to the model's settings;
    `max_tokens` (>= 1) cuts the answer shorter than these do; `seed` makes it repeatable where a server can. `accept`
    looks at a reply of the right form and raises ReplyInvalid where its content cannot be right. `narrowed` is what the
    reply's schema has for this request alone, such as the ids that verdicts may have. `whole` False: a reply that was
    cut off at the limit will do, as in benchmarks that look at the first tokens alone. `choices` are letters (at least
    two) with one of which the answer begins: some servers report how likely each was (`ModelReply.chances`). `prompt`
    is the id of the template that the messages come from, for whoever reads a transcript. `judged` is the number of
    things that the reply judges: with more than one it may be longer than the settings' `max_tokens` (`longest_reply`).
    With `tools` the reply is `ToolCalls`, whether the server knows of tools or not.
    """

    messages: tuple[Message, ...]
    reply: type[Reply] | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    whole: bool = True
    accept: Callable[[Any], None] | None = field(default=None, compare=False)
    narrowed: Narrowed | None = field(default=None, compare=False)
    choices: str = ""
    prompt: str = field(default="", compare=False)
    judged: int = field(default=1, compare=False)
    tools: tuple[Tool, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A model's complete reply, and what it consumed.

    `calls` are the requests that were sent for it, failed ones included. `estimated`: the server did not count the
    tokens. `finish` is the server's reason for ending, `seconds` the time including waits, `cost` US dollars (None
    where a price is not known), `notes` what had to be done to get it. `cached`: nothing was sent now. Of the input the
    server itself had `cached_tokens`. `chances` are
    the letters of `ModelRequest.choices` with their chances in (0, 1] to begin the answer; empty where the server does
    not report all of them.
    """

    text: str
    input_tokens: int
    output_tokens: int
    model: str = ""
    finish: str = "stop"
    seconds: float = 0.0
    estimated: bool = False
    calls: int = 1
    cost: float | None = None
    notes: tuple[str, ...] = ()
    cached: bool = False
    chances: tuple[tuple[str, float], ...] = ()
    cached_tokens: int = 0

    @property
    def usage(self) -> Usage:
        """What the answer took."""
        seconds = 0.0 if self.cached else self.seconds
        took = Usage(self.calls, self.input_tokens, self.output_tokens, self.cost, seconds, self.estimated, self.notes)
        return Usage(seconds=self.seconds, saved=took) if self.cached else took

    def with_usage(self, usage: Usage) -> ModelReply:
        """The reply as the result of all calls that `usage` counts."""
        counts = ("calls", "input_tokens", "output_tokens", "cost", "seconds", "estimated", "notes")
        return replace(self, cached=False, **{name: getattr(usage, name) for name in counts})


class Model(Protocol):
    """A language model: any object with this method will do. Several threads may call it."""

    def complete(self, request: ModelRequest) -> ModelReply:
        """The model's complete, non-empty answer; the implementation repeats what is worth repeating.

        Raises TransientModelError (given up), FatalModelError (no call can succeed), ReplyRefused, ReplyTruncated,
        ReplyInvalid (an empty answer), or ModelError (this request was not accepted); each with its `usage`.
        """


@runtime_checkable
class StreamingModel(Protocol):
    """A model that can stream its reply."""

    def stream(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
        """As `Model.complete`, calling `on_text` with each piece of the answer; the pieces are the reply's text.

        What fails after the first piece is not tried again, and raises ModelError.
        """


def stream(model: Model, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
    """The model's answer in free text, streamed to `on_text`, or passed at once where `model` cannot stream."""
    if isinstance(model, StreamingModel):
        return model.stream(request, on_text)
    reply = model.complete(request)
    on_text(reply.text)
    return reply


def estimate_tokens(*texts: str) -> int:
    """About how many tokens the texts have: one for every four bytes of UTF-8, rounded up.

    >>> estimate_tokens("lawyers", "judges")
    4
    """
    return -(-sum(len(text.encode("utf-8", "replace")) for text in texts) // 4)


def key_of(identity: Mapping[str, Any]) -> str:
    """SHA-256 (hex) of everything that a reply depends on, as plain values."""
    canonical = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


VERDICT_TOKENS = 80
"""What a verdict on one of several documents takes, with its id and a reason of twenty words."""


def longest_reply(settings: ModelSettings, most: int | None, judged: int = 1) -> int:
    """The tokens that a reply may have: `settings.max_tokens`, or 80 for each of several `judged`; at most `most`.

    >>> from fairagent.settings import ModelSettings
    >>> [longest_reply(ModelSettings(max_tokens=400), most, n) for most, n in ((None, 1), (2000, 20), (300, 20))]
    [400, 1600, 300]
    """
    room = max(settings.max_tokens, VERDICT_TOKENS * judged) if judged > 1 else settings.max_tokens
    return min(room, most or room)


def check_room(settings: ModelSettings, request: ModelRequest) -> None:
    """Raise ModelError where the estimated prompt and the longest reply exceed `settings.context`, if that is set."""
    read = estimate_tokens(*(text for _, text in request.messages))
    written = longest_reply(settings, request.max_tokens, request.judged)
    if settings.context is not None and read + written > settings.context:
        raise ModelError(
            f"the prompt has about {read:,} tokens and the reply up to {written:,}, but the context of "
            f"{settings.name!r} is {settings.context:,} tokens (model.context in the settings): nothing was sent. Give "
            "it less to read (context.documents, context.tokens), a shorter reply (model.max_tokens), or a longer "
            "context (fairagent model serve --context)"
        )
