"""Rankings from a run file in the place of a search engine: any system's, judged and re-ranked like any other."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

import numpy as np
from pydantic import Field

from fairagent.collection.faults import Faults, listed, shown
from fairagent.collection.records import checked_id
from fairagent.collection.run_lines import PLAIN, TREC, RunLine, by_score, run_line, run_lines
from fairagent.retrieve.base import Retriever
from fairagent.retrieve.bm25.part import with_texts
from fairagent.settings.parts import Part
from fairagent.site import Site
from fairagent.types import FloatArray, Query, Ranking


def read_run(path: Path, topics: Collection[str], tag: str = "") -> dict[str, Ranking]:
    """Topic -> ranking, of those of `topics` that the file has; `tag` takes the lines of one run out of several.

    The forms are those of `fairagent.collection.run_lines`: TREC's six columns, ordered by falling score, those of
    equal scores by rank and then as in the file; or topic and document, ordered as in the file, where 1 / rank stands
    in the place of scores. Lines of other topics are read and left out. Raises DataError with every fault: a line of
    another form, a document that a topic has twice, ranks that contradict the scores, no line for any of `topics`.
    """
    faults = Faults()
    tags: dict[str, None] = {}
    found: dict[str, list[RunLine]] = {}
    seen: dict[tuple[str, str], int] = {}
    scored: bool | None = None
    for number, cells in run_lines(path, (TREC, PLAIN), faults, topics):
        if scored is None:
            scored = len(cells) == len(TREC)
            if tag and not scored:
                faults.add(path, number, f"there are no tags to find {tag!r} by: {' '.join(TREC)}")
                break
        try:
            one = run_line(number, cells)
            tags[one.tag] = None
            if tag and one.tag != tag:
                continue
            key = checked_id(one.topic, "topic"), checked_id(one.document, "document")
            if (before := seen.setdefault(key, number)) != number:
                of_tag = "" if tag or not scored else "; if the file holds several runs, choose one by its tag"
                raise ValueError(f"topic {key[0]} has document {shown(key[1])} in line {before} already{of_tag}")
        except ValueError as error:
            faults.add(path, number, str(error))
            continue
        if one.topic in topics:
            found.setdefault(one.topic, []).append(one)
    ordered = {topic: by_score(path, of_topic, faults) for topic, of_topic in found.items()}
    if not found and not faults:
        there = f"; the tags are: {listed(tags)}" if tag else ""
        faults.add(path, None, f"ranks documents for none of the {len(topics)} topics{there}")
    faults.check("run file")
    return {topic: _ranking(of_topic, bool(scored)) for topic, of_topic in ordered.items()}


def check_scored(path: Path, needing: str) -> None:
    """Raise DataError where a run file has no scores; `needing` says what needs them."""
    faults = Faults()
    number, cells = next(run_lines(path, (TREC, PLAIN), faults), (0, TREC))
    if len(cells) == len(PLAIN):
        faults.add(path, number, f"there are no scores, and `{needing}` needs them: {' '.join(TREC)}")
    faults.check("run file")


@dataclass(frozen=True, slots=True, eq=False)
class RunFile:
    """A `Retriever` that knows the rankings of a run file by their topics, and no texts."""

    rankings: Mapping[str, Ranking]

    def search(self, query: Query, n: int) -> Ranking:
        """The first `n` documents of the topic; none where the file does not have it."""
        return self._of(query).top(n)

    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        """The scores of the file, and for documents it does not have the lowest of the topic."""
        ranking = self._of(query)
        scores = dict(zip(ranking.ids, ranking.scores.tolist(), strict=True))
        lowest = min(scores.values(), default=0.0)
        return np.array([scores.get(id, lowest) for id in ids])

    def _of(self, query: Query) -> Ranking:
        return self.rankings.get(query.id, Ranking((), np.zeros(0)))


def _ranking(lines: Sequence[RunLine], scored: bool) -> Ranking:
    scores = np.array([one.score for one in lines]) if scored else 1.0 / np.arange(1.0, len(lines) + 1.0)
    return Ranking(tuple(one.document for one in lines), scores)


class RunFileConfig(Part):
    """The rankings of a run file: TREC's six columns, or topic and document alone, best first."""

    kind: Literal["run-file"] = "run-file"
    path: str = Field(min_length=1)
    """The run file, gzipped or not; a relative path starts at the folder of the settings or experiment file."""
    tag: str = ""
    """The tag (last column) of the run that is read where the file holds several; empty: all lines."""

    @property
    def files(self) -> Mapping[str, Path]:
        """The run."""
        return {"path": Path(self.path)}

    def beside(self, folder: Path) -> Self:
        """With the file's path from anywhere."""
        return self.model_copy(update={"path": str((folder / self.path).absolute())})

    def check(self, site: Site) -> None:
        """Raise DataError with every fault of the file."""
        self.build(site)

    def build(self, site: Site) -> Retriever:
        """The engine, which knows the collection's topics alone, with the texts of the index where there is one."""
        path = Path(self.path)
        if needing := _needing(site):
            check_scored(path, needing)
        return with_texts(site, RunFile(read_run(path, site.collection.topics, self.tag)))


def _needing(site: Site) -> str:
    """What looks at the scores of the engine's ranking; "" where it is served as it is."""
    settings = site.settings
    if settings.rerank.kind != "none":
        return f"rerank: {settings.rerank}"
    if settings.loops:
        return f"loop: {settings.loop}"
    return "" if settings.sampling.alpha is None else "sampling.alpha"
