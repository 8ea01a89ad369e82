"""How a causal model of this machine shares out its attention over the passages that it answers from."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from fairagent.extend import DataError, FloatArray, load


class AttentionReader:
    """Reads a model's own attention: a folder of transformers, or a name in its cache, whose causal weights are there.

    Raises BackendUnavailable as `load` does. Memory: layers x heads x tokens^2 numbers while a text is read, so that
    prompts of some hundred tokens are what it is for.
    """

    def __init__(self, name: str, device: str = "") -> None:
        self._tokenizer, self._model = load("AutoModelForCausalLM", name, device)
        # The fast kernels do not say what they attend to.
        self._model.set_attn_implementation("eager")

    def shares(self, before: str, passages: Sequence[str], after: str, reply: str) -> FloatArray:
        """The shares (k,) of the reply's attention that go to each of the `passages`, which add up to 1.

        The prompt is `before`, the passages in their order, and `after`; `reply` is what the model wrote. Attention is
        the mean over layers, heads and the tokens of the reply, of a passage the mean over its tokens, so that a long
        one gets no more for that. What goes to the rest of the prompt and to the reply itself is left out.
        Raises DataError for no passage, and where a passage or the reply has no token.
        """
        torch = importlib.import_module("torch")
        pieces = [self._tokens(text) for text in (before, *passages, after, reply)]
        if not passages or not all(map(len, pieces[1:-2])) or not pieces[-1]:
            raise DataError("attention is of a reply to one passage or more, none of which is empty")
        ids = self._ids(pieces)
        # Passage i is between ends[i] and ends[i + 1].
        ends = (ids.shape[1] - sum(map(len, pieces)) + np.cumsum([len(piece) for piece in pieces])).tolist()
        with torch.inference_mode():
            layers = self._model(ids, output_attentions=True, use_cache=False).attentions
        # What writes a token of the reply is the place before it.
        writing = slice(ends[-2] - 1, ends[-1] - 1)
        attention = torch.stack([layer[0, :, writing].float().mean(dim=(0, 1)) for layer in layers]).mean(dim=0)
        weights = attention.cpu().numpy().astype(np.float64)
        weights_of = np.array([weights[first:last].mean() for first, last in pairwise(ends[: len(passages) + 1])])
        shares: FloatArray = weights_of / weights_of.sum()
        return shares

    def reply(self, before: str, passages: Sequence[str], after: str, tokens: int) -> str:
        """What the model writes after the prompt: its likeliest tokens, so many at most."""
        ids = self._ids([self._tokens(text) for text in (before, *passages, after)])
        length = ids.shape[1]
        torch = importlib.import_module("torch")
        with torch.inference_mode():
            written = self._model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=tokens,
                do_sample=False,
                pad_token_id=self._tokenizer.eos_token_id,
            )
        return str(self._tokenizer.decode(written[0, length:], skip_special_tokens=True))

    def _ids(self, pieces: Sequence[Sequence[int]]) -> Any:
        """The pieces' tokens one after another, (1, t), behind the one that begins a text."""
        start = [self._tokenizer.bos_token_id] if self._tokenizer.bos_token_id is not None else []
        torch = importlib.import_module("torch")
        return torch.tensor([[*start, *(token for piece in pieces for token in piece)]], device=self._model.device)

    def _tokens(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"] if text else []
        return ids
