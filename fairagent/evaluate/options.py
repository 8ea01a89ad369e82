"""What each kind of system may be told under `options:` in an experiment file."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from fairagent.collection import Collection
from fairagent.errors import UsageError
from fairagent.evaluate.utility.run_file import read_run
from fairagent.exposure import dimensions_of
from fairagent.rerank.pair_scorer import open_pair_scorer
from fairagent.rerank.protected import Place
from fairagent.retrieve.encoder import BUNDLED
from fairagent.retrieve.splade_encoder import SUGGESTED
from fairagent.settings import Section, Settings


class Options(Section):
    """What every kind may be told."""

    retriever: Literal["bm25", "rm3", "dense", "splade"] = "bm25"
    """Where the candidates come from; rm3 takes its numbers from the settings' `expansion`."""
    model: str = BUNDLED
    """dense: the embedding model, as `open_encoder` reads it; splade: the SPLADE model, which has to be named."""

    @model_validator(mode="after")
    def _names_splade(self) -> Self:
        if self.needs_splade and self.model == BUNDLED:
            raise ValueError(f"retriever splade needs `model: NAME`, a SPLADE model such as {SUGGESTED}")
        return self

    @property
    def needs_embeddings(self) -> bool:
        """Whether the embeddings of the collection have to be there."""
        return self.retriever == "dense"

    @property
    def needs_splade(self) -> bool:
        """Whether the SPLADE weights of the collection have to be there."""
        return self.retriever == "splade"

    def beside(self, folder: Path) -> Self:
        """The options with paths that are relative to `folder`, the experiment file's, as paths from anywhere."""
        return self

    def check(self, collection: Collection, settings: Settings) -> None:
        """Raise what is wrong with the options for this collection."""


class BM25Options(Options):
    """The engine's own ranking."""

    retriever: Literal["bm25"] = "bm25"


class RM3Options(Options):
    """BM25 with topic words."""

    retriever: Literal["rm3"] = "rm3"


class DenseOptions(Options):
    """Vector search."""

    retriever: Literal["dense"] = "dense"


class SpladeOptions(Options):
    """Sparse search with the weights that a SPLADE model gives."""

    retriever: Literal["splade"] = "splade"


class CrossEncoderOptions(Options):
    """The best `depth` candidates by a model that reads query and document together.

    `scorer` is a cross-encoder or MonoT5, as `open_pair_scorer` reads it; `model` is the retriever's, as ever.
    """

    scorer: str = Field(min_length=1)
    depth: int = Field(100, ge=1)

    def check(self, collection: Collection, settings: Settings) -> None:
        """Raise BackendUnavailable where the scorer is not on this machine."""
        open_pair_scorer(self.scorer)


class AgentOptions(Options):
    """The loop; it brings its own topic words."""

    retriever: Literal["bm25", "dense", "splade"] = "bm25"


class MMROptions(Options):
    """Maximal marginal relevance; `by` is what makes two documents alike."""

    retriever: Literal["bm25", "rm3", "dense"] = "bm25"
    by: Literal["text", "groups", "embeddings"] = "text"
    relevance: float = Field(0.5, ge=0, le=1)

    @property
    def needs_embeddings(self) -> bool:
        """As `Options`, or where likeness is that of embeddings."""
        return self.by == "embeddings" or self.retriever == "dense"


class GroupOptions(Options):
    """Kinds that know one protected group: {dimension: label}, e.g. {gender: female}; empty: the one most lacking."""

    group: dict[str, str] = Field(default={}, max_length=1)

    def check(self, collection: Collection, settings: Settings) -> None:
        """Raise UsageError where there is no such group."""
        self.place(collection, settings)

    def place(self, collection: Collection, settings: Settings) -> Place | None:
        """The group's place in a pool, None where none is named; UsageError where there is no such group."""
        for dimension, label in self.group.items():
            dimensions = dimensions_of(collection, settings)
            if dimension not in dimensions:
                raise UsageError(f"group: {dimension!r} is none of the system's dimensions ({', '.join(dimensions)})")
            labels = collection.groups.labels(dimension)
            if label not in labels:
                raise UsageError(f"group: {label!r} is no group of {dimension!r}, which has: {', '.join(labels)}")
            return Place(dimensions.index(dimension), labels.index(label))
        return None


class FAStarIROptions(GroupOptions):
    """FA*IR with significance `alpha`, adjusted exactly or, with `compat: library`, as fairsearchcore does."""

    alpha: float = Field(0.1, ge=0.001, le=0.5)
    compat: Literal["library"] | None = None


class DELTROptions(GroupOptions):
    """DELTR, fitted to the topics of the other folds; `gamma` is the price of under-exposure."""

    gamma: float = Field(1.0, ge=0)
    iterations: int = Field(3000, ge=1)


class DLFOptions(Options):
    """DLF on the texts' embeddings, fitted to the topics of the other folds; `alpha` is the weight of fairness."""

    retriever: Literal["bm25", "rm3", "dense"] = "bm25"
    alpha: float = Field(0.5, ge=0, le=1)
    hidden: int = Field(0, ge=0)

    @property
    def needs_embeddings(self) -> bool:
        """Always."""
        return True


class PlackettLuceOptions(Options):
    """Random rankings; the larger `alpha`, the closer to the engine's."""

    alpha: float = Field(1.0, ge=0)


class RunFileOptions(Options):
    """The rankings of a file in TREC's format; `tag` takes those of one run where the file holds several."""

    retriever: Literal["bm25"] = "bm25"
    path: str = Field(min_length=1)
    tag: str = ""

    def beside(self, folder: Path) -> Self:
        """With the file's path from anywhere."""
        return self.model_copy(update={"path": str((folder / self.path).absolute())})

    def check(self, collection: Collection, settings: Settings) -> None:
        """Raise DataError with every fault of the file."""
        read_run(Path(self.path), collection.topics, self.tag)


class JudgedOptions(Options):
    """Documents from the judgments: drawn at random from the relevant or the others, or all, sorted by grade."""

    retriever: Literal["bm25"] = "bm25"
    reading: Literal["drawn", "sorted"] = "drawn"
