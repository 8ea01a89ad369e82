"""Reading the prompt's log-probabilities from a completion, in the two formats that servers use."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import BaseModel, Field, ValidationError

from fairagent.llm.chances import LogProbability
from fairagent.llm.completion import MOST_TOKENS
from fairagent.types import FloatArray

TokenScores = Sequence[tuple[str, float | None]]
"""Each token as text, with its log-probability; None where the server has none, as for the first one."""


class _Echoed(BaseModel):
    tokens: list[str] = Field([], fail_fast=True)
    token_logprobs: list[LogProbability | None] = Field([], fail_fast=True)


class _Token(BaseModel):
    logprob: LogProbability
    decoded_token: str | None = None


class _Choice(BaseModel):
    logprobs: Any = None
    prompt_logprobs: list[Mapping[str, _Token] | None] | None = Field(None, fail_fast=True)


class _Used(BaseModel):
    total_tokens: int = Field(ge=0, le=MOST_TOKENS, strict=True)


class Completion(BaseModel):
    """What counts of a (chat) completion."""

    choices: list[_Choice] = Field([], fail_fast=True)
    prompt_logprobs: list[Mapping[str, _Token] | None] | None = Field(None, fail_fast=True)
    error: Any = None
    usage: Any = None

    @property
    def tokens(self) -> int | None:
        """How many tokens were read and written; None where the server counts none, or none that can be right."""
        try:
            return _Used.model_validate(self.usage).total_tokens
        except ValidationError:
            return None


def read_tokens(completion: Completion) -> TokenScores | None:
    """The tokens of the prompt, and maybe of what was written after it; None where the server tells none.

    `prompt_logprobs` is vLLM's own form, beside the choice (completions) or the choices (chat).
    """
    choice = completion.choices[0] if completion.choices else _Choice()
    if entries := choice.prompt_logprobs or completion.prompt_logprobs:
        # Asked for no alternatives, a server tells of each place the token that stands there.
        first = [next(iter(entry.values())) if entry else None for entry in entries]
        return [("", None) if token is None else (token.decoded_token or "", token.logprob) for token in first]
    if not isinstance(choice.logprobs, dict) or "token_logprobs" not in choice.logprobs:
        return None
    try:
        echoed = _Echoed.model_validate(choice.logprobs)
    except ValidationError:
        return None
    # A server that does not echo tells only of the one token that it wrote.
    if len(echoed.tokens) < 2 or len(echoed.tokens) != len(echoed.token_logprobs):
        return None
    return list(zip(echoed.tokens, echoed.token_logprobs, strict=True))


def of_the_text(told: TokenScores, context: str, text: str) -> FloatArray | None:
    """The log-probabilities of the tokens that end within the text, (t,); None where that cannot be told.

    Offsets that servers send count their marks for the beginning, so the texts of the tokens are looked at instead.

    >>> of_the_text([("<s>", None), ("A", -3.0), (" b", -2.0), ("c", -1.0), (" d", -9.0)], "A", " bc").tolist()
    [-2.0, -1.0]
    """
    whole = "".join(token for token, _ in told)
    place = whole.find(context + text)
    # Of a character in several tokens each shows only a part: then the context cannot be found, but the text may be.
    start = place + len(context) if place >= 0 else whole.rfind(text)
    if start < 0:
        return None
    found: list[float] = []
    end = 0
    for token, log_probability in told:
        begin, end = end, end + len(token)
        if end > start and begin < start + len(text):
            if log_probability is None:
                return None
            found.append(log_probability)
    return np.array(found)
