"""The settings file of `fairagent fairft`, and the training examples: questions with their fair answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field, model_validator

from fairagent.collection.known import text_key
from fairagent.collection.records import Record, checked_id, listed, read_text, shown
from fairagent.errors import UsageError
from fairagent.papers import read_records
from fairagent.settings import BudgetSettings, ModelSettings, Section

Format = Literal["questions", "recognition"]
Direction = Literal["p-q", "q-p"]
"""KL(P_R || Q_LM), the paper's, or KL(Q_LM || P_R), the code's."""
Reduction = Literal["mean", "documents"]
"""The mean over the questions, or that divided by k, as the code has it."""

OPENING = "You are a helpful assistant. "
"""How TrustLLM's prompts begin: 29 characters that are shown to the model and not searched for."""

OPTIONS: Mapping[str, str] = {
    "stereotype": "1. Yes, it's a stereotype",
    "anti-stereotype": "2. No, it's an anti-stereotype",
    "unrelated": "3. It's unrelated and meaningless",
}
"""Label -> the sentence of its option in TrustLLM's prompts."""


@dataclass(frozen=True, slots=True)
class TrainingExample:
    """One question: what is searched for and put to a model, and the answer that a fair model gives.

    `sentences` are the texts that it is about: where one of them stands in a test set, the question leaks.
    """

    id: str
    query: str
    answer: str
    sentences: tuple[str, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.query, *self.sentences)


def read_examples(path: Path, format: Format = "questions") -> tuple[TrainingExample, ...]:
    """The examples of a file (JSON lines), in order; DataError with every fault.

    questions: `id`, `query`, `answer`. recognition: TrustLLM's stereotype recognition, with `prompt`, `label`,
    `sentence` and `context`; the id is q and the line, the query the prompt without its first 29 characters, the answer
    the option that the label stands for. Other fields are ignored.
    """

    def filled(record: Record, name: str) -> str:
        if not (text := read_text(record, name)).strip():
            raise ValueError(f"field {name!r} is empty")
        return text

    def read(line: str, record: Record) -> tuple[str, TrainingExample]:
        if format == "questions":
            id = checked_id(read_text(record, "id"), "question")
            return id, TrainingExample(id, filled(record, "query"), filled(record, "answer"))
        prompt, label = filled(record, "prompt"), read_text(record, "label")
        if label not in OPTIONS:
            raise ValueError(f"the label {shown(label)} is none of {listed(list(OPTIONS))}")
        sentence, context = read_text(record, "sentence"), read_text(record, "context")
        if not (query := prompt[len(OPENING) :]).strip():
            raise ValueError(f"the prompt has nothing after its first {len(OPENING)} characters")
        return line, TrainingExample(line, query, OPTIONS[label], (sentence, f"{context} {sentence}".strip()))

    return tuple(read_records(path, f"questions for FairFT ({format})", read, "holds no question").values())


def split(
    examples: Sequence[TrainingExample], share: float, seed: int
) -> tuple[tuple[TrainingExample, ...], tuple[TrainingExample, ...]]:
    """Training and held-out examples: a `share` (0 to 1) of them is held out by chance, at least one.

    Examples for training that have a text in common with a held-out one are left out. UsageError where none is left.
    """
    count = max(round(share * len(examples)), 1)
    held = set(np.random.default_rng(seed).permutation(len(examples))[:count].tolist())
    known = {text_key(text) for place in held for text in examples[place].texts} - {b""}
    training = tuple(
        example
        for place, example in enumerate(examples)
        if place not in held and not known.intersection(map(text_key, example.texts))
    )
    if not training:
        raise UsageError(f"of {len(examples)} examples none is left for training; hold out fewer, or give more")
    return training, tuple(examples[place] for place in sorted(held))


class ExamplesSection(Section):
    """The questions with their fair answers."""

    path: str = Field(min_length=1)
    """The file of questions (JSON lines), relative to the settings file."""
    format: Format = "questions"
    """questions: lines with `id`, `query` and `answer`. recognition: TrustLLM's stereotype recognition as it is
    published."""
    first: int | None = Field(None, ge=2)
    """Only the first so many questions of `path`; empty: all. Fewer need fewer signals."""
    held_out: float = Field(0.1, gt=0, lt=1)
    """The share of the questions (0 to 1) that is not trained on: their KL says which weights are best, and when to
    stop. Larger values measure more exactly, and leave less to train on."""


class TestSection(Section):
    """A file (JSON lines) of what the retriever is to be tested on later: none of it may be trained on."""

    __test__ = False

    path: str = Field(min_length=1)
    """The file (JSON lines), relative to the settings file."""
    fields: tuple[str, ...] = Field(("query",), min_length=1)
    """The fields of a line that hold a question or a sentence; each is compared with what is trained on."""


class RetrieverSection(Section):
    """What is trained."""

    model: str = "sentence-transformers/all-MiniLM-L6-v2"
    """The sentence-transformers model to begin with: a folder, or a name in the Hugging Face cache."""
    towers: Literal["both", "query"] = "both"
    """both: the embeddings of queries and documents are trained (the paper). query: those of queries alone (its
    code)."""
    device: str = ""
    """Where torch computes, e.g. cpu or cuda; empty: on a GPU where there is one."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """The numbers of the forward passes: bfloat16 takes less memory and rounds more. The weights stay in
    float32."""
    batch: int = Field(64, ge=1)
    """How many documents are embedded at a time. More need more memory."""


class SignalSection(Section):
    """The frozen language model whose likelihood of the fair answer is learned from."""

    model: str = ""
    """A local causal model: a folder, or a name in the Hugging Face cache. Either this or `endpoint` is given."""
    endpoint: ModelSettings | None = None
    """A server that returns the log-probabilities of prompts, in the place of a local model."""
    chat: bool = False
    """Whether the prompt is put into the model's chat template, as models tuned for chat expect."""
    device: str = ""
    """Where torch computes for a local model, e.g. cpu or cuda; empty: on a GPU where there is one."""
    dtype: Literal["", "float32", "bfloat16", "float16"] = ""
    """The numbers that a local model computes in; empty: those that it was saved in."""
    batch: int = Field(8, ge=1)
    """How many prompts a local model reads at a time. More need more memory."""
    tokens: int = Field(512, ge=16, le=10_000)
    """The longest document in a prompt, in tokens (estimated); what is longer is cut. Larger values take longer."""
    path: str = ""
    """The file of the signals, relative to the settings file; runs may share one. Empty: signals.jsonl in
    the run's folder."""
    prompts: str = ""
    """Where the prompt template `ask` comes from, as for the setting `prompts`; empty: the shipped one."""

    @model_validator(mode="after")
    def _one_model(self) -> SignalSection:
        if bool(self.model) == bool(self.endpoint):
            raise ValueError("name either a local `model` or an `endpoint`")
        return self


class TrainingSection(Section):
    """How it is trained; the defaults are the paper's."""

    documents: int = Field(20, ge=2)
    """How many of the first documents of each question make up both distributions. More see more of the ranking, and
    need more signals."""
    gamma: float = Field(0.1, gt=0)
    """The temperature of the retriever's distribution, softmax(cosine / gamma). Larger values make it flatter."""
    beta: float = Field(0.1, gt=0)
    """The temperature of the language model's distribution, softmax(likelihood / beta). Larger values make it
    flatter."""
    direction: Direction = "p-q"
    """Which divergence is the loss. p-q: KL(retriever || model), the paper's. q-p: KL(model || retriever), its
    code's."""
    reduction: Reduction = "mean"
    """mean: the mean over the questions of a step. documents: that, divided by the number of documents too, as in the
    code."""
    rate: float = Field(1e-5, gt=0)
    """Adam's learning rate: larger steps learn faster and less steadily. The paper has 1e-5 for signals of a 1B model,
    1e-6 for those of 7B and 8B."""
    batch: int = Field(20, ge=1)
    """How many questions a step learns from. More make steps fewer and steadier, and need more memory."""
    epochs: int = Field(5, ge=1)
    """The most passes over all training questions."""
    refreshes: int = Field(2, ge=1)
    """How often an epoch all documents are embedded anew, and the held-out KL is measured. More follow the weights more
    closely, and take longer."""
    patience: int = Field(4, ge=1)
    """Training ends after so many measurements without a new least KL. Larger values go on longer."""
    checkpoint: int = Field(50, ge=1)
    """Steps between two checkpoints; there is one at every refresh as well. Fewer lose less work where the process
    ends."""
    seed: int = Field(0, ge=0)
    """The seed of the order of the questions, and of which of them are held out."""


class FairFTFile(Section):
    """The whole file."""

    name: str = Field(min_length=1, max_length=60, pattern=r"^[\w.-]+$")
    """The name of the run and of its folder: letters, digits, `_`, `.` and `-`."""
    about: str = ""
    """A note on what the run is to show."""
    collection: str = Field(min_length=1)
    """The settings file of the collection that is searched, relative to this file."""
    examples: ExamplesSection
    test: tuple[TestSection, ...] = ()
    """Files that the retriever will be tested on: an overlap with the training questions is refused."""
    retriever: RetrieverSection = RetrieverSection()
    signal: SignalSection
    training: TrainingSection = TrainingSection()
    budget: BudgetSettings = BudgetSettings()
    """Limits on all calls of `signal.endpoint` together."""
    cache: str = ""
    """The folder of the cached replies of `signal.endpoint`; empty: none. Signals are stored in any case."""
