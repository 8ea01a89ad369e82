"""The experiment file: which systems answer which topics of which collection, and how they are judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from fairagent.evaluate.answers.questions import Task
from fairagent.evaluate.fair_rag.section import FairRag
from fairagent.evaluate.stereotypes.section import LocalModel
from fairagent.evaluate.utility.section import Utility
from fairagent.settings import BudgetSettings, ModelSettings, Price, Section


def _topics(value: Any) -> Any:
    """`value` with ids as texts; one message for a wrong form."""
    if value in ("all", "tune", "test") or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
        return value
    if isinstance(value, list | tuple) and value and all(isinstance(id, str | int) for id in value):
        return tuple(str(id) for id in value)
    raise ValueError(
        "expected `all`, `tune` or `test`, the number of topics to take from the beginning, or a list of ids"
    )


def _overrides(value: Any) -> Any:
    return {} if value is None else value


def _text(value: Any) -> Any:
    """A number that YAML has read where a name is meant."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


Name = Annotated[str, BeforeValidator(_text), Field(max_length=60, pattern=r"^[^\s](?:[^\n\r\t]*[^\s])?$")]
Overrides = Annotated[dict[str, Any], BeforeValidator(_overrides)]


STANDARD = ("nDCG@20", "AWRF(unknown=ignore)@20", "nDCG@20*AWRF(unknown=ignore)@20")


class Questions(Section):
    """Questions that every system answers, in the place of topics that it ranks documents for."""

    task: Task
    """What the answers are judged by: agreement with stereotypes, or accuracy; or the benchmark whose sentences a model
    chooses among: stereoset or crows-pairs."""
    path: str = Field(min_length=1)
    """The file of the questions, relative to this file."""
    judge: ModelSettings | None = None
    """The model that judges answers which no rule can read; none: each system's own."""
    local: LocalModel | None = None
    """stereoset, crows-pairs: the model on this machine whose likelihoods choose, after what each system retrieves;
    none: each system's own model is asked to choose."""


class ExperimentFile(Section):
    """The whole file."""

    name: Name = Field(examples=["my experiment"])
    """What the run and its folder are called."""
    about: str = ""
    """What it should show; printed over the tables."""
    collection: str = Field("", examples=["collection.yaml"])
    """The collection's settings file, relative to this file; LaMP's questions (`fair_rag`) have none."""
    fair_rag: FairRag | None = None
    """What rankings are drawn and how they are measured, in the place of `measures`."""
    utility: Utility | None = None
    """From how many documents answers are written and what they are compared with, in the place of `measures`."""
    questions: Questions | None = None
    """What is asked, where answers are judged and not rankings; `topics` chooses among them."""
    topics: Annotated[str | int | tuple[str, ...], BeforeValidator(_topics)] = "all"
    """`all`, the first so many, a list of ids, or a half of them, `tune` or `test`, by a hash of their ids."""
    dimensions: tuple[str, ...] = ()
    """What is judged, and unless a system says otherwise, what it is to be fair in; empty: all of the collection."""
    per_group: int = Field(0, ge=0)
    """A topic counts for a dimension with so many relevant documents of every group; 0: with one that has a label.
    If it is above 0, a topic that counts for no dimension is left out altogether."""
    measures: tuple[str, ...] = Field(STANDARD, min_length=1)
    """Each in the form that `fairagent.measures.parse_measure` reads."""
    baseline: str = ""
    """The system that the others are tested against; empty: the first."""
    seed: int = Field(0, ge=0)
    """Everything random derives from it: by topic in the systems, by measure in the statistics."""
    settings: Overrides = Field(default={})
    """Settings that all systems share."""
    systems: dict[Name, Overrides] = Field(min_length=1, examples=[{"BM25": {"profile": "engine"}, "agent": {}}])
    """Name -> settings that beat the shared ones; with a `profile`, laid over that."""
    prices: dict[str, Price] = Field(default={})
    """Name of a language model -> its price."""
    budget: BudgetSettings = BudgetSettings()
    """What all calls of all systems together may take each time that the experiment is run."""
    cache: str = ""
    """The folder in which models' replies are kept; empty: that of the settings."""
    expected: dict[Name, dict[str, float | dict[str, float]]] = Field(default={})
    """Numbers to compare with: system -> measure -> value, or system -> dimension -> measure -> value."""


Expected = Mapping[str, Mapping[str, Mapping[str, float]]]
"""System -> dimension ("" for measures of relevance alone) -> measure -> value."""
