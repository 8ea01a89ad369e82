"""How likely a model found each of some letters as the beginning of its answer, as servers tell it (`top_logprobs`)."""

from __future__ import annotations

import math
import re
from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from fairagent.llm.clean import THOUGHTS

MOST = 1.01
"""The sum of chances up to which they are rounded, and not made up."""
_MARKS = re.compile(r"[\s\W_]+")


LogProbability = Annotated[float, Field(le=1e-3, allow_inf_nan=False)]
"""At most 0, but for rounding: beyond it, nothing that a server says of chances can be believed."""


class _Token(BaseModel):
    token: str
    logprob: LogProbability


class _Place(_Token):
    top_logprobs: list[_Token] = Field([], fail_fast=True)


class _Logprobs(BaseModel):
    content: list[_Place] = Field(fail_fast=True)


def chances_of(logprobs: object, letters: str) -> tuple[tuple[str, float], ...]:
    """The chance of each of the `letters`, in (0, 1] and together at most 1; () where not all of them are told.

    `logprobs` is that of a chat completion's choice, whatever it is. The answer begins with the first token of letters
    alone, marks aside; in a JSON object, with the first one of its value. A token that begins with a letter counts for
    it: "BA" is a vote for B.

    >>> top = [{"token": "A", "logprob": math.log(0.6)}, {"token": " B", "logprob": math.log(0.3)}]
    >>> [(letter, round(p, 3)) for letter, p in chances_of({"content": [{**top[0], "top_logprobs": top}]}, "AB")]
    [('A', 0.6), ('B', 0.3)]
    """
    try:
        places = _Logprobs.model_validate(logprobs).content
    except ValidationError:
        return ()
    place = _beginning(places, letters)
    if place is None:
        return ()
    found = dict.fromkeys(letters, 0.0)
    for one in place.top_logprobs:
        if _is_answer(one.token, letters):
            found[_MARKS.sub("", one.token)[0]] += math.exp(one.logprob)
    return tuple(found.items()) if all(found.values()) and sum(found.values()) <= MOST else ()


def _beginning(places: list[_Place], letters: str) -> _Place | None:
    """The place at which the answer begins; None where it begins with something else."""
    texts = [place.token for place in places]
    thought = "".join(texts).rfind(THOUGHTS[1]) + len(THOUGHTS[1]) if THOUGHTS[1] in "".join(texts) else 0
    length, first, colon, value = 0, "", False, True
    for place in places:
        length += len(place.token)
        if length <= thought:
            continue
        if value and _is_answer(place.token, letters):
            return place
        first = first or place.token.lstrip()[:1]
        if first == "{":
            # An object's value comes after its key.
            colon = colon or ":" in place.token
            value = colon
        elif _MARKS.sub("", place.token):
            # Prose is no answer.
            return None
    return None


def _is_answer(token: str, letters: str) -> bool:
    bare = _MARKS.sub("", token)
    return bool(bare) and set(bare) <= set(letters)
