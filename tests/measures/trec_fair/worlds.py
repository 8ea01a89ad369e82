"""Small made-up tracks, and the measures on them in the plainest way: whole arrays and loops over pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from fairagent.measures.trec_fair import QUALITIES, Dimension, Pages, TrackRun
from fairagent.types import UNKNOWN, FloatArray

G = Dimension("g", (UNKNOWN, "f", "m"), (0.5, 0.5))
H = Dimension("h", (UNKNOWN, "A", "B", "C"), (0.7, 0.2, 0.1))
J = Dimension("o", (UNKNOWN, "chemist", "jurist"))
X = Dimension("x", ("a", "b"))

Alignments = dict[int, dict[str, dict[str, float]]]


@dataclass(frozen=True)
class World:
    dimensions: tuple[Dimension, ...]
    alignments: Alignments
    quality: dict[int, str | None]
    qrels: dict[str, list[int]]
    rankings: dict[str, list[list[int]]]

    def pages(self) -> Pages:
        return Pages.from_alignments(
            self.dimensions, [(page, align, self.quality[page]) for page, align in self.alignments.items()]
        )

    def run(self) -> TrackRun:
        return TrackRun.of("made up", self.rankings)

    def joint(self, page: int, names: Sequence[str]) -> FloatArray:
        """The outer product of the page's alignments, one axis a dimension; zeros without metadata."""
        dimensions = [dimension for dimension in self.dimensions if dimension.name in names]
        align = self.alignments.get(page)
        if align is None:
            return np.zeros([len(dimension.labels) for dimension in dimensions])
        rows = [np.array([align[dim.name].get(label, 0.0) for label in dim.labels]) for dim in dimensions]
        joint: FloatArray = reduce(np.multiply.outer, rows)
        return joint


def made_up(seed: int, dimensions: tuple[Dimension, ...]) -> World:
    """Pages with one label, two that share, two that weigh one each, or (without an unknown) none at all."""
    rng = np.random.default_rng(seed)
    ids = rng.choice(40, 12, replace=False).tolist()
    alignments: Alignments = {}
    for page in ids[:9]:  # the last three have no metadata
        alignments[page] = {}
        for dimension in dimensions:
            labels = rng.choice(dimension.labels, 2, replace=False).tolist()
            kind = rng.choice(["one", "share", "both", "none"], p=[0.55, 0.2, 0.15, 0.1])
            if kind == "none":
                alignments[page][dimension.name] = {UNKNOWN: 1.0} if UNKNOWN in dimension.labels else {}
            else:
                weight = 0.5 if kind == "share" else 1.0
                alignments[page][dimension.name] = dict.fromkeys(labels[: 1 if kind == "one" else 2], weight)
    quality: dict[int, str | None] = {page: rng.choice([*QUALITIES, None]) for page in ids[:9]}
    qrels = {str(topic): rng.choice(ids, rng.integers(1, 9), replace=False).tolist() for topic in (7, 3, 11)}

    def ranking() -> list[int]:
        chosen: list[int] = rng.choice([*ids, 99], rng.integers(1, 8), replace=False).tolist()
        return chosen

    rankings = {topic: [ranking() for _ in range(rng.integers(1, 4))] for topic in ("3", "7")}
    return World(dimensions, alignments, quality, qrels, rankings)
