"""The re-ranker `cross-encoder`: a model reads the user's query and each document together and gives one number."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import Field

from fairagent.errors import BackendUnavailable
from fairagent.retrieve.base import Retriever, full_text, texts_for
from fairagent.retrieve.site import Site
from fairagent.search.rerank.base import PairScorer, Pool, ordered, pair_scorer, pair_scores
from fairagent.settings import Part
from fairagent.storage.packages import installed, load, without_progress
from fairagent.types import FloatArray, Ranking

MONOT5 = "monot5:"
PUBLISHED = "castorini/monot5"
"""How the names of the published MonoT5 models begin."""
BATCH = 16
"""Pairs that a model reads at a time."""
TOKENS = 512
"""What MonoT5 was trained to read."""


class CrossEncoderScorer:
    """A sentence-transformers CrossEncoder with one output: a model's folder, or a name in the Hugging Face cache.

    The score is the output as it is, without the sigmoid that would make good texts alike. A pair is cut at the model's
    own limit. Nothing is downloaded: BackendUnavailable says what is missing. Threads may share it.
    """

    def __init__(self, name: str, device: str = "cpu") -> None:
        self.name, self._lock = name, threading.Lock()
        library = installed("sentence-transformers", "a cross-encoder")
        import torch
        from transformers import AutoConfig

        try:
            with without_progress():
                config = AutoConfig.from_pretrained(name, local_files_only=True)
                # Of a model without a head that scores the library would make one of random weights.
                kinds = ", ".join(config.architectures or ["unknown"])
                if not kinds.endswith("ForSequenceClassification") or config.num_labels != 1:
                    raise BackendUnavailable(
                        f"the model {name!r} ({kinds}) is no cross-encoder: it has no head that gives a pair one number"
                    )
                self._model = library.CrossEncoder(name, device=device, local_files_only=True)
        except (OSError, ValueError) as error:
            raise BackendUnavailable(
                f"no cross-encoder {name!r} on this machine; name a model's folder, or download it beforehand"
            ) from error
        self._identity = torch.nn.Identity()

    def score(self, query: str, texts: Sequence[str]) -> FloatArray:
        """The model's output for each pair, (n,)."""
        if not texts:
            return np.zeros(0)
        pairs = [(query, text) for text in texts]
        # Fast tokenizers change their padding settings in place, which other threads would see.
        with self._lock:
            scores = self._model.predict(pairs, batch_size=BATCH, activation_fn=self._identity, show_progress_bar=False)
        return np.asarray(scores, dtype=np.float64)


class MonoT5Scorer:
    """MonoT5: a T5 that was taught to go on after "Query: q Document: d Relevant:" with "true" or "false".

    The score is log p(true), the softmax over these two words at the first place that is decoded. Of a text that is too
    long the end is not read. `name` is a model's folder or a name in the Hugging Face cache; nothing is downloaded:
    BackendUnavailable says what is missing. Threads may share it.

    Source: Nogueira et al., Document Ranking with a Pretrained Sequence-to-Sequence Model, Findings of EMNLP 2020.
    """

    def __init__(self, name: str, device: str = "cpu") -> None:
        self.name = name
        published = f"{PUBLISHED}-base-msmarco"
        self._tokenizer, self._model = load(
            "T5ForConditionalGeneration", name, device, what="MonoT5 model", such_as=published
        )
        self._words: list[int] = []
        for word in ("true", "false"):
            tokens = self._tokenizer(word, add_special_tokens=False).input_ids
            if len(tokens) != 1 or tokens[0] == self._tokenizer.unk_token_id:
                raise BackendUnavailable(f"the model {name!r} is no MonoT5: {word!r} is no token of its vocabulary")
            self._words += tokens
        self._limit = min(TOKENS, int(self._tokenizer.model_max_length))
        self._lock = threading.Lock()

    def score(self, query: str, texts: Sequence[str]) -> FloatArray:
        """The natural logarithm of p(true) for each text, (n,)."""
        with self._lock:
            prompts = [self._prompt(query, text) for text in texts]
            parts = [self._log_true(prompts[start : start + BATCH]) for start in range(0, len(prompts), BATCH)]
        return np.concatenate([np.zeros(0), *parts])

    def _prompt(self, query: str, text: str) -> str:
        """The question, with as much of the text as leaves it whole."""
        around = f"Query: {query} Document:  Relevant:"
        room = max(0, self._limit - len(self._tokenizer(around, verbose=False).input_ids))
        offsets = self._tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        ends = [end for _, end in offsets["offset_mapping"]]
        if len(ends) > room:
            text = text[: ends[room - 1]] if room else ""
        return f"Query: {query} Document: {text} Relevant:"

    def _log_true(self, prompts: Sequence[str]) -> FloatArray:
        import torch

        inputs = self._tokenizer(
            list(prompts), padding=True, truncation=True, max_length=self._limit, return_tensors="pt"
        )
        start = torch.full((len(prompts), 1), self._model.config.decoder_start_token_id)
        with torch.inference_mode():
            logits = self._model(
                input_ids=inputs["input_ids"].to(self._model.device),
                attention_mask=inputs["attention_mask"].to(self._model.device),
                decoder_input_ids=start.to(self._model.device),
            ).logits[:, 0, self._words]
        # In double precision: among good documents p(true) is so close to 1 that floats of 32 bits are equal.
        chances = torch.nn.functional.log_softmax(logits.double(), dim=-1)
        return np.asarray(chances[:, 0].cpu().numpy(), dtype=np.float64)


def open_pair_scorer(name: str, device: str = "cpu") -> PairScorer:
    """The model that a settings file names: `monot5:NAME` (castorini's need no `monot5:`), else a cross-encoder."""
    if name.startswith((MONOT5, PUBLISHED)):
        return MonoT5Scorer(name.removeprefix(MONOT5), device)
    return CrossEncoderScorer(name, device)


@dataclass(frozen=True, slots=True)
class CrossEncoderReranker:
    """The best `depth` candidates by the scorer's number for the user's query and the document, ties by id.

    It reads title and text as `retriever` keeps them, of a long document the passage that answers best. Candidates
    beyond `depth` (1 or more) follow in their order, each one below the one before. Raises UsageError where the engine
    keeps no texts, DataError where a score is no finite number.
    """

    retriever: Retriever
    scorer: PairScorer
    depth: int = 100

    def rerank(self, pool: Pool) -> Ranking:
        """The best `pool.n` of the candidates."""
        ids = pool.ranking.ids[: self.depth]
        texts = list(map(full_text, texts_for(pool.query, ids, self.retriever)))
        best = ordered(ids, pair_scores(self.scorer, pool.query, texts, ids), pool.n)
        rest = pool.ranking.ids[self.depth : self.depth + pool.n - len(best)]
        if not rest:
            return best
        return Ranking(best.ids + rest, np.concatenate([best.scores, best.scores[-1] - np.arange(1, len(rest) + 1)]))


class CrossEncoderConfig(Part):
    """The best candidates by a model that reads query and document together."""

    kind: Literal["cross-encoder"] = "cross-encoder"
    scorer: str = Field(min_length=1)
    """A cross-encoder, or `monot5:NAME` for a MonoT5: a folder, or a name in the Hugging Face cache."""
    depth: int = Field(100, ge=1)
    """How many of the first candidates the model reads; the others stay behind them. More take longer in proportion."""

    def check(self, site: Site) -> None:
        """Raise BackendUnavailable where the scorer is not on this machine."""
        pair_scorer(site, self.scorer)

    def open_scorer(self) -> PairScorer:
        """The model; BackendUnavailable where it is not on this machine."""
        return open_pair_scorer(self.scorer)

    def build(self, site: Site) -> CrossEncoderReranker:
        """The re-ranker."""
        return CrossEncoderReranker(site.engine, pair_scorer(site, self.scorer), self.depth)
