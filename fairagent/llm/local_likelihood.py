"""Likelihoods by a masked language model on this machine: masked tokens, and next sentences.

Likelihoods by a causal language model on this machine.

A GGUF file's model as a folder that transformers opens: its weights in full, for likelihoods.

Likelihoods under Self-Debias, whose rule is that of `fairagent.llm.decoding`.
"""

from __future__ import annotations

import importlib
import inspect
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import BackendUnavailable, DataError, UsageError
from fairagent.llm.decoding import ABOUT, lowered
from fairagent.llm.gguf import read_header
from fairagent.llm.likelihood import Pair, check_texts, perplexity
from fairagent.settings import SelfDebiasSettings
from fairagent.storage.folders import workshop
from fairagent.storage.packages import EXTRAS, expect_installed, load, longest_input, without_progress
from fairagent.types import FloatArray
from fairagent.types.clean import logger

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


@dataclass(frozen=True, slots=True)
class _Tokens:
    """A context and a text as the model reads them; those from `start` (>= 1) on are the text's."""

    ids: list[int]
    start: int


class CausalModel:
    """A transformers model that tells the next token: a folder, or a name in the Hugging Face cache.

    Nothing is downloaded. `device` is torch's ("": a GPU where there is one), `dtype` float32, bfloat16 or float16
    ("": the one it was saved in; log-probabilities are summed up in 32 bits or more all the same), `batch` how many
    pairs it reads at a time. With `chat` a context is what the user says, in the form of the tokenizer's chat template,
    and a text what the model then says.

    An input longer than the model takes loses the beginning of its context; `shortened` counts them, and the log tells
    of the first. Threads may share it.

    Raises BackendUnavailable where a package or the model is missing, or the model is no causal one (it looks ahead);
    UsageError for a device that there is not, or `chat` without a template.
    """

    def __init__(self, name: str, device: str = "", dtype: str = "", batch: int = 8, chat: bool = False) -> None:
        if batch < 1:
            raise UsageError(f"batch is how many pairs a model reads at a time and must be at least 1, not {batch}")
        self.name = name
        self.shortened = 0
        self.tokenizer, self.model = load("AutoModelForCausalLM", name, device, dtype)
        if chat and not self.tokenizer.chat_template:
            raise UsageError(f"the tokenizer of {name!r} has no chat template; leave `chat` off")
        self._batch = batch
        self._chat = chat
        written = self.tokenizer("a")["input_ids"][0]
        self._begins = self.tokenizer.bos_token_id is not None and written == self.tokenizer.bos_token_id
        self._limit = longest_input(self.tokenizer, self.model)
        self._keeps = "logits_to_keep" in inspect.signature(self.model.forward).parameters
        self._lock = threading.Lock()
        if self._looks_ahead():
            raise BackendUnavailable(
                f"{name!r} is no causal language model: what it makes of a word depends on the words after it"
            )

    def score(self, pairs: Sequence[Pair]) -> list[FloatArray]:
        """See `Likelihood.score`; DataError also for a text that is longer than the model takes."""
        told = self._read(pairs, whole=False)
        return [scores for _, scores in told]

    def distributions(self, pairs: Sequence[Pair]) -> list[tuple[NDArray[np.intp], FloatArray]]:
        """For each (context, text): the text's tokens, (t,), and the log-probabilities of all tokens there, (t, v).

        Raises DataError as `score`.
        """
        return self._read(pairs, whole=True)

    def _read(self, pairs: Sequence[Pair], whole: bool) -> list[tuple[NDArray[np.intp], FloatArray]]:
        """The texts' tokens with their log-probabilities, (t,), or with those of the `whole` vocabulary, (t, v)."""
        check_texts(pairs)
        # Fast tokenizers change their settings in place, which other threads would see.
        with self._lock:
            tokens = [self._tokens(context, text) for context, text in pairs]
            told = [(np.array(one.ids[one.start :], dtype=np.intp), np.zeros(0)) for one in tokens]
            # Those of about the same length together: little is spent on padding.
            order = sorted(range(len(pairs)), key=lambda pair: len(tokens[pair].ids))
            for first in range(0, len(order), self._batch):
                batch = order[first : first + self._batch]
                for pair, scores in zip(batch, self._scores([tokens[pair] for pair in batch], whole), strict=True):
                    told[pair] = told[pair][0], scores
        return told

    def perplexity(self, text: str, context: str = "") -> float:
        """How little the model expects the text after the context: exp of minus the mean log-probability, >= 1."""
        return perplexity(self.score([(context, text)])[0])

    def _scores(self, batch: Sequence[_Tokens], whole: bool) -> list[FloatArray]:
        """The log-probabilities of the texts' tokens, or of the `whole` vocabulary at their places."""
        torch = importlib.import_module("torch")
        # The batch is padded on the right, behind all that counts.
        width = max(len(tokens.ids) for tokens in batch)
        ids = torch.zeros((len(batch), width), dtype=torch.long)
        mask = torch.zeros_like(ids)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens.ids)] = torch.tensor(tokens.ids)
            mask[row, : len(tokens.ids)] = 1
        # The distribution of a token is read off at the place before it. Of a large vocabulary the distributions of
        # all places would not fit into the memory.
        first = min(tokens.start for tokens in batch) - 1
        kept = {"logits_to_keep": width - first} if self._keeps else {}
        ids = ids.to(self.model.device)
        with torch.inference_mode():
            logits = self.model(input_ids=ids, attention_mask=mask.to(ids.device), use_cache=False, **kept).logits
            logits = logits[:, -(width - first) :]
            scores: list[FloatArray] = []
            for row, tokens in enumerate(batch):
                places = slice(tokens.start - 1 - first, len(tokens.ids) - 1 - first)
                distributions = torch.log_softmax(logits[row, places].float(), dim=-1)
                if not whole:
                    said = ids[row, tokens.start : len(tokens.ids), None]
                    distributions = distributions.gather(-1, said)[:, 0]
                scores.append(distributions.double().cpu().numpy())
        return scores

    def _tokens(self, context: str, text: str) -> _Tokens:
        if self._chat:
            asked = [{"role": "user", "content": context}]
            context = self.tokenizer.apply_chat_template(asked, tokenize=False, add_generation_prompt=True)
        encoded = self.tokenizer(
            context + text, add_special_tokens=False, return_offsets_mapping=True, truncation=False, verbose=False
        )
        ends = [end for _, end in encoded["offset_mapping"]]
        start = next((place for place, end in enumerate(ends) if end > len(context)), len(ends))
        before, said = encoded["input_ids"][:start], encoded["input_ids"][start:]
        # A template writes the token for the beginning itself.
        beginning = [] if before and (self._chat or not self._begins) else self._beginning()
        room = self._limit - len(beginning) - len(said)
        if not said:
            raise DataError(f"the tokenizer of {self.name!r} finds no token in the text {text[:60]!r}; leave it out")
        if room < (0 if beginning else 1):
            raise DataError(
                f"the text {text[:60]!r} ... has {len(said)} tokens, and {self.name!r} reads {self._limit} at a time; "
                "shorten it"
            )
        if len(before) > room:
            if not self.shortened:
                log.warning("%s reads %d tokens: longer contexts lose their beginning", self.name, self._limit)
            self.shortened += 1
            before = before[len(before) - room :]
        return _Tokens([*beginning, *before, *said], len(beginning) + len(before))

    def _beginning(self) -> list[int]:
        """The token that stands before a text."""
        # Models without one of their own were trained on texts that follow the end of another.
        for id in (self.tokenizer.bos_token_id, self.tokenizer.eos_token_id):
            if id is not None:
                return [id]
        raise BackendUnavailable(
            f"the tokenizer of {self.name!r} has no token for the beginning of a text; give every text a context"
        )

    def _looks_ahead(self) -> bool:
        """Whether the last token changes what the model makes of the first."""
        torch = importlib.import_module("torch")
        with torch.inference_mode():
            words = self.model.get_input_embeddings().num_embeddings
            ids = torch.tensor([[1, 2, 0], [1, 2, 3]], device=self.model.device) % words
            one, other = self.model(input_ids=ids, use_cache=False).logits[:, 0].float()
        return not torch.allclose(one, other, rtol=1e-2, atol=1e-2)


EXTRA = "local"


def convert(file: Path, folder: Path, on_step: Callable[[str], None] = lambda step: None) -> Path:
    """Write the model in `file` to the new `folder`: the tokenizer of its metadata, its weights as 32-bit numbers.

    llama.cpp's server does not tell how likely a prompt is; this folder can be named wherever likelihoods are asked
    for (`CausalModel`). What quantization took from the weights does not come back: they are those that are served.
    `on_step` is told what is being done. Nothing is left where it fails.

    Raises UsageError where the folder is there, BackendUnavailable without gguf, accelerate or the file, DataError for
    a damaged file or an architecture that transformers does not read from GGUF files.
    """
    if folder.exists():
        raise UsageError(f"{folder} is there already; nothing is overwritten: name a new folder, or delete it")
    header = read_header(file)
    for package in EXTRAS[EXTRA][1:]:
        expect_installed(package, "reading the weights of a GGUF file", EXTRA)
    library, torch = importlib.import_module("transformers"), importlib.import_module("torch")
    place: dict[str, Any] = {"gguf_file": file.name, "local_files_only": True}
    with workshop(folder) as shop, without_progress():
        try:
            shop.begin()
            on_step(f"reading the tokenizer of {header.name}")
            library.AutoTokenizer.from_pretrained(file.parent, **place).save_pretrained(shop.new)
            on_step("reading and dequantizing the weights")
            read = library.AutoModelForCausalLM.from_pretrained(file.parent, dtype=torch.float32, **place)
            on_step(f"writing {sum(one.numel() for one in read.parameters()) * 4 / 1e6:,.0f} MB to {folder}")
            # What was quantized does not let itself be saved; a model of the same weights does.
            full = type(read)(read.config)
            full.load_state_dict(read.state_dict())
            full.save_pretrained(shop.new)
            shop.put()
        except (ValueError, KeyError, NotImplementedError) as error:
            said = str(error).strip().splitlines() or [type(error).__name__]
            raise DataError(
                f"transformers cannot read {file} (architecture {header.architecture!r}): {said[0]}"
            ) from error
        except OSError as error:
            raise BackendUnavailable(f"{file} cannot be converted: {str(error).splitlines()[0]}") from error
        finally:
            shop.clear()
    return folder


class SelfDebiased:
    """A `Likelihood`: that of `model` under Self-Debias, with a sentence for each kind of bias of the `rule`.

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
        return [self._score(context, text) for context, text in pairs]

    def _score(self, context: str, text: str) -> FloatArray:
        asked = [(context, text), *((before + context, text) for before in self._before)]
        told = self._model.distributions(asked)
        tokens = told[0][0]
        if any(not np.array_equal(tokens, other) for other, _ in told[1:]):
            raise DataError(
                f"the tokens of {text[:60]!r} are others after {self._before[0]!r}, so that their probabilities "
                "cannot be compared; let the text begin with a word, or leave it out"
            )
        changed = lowered(told[0][1], np.stack([table for _, table in told[1:]]), self._rule.decay, self._rule.least)
        return np.asarray(changed[np.arange(len(tokens)), tokens])
