"""The section `utility:` of an experiment file: what a row shows and is measured by, and how texts are compared."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, TypeVar

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field

from fairagent.errors import BackendUnavailable
from fairagent.measures import NDCG, Log2Plus1
from fairagent.measures.ranking import Gain
from fairagent.papers.utility.measures import greedy_match
from fairagent.retrieve.encoders import BUNDLED, Embeddings, open_encoder
from fairagent.settings import Section
from fairagent.storage.packages import expect_installed, without_progress
from fairagent.types import FloatArray

Item = TypeVar("Item")

Order = Literal["rank", "reversed", "ends", "middle"]
"""The best first; the best last; the best two at the ends; the best in the middle."""


def arranged(items: Sequence[Item], order: Order) -> list[Item]:
    """The items, best first, in `order`.

    >>> arranged(["a", "b", "c", "d", "e"], "ends"), arranged(["a", "b", "c", "d", "e"], "middle")
    (['b', 'd', 'e', 'c', 'a'], ['d', 'b', 'a', 'c', 'e'])
    """
    if order == "rank":
        return list(items)
    if order == "reversed":
        return list(items)[::-1]
    inwards = items[::-1] if order == "ends" else items
    # The first in the middle, the others one by one before and behind it.
    return [*inwards[1::2][::-1], *inwards[:1], *inwards[2::2]]


NOT_COMPARABLE = "not comparable"
"""Stands in the name of every measure that is not BERTScore."""
OF_JUDGMENTS = ("oracle", "adversarial")
"""Engines whose documents are taken from the judgments."""
IN_ORDER: Mapping[Order, str] = {
    "rank": "",
    "reversed": "reversed",
    "ends": "best at the ends",
    "middle": "best in the middle",
}
"""What a row's name says of the order of its documents."""


Compat = Literal["ours", "authors"]
BY_PROMPT: Mapping[Compat, str] = {"ours": "our prompt", "authors": "the paper's prompt"}
"""What a row's name says of the prompt, where it is not the first."""


class SimilaritySection(Section):
    """How alike an answer and a relevant passage are."""

    kind: Literal["minilm", "bert-score"] = "minilm"
    """bert-score: the library with `model`; minilm: the bundled encoder's tokens, whose numbers compare with no
    others."""
    model: str = Field("bert-large-uncased", min_length=1)
    """bert-score: a model's folder, or its name in the Hugging Face cache."""
    layer: int = Field(18, ge=1)
    """bert-score: the layer whose vectors are compared."""

    @property
    def name(self) -> str:
        return "MiniLM tokens" if self.kind == "minilm" else f"BERTScore-F1({self.model}, layer {self.layer})"

    @property
    def comparable(self) -> bool:
        """Whether its numbers compare with published ones."""
        return self.kind == "bert-score"


def _ks(values: tuple[int, ...]) -> tuple[int, ...]:
    """The numbers in their order, each once, without 0: an answer from no documents is always there."""
    ks = tuple(sorted({k for k in values if k}))
    if not ks or ks[0] < 0:
        raise ValueError("expected numbers of documents, at least one of them above 0 and none below")
    return ks


def _orders(values: tuple[Order, ...]) -> tuple[Order, ...]:
    """Each once, that of the ranks first, though nobody may have named it."""
    return tuple(dict.fromkeys(("rank", *values)))


def _listed(value: object) -> object:
    """One prompt as a list of one."""
    return (value,) if isinstance(value, str) else value


class Utility(Section):
    """The whole section."""

    ks: Annotated[tuple[int, ...], AfterValidator(_ks)] = (1, 2, 5, 10, 15)
    """How many documents an answer is given; one from none is always there."""
    orders: Annotated[tuple[Order, ...], AfterValidator(_orders)] = ("rank", "reversed")
    """In which order they are shown: each is a row of its own for every system that ranks. The rank order always is."""
    compat: Annotated[
        tuple[Compat, ...], BeforeValidator(_listed), AfterValidator(lambda given: tuple(dict.fromkeys(given)))
    ] = Field(("ours",), min_length=1)
    """Whose prompt asks for the answers: ours (`utility_answer`), or one that asks what the paper's asks and no more
    (authors: `paper_utility_answer`), whose answers end at STOP; of several, each is a row of its own."""
    scatter: tuple[int, ...] = ()
    """At which of the `ks` every topic's utility is drawn against its nDCG@k, with the line of least squares."""
    folds: int = Field(0, ge=0, le=100)
    """Folds of topics over which k, or to retrieve nothing, is chosen by predicted performance; 0: it is not."""
    relevant: int = Field(1, ge=1)
    """The smallest grade of a passage that answers are compared with, and that an oracle draws from."""
    grades: dict[int, int] = Field(default={})
    """Grades of the judgments -> what they mean here, where a higher one is not better; the others stay."""
    gain: Gain = "linear"
    """Of nDCG@k: a grade, or 2^grade - 1."""
    similarity: SimilaritySection = SimilaritySection()
    temperature: float = Field(0.3, ge=0)
    """Where a language model answers (`generate: llm`): 0 for its likeliest words; the paper's is 0.3."""
    runs: int = Field(1, ge=1)
    """Answers to each prompt, each with a seed of its own: performance is averaged over them, utility comes after."""

    @property
    def measures(self) -> tuple[str, ...]:
        return (
            *(self.utility(k) for k in self.ks),
            *(self.performance(k) for k in (0, *self.ks)),
            *(self.quality(k) for k in self.ks),
        )

    def utility(self, k: int) -> str:
        return self._of_answers("U", k)

    def performance(self, k: int) -> str:
        """How much of the relevant passages an answer from `k` documents says."""
        return self._of_answers("P", k)

    def quality(self, k: int) -> str:
        """How good the ranking is."""
        return str(NDCG(k, Log2Plus1(), self.gain))

    def _of_answers(self, letter: str, k: int) -> str:
        mark = "" if self.similarity.comparable else f"[{NOT_COMPARABLE}]"
        return f"{letter}{mark}(similarity={self.similarity.name}, relevant={self.relevant})@{k}"


class Display(Section):
    """How one row shows its documents: those of the system `of`, in this order, and by which prompt."""

    of: str
    order: Order
    compat: Compat = "ours"


CACHED = 256
"""Texts whose token vectors are cached: the references of a topic are compared with many answers."""


class TextSimilarity(Protocol):
    """Says how alike two texts are: any object like this will do. Several threads may call it."""

    @property
    def name(self) -> str:
        """What tables call it."""
        ...

    def f1(self, text: str, references: Sequence[str]) -> list[float]:
        """How alike `text` is to each of the references, at most 1; 0 where either is empty."""
        ...


class MiniLMTokens:
    """Greedy matching of the bundled encoder's token vectors: works offline, with numbers of its own.

    They are no BERTScore as papers report it: another model, trained for sentences, and its last layer.
    """

    name = SimilaritySection().name

    def __init__(self) -> None:
        self._encoder: Any = open_encoder(BUNDLED)
        self._tokens = lru_cache(CACHED)(self._encoded)

    def f1(self, text: str, references: Sequence[str]) -> list[float]:
        if not text.strip():
            return [0.0] * len(references)
        ours, our_weights = self._tokens(text)
        values = []
        for reference in references:
            theirs, their_weights = self._tokens(reference)
            match = greedy_match(ours, theirs, our_weights, their_weights) if reference.strip() else None
            values.append(match.f1 if match else 0.0)
        return values

    def _encoded(self, text: str) -> tuple[Embeddings, FloatArray]:
        """The token vectors of `text` and their weights: the marks around it weigh nothing."""
        vectors = self._encoder.tokens(text)
        weights = np.ones(len(vectors))
        weights[[0, -1]] = 0.0
        return vectors, weights


class BertScore:
    """BERTScore-F1 by the library bert-score, without inverse document frequencies and without a baseline.

    `model` is a model's folder or its name in the Hugging Face cache, `layer` the layer whose vectors are compared.
    Nothing is downloaded: BackendUnavailable says what is missing.
    """

    def __init__(self, model: str, layer: int) -> None:
        self.name = SimilaritySection(kind="bert-score", model=model, layer=layer).name
        self._scorer = _scorer(model, layer)
        self._lock = threading.Lock()

    def f1(self, text: str, references: Sequence[str]) -> list[float]:
        filled = [reference for reference in references if reference.strip()] if text.strip() else []
        if filled:
            with self._lock:
                _, _, values = self._scorer.score([text] * len(filled), filled)
            scores = iter(values.tolist())
        return [next(scores) if filled and reference.strip() else 0.0 for reference in references]


def open_similarity(section: SimilaritySection) -> TextSimilarity:
    """The one that an experiment names; BackendUnavailable where its package or its model is missing."""
    return MiniLMTokens() if section.kind == "minilm" else BertScore(section.model, section.layer)


def check_similarity(section: SimilaritySection) -> None:
    """Raise BackendUnavailable where a package or the model is missing, without loading a large model."""
    if section.kind == "minilm":
        open_encoder(BUNDLED)
    else:
        _folder(section.model)


def _folder(model: str) -> str:
    """Where the model is on this machine."""
    expect_installed("bert-score", "BERTScore")
    if Path(model).is_dir():
        return model
    hub = importlib.import_module("huggingface_hub")
    try:
        # A name may be in the cache; the library itself would ask the network.
        return str(hub.snapshot_download(model, local_files_only=True))
    except (OSError, ValueError) as error:
        raise BackendUnavailable(
            f"no model {model!r} on this machine for BERTScore; name a model's folder, download it beforehand, or use "
            "similarity: {kind: minilm}, whose numbers are not comparable"
        ) from error


def _scorer(model: str, layer: int) -> Any:
    folder = _folder(model)
    library = importlib.import_module("bert_score")
    with without_progress():
        try:
            return library.BERTScorer(model_type=folder, num_layers=layer, idf=False, rescale_with_baseline=False)
        except (OSError, AssertionError) as error:
            raise BackendUnavailable(f"the model {model!r} cannot be used for BERTScore: {error}") from error
