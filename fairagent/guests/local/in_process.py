"""A transformers model in this process as a `Model`: prompts that wait together are answered in batches."""

from __future__ import annotations

import hashlib
import importlib
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fairagent.extend import (
    Budget,
    FatalModelError,
    Message,
    ModelError,
    ModelProvider,
    ModelReply,
    ModelRequest,
    ModelSettings,
    ReplyError,
    ReplyInvalid,
    ReplyTruncated,
    SelfDebiasSettings,
    SettingsError,
    TransformersSettings,
    form_identity,
    load,
    longest_input,
    read_config,
)
from fairagent.guests.local.decoding import ABOUT, BiasedWordsProcessor, SelfDebiasProcessor, padded


class TransformersModels(ModelProvider):
    """Opens models whose settings have `transformers`; those with the same weights share them."""

    def __init__(self) -> None:
        self._weights: dict[tuple[str, str, str], Weights] = {}

    def open(self, settings: ModelSettings, budget: Budget, cost: Callable[[int, int], float | None]) -> InProcessModel:
        """See `ModelProvider.open`."""
        assert settings.transformers
        key = (settings.name, settings.transformers.device, settings.transformers.dtype)
        if key not in self._weights:
            self._weights[key] = Weights(*key)
        return InProcessModel(settings, self._weights[key], budget, cost)


class InProcessModel:
    """A model that runs in this process; threads may share it.

    A JSON reply is requested by the prompt alone, and checked like any other. The same request has the same reply: by
    the likeliest tokens, by beams, or drawn with the request's seed (0 where it has none). (Rounding differs between
    batches and devices; where two tokens are as likely to the last digits, so may the reply.) `budget` is checked
    before every request; `cost` turns input and output tokens into dollars, `clock` returns seconds.
    """

    def __init__(
        self,
        settings: ModelSettings,
        weights: Weights,
        budget: Budget | None = None,
        cost: Callable[[int, int], float | None] = lambda read, written: None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.settings = settings
        self.weights = weights
        self.cost = cost
        self._own = settings.transformers or TransformersSettings()
        if self._own.self_debias and not weights.causal:
            raise SettingsError(f"model.transformers.self_debias takes a causal model, which {settings.name!r} is not")
        self._budget = budget or Budget()
        self._clock = clock

    def __repr__(self) -> str:
        return f"InProcessModel({self.settings.name!r})"

    def close(self) -> None:
        """Nothing: the weights are freed with the last model that uses them."""

    def hide(self, text: str) -> str:
        """The text: a model of this process has no key."""
        return text

    def identity(self, request: ModelRequest) -> dict[str, Any]:
        """Everything that may change the reply, as plain values."""
        decoding = self._decoding(request)
        identity: dict[str, Any] = {
            "transformers": self.settings.name,
            "weights": self.weights.version,
            "messages": [list(message) for message in request.messages],
            "max_tokens": decoding.most,
            "beams": self._own.beams,
            "temperature": decoding.temperature,
            "dtype": self._own.dtype,
            "context": self.settings.context,
        }
        if self._own.biased_words:
            identity |= {"biased_words": list(self._own.biased_words), "alpha": self._own.alpha}
        if self._own.self_debias:
            identity["self_debias"] = self._own.self_debias.model_dump()
        if decoding.temperature:
            identity["seed"] = decoding.seed
        return identity | form_identity(request)

    def complete(self, request: ModelRequest) -> ModelReply:
        """The model's answer; see `Model.complete`. Raises BudgetExceeded as well.

        A prompt that is longer than the model reads is a ModelError with both lengths; it is never cut.
        """
        started = self._clock()
        ids = self.weights.read(request.messages)
        rule = self._own.self_debias
        longest = max(map(len, self.weights.asking_for_bias(rule))) if rule else 0
        decoding = self._decoding(request, self._room(len(ids) + longest))
        with self._budget.reserve(len(ids) + decoding.most, self.cost(len(ids), decoding.most)) as reserved:
            generated = self.weights.write(ids, decoding)
            cost = self.cost(len(ids), generated.tokens)
            reserved.settle(len(ids) + generated.tokens, cost or 0.0)
        finish, seconds = "stop" if generated.whole else "length", self._clock() - started
        name = self.settings.name
        reply = ModelReply(generated.text, len(ids), generated.tokens, name, finish, seconds=seconds, cost=cost)
        error: ReplyError
        if not generated.whole and request.whole:
            error = ReplyTruncated(
                f"{name} was cut off after {generated.tokens} tokens; raise model.max_tokens in the "
                "settings, and max_tokens in the prompt template where it is lower",
                raw=generated.text,
            )
        elif not generated.text:
            error = ReplyInvalid(f"{name} gave an empty reply")
        else:
            return reply
        error.usage = reply.usage
        raise error

    def _decoding(self, request: ModelRequest, room: int | None = None) -> Decoding:
        settings = self.settings
        most = min(settings.max_tokens, request.max_tokens or settings.max_tokens)
        temperature = settings.temperature if request.temperature is None else request.temperature
        if self._own.beams > 1:
            temperature = 0.0
        seed = (request.seed or 0) if temperature else 0
        return Decoding(most if room is None else min(most, room), self._own, temperature, seed)

    def _room(self, length: int) -> int | None:
        """The tokens that a prompt of this length leaves for the reply; None where the reply has a place of its own."""
        limit = self.settings.context or self.weights.limit
        causal = self.weights.causal
        if length + causal > limit:
            raise ModelError(
                f"the prompt has {length} tokens, and {self.settings.name!r} reads {limit} at once"
                f"{', its reply included' if causal else ''}; give it fewer or shorter texts (context.tokens), or, "
                "where it was made for more, set model.context"
            )
        return limit - length if causal else None


@dataclass(frozen=True, slots=True)
class Decoding:
    """How a reply is generated: `most` tokens, drawn with `seed` where `temperature` is not 0, as `own` says."""

    most: int
    own: TransformersSettings
    temperature: float = 0.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Generated:
    """A reply's text, and its tokens; `whole` is False where it did not end within the tokens that it was given."""

    text: str
    tokens: int
    whole: bool


@dataclass(slots=True, eq=False)
class _Pending:
    """A prompt that waits for its reply."""

    ids: list[int]
    decoding: Decoding
    reply: Generated | None = None


class Weights:
    """A sequence-to-sequence or causal model by folder, or by name in the Hugging Face cache; threads may share it.

    Its configuration is read at once, its weights when they are first needed; `device` and `dtype` are those of `load`.
    Raises BackendUnavailable where the package or the model is missing.
    """

    def __init__(self, name: str, device: str = "", dtype: str = "") -> None:
        self.name = name
        self._device, self._dtype = device, dtype
        config = read_config(name)
        self.causal = not config.is_encoder_decoder
        self._commit = getattr(config, "_commit_hash", None)
        self._opening = threading.Lock()
        self._reading = threading.Lock()
        self._turn = threading.Lock()
        self._changing = threading.Lock()
        self._opened: tuple[Any, Any] | None = None
        self._waiting: list[_Pending] = []

    @cached_property
    def version(self) -> str:
        """What changes when the weights do: the commit of a published model, else sizes and times of its files."""
        if self._commit:
            return str(self._commit)
        files = [(path, path.stat()) for path in sorted(Path(self.name).rglob("*")) if path.is_file()]
        states = [(path.relative_to(self.name).as_posix(), stat.st_size, stat.st_mtime_ns) for path, stat in files]
        return hashlib.sha256(repr(states).encode()).hexdigest()

    @property
    def limit(self) -> int:
        """How many tokens it reads at once, by its own word; with the reply where it is causal."""
        return longest_input(*self._open())

    def read(self, messages: Sequence[Message]) -> list[int]:
        """The messages as tokens: in the form of its chat template, or, where it has none, one below the other."""
        tokenizer, _ = self._open()
        # Fast tokenizers change their settings in place, which other threads would see.
        with self._reading:
            if not tokenizer.chat_template:
                return list(tokenizer("\n\n".join(text for _, text in messages), verbose=False)["input_ids"])
            shown = _in_template(tokenizer, messages)
            return list(tokenizer(shown, add_special_tokens=False, verbose=False)["input_ids"])

    def asking_for_bias(self, rule: SelfDebiasSettings) -> list[list[int]]:
        """The sentences of Self-Debias as tokens."""
        tokenizer, _ = self._open()
        with self._reading:
            sentences = [ABOUT.format(kind=kind) for kind in rule.kinds]
            return [list(tokenizer(one, add_special_tokens=False, verbose=False)["input_ids"]) for one in sentences]

    def write(self, ids: list[int], decoding: Decoding) -> Generated:
        """The reply to a prompt, in a batch with prompts that wait for one with the same `decoding`.

        Drawn replies are generated alone: they must not depend on who else waits. Raises FatalModelError where the
        device's memory does not hold the batch.
        """
        pending = _Pending(ids, decoding)
        with self._changing:
            self._waiting.append(pending)
        try:
            with self._turn:
                if pending.reply is None:
                    self._generate(self._batch_of(pending))
        finally:
            with self._changing:
                self._waiting.remove(pending)
        assert pending.reply is not None
        return pending.reply

    def _open(self) -> tuple[Any, Any]:
        """The tokenizer and the model."""
        with self._opening:
            if self._opened is None:
                opener = "AutoModelForCausalLM" if self.causal else "AutoModelForSeq2SeqLM"
                self._opened = load(opener, self.name, self._device, self._dtype)
            return self._opened

    def _batch_of(self, first: _Pending) -> list[_Pending]:
        if first.decoding.temperature:
            return [first]
        with self._changing:
            alike = [one for one in self._waiting if one.reply is None and one.decoding == first.decoding]
        return [first, *[one for one in alike if one is not first][: first.decoding.own.batch - 1]]

    def _generate(self, batch: Sequence[_Pending]) -> None:
        torch = importlib.import_module("torch")
        tokenizer, model = self._open()
        # What a causal model generates follows the last place, so its padding stands before the prompt.
        ids, mask = padded([one.ids for one in batch], _padding(tokenizer, model), left=self.causal)
        width = ids.shape[1]
        decoding = batch[0].decoding
        rules: list[Any] = []
        if decoding.own.biased_words:
            rules.append(BiasedWordsProcessor.of(tokenizer, decoding.own.biased_words, decoding.own.alpha))
        if rule := decoding.own.self_debias:
            padding = tuple(width - len(one.ids) for one in batch)
            before = tuple(map(tuple, self.asking_for_bias(rule)))
            rules.append(SelfDebiasProcessor(model, padding, before, rule, tokenizer.bos_token_id))
        ends = _ends(tokenizer, model)
        devices = [model.device] if model.device.type == "cuda" else []
        try:
            with torch.inference_mode(), torch.random.fork_rng(devices):
                torch.manual_seed(decoding.seed)
                rows = model.generate(
                    input_ids=ids.to(model.device),
                    attention_mask=mask.to(model.device),
                    generation_config=_generation_config(tokenizer, model, decoding),
                    logits_processor=rules,
                )
        except torch.OutOfMemoryError:
            raise FatalModelError(
                f"{self.name!r} has no memory left on {model.device} for a batch of {len(batch)} prompts of up to "
                f"{width} tokens; make model.transformers.batch or the context smaller"
            ) from None
        for one, row in zip(batch, rows[:, width if self.causal else 1 :].tolist(), strict=True):
            length = next((place for place, id in enumerate(row) if id in ends), None)
            with self._reading:
                text = tokenizer.decode(row[:length], skip_special_tokens=True)
            # The end is a token as well, which the model generated.
            one.reply = Generated(text.strip(), len(row) if length is None else length + 1, length is not None)


def _in_template(tokenizer: Any, messages: Sequence[Message]) -> str:
    """The messages in the tokenizer's chat template; where it knows no system, its text goes to the user's message."""
    errors = importlib.import_module("jinja2.exceptions")
    turns = [{"role": role, "content": text} for role, text in messages]
    try:
        shown = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    except errors.TemplateError:
        if len(turns) < 2 or turns[0]["role"] != "system":
            raise
        first, second, *others = turns
        both = {"role": second["role"], "content": f"{first['content']}\n\n{second['content']}"}
        shown = tokenizer.apply_chat_template([both, *others], tokenize=False, add_generation_prompt=True)
    return str(shown)


def _generation_config(tokenizer: Any, model: Any, decoding: Decoding) -> Any:
    """The model's own marks, and nothing else of the generation settings that it was published with."""
    library = importlib.import_module("transformers")
    own, drawn = model.generation_config, decoding.temperature > 0
    return library.GenerationConfig(
        max_new_tokens=decoding.most,
        num_beams=decoding.own.beams,
        do_sample=drawn,
        **({"temperature": decoding.temperature, "top_k": 0, "top_p": 1.0} if drawn else {}),
        bos_token_id=own.bos_token_id,
        eos_token_id=sorted(_ends(tokenizer, model)) or None,
        pad_token_id=_padding(tokenizer, model),
        decoder_start_token_id=own.decoder_start_token_id,
        forced_bos_token_id=own.forced_bos_token_id,
    )


def _ends(tokenizer: Any, model: Any) -> set[int]:
    """The tokens that end a reply, by the model's configuration or its tokenizer's."""
    own = model.generation_config.eos_token_id
    ends = own if isinstance(own, list) else [tokenizer.eos_token_id if own is None else own]
    return {id for id in ends if id is not None}


def _padding(tokenizer: Any, model: Any) -> int:
    """The token that fills a batch up, which is masked."""
    ids = (tokenizer.pad_token_id, model.generation_config.pad_token_id, tokenizer.eos_token_id)
    return next((int(id) for id in ids if id is not None), 0)
