"""Building an avoid library by search (Auto-Debias): prompts that a model completes differently for each group.

    python evaluations/debias/search_prompts.py gpt2 he/she --words w.txt --vocabulary v.txt --out avoid.jsonl

Source: Auto-Debias (Guo, Yang & Abbasi, ACL 2022), as DebiasRAG uses it: beam search over prompts that maximizes the
Jensen-Shannon divergence between the completions for the groups.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from fairagent.errors import DataError, UsageError
from fairagent.llm.likelihood import open_local
from fairagent.papers.debias_rag.avoid import AvoidPassage, write_avoid
from fairagent.types import FloatArray

Groups = Sequence[Sequence[str]]
"""Words that differ in the group alone, e.g. [("he", "she"), ("father", "mother")]."""


class Completions(Protocol):
    """Tells how likely each of its `words` is to come next; any object like this will do."""

    @property
    def words(self) -> tuple[str, ...]:
        """The words, (w,)."""
        ...

    def distributions(self, texts: Sequence[str]) -> FloatArray:
        """For each text, the probabilities of the words after it, (n, w): rows add up to 1."""
        ...


class LocalCompletions:
    """Completions by a causal or masked model on this machine (behind the text stand a mask and a full stop).

    Of `words`, those are used that are one token of the model's; `left_out` are the others. Raises DataError where
    fewer than two are left.
    """

    def __init__(self, model: Any, words: Sequence[str], batch: int = 32) -> None:
        self._model, self._batch = model, batch
        self._masked = model.masked
        pieces = {
            word: model.tokenizer(word if self._masked else f" {word}", add_special_tokens=False)["input_ids"]
            for word in words
        }
        unknown = model.tokenizer.unk_token_id
        self._ids = {word: ids[0] for word, ids in pieces.items() if len(ids) == 1 and ids[0] != unknown}
        self.words = tuple(self._ids)
        self.left_out = tuple(word for word in words if word not in self._ids)
        if len(self.words) < 2:
            raise DataError(f"{model.name!r} knows fewer than two of the {len(words)} words as one token; give others")

    def distributions(self, texts: Sequence[str]) -> FloatArray:
        """See `Completions`."""
        parts = [self._batched(texts[first : first + self._batch]) for first in range(0, len(texts), self._batch)]
        return np.concatenate([np.zeros((0, len(self.words))), *parts])

    def _batched(self, texts: Sequence[str]) -> FloatArray:
        torch = importlib.import_module("torch")
        tokenizer, network = self._model.tokenizer, self._model.model
        read = [tokenizer(f"{text} {tokenizer.mask_token} ." if self._masked else text)["input_ids"] for text in texts]
        ids, mask = (
            torch.nn.utils.rnn.pad_sequence(list(map(torch.tensor, rows)), batch_first=True)
            for rows in (read, [[1] * len(one) for one in read])
        )
        places = [one.index(tokenizer.mask_token_id) if self._masked else len(one) - 1 for one in read]
        with torch.inference_mode():
            device = network.device
            logits = network(input_ids=ids.to(device), attention_mask=mask.to(device)).logits
            chosen = logits[torch.arange(len(read)), torch.tensor(places)][:, list(self._ids.values())]
            return np.asarray(torch.softmax(chosen.double(), dim=-1).cpu().numpy(), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class ChosenPrompt:
    """A prompt, and the Jensen-Shannon divergence of the groups' completions after it, in nats: the mean over words."""

    text: str
    divergence: float


def divergence(distributions: FloatArray) -> FloatArray:
    """The Jensen-Shannon divergence, in nats, of m distributions each: (..., m, w) -> (...), in [0, ln m].

    >>> divergence(np.array([[1.0, 0.0], [0.0, 1.0]])).round(6).tolist()
    0.693147
    """
    return np.asarray(_entropy(distributions.mean(axis=-2)) - _entropy(distributions).mean(axis=-1))


def search_prompts(
    completions: Completions, groups: Groups, vocabulary: Sequence[str], length: int = 5, width: int = 10
) -> list[ChosenPrompt]:
    """The `width` prompts of 1 to `length` words with the largest divergence, by beam search of that width.

    A prompt stands behind each word of `groups`. Every step tries every word of `vocabulary` behind every prompt of
    the beam: length x width x vocabulary x words of groups texts at most. Ties go to the prompt that comes first in
    the alphabet. Raises UsageError for values that make no sense.
    """
    members = len(groups[0]) if groups else 0
    uneven = members < 2 or any(len(group) != members for group in groups)
    if length < 1 or width < 1 or not vocabulary or uneven:
        raise UsageError(
            "a search of prompts takes a vocabulary, a length and a width of 1 or more, and groups of words that all "
            "have the same number of members, 2 or more"
        )
    words, beam = list(dict.fromkeys(vocabulary)), [""]
    chosen: list[ChosenPrompt] = []
    for _ in range(length):
        tried = [f"{prompt} {word}".strip() for prompt in beam for word in words]
        texts = [f"{member} {prompt}" for prompt in tried for group in groups for member in group]
        spread = completions.distributions(texts).reshape(len(tried), len(groups), members, -1)
        scored = zip(tried, divergence(spread).mean(axis=1).tolist(), strict=True)
        best = sorted((ChosenPrompt(text, value) for text, value in scored), key=_by_divergence)[:width]
        beam, chosen = [prompt.text for prompt in best], chosen + best
    return sorted(chosen, key=_by_divergence)[:width]


def passages_of(
    prompts: Sequence[ChosenPrompt], completions: Completions, groups: Groups, kind: str = ""
) -> list[AvoidPassage]:
    """Passages to avoid: for every prompt and member, the sentence with the word that is the most its own.

    That is the completion whose probability exceeds its mean over the other members the most.
    """
    passages = []
    for number, prompt in enumerate(prompts, start=1):
        for group in groups:
            spread = completions.distributions([f"{member} {prompt.text}" for member in group])
            excess = spread - (spread.sum(axis=0) - spread) / (len(group) - 1)
            for member, row in zip(group, excess, strict=True):
                text = f"{member} {prompt.text} {completions.words[int(row.argmax())]}"
                passages.append(AvoidPassage(f"prompt-{number}-{'-'.join(member.split())}", text, kind))
    return passages


def _by_divergence(prompt: ChosenPrompt) -> tuple[float, str]:
    # What lies below the 12th decimal is rounding.
    return -round(prompt.divergence, 12), prompt.text


def _entropy(distributions: FloatArray) -> FloatArray:
    logs = np.log(np.where(distributions > 0, distributions, 1))
    return -np.asarray((distributions * logs).sum(axis=-1))


def main() -> None:
    """Print the prompts with their divergence, and write the library."""
    options = argparse.ArgumentParser(description="Search for prompts that a model completes differently by group.")
    options.add_argument("model", help="a local model: folder or name")
    options.add_argument("groups", nargs="+", metavar="A/B", help="words that differ only in the group")
    options.add_argument("--words", type=Path, required=True, help="words that complete a sentence, one a line")
    options.add_argument("--vocabulary", type=Path, required=True, help="words that prompts are made of, one a line")
    options.add_argument("--out", type=Path, required=True, help="the library (JSON lines)")
    options.add_argument("--masked", action="store_true", help="the model is a masked one")
    options.add_argument("--length", type=int, default=5, help="the most words of a prompt")
    options.add_argument("--width", type=int, default=10, help="prompts retained (beam width)")
    options.add_argument("--class", dest="kind", default="", help="the bias class of the passages")
    options.add_argument("--device", default="", help="torch's")
    given = options.parse_args()
    groups = [tuple(group.split("/")) for group in given.groups]
    model = open_local("masked" if given.masked else "causal", given.model, given.device)
    completions = LocalCompletions(model, given.words.read_text(encoding="utf-8").split())
    vocabulary = given.vocabulary.read_text(encoding="utf-8").split()
    prompts = search_prompts(completions, groups, vocabulary, given.length, given.width)
    write_avoid(given.out, passages_of(prompts, completions, groups, given.kind))
    for prompt in prompts:
        print(f"{prompt.divergence:.4f}  {prompt.text}")
    if completions.left_out:
        print(f"left out, more than one token of the model's: {', '.join(completions.left_out)}")


if __name__ == "__main__":
    main()
