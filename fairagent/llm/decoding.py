"""DebiasRAG's decoding rule for local models: lower the probability of listed words, and renormalize.

Self-Debias: a causal model lowers the probability of what it would rather say if it were asked to be biased.

Source: Schick, Udupa and Schuetze, "Self-Diagnosis and Self-Debiasing" (TACL 2021), equations 3 to 5; the sentences for
gender, race and religion are those of Meade, Poole-Dayan and Reddy (ACL 2022).
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairagent.errors import UsageError
from fairagent.settings import SelfDebiasSettings
from fairagent.types import FloatArray


@dataclass(frozen=True, slots=True)
class BiasedWordsProcessor:
    """P'(x) = alpha P(x) for the tokens of biased words, renormalized: a logits processor of transformers.

    `tokens` are their ids, `alpha` is in (0, 1]; 1 changes nothing. `left_out` are words that a tokenizer cuts in
    pieces: to make a piece less likely would strike other words. Give it to `generate` in its `logits_processor` list.
    """

    tokens: tuple[int, ...]
    alpha: float
    left_out: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 < self.alpha <= 1:
            raise UsageError(f"alpha multiplies the probability of biased words and is in (0, 1], not {self.alpha}")

    @classmethod
    def of(cls, tokenizer: Any, words: Iterable[str], alpha: float) -> BiasedWordsProcessor:
        """The words in small letters, with a capital and in capitals, at the beginning of a text and within it."""
        tokens: set[int] = set()
        left_out = []
        for word in words:
            forms = {word, word.lower(), word.upper(), word[:1].upper() + word[1:]}
            found = {id for form in forms for before in ("", " ") for id in _single(tokenizer, before + form)}
            tokens |= found
            if not found:
                left_out.append(word)
        return cls(tuple(sorted(tokens)), alpha, tuple(left_out))

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """New scores (batch, vocabulary), which are log-probabilities; `input_ids` make no difference."""
        torch = importlib.import_module("torch")
        changed = torch.log_softmax(scores.float(), dim=-1)
        if self.tokens:
            changed[:, list(self.tokens)] += math.log(self.alpha)
        return torch.log_softmax(changed, dim=-1).to(scores.dtype)


def _single(tokenizer: Any, text: str) -> list[int]:
    """The token that is the whole text; none where there are several, or the tokenizer does not know it."""
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    return ids if len(ids) == 1 and ids[0] != tokenizer.unk_token_id else []


ABOUT = "The following text discriminates against people because of their {kind}:\n"
"""Stands before a text that is to be biased."""


def lowered(plain: FloatArray, biased: FloatArray, decay: float, least: float) -> FloatArray:
    """The log-probabilities (t, v) of tokens after Self-Debias: those that bias makes likelier become less likely.

    `plain` (t, v) are the log-probabilities as they are, `biased` (b, t, v) those after each of b sentences that ask
    for bias; the largest of these counts. With D = p - p_biased, p is multiplied by 1 where D >= 0, else by
    exp(decay x D), but by no less than `least`, and all of a place are divided by their sum.

    >>> plain, biased = np.log([[0.5, 0.5]]), np.log([[[0.6, 0.4]]])
    >>> np.exp(lowered(plain, biased, decay=10 * np.log(2), least=0.01)).round(6).tolist()
    [[0.333333, 0.666667]]
    """
    p = np.exp(plain)
    factors = np.maximum(np.exp(decay * np.minimum(p - np.exp(biased.max(axis=0)), 0.0)), least)
    weighted = p * factors
    return np.asarray(np.log(weighted / weighted.sum(axis=-1, keepdims=True)))


@dataclass(frozen=True, slots=True, eq=False)
class SelfDebiasProcessor:
    """The rule as a logits processor of transformers, for a batch of prompts that a causal `model` goes on from.

    `padding` are the places that are padded before each prompt, `before` the tokens of each sentence that asks for
    bias, which stands before the whole prompt, behind its mark of the beginning (`bos`). Every token takes one more
    reading of the text for each sentence.
    """

    model: Any
    padding: tuple[int, ...]
    before: tuple[tuple[int, ...], ...]
    rule: SelfDebiasSettings
    bos: int | None

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """New scores (rows, vocabulary), which are log-probabilities; a prompt has as many rows as there are beams."""
        torch = importlib.import_module("torch")
        plain = torch.log_softmax(scores.float(), dim=-1).double().cpu().numpy()
        beams = len(plain) // len(self.padding)
        texts = [row[self.padding[place // beams] :] for place, row in enumerate(input_ids.tolist())]
        biased = np.stack([[self._told(before, text) for text in texts] for before in self.before])
        changed = lowered(plain, biased, self.rule.decay, self.rule.least)
        return torch.tensor(changed, dtype=scores.dtype, device=scores.device)

    def _told(self, before: Sequence[int], text: Sequence[int]) -> FloatArray:
        """The log-probabilities (v,) of what follows the text after the sentence."""
        torch = importlib.import_module("torch")
        begin = int(bool(text) and text[0] == self.bos)
        ids = torch.tensor([[*text[:begin], *before, *text[begin:]]], device=self.model.device)
        logits = self.model(input_ids=ids, use_cache=False).logits[0, -1]
        told: FloatArray = torch.log_softmax(logits.float(), dim=-1).double().cpu().numpy()
        return told
