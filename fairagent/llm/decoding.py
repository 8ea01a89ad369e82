"""DebiasRAG's decoding rule for local models: lower the probability of listed words, and renormalize."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fairagent.errors import UsageError


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
