"""Reading an answer of an embeddings API; malformed bodies that come with HTTP 200 become errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from fairagent.errors import FatalModelError, ReplyInvalid, TransientModelError
from fairagent.llm.body import check_values
from fairagent.llm.completion import MOST_TOKENS
from fairagent.llm.endpoint import Endpoint
from fairagent.llm.faults import in_body, quote
from fairagent.llm.request import estimate_tokens
from fairagent.types import Usage


class _Item(BaseModel):
    index: int = Field(strict=True)
    embedding: list[float] = Field(min_length=1)


class _Tokens(BaseModel):
    prompt_tokens: int = Field(ge=0, le=MOST_TOKENS, strict=True)


class _Answer(BaseModel):
    data: Any = None
    error: Any = None
    usage: Any = None


_ITEMS = TypeAdapter(list[_Item])


def read_embeddings(
    body: str, content_type: str, texts: Sequence[str], endpoint: Endpoint, model: str
) -> tuple[NDArray[np.float32], Usage]:
    """The vectors (n, d) in `body`, which `model` sent as the answer to `texts`, in their order; and what it took.

    Raises FatalModelError (not an embeddings API, an error in the body), TransientModelError (broken off on the way, an
    overload in the body), ModelError (too many values), and ReplyInvalid with `usage`: no vectors, one of another
    length than the others, too few or too many, numbered wrongly, or with numbers that are not finite.
    """
    answer = _parse(endpoint.hide(body), content_type, endpoint)
    if answer.error:
        raise in_body(answer.error, endpoint, model)
    if not answer.data:
        raise FatalModelError(f"{endpoint.host} answered without vectors (no data); is it an embeddings API?")
    usage = _usage(answer.usage, texts)
    found = _vectors(answer.data, len(texts))
    if isinstance(found, str):
        fault = ReplyInvalid(f"{endpoint.host} answered {model!r} with {found}", raw=endpoint.hide(body))
        fault.usage = usage
        raise fault
    return found, usage


def _vectors(data: object, count: int) -> NDArray[np.float32] | str:
    """The vectors in the order of their texts, or what is wrong with them."""
    try:
        items = sorted(_ITEMS.validate_python(data), key=lambda item: item.index)
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"])
        return f"vectors of another form; a list of numbers with its index was expected (data.{where})"
    if len(items) != count:
        return f"{len(items):,} vectors; {count:,} were expected, one a text"
    if [item.index for item in items] != list(range(count)):
        return f"vectors that are not numbered from 0 to {count - 1}, as was expected"
    lengths = sorted({len(item.embedding) for item in items})
    if len(lengths) > 1:
        return f"vectors of {lengths[0]:,} and of {lengths[-1]:,} numbers; one length was expected"
    with np.errstate(over="ignore"):
        vectors = np.array([item.embedding for item in items], dtype=np.float32)
    if not np.isfinite(vectors).all():
        return "numbers that are not finite; vectors of finite ones were expected"
    return vectors


def _parse(body: str, content_type: str, endpoint: Endpoint) -> _Answer:
    check_values(body, endpoint.host)
    try:
        return _Answer.model_validate_json(body)
    except ValidationError as error:
        cut_off = error.errors()[0]["type"] == "json_invalid" and "json" in content_type
    if cut_off:
        raise TransientModelError(f"the answer of {endpoint.host} broke off on the way")
    kind = quote(content_type.partition(";")[0], endpoint) or "no content type"
    raise FatalModelError(f"{endpoint.host} is not an embeddings API (got {kind}); check model.base_url")


def _usage(given: object, texts: Sequence[str]) -> Usage:
    try:
        return Usage(1, _Tokens.model_validate(given).prompt_tokens)
    except ValidationError:
        return Usage(1, estimate_tokens(*texts), estimated=True)
