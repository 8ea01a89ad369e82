"""The forms of replies: their JSON schemas with bounds, and reading a model's text as one of them."""

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema

from fairagent.errors import ReplyInvalid
from fairagent.settings.faults import fault_lines
from fairagent.types.clean import THOUGHTS

MOST_FAULTS = 5
LONGEST_FAULT = 200
LONGEST_REPLY = 1 << 18
"""Characters of a reply that is to be JSON: 60,000 tokens; a longer one is not read."""
MOST_PARTS = 10_000
"""Brackets and commas of such a reply: to name each value that is wrong takes longer than anybody reads."""

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
    schema: dict[str, Any] = _without({"title", "default", "description"}, reply.model_json_schema())
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


def without_bounds(schema: Any) -> Any:
    """The schema without what keeps texts and lists short; enums stay, which every server knows."""
    return _without(BOUNDS, schema)


def _without(keywords: Set[str], schema: Any) -> Any:
    """The schema without these keywords; names of properties and definitions are no keywords."""
    if isinstance(schema, list):
        return [_without(keywords, part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: _without(keywords, part) for name, part in value.items()}
        if key in ("properties", "$defs")
        else _without(keywords, value)
        for key, value in schema.items()
        if key not in keywords
    }


def parse_reply(text: str, reply: type[R]) -> R:
    r"""The first JSON object in `text`, as a `reply`.

    Prose and code fences around the object are skipped, and so is what a reasoning model thinks aloud. Raises
    ReplyInvalid, with the text and with every fault of the object (the first 5, shortened), or where it is too long.

    >>> class Keywords(Reply):
    ...     keywords: list[str]
    >>> parse_reply('Of course:\n```json\n{"keywords": ["judge", "court"]}\n```', Keywords)
    Keywords(keywords=['judge', 'court'])
    """
    text = text.rpartition(THOUGHTS[1])[2]
    if len(text) > LONGEST_REPLY or sum(map(text.count, "[{,")) > MOST_PARTS:
        raise ReplyInvalid(f"the reply is longer than {LONGEST_REPLY:,} characters, or {MOST_PARTS:,} values", raw=text)
    fault = "it holds no JSON object"
    for candidate in _braced(text):
        try:
            return reply.model_validate_json(candidate)
        except ValidationError as error:
            faults = error.errors(include_url=False)
            fault = "; ".join(
                one[:LONGEST_FAULT].removeprefix("(top): ") for one in fault_lines(reply, faults[:MOST_FAULTS])
            )
            if faults[0]["type"] != "json_invalid":
                break
    raise ReplyInvalid(f"the reply is not the JSON object that was requested: {fault}", raw=text)


def _braced(text: str) -> Iterator[str]:
    """Every outermost {...} of `text`, in one pass; braces inside JSON strings do not count."""
    depth, start, quoted, escaped = 0, 0, False, False
    for place, sign in enumerate(text):
        if escaped:
            escaped = False
        elif quoted:
            escaped, quoted = sign == "\\", sign != '"'
        elif sign == "{":
            start, depth = (start, depth + 1) if depth else (place, 1)
        elif depth and sign == '"':
            quoted = True
        elif depth and sign == "}":
            depth -= 1
            if not depth:
                yield text[start : place + 1]
