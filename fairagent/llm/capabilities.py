"""What a server supports, as found out from its refusals: reply formats and parameters."""

import re
import threading
from collections.abc import Mapping
from functools import cache
from typing import Any

from fairagent.llm.reply import Reply
from fairagent.llm.request import ModelRequest

FORMS = ("json_schema", "json_object", "text")
"""How a JSON reply is asked for, the strictest first; at the last the prompt alone asks."""

_OPTIONAL = ("temperature", "seed", "stream_options", "stream")
"""Parameters that can be done without; a stream then comes without its count of tokens, or in one piece."""

RENAMED = "max_completion_tokens in place of max_tokens"

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
    """What one server supports: everything at first; what it refuses is not asked for again.

    Threads share it: of several requests that are refused for the same reason, one teaches it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._form = 0
        self._dropped: set[str] = set()
        self._renamed = False

    def shape(self, payload: dict[str, Any], reply: type[Reply] | None) -> dict[str, Any]:
        """`payload` as this server takes it, asking for a `reply` in the strictest form that it knows."""
        shaped = {name: value for name, value in payload.items() if name not in self._dropped}
        if self._renamed:
            shaped["max_completion_tokens"] = shaped.pop("max_tokens")
        form = FORMS[self._form]
        if reply is not None and form == "json_schema":
            shaped["response_format"] = {"type": form, "json_schema": json_schema(reply)}
        elif reply is not None and form == "json_object":
            shaped["response_format"] = {"type": form}
        return shaped

    def learn(self, payload: Mapping[str, Any], said: str) -> str | None:
        """What is given up because the server refused `payload`, saying `said`; None where that names nothing."""
        with self._lock:
            if "response_format" in payload and _FORM.search(said) and _REFUSED.search(said):
                form = payload["response_format"]["type"]
                # Another thread may have learned it in the meantime.
                self._form = max(self._form, FORMS.index(form) + 1)
                return f"no response_format {form}"
            if not _PARAMETER.search(said):
                return None
            if "max_tokens" in payload and "max_tokens" in said:
                self._renamed = True
                return RENAMED
            for name in _OPTIONAL:
                if name in payload and name in said:
                    # Options of a stream that is none are refused as well.
                    self._dropped |= {name, "stream_options"} if name == "stream" else {name}
                    return f"no {name}"
            return None

    def lacks(self, request: ModelRequest) -> tuple[str, ...]:
        """What of `request` was given up so far, in words."""
        forms = [f"no response_format {form}" for form in FORMS[: self._form] if request.reply is not None]
        renamed = [RENAMED] * self._renamed
        asked = {"temperature"} if request.seed is None else {"temperature", "seed"}
        dropped = [f"no {name}" for name in sorted(self._dropped & asked)]
        return (*forms, *renamed, *dropped)


@cache
def json_schema(reply: type[Reply]) -> dict[str, Any]:
    """The `json_schema` of a response format that asks for a `reply`: strict, every key required.

    >>> class Keywords(Reply):
    ...     keywords: list[str]
    >>> json_schema(Keywords)["schema"]["required"]
    ['keywords']
    """
    return {"name": reply.__name__, "strict": True, "schema": _strict(reply.model_json_schema())}


def _strict(schema: Any) -> Any:
    """Without titles and defaults, and with every property required: servers refuse anything else as not strict."""
    if isinstance(schema, list):
        return [_strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    strict = {
        key: {name: _strict(part) for name, part in value.items()} if key in ("properties", "$defs") else _strict(value)
        for key, value in schema.items()
        if key not in ("title", "default", "description")
    }
    if "properties" in strict:
        strict["required"] = list(strict["properties"])
    return strict
