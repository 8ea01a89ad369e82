"""Likelihoods under Self-Debias, whose rule is that of `fairagent.llm.self_debias`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairagent.errors import DataError
from fairagent.likelihood.causal import CausalModel
from fairagent.likelihood.likelihood import Pair, check_texts
from fairagent.llm.self_debias import ABOUT, lowered
from fairagent.settings import SelfDebiasSettings
from fairagent.types import FloatArray


class SelfDebiased:
    """A `Likelihood`: that of `model` under Self-Debias, with a sentence for each kind of bias of the `rule`.

    Every text is read once as it is and once after each sentence, which stands before its context. Threads may share
    it.
    """

    def __init__(self, model: CausalModel, rule: SelfDebiasSettings) -> None:
        self.name = f"{model.name} (Self-Debias)"
        self._model = model
        self._before = [ABOUT.format(kind=kind) for kind in rule.kinds]
        self._rule = rule

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
        changed = lowered(told[0][1], np.stack([table for _, table in told[1:]]), self._rule.decay, self._rule.least)
        return np.asarray(changed[np.arange(len(tokens)), tokens])
