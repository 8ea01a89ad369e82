"""The attention of a local model to each place of its context, as its weights have it, while it answers.

    python evaluations/gguf_to_folder.py MODEL.gguf FOLDER
    python evaluations/open_questions/attention.py FOLDER [--topics 20] [--orders 2]

The first documents of BM25 for topics of wikilead, each cut to the same number of words, in random orders; the answer
is the model's own. Prints the share of each place, its standard error over topics, and the discount that it is.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fairagent import open_agent
from fairagent.measures.base import given_by
from fairagent.retrieve.base import as_query, texts_for
from fairagent.storage.packages import load
from fairagent.types import FloatArray

COLLECTION = Path(__file__).parents[1] / "collections" / "wikilead.yaml"
K, WORDS, TOKENS = 5, 50, 24
BEFORE = "Answer the question from these passages.\n\n"
AFTER = "\nQuestion: who are known for {query}?\nAnswer:"


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
        Raises ValueError for no passage, and where a passage or the reply has no token.
        """
        pieces = [self._tokens(text) for text in (before, *passages, after, reply)]
        if not passages or not all(map(len, pieces[1:-2])) or not pieces[-1]:
            raise ValueError("attention is of a reply to one passage or more, none of which is empty")
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
        return torch.tensor([[*start, *(token for piece in pieces for token in piece)]], device=self._model.device)

    def _tokens(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"] if text else []
        return ids


def main() -> None:
    """Ask, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--topics", type=int, default=20)
    parser.add_argument("--orders", type=int, default=2)
    options = parser.parse_args()
    reader, rng = AttentionReader(options.model), np.random.default_rng(1)
    agent = open_agent(COLLECTION, profile="engine", n=K)
    of_topics = []
    for topic in list(agent.collection.topics.values())[: options.topics]:
        query = as_query(topic)
        documents = texts_for(query, agent.search(topic).ranking.ids, agent.retriever)
        passages = [f"{one.title}: {' '.join(one.text.split()[:WORDS])}\n" for one in documents]
        if len(passages) < K:
            continue
        after, found = AFTER.format(query=query.text), []
        for _ in range(options.orders):
            shown = [passages[place] for place in rng.permutation(K)]
            found.append(reader.shares(BEFORE, shown, after, reader.reply(BEFORE, shown, after, TOKENS) or "."))
        of_topics.append(np.mean(found, axis=0))
        print(topic.id, np.round(of_topics[-1], 3).tolist(), flush=True)
    mean, error = np.mean(of_topics, axis=0), np.std(of_topics, axis=0, ddof=1) / len(of_topics) ** 0.5
    print(f"{len(of_topics)} topics, {options.orders} orders each")
    print("  ".join(f"{one:.3f} ({spread:.3f})" for one, spread in zip(mean, error, strict=True)))
    print(given_by(mean.tolist()))


if __name__ == "__main__":
    main()
