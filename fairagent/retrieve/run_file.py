"""Engines without a search: rankings from a run file, documents from the judgments (an oracle, and its adversary).

Any system's run is judged and re-ranked like any other. The null retriever: answers then come from what the generator
knows.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field

from fairagent.collection.known import compare_ids, warn_once
from fairagent.collection.records import Faults, checked_id, listed, same_ids, shown
from fairagent.collection.run_lines import RunLine, by_score, order_note, run_lines
from fairagent.errors import DataError
from fairagent.retrieve.base import Retriever
from fairagent.retrieve.bm25.part import with_texts
from fairagent.retrieve.manifest import indexed_documents
from fairagent.retrieve.site import Site
from fairagent.retrieve.stochastic import topic_rng
from fairagent.settings.parts import Part
from fairagent.types import Document, FloatArray, Query, Ranking


def read_run(path: Path, topics: Collection[str], tag: str = "") -> dict[str, Ranking]:
    """Topic -> ranking, of those of `topics` that the file has; `tag` takes the lines of one run out of several.

    The forms are those of `fairagent.collection.run_lines`. Documents stand by falling score, as trec_eval orders them
    (a warning where ranks contradict that), those of equal scores by rank and then as in the file; without scores by
    rank, or else as in the file, and 1 / rank stands in the place of scores. Topics whose ids differ by zeros before
    them, or `.0` at their end, are joined (with a note); others are left out. Raises DataError with every fault: a line
    of another form, a document that a topic has twice, no line for any of `topics`.
    """
    faults, tags = Faults(), dict[str, None]()
    lines: dict[str, list[RunLine]] = {}
    seen: dict[tuple[str, str], int] = {}
    for one in run_lines(path, faults, topics):
        tags[one.tag] = None
        if tag and one.tag != tag:
            continue
        try:
            key = checked_id(one.topic, "topic"), checked_id(one.document, "document")
            if (before := seen.setdefault(key, one.line)) != one.line:
                of_tag = "; if the file holds several runs, choose one by its tag" if one.tag and not tag else ""
                raise ValueError(f"topic {key[0]} has document {shown(key[1])} in line {before} already{of_tag}")
            lines.setdefault(one.topic, []).append(one)
        except ValueError as error:
            faults.add(path, one.line, str(error))
    named, note = same_ids(topics, lines)
    if not named and not faults:
        there = f"; the tags are: {listed(tags) if any(tags) else 'none'}" if tag else ""
        faults.add(path, None, f"ranks documents for none of the {len(topics)} topics{there}")
    faults.check("run file")
    rankings, contradicting = {}, list[str]()
    for topic, other in named.items():
        ordered, wrong = by_score(lines[other])
        contradicting += [topic] * wrong
        scores = [1 / rank if one.score is None else one.score for rank, one in enumerate(ordered, start=1)]
        rankings[topic] = Ranking(tuple(one.document for one in ordered), np.array(scores))
    for message in (note and f"{path}: {note}", contradicting and order_note(path, contradicting)):
        if message:
            warn_once(message)
    return rankings


def check_scored(path: Path, needing: str) -> None:
    """Raise DataError where a run file has no scores; `needing` says what needs them."""
    faults = Faults()
    if bare := next((one for one in run_lines(path, faults) if one.score is None), None):
        faults.add(path, bare.line, f"there are no scores, and `{needing}` needs them")
    faults.check("run file")


@dataclass(frozen=True, eq=False)
class RunFile:
    """A `Retriever` that knows the rankings of a run file by their topics, and no texts."""

    rankings: Mapping[str, Ranking]

    def search(self, query: Query, n: int) -> Ranking:
        return self._of(query).top(n)

    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        """The scores of the file, and for documents it does not have the lowest of the topic."""
        ranking = self._of(query)
        scores = dict(zip(ranking.ids, ranking.scores.tolist(), strict=True))
        lowest = min(scores.values(), default=0.0)
        return np.array([scores.get(id, lowest) for id in ids])

    def _of(self, query: Query) -> Ranking:
        return self.rankings.get(query.id, Ranking((), np.zeros(0)))


class RunFileConfig(Part):
    """The rankings of a run file: TREC's, PyTerrier's, ranx's or one of other tools (docs/your_data.md)."""

    kind: Literal["run-file"] = "run-file"
    path: str = Field(min_length=1)
    """The run file, packed or not; a relative path starts at the folder of the settings or experiment file."""
    tag: str = ""
    """The tag (last column) of the run that is read where the file holds several; empty: all lines."""

    @property
    def files(self) -> Mapping[str, Path]:
        return {"path": Path(self.path)}

    def relative_to(self, folder: Path) -> Self:
        return self.model_copy(update={"path": str((folder / self.path).absolute())})

    def named_documents(self, topics: Collection[str]) -> dict[str, Collection[str]]:
        rankings = read_run(Path(self.path), topics, self.tag)
        return {f"documents of run {self.path}": dict.fromkeys(id for one in rankings.values() for id in one.ids)}

    def check(self, site: Site) -> None:
        self.build(site)

    def expect_scores(self, needing: str) -> None:
        check_scored(Path(self.path), needing)

    def build(self, site: Site) -> Retriever:
        """The engine, which knows the collection's topics alone, with the texts of the index where there is one."""
        settings = site.settings
        # The parts that use the scores of the ranking; without them it is served as it is.
        looking = {
            f"rerank: {settings.rerank}": not settings.rerank.idle(settings),
            f"loop: {settings.loop}": settings.loops,
            "sampling.alpha": settings.sampling.alpha is not None,
        }
        if needing := next((name for name, looks in looking.items() if looks), ""):
            self.expect_scores(needing)
        engine = RunFile(read_run(Path(self.path), site.collection.topics, self.tag))
        # Experiments compare the ids of all their systems themselves.
        if not site.stateless and (known := indexed_documents(site.collection, site.index)):
            for what, ids in self.named_documents(site.collection.topics).items():
                if note := compare_ids(what, ids, known):
                    warn_once(note)
        return with_texts(site, engine)


Reading = Literal["drawn", "sorted"]


@dataclass(frozen=True, eq=False)
class QrelsRetriever:
    """A `Retriever` that knows the judgments, topic -> document -> grade; its rankings for other queries are empty.

    The relevant documents (`worst`: the others) in a random order, which depends on `seed` and the topic alone; or with
    the reading "sorted" all of them, the best (`worst`: the last) grade first.
    """

    grades: Mapping[str, Mapping[str, int]]
    reading: Reading
    worst: bool
    seed: int

    def search(self, query: Query, n: int) -> Ranking:
        """The first `n` documents; scores fall by 1 from rank to rank."""
        grades = self.grades.get(query.id, {})
        chosen = [id for id, grade in grades.items() if (grade <= 0) == self.worst]
        ids = drawn(chosen, topic_rng(self.seed, query.id))
        if self.reading == "sorted":
            ids = by_grade(grades, worst_first=self.worst)
        return Ranking(tuple(ids[:n]), np.arange(len(ids), 0, -1, dtype=np.float64)[:n])

    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        """The documents' grades, 0 where there is none; negative for the adversary."""
        grades = self.grades.get(query.id, {})
        return np.array([float(grades.get(id, 0)) * (-1 if self.worst else 1) for id in ids])


def drawn(ids: Sequence[str], rng: np.random.Generator) -> list[str]:
    """The ids in a random order: its first k are k of them at random, and all of them where there are fewer.

    >>> sorted(drawn(["a", "b", "c"], np.random.default_rng(0)))
    ['a', 'b', 'c']
    """
    return [ids[place] for place in rng.permutation(len(ids))]


def by_grade(grades: Mapping[str, int], worst_first: bool = False) -> list[str]:
    """All judged documents, the highest grade first or last; those of one grade in the order of the judgments.

    >>> by_grade({"a": 0, "b": 3, "c": 2}), by_grade({"a": 0, "b": 3, "c": 2}, worst_first=True)
    (['b', 'c', 'a'], ['a', 'c', 'b'])
    """
    return sorted(grades, key=lambda id: grades[id] if worst_first else -grades[id])


class OracleConfig(Part):
    """The relevant documents in a random order, or all judged ones, the best first."""

    searches: ClassVar[bool] = False
    worst: ClassVar[bool] = False
    kind: Literal["oracle"] = "oracle"
    reading: Reading = "drawn"
    """drawn: the relevant documents in a random order. sorted: all judged ones, the highest grade first."""

    def build(self, site: Site) -> Retriever:
        return with_texts(site, QrelsRetriever(site.collection.qrels, self.reading, self.worst, site.seed))


class AdversarialConfig(OracleConfig):
    """The judged documents that are not relevant in a random order, or with `reading: sorted` all, the worst first."""

    worst: ClassVar[bool] = True
    kind: Literal["adversarial"] = "adversarial"  # type: ignore[assignment]


class EmptyRetriever(RunFile):
    """The null retriever, of experiments without a search: every ranking is empty."""

    def document(self, id: str) -> Document:
        raise DataError(f"without a search no documents are stored, so there is no {id!r}")


class EmptyConfig(Part):
    """No retrieval."""

    searches: ClassVar[bool] = False
    kind: Literal["none"] = "none"

    def idle(self, settings: object) -> bool:
        return True

    def build(self, site: Site) -> EmptyRetriever:
        return EmptyRetriever({})
