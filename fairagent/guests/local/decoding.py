"""Decoding rules: DebiasRAG lowers the probability of listed words; Self-Debias that of what bias makes likelier.

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

from fairagent.extend import FloatArray, SelfDebiasSettings, UsageError


def padded(rows: Sequence[Sequence[int]], fill: int = 0, left: bool = False) -> tuple[Any, Any]:
    """Rows of tokens as a tensor (n, width), padded with `fill` (right or `left`); its mask, 1 for tokens."""
    torch = importlib.import_module("torch")
    width = max(map(len, rows))
    ids = torch.full((len(rows), width), fill, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for number, row in enumerate(rows):
        places = slice(width - len(row), width) if left else slice(len(row))
        ids[number, places] = torch.tensor(row)
        mask[number, places] = 1
    return ids, mask


@dataclass(frozen=True, slots=True)
class BiasedWordsProcessor:
    """P'(x) = alpha P(x) for the tokens of biased words, renormalized: a logits processor of transformers.

    `tokens` are their ids, `alpha` is in (0, 1]; 1 changes nothing. `left_out` are words that the tokenizer cuts in
    pieces: a piece made less likely would affect other words. Give it to `generate` in its `logits_processor` list.
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
        tokens: dict[str, set[int]] = {}
        for word in words:
            forms = {word, word.lower(), word.upper(), word[:1].upper() + word[1:]}
            encoded = [
                tokenizer(space + form, add_special_tokens=False)["input_ids"] for form in forms for space in ("", " ")
            ]
            tokens[word] = {ids[0] for ids in encoded if len(ids) == 1 and ids[0] != tokenizer.unk_token_id}
        left_out = tuple(word for word, ids in tokens.items() if not ids)
        return cls(tuple(sorted(set().union(*tokens.values()))), alpha, left_out)

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """New scores (batch, vocabulary), which are log-probabilities; `input_ids` make no difference."""
        torch = importlib.import_module("torch")
        changed = torch.log_softmax(scores.float(), dim=-1)
        if self.tokens:
            changed[:, list(self.tokens)] += math.log(self.alpha)
        return torch.log_softmax(changed, dim=-1).to(scores.dtype)


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
    """The rule as a logits processor of transformers, for a batch of prompts that a causal `model` continues.

    `padding` counts the padded places before each prompt, `before` holds the tokens of each sentence that asks for
    bias; it stands before the whole prompt, behind its mark of the beginning (`bos`). Every token takes one more
    forward pass for each sentence.
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
        biased = np.stack([[self._next_token(before, text) for text in texts] for before in self.before])
        changed = lowered(plain, biased, self.rule.decay, self.rule.least)
        return torch.tensor(changed, dtype=scores.dtype, device=scores.device)

    def _next_token(self, before: Sequence[int], text: Sequence[int]) -> FloatArray:
        """The log-probabilities (v,) of what follows the text after the sentence."""
        torch = importlib.import_module("torch")
        begin = int(bool(text) and text[0] == self.bos)
        ids = torch.tensor([[*text[:begin], *before, *text[begin:]]], device=self.model.device)
        logits = self.model(input_ids=ids, use_cache=False).logits[0, -1]
        scores: FloatArray = torch.log_softmax(logits.float(), dim=-1).double().cpu().numpy()
        return scores
