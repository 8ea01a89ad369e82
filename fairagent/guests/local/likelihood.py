"""Likelihoods by transformers models on this machine, causal or masked, also under Self-Debias.

Source of Self-Debias: Schick, Udupa and Schuetze, "Self-Diagnosis and Self-Debiasing" (TACL 2021), equations 3 to 5;
the sentences for gender, race and religion are those of Meade, Poole-Dayan and Reddy (ACL 2022).
"""

import inspect
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import BackendUnavailable, DataError, UsageError
from fairagent.llm.likelihood import check_texts, perplexity
from fairagent.settings import SelfDebiasSettings
from fairagent.storage.packages import load, longest_input
from fairagent.types import FloatArray
from fairagent.types.clean import logger

Pair = tuple[str, str]
"""(context, text)"""
FOLLOWS = 0
"""The class of a next-sentence head that says yes."""

log = logger(__name__)


def padded(rows: Sequence[Sequence[int]], fill: int = 0) -> tuple[Any, Any]:
    """Rows of tokens as a tensor (n, width), padded with `fill` on the right; its mask, 1 for tokens."""
    import torch

    width = max(map(len, rows))
    ids = torch.full((len(rows), width), fill, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = torch.tensor(row)
        mask[number, : len(row)] = 1
    return ids, mask


class _LocalModel:
    """What both sorts share: the tokenizer and the model, opened, and the length limit of their inputs."""

    opener: ClassVar[str]

    def __init__(self, name: str, device: str = "", dtype: str = "", batch: int = 8) -> None:
        if batch < 1:
            raise UsageError(f"batch is how many texts a model reads at a time, at least 1, not {batch}")
        self.name = name
        self.shortened = 0
        self.tokenizer, self.model = load(self.opener, name, device, dtype)
        self._device, self._dtype, self._batch = device, dtype, batch
        self._limit = longest_input(self.tokenizer, self.model)
        # Fast tokenizers change their settings in place, which other threads would see.
        self._lock = threading.Lock()

    def _refuse(self, text: str, length: int) -> DataError:
        return DataError(
            f"the text {text[:60]!r} ... has {length} tokens, and {self.name!r} reads {self._limit} at a time; "
            "shorten it"
        )

    def _count_shortened(self) -> None:
        if not self.shortened:
            log.warning("%s reads %d tokens: longer contexts lose their beginning", self.name, self._limit)
        self.shortened += 1


@dataclass(frozen=True, slots=True)
class _Encoded:
    """A text, maybe after a context, as the model reads it: `own` are the places of the text's tokens, in order."""

    ids: list[int]
    segments: list[int]
    own: list[int]
    spans: list[tuple[int, int]]


_Masked = tuple[list[int], list[int], int, int]
"""An input with a mask: its ids, its segments, the place of the mask, and the token that it hides."""


class MaskedModel(_LocalModel):
    """A transformers model that fills in masks: a folder, or a name in the Hugging Face cache.

    Nothing is downloaded; `device`, `dtype` and `batch` are as in `CausalModel`. A context stands before the text as a
    segment of its own, and of one that is too long the beginning is left out; `shortened` counts these, and the log
    notes the first. All log-probabilities are natural. Threads may share it.

    Raises BackendUnavailable where a package, the model, its weights for filling in masks or its mask are missing,
    UsageError for a device that this machine does not have.
    """

    masked = True
    opener = "AutoModelForMaskedLM"

    def __init__(self, name: str, device: str = "", dtype: str = "", batch: int = 8) -> None:
        super().__init__(name, device, dtype, batch)
        if self.tokenizer.mask_token_id is None:
            raise BackendUnavailable(
                f"the tokenizer of {name!r} has no mask token, so nothing can be masked; a model that predicts the "
                "next token is a causal one"
            )
        self.tokenizer.truncation_side = "left"
        # Models with one sort of segment, as RoBERTa, know no other number for it than 0.
        self._segmented = (getattr(self.model.config, "type_vocab_size", 0) or 0) > 1
        self._next: Any = None

    def ids(self, text: str) -> list[int]:
        """The tokens of a text on its own, with the marks that the model wants at its ends."""
        return self._encode(text, "").ids

    def each(self, text: str, places: Sequence[int], context: str = "") -> FloatArray:
        """The log-probabilities of some of the text's tokens, (len(places),), each masked alone.

        `places` are those in `ids(text)`, not of the marks. Raises DataError for a text that the model cannot read at
        once.
        """
        alone, full = self._encode(text, ""), self._encode(text, context)
        own, mask = [full.own[alone.own.index(place)] for place in places], self.tokenizer.mask_token_id
        inputs = [[*full.ids[:place], mask, *full.ids[place + 1 :]] for place in own]
        masked = zip(inputs, [full.segments] * len(own), own, [full.ids[place] for place in own], strict=True)
        return self._log_probabilities(list(masked))

    def word(self, text: str, start: int, end: int, context: str = "") -> FloatArray:
        """The log-probabilities of the tokens of text[start:end], (t,), from left to right.

        As in StereoSet: the tokens before are there, a mask stands in the place of the predicted one, and those after
        it within the word are not there. Raises DataError where these characters have no token, and as `each`.
        """
        encoded = self._encode(text, context)
        within = [place for place, (a, b) in zip(encoded.own, encoded.spans, strict=True) if a < end and b > start]
        if not within:
            raise DataError(f"the tokenizer of {self.name!r} finds no token in {text[start:end]!r} of {text[:60]!r}")
        first, last = within[0], within[-1]
        masked = []
        for place in range(first, last + 1):
            ids = [*encoded.ids[:place], self.tokenizer.mask_token_id, *encoded.ids[last + 1 :]]
            segments = [*encoded.segments[: place + 1], *encoded.segments[last + 1 :]]
            masked.append((ids, segments, place, encoded.ids[place]))
        return self._log_probabilities(masked)

    def follows(self, first: str, second: str) -> float:
        """The probability that `second` is the sentence after `first`, by the model's next-sentence head.

        Raises BackendUnavailable for a model without one, DataError as `each`.
        """
        import torch

        encoded = self._encode(second, first)
        with self._lock:
            if self._next is None:
                try:
                    _, self._next = load("AutoModelForNextSentencePrediction", self.name, self._device, self._dtype)
                except BackendUnavailable as error:
                    raise BackendUnavailable(
                        f"{self.name!r} has no head that says which sentence follows another; leave intersentence "
                        "examples out, or take a model that has one (BERT as it was first published) or a causal one"
                    ) from error
        with torch.inference_mode():
            logits = self._next(**self._inputs([(encoded.ids, encoded.segments)])).logits[0].float()
        return float(torch.softmax(logits, dim=-1)[FOLLOWS])

    def _encode(self, text: str, context: str) -> _Encoded:
        options: dict[str, Any] = {"return_offsets_mapping": True, "return_token_type_ids": True, "verbose": False}
        alone, both = (("", text), (context, text)) if context else ((text,), (text,))
        with self._lock:
            length, whole = (len(self.tokenizer(*one, verbose=False)["input_ids"]) for one in (alone, both))
            if length > self._limit:
                raise self._refuse(text, length)
            if whole > self._limit:
                options |= {"truncation": "only_first", "max_length": self._limit}
                self._count_shortened()
            encoded = self.tokenizer(*both, **options)
        segment = 1 if context else 0
        own = [place for place, of in enumerate(encoded.sequence_ids()) if of == segment]
        spans = [encoded["offset_mapping"][place] for place in own]
        return _Encoded(encoded["input_ids"], encoded["token_type_ids"], own, spans)

    def _log_probabilities(self, masked: Sequence[_Masked]) -> FloatArray:
        import torch

        scores: list[float] = []
        for first in range(0, len(masked), self._batch):
            batch = masked[first : first + self._batch]
            with torch.inference_mode():
                logits = self.model(**self._inputs([(ids, segments) for ids, segments, _, _ in batch])).logits
                for row, (_, _, place, hidden) in enumerate(batch):
                    scores.append(float(torch.log_softmax(logits[row, place].float(), dim=-1)[hidden]))
        return np.array(scores)

    def _inputs(self, batch: Sequence[tuple[list[int], list[int]]]) -> dict[str, Any]:
        """The inputs padded to one length, on the model's device."""
        ids, mask = padded([ids for ids, _ in batch], self.tokenizer.pad_token_id or 0)
        inputs = {"input_ids": ids, "attention_mask": mask}
        if self._segmented:
            inputs["token_type_ids"], _ = padded([segments for _, segments in batch])
        return {name: values.to(self.model.device) for name, values in inputs.items()}


_Prompt = tuple[list[int], int]
"""A context and a text as the model reads them, and the place (>= 1) at which the text's tokens begin."""


class CausalModel(_LocalModel):
    """A transformers model that predicts the next token: a folder, or a name in the Hugging Face cache.

    Nothing is downloaded. `device` is torch's ("": a GPU where there is one), `dtype` float32, bfloat16 or float16
    ("": the one it was saved in; log-probabilities are summed up in 32 bits or more all the same), `batch` how many
    pairs it reads at a time. With `chat` a context is what the user says, in the form of the tokenizer's chat template,
    and a text what the model then says.

    An input longer than the model takes loses the beginning of its context; `shortened` counts them, and the log notes
    the first. Threads may share it.

    Raises BackendUnavailable where a package or the model is missing, or the model is no causal one (it looks ahead);
    UsageError for a device that this machine does not have, or `chat` without a template.
    """

    masked = False
    opener = "AutoModelForCausalLM"

    def __init__(self, name: str, device: str = "", dtype: str = "", batch: int = 8, chat: bool = False) -> None:
        super().__init__(name, device, dtype, batch)
        if chat and not self.tokenizer.chat_template:
            raise UsageError(f"the tokenizer of {name!r} has no chat template; leave `chat` off")
        self._chat = chat
        first = self.tokenizer("a")["input_ids"][0]
        self._begins = self.tokenizer.bos_token_id is not None and first == self.tokenizer.bos_token_id
        takes = inspect.signature(self.model.forward).parameters
        self._keeps = "logits_to_keep" in takes
        # transformers renames it in 5.
        self._cache = next((name for name in ("cache", "past_key_values") if name in takes), "")
        import torch

        with torch.inference_mode():
            words = self.model.get_input_embeddings().num_embeddings
            ids = torch.tensor([[1, 2, 0], [1, 2, 3]], device=self.model.device) % words
            one, other = self.model(input_ids=ids, use_cache=False).logits[:, 0].float()
        if not torch.allclose(one, other, rtol=1e-2, atol=1e-2):
            # The last token changes what the model makes of the first.
            raise BackendUnavailable(
                f"{name!r} is no causal language model: what it makes of a word depends on the words after it"
            )

    def score(self, pairs: Sequence[Pair]) -> list[FloatArray]:
        """See `Likelihood.score`; DataError also for a text that is longer than the model takes."""
        return [scores for _, scores in self._read(pairs, whole=False)]

    def distributions(self, pairs: Sequence[Pair]) -> list[tuple[NDArray[np.intp], FloatArray]]:
        """For each (context, text): the text's tokens, (t,), and the log-probabilities of all tokens there, (t, v).

        Raises DataError as `score`.
        """
        return self._read(pairs, whole=True)

    def perplexity(self, text: str, context: str = "") -> float:
        """How little the model expects the text after the context: exp of minus the mean log-probability, >= 1."""
        return perplexity(self.score([(context, text)])[0])

    def _read(self, pairs: Sequence[Pair], whole: bool) -> list[tuple[NDArray[np.intp], FloatArray]]:
        """The texts' tokens with their log-probabilities, (t,), or with those of the `whole` vocabulary, (t, v)."""
        check_texts(pairs)
        with self._lock:
            prompts = [self._prompt(context, text) for context, text in pairs]
            scores: list[FloatArray] = [np.zeros(0)] * len(pairs)
            # Those of about the same length together: little is spent on padding.
            order = sorted(range(len(pairs)), key=lambda pair: len(prompts[pair][0]))
            for first in range(0, len(order), self._batch):
                batch = order[first : first + self._batch]
                for pair, row in zip(batch, self._scores([prompts[pair] for pair in batch], whole), strict=True):
                    scores[pair] = row
        tokens = [np.array(ids[start:], dtype=np.intp) for ids, start in prompts]
        return list(zip(tokens, scores, strict=True))

    def _scores(self, batch: Sequence[_Prompt], whole: bool) -> list[FloatArray]:
        """The log-probabilities of the texts' tokens, or of the `whole` vocabulary at their places."""
        import torch

        # What all begin with, a context in most cases, is read once. A text's first token is read off before its place.
        first, width = min(start for _, start in batch) - 1, max(len(prompt) for prompt, _ in batch)
        alike = [len(set(ids)) == 1 for ids in zip(*(prompt[:first] for prompt, _ in batch), strict=True)]
        shared = [*alike, False].index(False) if self._cache and len(batch) > 1 else 0
        # The batch is padded on the right, behind all that counts.
        ids, mask = (rows.to(self.model.device) for rows in padded([prompt for prompt, _ in batch]))
        # Of a large vocabulary the distributions of all places would not fit into the memory.
        options: dict[str, Any] = {"use_cache": shared > 0}
        if self._keeps:
            options["logits_to_keep"] = width - first
        with torch.inference_mode():
            if shared:
                options[self._cache] = getattr(self.model(input_ids=ids[:1, :shared], **options), self._cache)
                options[self._cache].batch_repeat_interleave(len(batch))
            output = self.model(input_ids=ids[:, shared:], attention_mask=mask, **options)
            logits = output.logits[:, -(width - first) :]
            scores: list[FloatArray] = []
            for row, (prompt, start) in enumerate(batch):
                places = slice(start - 1 - first, len(prompt) - 1 - first)
                distributions = torch.log_softmax(logits[row, places].float(), dim=-1)
                if not whole:
                    tokens = ids[row, start : len(prompt), None]
                    distributions = distributions.gather(-1, tokens)[:, 0]
                scores.append(distributions.double().cpu().numpy())
        return scores

    def _prompt(self, context: str, text: str) -> _Prompt:
        if self._chat:
            turns = [{"role": "user", "content": context}]
            context = self.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        encoded = self.tokenizer(
            context + text, add_special_tokens=False, return_offsets_mapping=True, truncation=False, verbose=False
        )
        ends = [end for _, end in encoded["offset_mapping"]]
        start = next((place for place, end in enumerate(ends) if end > len(context)), len(ends))
        before, tokens = encoded["input_ids"][:start], encoded["input_ids"][start:]
        beginning: list[int] = []
        # A template writes the token for the beginning itself.
        if not before or (self._begins and not self._chat):
            # Models without one of their own were trained on texts that follow the end of another.
            first = (self.tokenizer.bos_token_id, self.tokenizer.eos_token_id)
            beginning = [id for id in first if id is not None][:1]
            if not beginning:
                message = "has no token for the beginning of a text; give every text a context"
                raise BackendUnavailable(f"the tokenizer of {self.name!r} {message}")
        room = self._limit - len(beginning) - len(tokens)
        if not tokens:
            raise DataError(f"the tokenizer of {self.name!r} finds no token in the text {text[:60]!r}; leave it out")
        if room < (0 if beginning else 1):
            raise self._refuse(text, len(tokens))
        if len(before) > room:
            self._count_shortened()
            before = before[len(before) - room :]
        return [*beginning, *before, *tokens], len(beginning) + len(before)


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


class SelfDebiased:
    """A `Likelihood`: that of `model` under Self-Debias, with a sentence for each sort of bias of the `rule`.

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
        scores: list[FloatArray] = []
        for context, text in pairs:
            contexts = (context, *(before + context for before in self._before))
            (tokens, plain), *biased = self._model.distributions([(one, text) for one in contexts])
            if any(not np.array_equal(tokens, others) for others, _ in biased):
                raise DataError(
                    f"the tokens of {text[:60]!r} are others after {self._before[0]!r}, so that their probabilities "
                    "cannot be compared; let the text begin with a word, or leave it out"
                )
            changed = lowered(plain, np.stack([table for _, table in biased]), self._rule.decay, self._rule.least)
            scores.append(np.asarray(changed[np.arange(len(tokens)), tokens]))
        return scores
