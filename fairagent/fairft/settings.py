"""The settings file of `fairagent fairft`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from fairagent.fairft.examples import Format
from fairagent.fairft.loss import Direction, Reduction
from fairagent.retrieve.encoder import BUNDLED
from fairagent.settings import BudgetSettings, ModelSettings, Section

Dtype = Literal["", "float32", "bfloat16", "float16"]


class ExamplesSection(Section):
    """The questions with their fair answers."""

    path: str = Field(min_length=1)
    """The file (JSON lines), relative to the settings file."""
    format: Format = "questions"
    """questions (`id`, `query`, `answer`), or TrustLLM's stereotype recognition as it is."""
    held_out: float = Field(0.1, gt=0, lt=1)
    """The share of them that is not trained on: the measure of success, and when to stop."""
    held_out_path: str = ""
    """A file of its own for the held-out ones, of the same format; then all others are trained on."""


class TestSection(Section):
    """A file (JSON lines) of what the retriever is to be tested on later: none of it may be trained on."""

    __test__ = False

    path: str = Field(min_length=1)
    """Relative to the settings file."""
    fields: tuple[str, ...] = Field(("query",), min_length=1)
    """The fields that hold a question or a sentence; each is compared."""


class RetrieverSection(Section):
    """What is trained."""

    model: str = BUNDLED
    """The sentence-transformers model: its folder or name."""
    towers: Literal["both", "query"] = "both"
    """Whether the gradient reaches the documents' embeddings too (the paper), or the queries' alone (its code)."""
    device: str = ""
    """torch's; empty: a GPU where there is one."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """In what the forward passes are computed; the weights are kept in 32 bits."""
    batch: int = Field(64, ge=1)
    """Documents that are embedded at a time."""


class SignalSection(Section):
    """The frozen language model whose likelihood of the fair answer is learned from."""

    model: str = ""
    """A local causal model: its folder or name."""
    endpoint: ModelSettings | None = None
    """Or a server that tells the log-probabilities of prompts."""
    chat: bool = False
    """Whether the prompt is put into the model's chat template."""
    device: str = ""
    """Of a local model; torch's; empty: a GPU where there is one."""
    dtype: Dtype = ""
    """Of a local model; empty: the one that it was saved in."""
    batch: int = Field(8, ge=1)
    """Prompts that a local model reads at a time."""
    tokens: int = Field(512, ge=16, le=10_000)
    """About how long a document may be in the prompt."""
    path: str = ""
    """Where the signals are kept, relative to the settings file; empty: in the run's folder. Runs may share a file."""
    prompts: str = ""
    """Other prompt templates than the default, as in the settings; the template is `ask`."""

    @model_validator(mode="after")
    def _one_model(self) -> SignalSection:
        if bool(self.model) == bool(self.endpoint):
            raise ValueError("name either a local `model` or an `endpoint`")
        return self


class TrainingSection(Section):
    """How it is trained; the defaults are the paper's."""

    documents: int = Field(20, ge=2)
    """The first so many documents of each question make its distributions."""
    gamma: float = Field(0.1, gt=0)
    """The temperature of the retriever's distribution."""
    beta: float = Field(0.1, gt=0)
    """The temperature of the language model's."""
    direction: Direction = "p-q"
    """p-q: KL(retriever || model), the paper's; q-p: KL(model || retriever), its code's."""
    reduction: Reduction = "mean"
    """mean: over the questions; documents: divided by the number of documents too, as in the code."""
    rate: float = Field(1e-5, gt=0)
    """Adam's learning rate; the paper has 1e-5 for signals of a 1B model, 1e-6 for those of 7B and 8B."""
    batch: int = Field(20, ge=1)
    """Questions a step."""
    epochs: int = Field(5, ge=1)
    """Passes over all questions at most."""
    refreshes: int = Field(2, ge=1)
    """How often an epoch all documents are embedded anew, and the held-out KL measured."""
    patience: int = Field(4, ge=1)
    """It ends after so many measurements without a new best one."""
    checkpoint: int = Field(50, ge=1)
    """Steps between two checkpoints; there is one at every refresh as well."""
    seed: int = Field(0, ge=0)
    """Of the order of the questions, and of which are held out."""


class FairFTFile(Section):
    """The whole file."""

    name: str = Field(min_length=1, max_length=60, pattern=r"^[\w.-]+$")
    """What the run and its folder are called."""
    about: str = ""
    """What it should show."""
    collection: str = Field(min_length=1)
    """The settings file of the collection that is searched, relative to this file."""
    examples: ExamplesSection
    test: tuple[TestSection, ...] = ()
    """What it is tested on later; an overlap with the training questions is refused."""
    retriever: RetrieverSection = RetrieverSection()
    signal: SignalSection
    training: TrainingSection = TrainingSection()
    budget: BudgetSettings = BudgetSettings()
    """endpoint: what its calls may take together."""
    cache: str = ""
    """endpoint: the folder in which its replies are kept; empty: they are not (the signals are, in any case)."""
