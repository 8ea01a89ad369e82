"""Parsing a model's text: find the JSON object, validate it, say what is wrong."""

from collections.abc import Iterator
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from fairagent.errors import ReplyInvalid
from fairagent.llm.clean import THOUGHTS

MOST_FAULTS = 5
LONGEST_FAULT = 200


class Reply(BaseModel):
    """The form of a reply: one JSON object, without other keys or values of other types."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


R = TypeVar("R", bound=Reply)


def parse_reply(text: str, reply: type[R]) -> R:
    r"""The first JSON object in `text`, as a `reply`.

    Prose and code fences around the object are skipped, and so is what a reasoning model thinks aloud. Raises
    ReplyInvalid, with the text and with every fault of the object (the first 5, shortened).

    >>> class Keywords(Reply):
    ...     keywords: list[str]
    >>> parse_reply('Of course:\n```json\n{"keywords": ["judge", "court"]}\n```', Keywords)
    Keywords(keywords=['judge', 'court'])
    """
    fault = "it holds no JSON object"
    for candidate in _braced(text.rpartition(THOUGHTS[1])[2]):
        try:
            return reply.model_validate_json(candidate)
        except ValidationError as error:
            fault = _explain(error)
            if error.errors()[0]["type"] != "json_invalid":
                break
    raise ReplyInvalid(f"the reply is not the JSON object that was asked for: {fault}", raw=text)


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


def _explain(error: ValidationError) -> str:
    faults = []
    for fault in error.errors(include_url=False, include_input=False)[:MOST_FAULTS]:
        place = ".".join(str(part) for part in fault["loc"])
        faults.append(f"{place}: {fault['msg']}" if place else fault["msg"])
    return "; ".join(fault[:LONGEST_FAULT] for fault in faults)
