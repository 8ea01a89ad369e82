"""Likelihoods by a masked language model on this machine: masked tokens, and next sentences."""

import importlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairagent.clean import logger
from fairagent.errors import BackendUnavailable, DataError, UsageError
from fairagent.loading import load, longest_input
from fairagent.types import FloatArray

log = logger(__name__)

FOLLOWS = 0
"""The class of a next-sentence head that says yes."""


@dataclass(frozen=True, slots=True)
class _Read:
    """A text, maybe after a context, as the model reads it: `own` are the places of the text's tokens, in order."""

    ids: list[int]
    segments: list[int]
    own: list[int]
    spans: list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class _Masked:
    """An input with a mask at `place`, behind which `hidden` stands."""

    ids: list[int]
    segments: list[int]
    place: int
    hidden: int


class MaskedModel:
    """A transformers model that fills in masks: a folder, or a name in the Hugging Face cache.

    Nothing is downloaded; `device`, `dtype` and `batch` are as in `CausalModel`. A context stands before the text as a
    segment of its own, and of one that is too long the beginning is left out; `shortened` counts these, and the log
    tells of the first. All log-probabilities are natural. Threads may share it.

    Raises BackendUnavailable where a package, the model, its weights for filling in masks or its mask are missing,
    UsageError for a device that there is not.
    """

    def __init__(self, name: str, device: str = "", dtype: str = "", batch: int = 8) -> None:
        if batch < 1:
            raise UsageError(f"batch is how many inputs a model reads at a time and must be at least 1, not {batch}")
        self.name = name
        self.shortened = 0
        self.tokenizer, self.model = load("AutoModelForMaskedLM", name, device, dtype)
        if self.tokenizer.mask_token_id is None:
            raise BackendUnavailable(
                f"the tokenizer of {name!r} has no mask token, so nothing can be masked; a model that tells the next "
                "token is a causal one"
            )
        self.tokenizer.truncation_side = "left"
        self._device, self._dtype = device, dtype
        self._batch = batch
        self._limit = longest_input(self.tokenizer, self.model)
        # Models with one kind of segment, as RoBERTa, know no other number for it than 0.
        self._segmented = (getattr(self.model.config, "type_vocab_size", 0) or 0) > 1
        self._next: Any = None
        self._lock = threading.Lock()

    def ids(self, text: str) -> list[int]:
        """The tokens of a text on its own, with the marks that the model wants at its ends."""
        return self._read(text, "").ids

    def each(self, text: str, places: Sequence[int], context: str = "") -> FloatArray:
        """The log-probabilities of some of the text's tokens, (len(places),), each masked alone.

        `places` are those in `ids(text)`, not of the marks. Raises DataError for a text that the model cannot read at
        once.
        """
        alone, read = self._read(text, ""), self._read(text, context)
        own = [read.own[alone.own.index(place)] for place in places]
        return self._log_probabilities([_hide(read, place, self.tokenizer.mask_token_id) for place in own])

    def word(self, text: str, start: int, end: int, context: str = "") -> FloatArray:
        """The log-probabilities of the tokens of text[start:end], (t,), from left to right.

        As in StereoSet: the tokens before are there, a mask stands in the place of the one that is asked for, and those
        after it within the word are not there. Raises DataError where these characters have no token, and as `each`.
        """
        read = self._read(text, context)
        within = [place for place, (a, b) in zip(read.own, read.spans, strict=True) if a < end and b > start]
        if not within:
            raise DataError(f"the tokenizer of {self.name!r} finds no token in {text[start:end]!r} of {text[:60]!r}")
        first, last = within[0], within[-1]
        mask, masked = self.tokenizer.mask_token_id, []
        for place in range(first, last + 1):
            ids = [*read.ids[:place], mask, *read.ids[last + 1 :]]
            segments = [*read.segments[: place + 1], *read.segments[last + 1 :]]
            masked.append(_Masked(ids, segments, place, read.ids[place]))
        return self._log_probabilities(masked)

    def follows(self, first: str, second: str) -> float:
        """The probability that `second` is the sentence after `first`, by the model's next-sentence head.

        Raises BackendUnavailable for a model without one, DataError as `each`.
        """
        torch = importlib.import_module("torch")
        read = self._read(second, first)
        model = self._next_sentence()
        with torch.inference_mode():
            logits = model(**self._inputs([(read.ids, read.segments)])).logits[0].float()
        return float(torch.softmax(logits, dim=-1)[FOLLOWS])

    def _next_sentence(self) -> Any:
        with self._lock:
            if self._next is None:
                try:
                    _, self._next = load("AutoModelForNextSentencePrediction", self.name, self._device, self._dtype)
                except BackendUnavailable as error:
                    raise BackendUnavailable(
                        f"{self.name!r} has no head that says which sentence follows another; leave intersentence "
                        "examples out, or take a model that has one (BERT as it was first published) or a causal one"
                    ) from error
            return self._next

    def _read(self, text: str, context: str) -> _Read:
        # Fast tokenizers change their settings in place, which other threads would see.
        with self._lock:
            if context:
                whole = self.tokenizer(context, text, add_special_tokens=True, verbose=False)
                cut = len(whole["input_ids"]) > self._limit
                room = len(self.tokenizer("", text, add_special_tokens=True, verbose=False)["input_ids"])
                self._check(text, room)
                encoded = self.tokenizer(
                    context,
                    text,
                    truncation="only_first" if cut else False,
                    max_length=self._limit if cut else None,
                    return_offsets_mapping=True,
                    return_token_type_ids=True,
                )
                self._tell(cut)
            else:
                encoded = self.tokenizer(
                    text, return_offsets_mapping=True, return_token_type_ids=True, truncation=False, verbose=False
                )
                self._check(text, len(encoded["input_ids"]))
        segment = 1 if context else 0
        own = [place for place, of in enumerate(encoded.sequence_ids()) if of == segment]
        spans = [encoded["offset_mapping"][place] for place in own]
        return _Read(encoded["input_ids"], encoded["token_type_ids"], own, spans)

    def _check(self, text: str, length: int) -> None:
        if length > self._limit:
            raise DataError(
                f"the text {text[:60]!r} ... has {length} tokens, and {self.name!r} reads {self._limit} at a time; "
                "shorten it"
            )

    def _tell(self, cut: bool) -> None:
        if cut:
            if not self.shortened:
                log.warning("%s reads %d tokens: longer contexts lose their beginning", self.name, self._limit)
            self.shortened += 1

    def _log_probabilities(self, masked: Sequence[_Masked]) -> FloatArray:
        torch = importlib.import_module("torch")
        found: list[float] = []
        for first in range(0, len(masked), self._batch):
            batch = masked[first : first + self._batch]
            with torch.inference_mode():
                logits = self.model(**self._inputs([(one.ids, one.segments) for one in batch])).logits
                for row, one in enumerate(batch):
                    distribution = torch.log_softmax(logits[row, one.place].float(), dim=-1)
                    found.append(float(distribution[one.hidden]))
        return np.array(found)

    def _inputs(self, batch: Sequence[tuple[list[int], list[int]]]) -> dict[str, Any]:
        """The inputs padded to one length, on the model's device."""
        torch = importlib.import_module("torch")
        width = max(len(ids) for ids, _ in batch)
        tokens = torch.full((len(batch), width), self.tokenizer.pad_token_id or 0, dtype=torch.long)
        segments, mask = torch.zeros_like(tokens), torch.zeros_like(tokens)
        for row, (ids, of) in enumerate(batch):
            tokens[row, : len(ids)] = torch.tensor(ids)
            segments[row, : len(ids)] = torch.tensor(of)
            mask[row, : len(ids)] = 1
        inputs = {"input_ids": tokens, "attention_mask": mask}
        if self._segmented:
            inputs["token_type_ids"] = segments
        return {name: values.to(self.model.device) for name, values in inputs.items()}


def _hide(read: _Read, place: int, mask: int) -> _Masked:
    return _Masked([*read.ids[:place], mask, *read.ids[place + 1 :]], read.segments, place, read.ids[place])
