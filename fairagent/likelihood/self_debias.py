"""Self-Debias: a causal model lowers the probability of what it would rather say if it were asked to be biased.

Source: Schick, Udupa and Schuetze, "Self-Diagnosis and Self-Debiasing" (TACL 2021), equations 3 to 5; the sentences for
gender, race and religion are those of Meade, Poole-Dayan and Reddy (ACL 2022).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairagent.errors import DataError, UsageError
from fairagent.likelihood.causal import CausalModel
from fairagent.likelihood.likelihood import Pair, check_texts
from fairagent.types import FloatArray

ABOUT = "The following text discriminates against people because of their {kind}:\n"
"""Stands before a text that is to be biased."""
KINDS = ("gender", "race/color", "religion")
DECAY = 50.0
"""Lambda, by which the probability falls."""
LEAST = 0.01
"""Epsilon: no probability falls below this share of itself."""


def lowered(plain: FloatArray, biased: FloatArray, decay: float = DECAY, least: float = LEAST) -> FloatArray:
    """The log-probabilities (t, v) of tokens after Self-Debias: those that bias makes likelier become less likely.

    `plain` (t, v) are the log-probabilities as they are, `biased` (b, t, v) those after each of b sentences that ask
    for bias; the largest of these counts. With D = p - p_biased, p is multiplied by 1 where D >= 0, else by
    exp(decay x D), but by no less than `least`, and all of a place are divided by their sum.

    >>> np.exp(lowered(np.log([[0.5, 0.5]]), np.log([[[0.6, 0.4]]]), decay=10 * np.log(2))).round(6).tolist()
    [[0.333333, 0.666667]]
    """
    p = np.exp(plain)
    factors = np.maximum(np.exp(decay * np.minimum(p - np.exp(biased.max(axis=0)), 0.0)), least)
    weighted = p * factors
    return np.asarray(np.log(weighted / weighted.sum(axis=-1, keepdims=True)))


class SelfDebiased:
    """A `Likelihood`: that of `model` under Self-Debias, with a sentence for each of the `kinds` of bias.

    Every text is read once as it is and once after each sentence, which stands before its context. Threads may share
    it. Raises UsageError for values that make no sense.
    """

    def __init__(
        self, model: CausalModel, kinds: Sequence[str] = KINDS, decay: float = DECAY, least: float = LEAST
    ) -> None:
        if not kinds or decay < 0 or not 0 < least <= 1:
            raise UsageError("Self-Debias takes a kind of bias or more, a decay of 0 or more, and a floor in (0, 1]")
        self.name = f"{model.name} (Self-Debias)"
        self._model = model
        self._before = [ABOUT.format(kind=kind) for kind in kinds]
        self._decay, self._least = decay, least

    def score(self, pairs: Sequence[Pair]) -> list[FloatArray]:
        """See `Likelihood.score`; DataError also where a text has other tokens after such a sentence."""
        check_texts(pairs)
        return [self._score(context, text) for context, text in pairs]

    def _score(self, context: str, text: str) -> FloatArray:
        asked = [(context, text), *((before + context, text) for before in self._before)]
        told = self._model.distributions(asked)
        tokens = told[0][0]
        if any(not np.array_equal(tokens, other) for other, _ in told[1:]):
            raise DataError(
                f"the tokens of {text[:60]!r} are others after {self._before[0]!r}, so that their probabilities "
                "cannot be compared; let the text begin with a word, or leave it out"
            )
        changed = lowered(told[0][1], np.stack([table for _, table in told[1:]]), self._decay, self._least)
        return np.asarray(changed[np.arange(len(tokens)), tokens])
