"""`Capabilities`: what one server takes of a request, learned from its refusals, and remembered in the cache."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import groupby
from operator import itemgetter
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fairagent.llm.request import BOUNDS, ModelRequest, schema_of, with_bounds, without

FORMS = ("bounded json_schema", "json_schema", "json_object", "text")
"""The forms of a request for a JSON reply, the strictest first; with the last one the prompt alone asks for it.

The first limits how long texts and lists may be, so that a reply cannot run away; OpenAI's strict mode takes no such
bounds, and some servers know a few keywords of JSON Schema only.
"""
_OPTIONAL = {
    "temperature": {"temperature"},
    "seed": {"seed"},
    "stream_options": {"stream_options"},
    "stream": {"stream", "stream_options"},
    "logprobs": {"logprobs", "top_logprobs"},
    "encoding_format": {"encoding_format"},
}
"""Parameters that can be done without, with those that are refused as well then."""
RENAMED = "max_completion_tokens in place of max_tokens"
# A parameter is given up where the server does not know it. A value out of range is the user's to mend, and must not be
# dropped in silence; a form of replies has no values to mend.
_UNKNOWN = (
    r"unsupported|not support|n't support|unrecognized|unknown|unexpected|not permitted|not allowed|"
    r"extra (?:inputs|fields|parameters)|deprecated|only (?:the default|[\d.]+) .{0,20}(?:is|are) (?:allowed|supported)"
)
_PARAMETER = re.compile(_UNKNOWN, re.IGNORECASE)
_REFUSED = re.compile(
    _UNKNOWN + r"|invalid|must be|should be|(?:un|not )available|not implemented|cannot", re.IGNORECASE
)
_FORM = re.compile(r"response.?format|json.?(?:schema|object|mode)|structured.?output|grammar|guided", re.IGNORECASE)
_MANY = re.compile(r"batch|too (?:many|large)|(?:maximum|number of|exceed).{0,40}(?:inputs|items|texts)", re.IGNORECASE)
_SYSTEM = re.compile(r"system.{0,9} (?:role|message|prompt)|role.{0,40}'system'|roles must alternate", re.IGNORECASE)
_STREAM = re.compile(r"only .{0,20}stream|stream.{0,20}(?:must be|required|only)|enable .{0,8}stream", re.IGNORECASE)
_TOOLS = re.compile(r"\btools?\b|tool.?(?:use|call|choice)|function.?call|roles must alternate", re.IGNORECASE)
_CHOICE = re.compile(r"tool.?choice", re.IGNORECASE)
IGNORED = "it must call a tool, and answered without"
"""What a reply in words says of a server: that it does not know of tools."""
STREAMED = "streamed, as the server does nothing else"
NO_SYSTEM = "no system role: its text begins the user's"
BATCH = 32
"""Texts of a request for embeddings: what nearly every sort of server takes."""


class Known(BaseModel):
    """What is known of a server, as the cache keeps it: the number of its form among `FORMS`, what it does not take."""

    model_config = ConfigDict(extra="forbid")

    form: int = Field(0, ge=0, lt=len(FORMS))
    form_taken: bool = False
    dropped: set[str] = set()
    renamed: bool = False
    folded: bool = False
    streams_only: bool = False
    batch: int = Field(BATCH, ge=1, le=BATCH)


class Capabilities:
    """What one server supports: everything at first; what it refuses is not sent again.

    Threads share it: of several requests that are refused for the same reason, one teaches it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._keep: Callable[[str], object] = str
        self.known = Known()

    def keep_in(self, keep: Callable[[str], object], known_before: str = "") -> None:
        """Begin with what was `known_before`, and pass what is learned from now on to `keep`."""
        self._keep = keep
        with suppress(ValidationError):
            self.known = Known.model_validate_json(known_before)

    def shape(
        self, payload: dict[str, Any], request: ModelRequest | None = None, plain: bool = False
    ) -> dict[str, Any]:
        """`payload` as this server takes it, with the request's reply in the strictest form that it knows.

        `plain`: no form is sent, for once.
        """
        known = self.known
        shaped = {name: value for name, value in payload.items() if name not in known.dropped}
        if known.renamed and "max_tokens" in shaped:
            shaped["max_completion_tokens"] = shaped.pop("max_tokens")
        if request and request.tools and "tools" not in shaped:
            # What calls came to is then the user's to say.
            turns = groupby(request.messages, itemgetter(0))
            texts = [(role, "\n".join(text for _, text in some)) for role, some in turns]
            shaped["messages"] = [{"role": "user" if role == "tool" else role, "content": text} for role, text in texts]
        if known.folded and len(shaped["messages"]) > 1:
            first, second, *others = shaped["messages"]
            if first["role"] == "system":
                folded = {"role": "user", "content": f"{first['content']}\n\n{second['content']}"}
                shaped["messages"] = [folded, *others]
        form = FORMS[known.form]
        if request and request.reply is not None and form != "text" and not plain and "tools" not in shaped:
            shaped["response_format"] = {"type": form.removeprefix("bounded ")}
            if form != "json_object":
                shaped["response_format"]["json_schema"] = json_schema(request, bounds=form == FORMS[0])
        return shaped

    def learn(self, payload: Mapping[str, Any], refusal: str) -> str | None:
        """What is given up because the server refused `payload` with these words; None where they name nothing."""
        with self._lock:
            note = self._given_up(payload, refusal)
            if note:
                self._keep(self.known.model_dump_json())
            return note

    def took(self, payload: Mapping[str, Any], plain: bool) -> None:
        """Take note that the server answered `payload`, with its form, or `plain` where it failed on any form."""
        with self._lock:
            before = self.known.form, self.known.form_taken
            if plain:
                self.known.form = len(FORMS) - 1
            elif "response_format" in payload:
                self.known.form_taken = True
            if before != (self.known.form, self.known.form_taken):
                self._keep(self.known.model_dump_json())

    def _given_up(self, payload: Mapping[str, Any], refusal: str) -> str | None:
        known, messages, texts = self.known, payload.get("messages", ()), payload.get("input", ())
        if "response_format" in payload and _FORM.search(refusal) and _REFUSED.search(refusal):
            form = str(payload["response_format"]["type"])
            if form == "json_schema":
                schema = payload["response_format"]["json_schema"]["schema"]
                form = FORMS[0] if without(BOUNDS, schema) != schema else form
            # Another thread may have learned it in the meantime.
            known.form = max(known.form, FORMS.index(form) + 1)
            return f"no response_format {form}"
        if len(messages) > 1 and messages[0]["role"] == "system" and _SYSTEM.search(refusal):
            known.folded = True
            return NO_SYSTEM
        if len(texts) > 1 and _MANY.search(refusal):
            known.batch = min(known.batch, len(texts) // 2)
            return f"no more than {known.batch} texts at once"
        if "tools" in payload and _TOOLS.search(refusal):
            alone = "tool_choice" in payload and bool(_CHOICE.search(refusal))
            known.dropped |= {"tool_choice"} if alone else {"tools", "tool_choice"}
            return "no tool_choice" if alone else "no tools"
        if messages and "stream" not in payload and _STREAM.search(refusal):
            known.streams_only = True
            return STREAMED
        if not _PARAMETER.search(refusal):
            return None
        if "max_tokens" in payload and "max_tokens" in refusal:
            known.renamed = True
            return RENAMED
        for name, together in _OPTIONAL.items():
            if name in payload and name in refusal:
                known.dropped |= together
                return f"no {name}"
        return None

    def lacks(self, request: ModelRequest) -> tuple[str, ...]:
        """What of `request` was given up so far, in words."""
        known = self.known
        # A server without schemas has none with bounds either.
        refused = FORMS[min(known.form - 1, 1) : known.form] if known.form and request.reply is not None else ()
        optional = {"temperature": True, "seed": request.seed is not None, "logprobs": bool(request.choices)}
        optional["tools" if "tools" in known.dropped else "tool_choice"] = bool(request.tools)
        return (
            *(f"no response_format {form}" for form in refused),
            *([RENAMED] if known.renamed else ()),
            *([STREAMED] if known.streams_only else ()),
            *([NO_SYSTEM] if known.folded and request.messages[0][0] == "system" else ()),
            *(f"no {name}" for name in sorted(known.dropped) if optional.get(name)),
        )


def json_schema(request: ModelRequest, bounds: bool = True) -> dict[str, Any]:
    """The `json_schema` of a response format for the request's reply: strict, every key required.

    >>> from fairagent.llm.request import Reply
    >>> class Keywords(Reply):
    ...     keywords: list[str]
    >>> json_schema(ModelRequest((), Keywords))["schema"]["required"]
    ['keywords']
    """
    assert request.reply is not None
    schema = schema_of(request.reply, request.narrowed)
    shaped = with_bounds(schema) if bounds else without(BOUNDS, schema)
    return {"name": request.reply.__name__, "strict": True, "schema": shaped}
