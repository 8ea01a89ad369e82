"""Likelihoods by a causal language model on this machine."""

import importlib
import inspect
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairagent.clean import logger
from fairagent.errors import BackendUnavailable, DataError, UsageError
from fairagent.likelihood.likelihood import Pair, check_texts, perplexity
from fairagent.loading import load, longest_input
from fairagent.types import FloatArray

log = logger(__name__)


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
