"""The sections `fair_rag:` and `lamp:` of an experiment file, and how a row's rankings are drawn."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from fairagent.evaluate.engine.fields import FileSection, Name
from fairagent.measures.attribution import Normalization
from fairagent.settings import Section

HIGHEST = "highest utility"
"""The best utility of a row's draws: what EU is normalized by, and no measure."""
NORMALIZED = "normalized EU"


class Drawing(Section):
    """The section `fair_rag:`, as both kinds have it."""

    k: int = Field(5, ge=1)
    """How many items a generator is given: the machine user reads them all and nothing else."""
    samples: int = Field(100, ge=1)
    """Rankings that are drawn for a query."""
    runs: int = Field(1, ge=1)
    """How often they are drawn anew, each time with other random numbers: every run has rows of its own."""
    medians: dict[Name, tuple[str, ...]] = Field(default={}, examples=[{"BM25": ["BM25+small", "BM25+large"]}])
    """Name -> systems whose curves it is the median of, over all of their runs: slope, AUC, normalized EU and its
    difference in each interval of disparity. `expected` may name it."""
    queries: int = Field(0, ge=0)
    """How many queries the page shows one by one, utility against disparity; topics.csv has all of them."""
    alphas: tuple[float, ...] = Field((1.0, 2.0, 4.0, 8.0), min_length=1)
    """How close to the engine's order they are: 0 is uniform, 8 almost that order."""
    deterministic: bool = True
    """Whether each system stands beside its draws with its own order as well."""
    oracle: float | None = Field(8.0, ge=0)
    """alpha of the rankings that are drawn by usefulness itself, beside the first system; null: none."""
    normalization: Normalization = "conditional"
    """What attributed disparity is measured against (`fairagent.measures.attribution`)."""
    highest: Literal["all", "same-retriever"] = "all"
    """Whose best utility EU is divided by: all rows' with the same generator (the paper), or those of the same system
    and the oracle (the authors' code)."""
    compat: Literal["authors"] | None = None
    """authors: scores and exposures are normalized as in their code."""


class CollectionDrawing(Drawing):
    """The section `fair_rag:` of an experiment on a collection."""

    pool: int = Field(100, ge=1)
    """How many documents of the collection a ranking is drawn from."""


class LampFiles(FileSection):
    """The section `lamp:`: questions in LaMP's format, each of which has items of its own."""

    paths: ClassVar[tuple[str, ...]] = ("questions", "outputs", "labels")

    task: Literal["LaMP-1", "LaMP-2", "LaMP-3", "LaMP-4", "LaMP-5", "LaMP-6", "LaMP-7"]
    """Which of LaMP's tasks."""
    questions: str = Field(min_length=1)
    """The file of the questions with their items, relative to this file."""
    outputs: str = Field(min_length=1)
    """The file of the right outputs."""
    labels: str = "labels"
    """The folder of the items' utility labels, which `fairagent labels FILE` makes: a file a generator."""


class Draws(Section):
    """How the rankings of one row are drawn: from `system`, by `alpha` (None: its own order, once).

    Where `oracle`, by usefulness. Runs are counted from 0; a system's own order is that of all of them.
    """

    system: str
    alpha: float | None
    oracle: bool = False
    run: int = 0
