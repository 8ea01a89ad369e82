"""What kinds of experiments there are to be checked: this one ranks documents and judges the rankings.

The others (`answers.design`, `fair_rag.design`, `utility.design`) say what is different with them.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fairagent.collection import Collection, load_collection
from fairagent.errors import DataError, SettingsError, UsageError
from fairagent.evaluate.answers.questions import Question
from fairagent.evaluate.experiment_file import ExperimentFile
from fairagent.evaluate.plan import SystemPlan, cutoff
from fairagent.evaluate.problems import Problems
from fairagent.evaluate.split import half
from fairagent.evaluate.topics import JudgedTopics, judged_topics
from fairagent.llm.models import Models
from fairagent.measures import Measure, Product, parse_measure

WITHOUT_RELEVANT = "no relevant document"

Systems = Mapping[str, SystemPlan]


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is tried and judged: the `topics` that count, why the others of the file do not, and the dimensions.

    `judged` says which topics count for each of the dimensions in which rankings are judged; `questions` are there,
    by their ids, where questions take the topics' place.
    """

    topics: tuple[str, ...] = ()
    excluded: Mapping[str, str] = field(default_factory=dict)
    dimensions: tuple[str, ...] = ()
    judged: Mapping[str, JudgedTopics] = field(default_factory=dict)
    questions: Mapping[str, Question] = field(default_factory=dict)


class Design:
    """How an experiment of one kind is checked; the methods are called in their order, each with what came before.

    Each adds what it finds wrong to the `problems` and goes on as well as it can.
    """

    def __init__(self, described: ExperimentFile, folder: Path, problems: Problems) -> None:
        """Take the file, whose paths are relative to `folder`."""
        self.described = described
        self.folder = folder
        self.problems = problems
        self.n = self._length()
        self._name = ""

    @property
    def path(self) -> Path | None:
        """The collection's settings file."""
        named = self.described.collection
        return (self.folder / named).absolute() if named else None

    def collection(self) -> Collection | None:
        """What is searched."""
        if self.path is None:
            self.problems.add(SettingsError, "collection: is missing: name the collection's settings file")
            return None
        collection = self.problems.attempt("", load_collection, self.path)
        self._name = collection.name if collection else ""
        return collection

    def dimensions(self, collection: Collection) -> tuple[str, ...]:
        """The dimensions that systems are fair in, but for those that the collection does not have."""
        there = collection.groups.dimensions
        if not there:
            message = f"collection {collection.name!r} has no groups, so there is nothing to be fair to"
            self.problems.add(UsageError, message)
        for dimension in self.described.dimensions:
            self.problems.attempt("dimensions", collection.groups.labels, dimension)
        return tuple(name for name in self.described.dimensions if name in there) or there

    def prepared(self, systems: Systems) -> Systems:
        """The systems that the file names, with what this kind of experiment wants of them."""
        return systems

    def choose(self, collection: Collection | None, dimensions: tuple[str, ...], systems: Systems) -> Chosen:
        """What is tried and judged."""
        if collection is None:
            return Chosen(dimensions=dimensions)
        per_group = self.described.per_group
        judged = {name: judged_topics(collection, name, per_group) for name in dimensions}
        chosen = self.ids(list(collection.topics))
        without_relevant = set(judged_topics(collection, None).without_relevant)
        of_any = {id for topics in judged.values() for id in topics.counted}
        excluded: dict[str, str] = {}
        for id in chosen:
            if id in without_relevant:
                excluded[id] = WITHOUT_RELEVANT
            elif per_group and id not in of_any:
                excluded[id] = f"in no dimension {per_group} relevant documents of every group"
        counted = tuple(id for id in chosen if id not in excluded)
        if not counted:
            self.problems.add(DataError, f"none of {len(chosen)} topics has relevant documents to judge by")
        for dimension, topics in judged.items():
            if counted and not set(counted) & set(topics.counted):
                message = f"{dimension!r} cannot be judged: no topic has a relevant document with a label"
                self.problems.add(DataError, message)
        return Chosen(counted, excluded, dimensions, judged)

    def opened(self, chosen: Chosen, systems: Systems, models: Models, environ: Mapping[str, str]) -> Chosen:
        """`chosen`, once the systems are known to be right and models can be opened."""
        return chosen

    def rows(self, systems: Systems) -> Systems:
        """What stands in the tables: the systems, or several rows for each."""
        return systems

    def measures(self, dimensions: Sequence[str]) -> tuple[str, ...]:
        """What the rows are measured by."""
        return tuple(map(str, self._tried))

    @property
    def of_all(self) -> tuple[str, ...]:
        """Measures that all topics have together, and no single one."""
        return ()

    @property
    def other_models(self) -> tuple[str, ...]:
        """The names of models that are asked besides those of the systems."""
        return ()

    def parts(self) -> dict[str, Any]:
        """What the plan holds for this kind of experiment alone."""
        return {}

    def ids(self, there: Sequence[str], what: str = "the collection has no topic") -> list[str]:
        """Those of the topics that are there which the file chooses, in their order."""
        topics = self.described.topics
        if topics in ("tune", "test"):
            return [id for id in there if half(self._name, id) == topics]
        if isinstance(topics, int):
            return list(there[:topics])
        if not isinstance(topics, tuple):
            return list(there)
        for id in topics:
            if id not in there:
                near = difflib.get_close_matches(id, there, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"there are {len(there)}"
                self.problems.add(SettingsError, f"topics: {what} {id!r}; {hint}")
        return [id for id in there if id in topics]

    def _length(self) -> int:
        """How long rankings are."""
        tried = [self.problems.attempt("measures", _measure, text) for text in self.described.measures]
        self._tried = [measure for measure in tried if measure is not None]
        return max(map(cutoff, self._tried), default=1)


def without(chosen: Chosen, topics: Sequence[str], excluded: Mapping[str, str]) -> Chosen:
    """`chosen` with these topics, the others being left out for the reasons in `excluded`."""
    return replace(chosen, topics=tuple(topics), excluded={**chosen.excluded, **excluded})


def _measure(text: str) -> Measure:
    measure = parse_measure(text)
    if isinstance(measure, Product) and cutoff(measure.left) != cutoff(measure.right):
        raise UsageError(f"{text!r}: the factors of a product have the same cut-off here")
    return measure
