"""The `Likelihood` protocol: a name, and the log-probabilities of a text after a context."""

import math
from collections.abc import Sequence
from typing import Protocol

from fairagent.errors import DataError
from fairagent.types import FloatArray

Pair = tuple[str, str]
"""(context, text): how likely is the text, after the context?"""


class Likelihood(Protocol):
    """A language model that tells how likely it finds a text; any object like this will do."""

    @property
    def name(self) -> str:
        """What tables, messages and manifests call it."""
        ...

    def score(self, pairs: Sequence[Pair]) -> list[FloatArray]:
        """For each (context, text): the natural-log probabilities (<= 0) of the text's tokens, (t,).

        Each is given the context and the tokens before it; with an empty context, the first one is given the
        beginning of a text. A token that begins in the context and ends in the text is the text's. Texts are not
        empty: DataError.
        """
        ...


def perplexity(log_probabilities: FloatArray) -> float:
    """exp(-mean) of a text's log-probabilities, (t,) with t >= 1: in [1, inf), and the lower the more fluent.

    >>> import numpy as np
    >>> round(perplexity(np.log([0.5, 0.125])), 9)
    4.0
    """
    return math.exp(-float(log_probabilities.mean()))


def check_texts(pairs: Sequence[Pair]) -> None:
    """Raise DataError where a text is empty: it has no tokens that could be likely."""
    if empty := sum(not text for _, text in pairs):
        raise DataError(f"{empty} of {len(pairs)} texts are empty, so they have no likelihood; leave them out")
