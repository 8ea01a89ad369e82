"""Forced choice: a language model behind the door says which sentence is likelier, where it tells no likelihoods.

A server that tells how likely the first letter of the answer was says more than the answer: its chances are the scores.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np

from fairagent.errors import ReplyInvalid
from fairagent.evaluate.kinds.stereotypes.items import Example, Item
from fairagent.evaluate.kinds.stereotypes.scorers import Scored
from fairagent.llm import Model, Reply
from fairagent.llm.asking import valid_reply
from fairagent.llm.reply import one_of
from fairagent.prompts import Prompts

PROMPT = "choose_sentence"
LETTERS = "ABC"
TEMPERATURE = 0.0
FORCED_CHOICE = "forced choice, no likelihoods"


class Order(Reply):
    """The reply of `choose_sentence`: its letters, that of the likeliest sentence first."""

    order: str


@dataclass(frozen=True, slots=True)
class ChoiceScorer:
    """Asks `model` to put the sentences of an item in order; the scores say how many stand behind each.

    Where the server tells the chance of every letter to begin the answer, these are the scores: the answer alone says
    nothing about how sure the model was, and a model that always says A prefers by its chances all the same.

    The sentences are shown in an order of their own, by `seed` and the item's id: models like some places better. One
    seed gives one order, whoever is asked, so that systems are compared on the same questions.
    """

    model: Model
    prompts: Prompts
    seed: int = 0
    name: str = ""
    decimals: int | None = None

    @property
    def way(self) -> str:
        """See `Scorer.way`."""
        return f"{FORCED_CHOICE} (of the model {self.name})" if self.name else FORCED_CHOICE

    def score(self, item: Item, context: str = "") -> Scored:
        """See `Scorer.score`.

        Raises what `ask` raises, ReplyInvalid where no order comes.
        """
        shown = order(self.seed, item)
        letters = LETTERS[: len(shown)]
        sentences = [
            {"letter": letter, "sentence": item.sentences[place]} for letter, place in zip(letters, shown, strict=True)
        ]
        opening = item.context if isinstance(item, Example) and item.part == "intersentence" else None
        orders = ["".join(some) for some in permutations(letters)]

        def accept(reply: Order) -> None:
            if reply.order not in orders:
                raise ReplyInvalid(f"order must be all of the letters {', '.join(letters)}, found {reply.order[:20]!r}")

        variables = {"sentences": sentences, "opening": opening, "context": context or None}
        request = self.prompts.request(PROMPT, variables, TEMPERATURE, accept, {"order": one_of(orders)})
        found, reply = valid_reply(self.model, replace(request, reply=Order, choices=letters))
        scores = np.zeros(len(shown))
        if reply.chances:
            for letter, chance in reply.chances:
                scores[shown[letters.index(letter)]] = chance
            return Scored(scores, reply.usage, by_chance=True)
        for behind, letter in enumerate(reversed(found.order)):
            scores[shown[letters.index(letter)]] = behind
        return Scored(scores, reply.usage)


def order(seed: int, item: Item) -> tuple[int, ...]:
    """The places of the item's sentences in the order in which they are shown."""
    digest = hashlib.sha256(json.dumps([seed, item.id, *item.sentences]).encode()).digest()
    rng = np.random.default_rng(int.from_bytes(digest[:8], "big"))
    return tuple(rng.permutation(len(item.sentences)).tolist())
