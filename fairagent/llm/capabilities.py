"""What a server supports, as learned from its refusals: reply formats and parameters."""

import re
import threading
from collections.abc import Mapping
from typing import Any

from fairagent.llm.reply import longest_reply, schema_of, with_bounds, without_bounds
from fairagent.llm.request import ModelRequest

FORMS = ("bounded json_schema", "json_schema", "json_object", "text")
"""The forms of a request for a JSON reply, the strictest first; with the last one the prompt alone asks for it.

The first limits how long texts and lists may be, so that a reply cannot run away; OpenAI's strict mode takes no such
bounds, and some servers know a few keywords of JSON Schema only.
"""

_OPTIONAL = ("temperature", "seed", "stream_options", "stream", "logprobs")
"""Parameters that can be done without; a stream then comes without its count of tokens, or in one piece."""
_TOGETHER = {"stream": {"stream", "stream_options"}, "logprobs": {"logprobs", "top_logprobs"}}
"""Options of a stream that is none are refused as well; and so with the others."""

RENAMED = "max_completion_tokens in place of max_tokens"
OVERRUN = "no max_tokens from the bounds of a reply"

# A parameter is given up where the server does not know it. A value out of range is the user's to mend, and must not be
# dropped in silence; a form of replies has no values to mend.
_UNKNOWN = (
    r"unsupported|not support|n't support|unrecognized|unknown|unexpected|not permitted|not allowed|"
    r"extra (?:inputs|fields|parameters)"
)
_PARAMETER = re.compile(_UNKNOWN, re.IGNORECASE)
_REFUSED = re.compile(
    _UNKNOWN + r"|invalid|must be|should be|(?:un|not )available|not implemented|cannot", re.IGNORECASE
)
_FORM = re.compile(r"response.?format|json.?(?:schema|object|mode)|structured.?output|grammar|guided", re.IGNORECASE)


class Capabilities:
    """What one server supports: everything at first; what it refuses is not sent again.

    Threads share it: of several requests that are refused for the same reason, one teaches it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._form = 0
        self._dropped: set[str] = set()
        self._renamed = False
        self._overrun = False

    def shape(self, payload: dict[str, Any], request: ModelRequest) -> dict[str, Any]:
        """`payload` as this server takes it, with the request's reply in the strictest form that it knows.

        A reply of bounds may have no more tokens than characters: of most languages a token has several.
        """
        shaped = {name: value for name, value in payload.items() if name not in self._dropped}
        if most := self._longest(request):
            shaped["max_tokens"] = min(shaped["max_tokens"], most)
        if self._renamed:
            shaped["max_completion_tokens"] = shaped.pop("max_tokens")
        form = FORMS[self._form]
        if request.reply is not None and form != "text":
            shaped["response_format"] = {"type": form.removeprefix("bounded ")}
            if form != "json_object":
                shaped["response_format"]["json_schema"] = json_schema(request, bounds=form == FORMS[0])
        return shaped

    def _longest(self, request: ModelRequest) -> int | None:
        """The tokens that a reply can have by the bounds of its form; None where they are not known, or not held."""
        if request.reply is None or self._form > 0 or self._overrun:
            return None
        return longest_reply(schema_of(request.reply, request.narrowed))

    def overrun(self, payload: Mapping[str, Any], request: ModelRequest) -> bool:
        """Whether the reply to `payload` was cut off by its bounds: these then cut off no other.

        So it is where a model thinks aloud first, a server heeds no bounds, or a character takes several tokens.
        """
        if payload.get("max_tokens", payload.get("max_completion_tokens")) != self._longest(request):
            return False
        self._overrun = True
        return True

    def learn(self, payload: Mapping[str, Any], refusal: str) -> str | None:
        """What is given up because the server refused `payload` with these words; None where they name nothing."""
        with self._lock:
            if "response_format" in payload and _FORM.search(refusal) and _REFUSED.search(refusal):
                form = str(payload["response_format"]["type"])
                if form == "json_schema":
                    schema = payload["response_format"]["json_schema"]["schema"]
                    form = FORMS[0] if without_bounds(schema) != schema else form
                # Another thread may have learned it in the meantime.
                self._form = max(self._form, FORMS.index(form) + 1)
                return f"no response_format {form}"
            if not _PARAMETER.search(refusal):
                return None
            if "max_tokens" in payload and "max_tokens" in refusal:
                self._renamed = True
                return RENAMED
            for name in _OPTIONAL:
                if name in payload and name in refusal:
                    self._dropped |= _TOGETHER.get(name, {name})
                    return f"no {name}"
            return None

    def lacks(self, request: ModelRequest) -> tuple[str, ...]:
        """What of `request` was given up so far, in words."""
        structured = request.reply is not None
        # A server without schemas has none with bounds either.
        refused = FORMS[min(self._form - 1, 1) : self._form] if self._form and structured else ()
        optional = {"temperature": True, "seed": request.seed is not None, "logprobs": bool(request.choices)}
        return (
            *(f"no response_format {form}" for form in refused),
            *([RENAMED] if self._renamed else ()),
            *(f"no {name}" for name in sorted(self._dropped) if optional.get(name)),
            *([OVERRUN] if self._overrun and structured else ()),
        )


def json_schema(request: ModelRequest, bounds: bool = True) -> dict[str, Any]:
    """The `json_schema` of a response format for the request's reply: strict, every key required.

    >>> from fairagent.llm.reply import Reply
    >>> class Keywords(Reply):
    ...     keywords: list[str]
    >>> json_schema(ModelRequest((), Keywords))["schema"]["required"]
    ['keywords']
    """
    assert request.reply is not None
    schema, shaped = schema_of(request.reply, request.narrowed), with_bounds if bounds else without_bounds
    return {"name": request.reply.__name__, "strict": True, "schema": shaped(schema)}


def form_identity(request: ModelRequest) -> dict[str, Any]:
    """What the form of the reply adds to the identity of a request, which its cache key is made of."""
    identity: dict[str, Any] = {} if request.reply is None else {"reply": json_schema(request)}
    return identity if request.whole else {**identity, "whole": False}
