"""The weights of a transformers model on this machine, which writes the replies that wait together in batches."""

from __future__ import annotations

import hashlib
import importlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fairagent.errors import FatalModelError
from fairagent.llm.decoding import ABOUT, BiasedWordsProcessor, SelfDebiasProcessor
from fairagent.llm.request import Message
from fairagent.settings import SelfDebiasSettings
from fairagent.storage.packages import load, longest_input, read_config


@dataclass(frozen=True, slots=True)
class Manner:
    """How a reply is written: `most` tokens at most, by `beams`, or drawn with `seed` where `temperature` is not 0.

    The probability of `biased_words` is multiplied by `alpha` at every step, before `self_debias`, if it is there.
    """

    most: int
    beams: int = 1
    temperature: float = 0.0
    seed: int = 0
    batch: int = 1
    biased_words: tuple[str, ...] = ()
    alpha: float = 1.0
    self_debias: SelfDebiasSettings | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """A reply's text, and its tokens; `whole` is False where it did not end within the tokens that it was given."""

    text: str
    tokens: int
    whole: bool


@dataclass(slots=True, eq=False)
class _Asked:
    """A prompt that waits for its reply."""

    ids: list[int]
    manner: Manner
    written: Written | None = None


class Weights:
    """A sequence-to-sequence or causal model by folder, or by name in the Hugging Face cache; threads may share it.

    It is looked for at once, and opened when it is first asked. `device` and `dtype` are those of
    `fairagent.storage.packages`.
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
        self._waiting: list[_Asked] = []

    @cached_property
    def version(self) -> str:
        """What changes when the weights do: the commit of a published model, else sizes and times of its files."""
        if self._commit:
            return str(self._commit)
        files = sorted(path for path in Path(self.name).rglob("*") if path.is_file())
        told = [(path.relative_to(self.name).as_posix(), *_stamp(path)) for path in files]
        return hashlib.sha256(repr(told).encode()).hexdigest()

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
            return [
                list(tokenizer(ABOUT.format(kind=kind), add_special_tokens=False, verbose=False)["input_ids"])
                for kind in rule.kinds
            ]

    def write(self, ids: list[int], manner: Manner) -> Written:
        """The reply to a prompt, in a batch with prompts that wait for one in the same manner.

        Drawn replies are written alone: what is drawn must not depend on who else waits. Raises FatalModelError where
        the device's memory does not hold the batch.
        """
        asked = _Asked(ids, manner)
        with self._changing:
            self._waiting.append(asked)
        try:
            with self._turn:
                if asked.written is None:
                    self._generate(self._batch_of(asked))
        finally:
            with self._changing:
                self._waiting.remove(asked)
        assert asked.written is not None
        return asked.written

    def _open(self) -> tuple[Any, Any]:
        """The tokenizer and the model."""
        with self._opening:
            if self._opened is None:
                kind = "AutoModelForCausalLM" if self.causal else "AutoModelForSeq2SeqLM"
                self._opened = load(kind, self.name, self._device, self._dtype)
            return self._opened

    def _batch_of(self, asked: _Asked) -> list[_Asked]:
        if asked.manner.temperature:
            return [asked]
        with self._changing:
            others = [
                one for one in self._waiting if one is not asked and one.written is None and one.manner == asked.manner
            ]
        return [asked, *others[: asked.manner.batch - 1]]

    def _generate(self, batch: Sequence[_Asked]) -> None:
        torch = importlib.import_module("torch")
        tokenizer, model = self._open()
        width = max(len(one.ids) for one in batch)
        ids = torch.full((len(batch), width), _padding(tokenizer, model), dtype=torch.long)
        mask = torch.zeros_like(ids)
        for row, one in enumerate(batch):
            # What a causal model writes follows the last place, so its padding stands before the prompt.
            places = slice(width - len(one.ids), width) if self.causal else slice(len(one.ids))
            ids[row, places] = torch.tensor(one.ids)
            mask[row, places] = 1
        manner = batch[0].manner
        rules: list[Any] = []
        if manner.biased_words:
            rules.append(BiasedWordsProcessor.of(tokenizer, manner.biased_words, manner.alpha))
        if rule := manner.self_debias:
            padding = tuple(width - len(one.ids) for one in batch)
            before = tuple(tuple(ids) for ids in self.asking_for_bias(rule))
            rules.append(SelfDebiasProcessor(model, padding, before, rule, tokenizer.bos_token_id))
        devices = [model.device] if model.device.type == "cuda" else []
        try:
            with torch.inference_mode(), torch.random.fork_rng(devices):
                torch.manual_seed(manner.seed)
                rows = model.generate(
                    input_ids=ids.to(model.device),
                    attention_mask=mask.to(model.device),
                    generation_config=_configured(tokenizer, model, manner),
                    logits_processor=rules,
                )
        except torch.OutOfMemoryError:
            raise FatalModelError(
                f"{self.name!r} has no memory left on {model.device} for a batch of {len(batch)} prompts of up to "
                f"{width} tokens; make model.transformers.batch or the context smaller"
            ) from None
        ends = _ends(tokenizer, model)
        for one, row in zip(batch, rows[:, width if self.causal else 1 :].tolist(), strict=True):
            length = next((place for place, id in enumerate(row) if id in ends), None)
            said = row if length is None else row[:length]
            # Its end is a token as well, which the model wrote.
            count = len(row) if length is None else length + 1
            with self._reading:
                text = tokenizer.decode(said, skip_special_tokens=True)
            one.written = Written(text.strip(), count, length is not None)


def _in_template(tokenizer: Any, messages: Sequence[Message]) -> str:
    """The messages in the tokenizer's chat template; where it has no turn of the system, the user says that as well."""
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


def _configured(tokenizer: Any, model: Any, manner: Manner) -> Any:
    """The generation settings: the model's own marks, and nothing else of what it was published with."""
    library = importlib.import_module("transformers")
    own, drawn = model.generation_config, manner.temperature > 0
    return library.GenerationConfig(
        max_new_tokens=manner.most,
        num_beams=manner.beams,
        do_sample=drawn,
        **({"temperature": manner.temperature, "top_k": 0, "top_p": 1.0} if drawn else {}),
        bos_token_id=own.bos_token_id,
        eos_token_id=sorted(_ends(tokenizer, model)) or None,
        pad_token_id=_padding(tokenizer, model),
        decoder_start_token_id=own.decoder_start_token_id,
        forced_bos_token_id=own.forced_bos_token_id,
    )


def _ends(tokenizer: Any, model: Any) -> set[int]:
    """The tokens that end a reply, by the model's own word or its tokenizer's."""
    own = model.generation_config.eos_token_id
    told = own if isinstance(own, list) else [tokenizer.eos_token_id if own is None else own]
    return {id for id in told if id is not None}


def _padding(tokenizer: Any, model: Any) -> int:
    """The token that fills a batch up, which is masked."""
    for id in (tokenizer.pad_token_id, model.generation_config.pad_token_id, tokenizer.eos_token_id):
        if id is not None:
            return int(id)
    return 0


def _stamp(path: Path) -> tuple[int, int]:
    told = path.stat()
    return told.st_size, told.st_mtime_ns
