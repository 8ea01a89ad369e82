"""Which of an item's sentences a model finds likelier; a higher score is a preferred sentence.

By likelihoods, as the benchmarks define them, or by forced choice: a language model that tells no likelihoods says
which sentence is likelier. A server that tells how likely the first letter of that answer was says more than the
answer: its chances are the scores.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import Literal, Protocol

import numpy as np
from pydantic import Field

from fairagent.errors import ReplyInvalid, SettingsError
from fairagent.llm import Model, Reply
from fairagent.llm.exchange import valid_reply
from fairagent.llm.likelihood import Likelihood, MaskedLikelihood, open_local
from fairagent.llm.prompts import Prompts
from fairagent.llm.request import one_of
from fairagent.papers.debias_rag.benchmarks.items import BLANK, Item, StereoSetExample, filled_word
from fairagent.papers.debias_rag.benchmarks.measures import (
    DECIMALS,
    mean_probability,
    relevance_to_context,
    shared_tokens,
    typical_probability,
)
from fairagent.settings import ModelSettings, Section, SelfDebiasSettings
from fairagent.types import FloatArray, Usage

BETWEEN = "\n\n"
"""What stands between a context and a sentence."""


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """The scores of an item's sentences in their order, and what a language model's reply took to get them.

    `by_chance`: they are the chances that a language model gave the letters of a forced choice.
    """

    scores: FloatArray
    usage: Usage = field(default_factory=Usage)
    by_chance: bool = False


class Scorer(Protocol):
    """Anything that scores the sentences of an item; threads may share it."""

    @property
    def way(self) -> str:
        """How it comes to the scores, for tables."""
        ...

    @property
    def decimals(self) -> int | None:
        """To how many places the scores of a pair are rounded before they are compared; None: not at all."""
        ...

    def score(self, item: Item, context: str = "") -> Scored:
        """The scores of the item's sentences, after `context`."""
        ...


@dataclass(frozen=True, slots=True)
class MaskedScorer:
    """By a model that fills in masks.

    StereoSet, intrasentence: the mean probability of the tokens of the word in the BLANK, from left to right (of the
    first BLANK, where there are two). Intersentence: the probability of the model's next-sentence head; a context
    stands before the first sentence. CrowS-Pairs: the log-likelihood of the tokens that both sentences share, each
    masked alone, without the first and the last, which are the marks at the ends; two sentences that share none score 0
    and are neutral.
    """

    model: MaskedLikelihood
    decimals: int | None = DECIMALS

    @property
    def way(self) -> str:
        """See `Scorer.way`."""
        return f"likelihoods of the local masked model {self.model.name}"

    def score(self, item: Item, context: str = "") -> Scored:
        """See `Scorer.score`; raises what `MaskedLikelihood.word`, `each` and `follows` raise."""
        model, scores = self.model, list[float]()
        if not isinstance(item, StereoSetExample):
            places = shared_tokens(model.ids(item.more), model.ids(item.less))
            for sentence, shared in zip(item.sentences, places, strict=True):
                scores.append(float(model.each(sentence, shared[1:-1], context).sum()))
        elif item.part == "intrasentence":
            for sentence in item.sentences:
                word, start = filled_word(item.context, sentence), item.context.index(BLANK)
                text = item.context.replace(BLANK, word)
                scores.append(mean_probability(model.word(text, start, start + len(word), context)))
        else:
            before = f"{context} {item.context}" if context else item.context
            scores = [model.follows(before, sentence) for sentence in item.sentences]
        return Scored(np.array(scores))


@dataclass(frozen=True, slots=True)
class CausalScorer:
    """By a model that tells the next token.

    The typical probability of a whole sentence's tokens, 2^(mean log2 p); of StereoSet's next sentences
    mean log p(sentence) / mean log p(sentence after its context). Pairs are compared without rounding (bias-bench).
    """

    model: Likelihood
    decimals: int | None = None

    @property
    def way(self) -> str:
        """See `Scorer.way`."""
        return f"likelihoods of the causal model {self.model.name}"

    def score(self, item: Item, context: str = "") -> Scored:
        """See `Scorer.score`; raises what `Likelihood.score` raises."""
        before = context + BETWEEN if context else ""
        alone = self.model.score([(before, sentence) for sentence in item.sentences])
        if not isinstance(item, StereoSetExample) or item.part == "intrasentence":
            return Scored(np.array([typical_probability(of_sentence) for of_sentence in alone]))
        after = self.model.score([(before + item.context, f" {sentence}") for sentence in item.sentences])
        return Scored(np.array(list(map(relevance_to_context, alone, after))))


@dataclass(frozen=True, slots=True)
class Instructed:
    """By `scorer`, with an instruction before every context: prompting, the simplest way to ask for less bias."""

    scorer: Scorer
    instruction: str

    @property
    def way(self) -> str:
        """See `Scorer.way`."""
        return f"{self.scorer.way}, with an instruction"

    @property
    def decimals(self) -> int | None:
        """See `Scorer.decimals`."""
        return self.scorer.decimals

    def score(self, item: Item, context: str = "") -> Scored:
        """See `Scorer.score`."""
        return self.scorer.score(item, self.instruction + (BETWEEN + context if context else ""))


PROMPT = "choose_sentence"
LETTERS = "ABC"
TEMPERATURE = 0.0
FORCED_CHOICE = "forced choice, no likelihoods"


class Order(Reply):
    """The letters of all sentences as one text, each once, that of the likeliest first."""

    order: str


@dataclass(frozen=True, slots=True)
class ChoiceScorer:
    """Asks `model` to put the sentences of an item in order; the scores say how many stand behind each.

    Where the server tells the chance of every letter to begin the answer, these are the scores: the answer alone says
    nothing about how sure the model was, and a model that always says A prefers by its chances all the same.

    The sentences are shown in an order of their own, by `seed` and the item's id: models like some places better. One
    seed gives one order, whatever the model, so that systems are compared on the same questions.
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
        opening = item.context if isinstance(item, StereoSetExample) and item.part == "intersentence" else None
        orders = ["".join(some) for some in permutations(letters)]

        def accept(reply: Order) -> None:
            if reply.order not in orders:
                raise ReplyInvalid(f"order must be all of the letters {', '.join(letters)}, not {reply.order[:20]!r}")

        variables = {"sentences": sentences, "opening": opening, "context": context or None}
        request = self.prompts.request(PROMPT, variables, TEMPERATURE, accept, {"order": one_of(orders)})
        chosen, reply = valid_reply(self.model, replace(request, reply=Order, choices=letters))
        scores = np.zeros(len(shown))
        # A letter's chance, or how many stand behind it.
        for letter, score in reply.chances or zip(reversed(chosen.order), range(len(shown)), strict=True):
            scores[shown[letters.index(letter)]] = score
        return Scored(scores, reply.usage, by_chance=bool(reply.chances))


def order(seed: int, item: Item) -> tuple[int, ...]:
    """The places of the item's sentences in the order in which they are shown."""
    digest = hashlib.sha256(json.dumps([seed, item.id, *item.sentences]).encode()).digest()
    rng = np.random.default_rng(int.from_bytes(digest[:8], "big"))
    return tuple(rng.permutation(len(item.sentences)).tolist())


class Likelihoods(Section):
    """A model that tells likelihoods: on this machine by transformers, or at a server that has them (vLLM)."""

    kind: Literal["masked", "causal", "server"]
    """masked fills in masks, causal tells the next token, server is a causal one behind an OpenAI-compatible API."""
    name: str = Field(min_length=1)
    """Its folder, its name in the Hugging Face cache, or its name at the server."""
    base_url: str = ""
    """The server's address; empty: that of the environment (OPENAI_BASE_URL)."""
    device: str = ""
    """torch's; empty: a GPU where there is one."""
    dtype: Literal["", "float32", "bfloat16", "float16"] = ""
    """Empty: the one that it was saved in."""
    batch: int = Field(8, ge=1)
    """How many inputs it reads at a time."""

    instruction: str = ""
    """What stands before every context, e.g. a request not to be biased (the rival called prompting)."""
    self_debias: SelfDebiasSettings | None = None
    """causal: Self-Debias; `{}` for its usual values."""

    @property
    def way(self) -> str:
        """How it chooses, for tables."""
        rival = (", Self-Debias" if self.self_debias else "") + (", with an instruction" if self.instruction else "")
        if self.kind == "server":
            return f"likelihoods of the model {self.name} at a server{rival}"
        return f"likelihoods of the local {self.kind} model {self.name}{rival}"

    def open(self) -> Scorer:
        """The scorer; BackendUnavailable where the model, its package or the server's key is missing.

        SettingsError for Self-Debias with a model that does not tell all probabilities.
        """
        if self.self_debias and self.kind != "causal":
            raise SettingsError("self_debias needs all of a model's probabilities, which `kind: causal` alone has here")
        scorer: Scorer
        if self.kind == "server":
            from fairagent.llm.likelihood import EndpointModel

            scorer = CausalScorer(EndpointModel(ModelSettings(name=self.name, base_url=self.base_url)))
        else:
            model = open_local(self.kind, self.name, self.device, self.dtype, self.batch)
            if self.self_debias:
                model = open_local("self-debiased", model, self.self_debias)
            scorer = MaskedScorer(model) if self.kind == "masked" else CausalScorer(model)
        return Instructed(scorer, self.instruction) if self.instruction else scorer
