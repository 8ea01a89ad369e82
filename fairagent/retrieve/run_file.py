"""Rankings from a run file in TREC's format, in the place of a search engine."""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal, Self

import numpy as np
from pydantic import Field

from fairagent.collection.faults import Faults, listed, shown
from fairagent.collection.records import checked_id, lines
from fairagent.retrieve.base import Retriever
from fairagent.retrieve.bm25 import with_texts
from fairagent.settings.parts import Part
from fairagent.site import Site
from fairagent.types import FloatArray, Query, Ranking

COLUMNS = ("topic", "Q0", "document", "rank", "score", "tag")
_RANK = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class RunLine:
    """One line: where a document stands."""

    rank: int
    score: float
    document: str
    line: int


def read_run(path: Path, topics: Collection[str], tag: str = "") -> dict[str, Ranking]:
    """Topic -> ranking, of those of `topics` that the file has; `tag` takes the lines of one run out of several.

    Documents stand by their rank. Several of one topic may share a rank where they share the score as well; these stand
    in the order of the file. Lines of other topics are read and left out. Raises DataError with every fault: a line of
    another form, a document that a topic has twice, a shared rank with different scores, a score that rises with the
    rank, no line for any of `topics`.
    """
    faults = Faults()
    tags: dict[str, None] = {}
    placed: dict[str, list[RunLine]] = {}
    seen: dict[tuple[str, str], int] = {}
    for number, line in lines(path, faults):
        try:
            topic, one, of = _line(number, line)
            tags[of] = None
            if tag and of != tag:
                continue
            if (before := seen.setdefault((topic, one.document), number)) != number:
                of_tag = "" if tag else "; if the file holds several runs, choose one by its tag"
                raise ValueError(f"topic {topic} has document {shown(one.document)} in line {before} already{of_tag}")
        except ValueError as error:
            faults.add(path, number, str(error))
            continue
        if topic in topics:
            placed.setdefault(topic, []).append(one)
    for topic, of_topic in placed.items():
        of_topic.sort(key=lambda one: one.rank)
        for above, below in pairwise(of_topic):
            if below.score > above.score or (below.rank == above.rank and below.score != above.score):
                where = f"rank {below.rank} of topic {topic} has the score {below.score:g}"
                faults.add(path, below.line, f"{where}, and rank {above.rank} (line {above.line}) {above.score:g}")
    if not placed and not faults:
        there = f"; the tags are: {listed(tags)}" if tag else ""
        faults.add(path, None, f"ranks documents for none of the {len(topics)} topics{there}")
    faults.check("run file")
    return {topic: _ranking(of_topic) for topic, of_topic in placed.items()}


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


def _line(number: int, line: str) -> tuple[str, RunLine, str]:
    cells = line.split()
    if len(cells) != len(COLUMNS):
        hint = "; are these qrels?" if len(cells) == 4 else ""
        expected = f"expected 6 columns ({' '.join(COLUMNS)})"
        raise ValueError(f"{expected}, found {len(cells)}: {shown(line)}{hint}")
    topic, _, document, rank, score, tag = cells
    if not _RANK.fullmatch(rank):
        raise ValueError(f"the rank {shown(rank)} is no whole number")
    try:
        value = float(score)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"the score {shown(score)} is no finite number")
    return checked_id(topic, "topic"), RunLine(int(rank), value, checked_id(document, "document"), number), tag


def _ranking(placed: Sequence[RunLine]) -> Ranking:
    return Ranking(tuple(one.document for one in placed), np.array([one.score for one in placed]))


class RunFileConfig(Part):
    """The rankings of a file in TREC's format."""

    kind: Literal["run-file"] = "run-file"
    path: str = Field(min_length=1)
    """The run file; a relative path starts at the folder of the settings or experiment file."""
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
        return with_texts(site, RunFile(read_run(Path(self.path), site.collection.topics, self.tag)))
