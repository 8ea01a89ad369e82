"""The section `fair_rag:` of an experiment file, and what the experiment reports."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from fairagent.measures.attribution import Normalization
from fairagent.settings import Section

MEASURES = ("nDCG", "EE-R", "EE-D", "EE-L", "EU", "normalized EU", "EAR", "EAE-D")
"""What every row is measured by, as means over its draws; those between bounds are the normalized ones."""
OF_GROUPS = ("gap re-ranked", "gap retrieved", "gap cited")
"""What it is measured by in every dimension, its end result first."""
HIGHEST = "highest utility"
"""The best utility of a row's draws: what EU is normalized by, and no measure."""
USEFUL_CITED = "useful-cited"
"""The utility where nobody has written down a right answer."""


class LampFiles(Section):
    """Questions in LaMP's format: each has items of its own, and the collection is left out."""

    task: Literal["LaMP-1", "LaMP-2", "LaMP-3", "LaMP-4", "LaMP-5", "LaMP-6", "LaMP-7"]
    """Which of LaMP's tasks the questions are from."""
    questions: str = Field(min_length=1)
    """The file of the questions with their items, relative to this file."""
    outputs: str = Field(min_length=1)
    """The file of the right outputs."""
    labels: str = "labels"
    """The folder of the items' utility labels, which `fairagent labels FILE` makes: a file a generator."""


class FairRag(Section):
    """The whole section."""

    k: int = Field(5, ge=1)
    """How many items a generator is given: the machine user reads them all and nothing else."""
    samples: int = Field(100, ge=1)
    """Rankings that are drawn for a query."""
    alphas: tuple[float, ...] = Field((1.0, 2.0, 4.0, 8.0), min_length=1)
    """How close to the engine's order they are: 0 is uniform, 8 almost that order."""
    deterministic: bool = True
    """Whether each system stands beside its draws with its own order as well."""
    oracle: float | None = Field(8.0, ge=0)
    """alpha of the rankings that are drawn by usefulness itself, beside the first system; null: none."""
    pool: int = Field(100, ge=1)
    """How many documents of a collection a ranking is drawn from; of LaMP's items, all."""
    normalization: Normalization = "conditional"
    """What attributed disparity is measured against (`fairagent.measures.attribution`)."""
    highest: Literal["all", "same-retriever"] = "all"
    """Whose best utility EU is divided by: all rows' with the same generator (the paper), or those of the same system
    and the oracle (the authors' code)."""
    compat: Literal["authors"] | None = None
    """authors: scores and exposures are normalized as in their code."""
    lamp: LampFiles | None = None
    """Questions with items of their own, in the place of the collection."""


class Draws(Section):
    """How the rankings of one row are drawn.

    `system` is what they are drawn from, by `alpha` (None: its own order, once), or where `oracle` by usefulness.
    `prompts` are the ids of the templates that its answers and what becomes of them are asked with.
    """

    system: str
    alpha: float | None
    oracle: bool = False
    prompts: tuple[str, ...] = ()
