"""Our sparse arrays against the track's definitions in dense ones: thousands of random rows, to 1e-12.

The track's measures once more, as its overview and its code define them: whole arrays, loops, and nothing of ours.

Nothing here is fast or saves memory, and no line is shared with `fairagent.measures.trec_fair`: what both agree on was
derived twice. Pages are page id -> one weight vector a dimension, dimensions that have a background (their first label
is the unknown) before the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from random import Random

import numpy as np
import pytest

from fairagent.measures.trec_fair import (
    DIMENSIONS_2022,
    QUALITIES,
    Dimension,
    Pages,
    Task,
    Task1Row,
    Task2Row,
    TrackEvaluator,
    TrackRun,
    Year,
)
from fairagent.types import UNKNOWN, FloatArray

LONGEST = {2021: 1000, 2022: 500}
SEQUENCE_LENGTH = {2021: 50, 2022: 20}
CLASSES = 6


def discounts(n: int) -> FloatArray:
    """1, 1, 1 / log2(3), 1 / log2(4) ..."""
    return np.array([1.0 / math.log2(max(rank, 2)) for rank in range(1, n + 1)])


def divergence(p: FloatArray, q: FloatArray) -> float:
    """Jensen-Shannon, nats, of two arrays divided by their sums."""
    p, q = p.ravel() / p.sum(), q.ravel() / q.sum()
    m = (p + q) / 2.0
    halves = [math.fsum(a * math.log(a / b) for a, b in zip(side, m, strict=True) if a > 0) for side in (p, q)]
    return sum(halves) / 2.0


@dataclass(frozen=True)
class NaiveTrack:
    """`sizes` (d,) are the numbers of labels, `backgrounds` the world's shares of the known ones, None for none."""

    year: int
    task: int
    sizes: tuple[int, ...]
    backgrounds: tuple[FloatArray | None, ...]
    pages: dict[int, list[FloatArray]]
    quality: dict[int, int | None]
    qrels: dict[str, list[int]]

    def task1(self, topic: str, ranking: Sequence[int], axes: Sequence[int], n: int | None) -> tuple[float, float]:
        """NDCG and AWRF of one ranking; `axes` are the dimensions that are measured."""
        length = n or LONGEST[self.year]
        ranking, relevant = ranking[:length], set(self.qrels[topic])
        attention = discounts(len(ranking))
        gained = math.fsum(weight for page, weight in zip(ranking, attention, strict=True) if page in relevant)
        ndcg = gained / math.fsum(discounts(min(length, len(relevant))))
        shown = np.zeros([self.sizes[axis] for axis in axes])
        for page, weight in zip(ranking, attention, strict=True):
            if page in self.pages:
                shown = shown + weight * self.joint(page, axes)
        if self.year == 2021:
            shown[(0,) * len(axes)] = 0.0
            if not shown.any():
                shown = np.ones_like(shown)
                shown[(0,) * len(axes)] = 0.0
        awrf = 1.0 - (divergence(shown, self.target(topic, axes)) if shown.any() else math.log(2.0))
        return ndcg, awrf

    def task2(self, topic: str, rankings: Sequence[Sequence[int]], axes: Sequence[int]) -> tuple[float, float, float]:
        """EE-L, EE-D and EE-R of a sequence of rankings."""
        relevant = set(self.qrels[topic])
        shown = np.zeros([self.sizes[axis] for axis in axes])
        for ranking in rankings:
            for page, weight in zip(ranking, discounts(len(ranking)), strict=True):
                if page in self.pages and (page in relevant or self.year == 2021):
                    shown = shown + weight * self.joint(page, axes)
        shown = shown / len(rankings)
        wanted = self.target(topic, axes) * discounts(SEQUENCE_LENGTH[self.year]).sum()
        return float(((shown - wanted) ** 2).sum()), float((shown**2).sum()), float((shown * wanted).sum())

    def joint(self, page: int, axes: Sequence[int]) -> FloatArray:
        """The outer product of a page's weights, one axis a dimension."""
        whole: FloatArray = reduce(np.multiply.outer, [self.pages[page][axis] for axis in axes])
        return whole

    def target(self, topic: str, axes: Sequence[int]) -> FloatArray:
        """What each combination of labels should get; zeros where there is no target."""
        return self.alone(topic, axes[0]) if len(axes) == 1 else self.together(topic, axes)

    def alone(self, topic: str, axis: int) -> FloatArray:
        """One dimension against its own target, adding up to 1."""
        relevant = sum(weight * self.pages[page][axis] for page, weight in self.work(topic).items())
        relevant = relevant + np.zeros(self.sizes[axis])
        if (self.year, self.task) == (2021, 1):
            relevant[0] = 0.0
        background = self.backgrounds[axis]
        if background is not None:
            known = relevant[1:].sum()
            relevant = np.concatenate((relevant[:1], 0.5 * relevant[1:] + 0.5 * background * known))
        return relevant / relevant.sum() if relevant.sum() > 0 else relevant

    def together(self, topic: str, axes: Sequence[int]) -> FloatArray:
        """Several dimensions: the target over all, summed over those that are not measured."""
        weights, every = self.work(topic), range(len(self.sizes))
        mean = np.zeros(self.sizes)
        for page, weight in weights.items():
            mean = mean + weight * self.joint(page, every)
        if not mean.any():
            return mean.sum(axis=tuple(axis for axis in every if axis not in axes))
        mean = mean / math.fsum(weights.values())
        if (self.year, self.task) == (2021, 1):
            mean[(0,) * len(self.sizes)] = 0.0
        count = sum(background is not None for background in self.backgrounds)
        target = self.averaged(mean, count)
        if (self.year, self.task) == (2021, 2):
            target = target / target.sum()
        return target.sum(axis=tuple(axis for axis in every if axis not in axes))

    def averaged(self, mean: FloatArray, count: int) -> FloatArray:
        """Head by head (labels in the first `count` dimensions): half the relevant pages', half the world's share."""
        heads = list(np.ndindex(*self.sizes[:count]))
        total, target = mean.sum(), mean.copy()
        of_tails = sum(mean[head] for head in heads) / (total or 1.0)
        for head in heads:
            known = [label > 0 for label in head]
            if not any(known):
                continue
            block = sum(mean[other].sum() for other in heads if [label > 0 for label in other] == known)
            world = 1.0
            for label, background in zip(head, self.backgrounds, strict=False):
                if label > 0 and background is not None:
                    world *= background[label - 1]
            own = mean[head].sum()
            tails = mean[head] / own if own > 0 else of_tails
            target[head] = 0.5 * mean[head] + 0.5 * block * world * tails
        return target

    def work(self, topic: str) -> dict[int, float]:
        """Relevant page with metadata -> its weight: 1, or in Task 2 the attention that its class should get."""
        there = [page for page in dict.fromkeys(self.qrels[topic]) if page in self.pages]
        if self.task == 1:
            return dict.fromkeys(there, 1.0)
        classed = [page for page in there if self.quality[page] is not None]
        attention, weights, rank = discounts(len(classed)), {}, 0
        for quality in range(CLASSES):
            own = [page for page in classed if self.quality[page] == quality]
            for page in own:
                weights[page] = float(attention[rank : rank + len(own)].mean())
            rank += len(own)
        return weights


ROWS = 1_250
"""At least so many of each task and year: 5,000 together."""
EXACT = 1e-12

PLACES = Dimension("places", (UNKNOWN, "A", "B", "C"), (0.6, 0.3, 0.1))
PEOPLE = Dimension("people", (UNKNOWN, "f", "m"), (0.5, 0.5))
WORK = Dimension("work", (UNKNOWN, "chemist", "jurist"))
AGE = Dimension("age", ("new", "old"))
LARGE_FIRST = (DIMENSIONS_2022[0], DIMENSIONS_2022[4], DIMENSIONS_2022[5])
"""21, 4 and 4 labels: the track's own code stops at an assertion of its own."""
SETS = {
    2022: [(PLACES,), (WORK,), (PLACES, PEOPLE), (PEOPLE, AGE), (WORK, AGE), (PLACES, PEOPLE, WORK, AGE), LARGE_FIRST],
    2021: [(PLACES,), (PEOPLE,), (PLACES, PEOPLE)],
}
"""The edition of 2021 has dimensions with a background only, and measures one of them or all."""


@dataclass
class World:
    """Random pages, judgments and rankings, for both ways."""

    pages: Pages
    naive: NaiveTrack
    rankings: dict[str, list[list[int]]]


def weights(random: Random, dimension: Dimension) -> dict[str, float]:
    """One label, two that share, two of weight 1 each, unknown, or no label at all."""
    first, second = random.sample(dimension.labels, 2)
    forms = [{first: 1.0}, {first: 0.25, second: 0.75}, {first: 1.0, second: 1.0}]
    forms += [{UNKNOWN: 1.0}, {UNKNOWN: 1.0}] if UNKNOWN in dimension.labels else [{}]
    return random.choice(forms)


def made(random: Random, year: Year, task: Task, dimensions: tuple[Dimension, ...]) -> World:
    ids = random.sample(range(10_000), 40)
    with_metadata = ids[:30]
    alignments = {page: {dim.name: weights(random, dim) for dim in dimensions} for page in with_metadata}
    quality = {page: random.choice([*range(6), None]) for page in with_metadata}
    qrels = {str(topic): random.sample(ids, random.randint(1, 25)) for topic in range(100, 120)}
    rankings: dict[str, list[list[int]]] = {}
    for topic in random.sample(list(qrels), 18):
        many = 1 if task == 1 else random.randint(1, 5)
        rankings[topic] = [random.sample(ids, random.randint(1, 30)) for _ in range(many)]
        if random.random() < 0.3:  # a page twice, in Task 1 one that is not relevant: nDCG would rise above 1
            ranking = rankings[topic][-1]
            again = [page for page in ranking if task == 2 or page not in qrels[topic]]
            ranking += random.sample(again, min(1, len(again)))
    naive = NaiveTrack(
        year,
        task,
        tuple(len(dim.labels) for dim in dimensions),
        tuple(None if dim.background is None else np.array(dim.background) for dim in dimensions),
        {
            page: [np.array([of_page[dim.name].get(label, 0.0) for label in dim.labels]) for dim in dimensions]
            for page, of_page in alignments.items()
        },
        quality,
        qrels,
    )
    classes = {page: None if place is None else QUALITIES[place] for page, place in quality.items()}
    return World(
        Pages.from_alignments(dimensions, [(page, align, classes[page]) for page, align in alignments.items()]),
        naive,
        rankings,
    )


def measured(year: Year, dimensions: tuple[Dimension, ...]) -> list[tuple[int, ...]]:
    """The dimensions to measure together, by their places."""
    every = range(len(dimensions))
    if year == 2021:
        return [*((axis,) for axis in every), tuple(every)]
    return [axes for count in range(1, len(dimensions) + 1) for axes in combinations(every, count)]


@pytest.mark.parametrize("year", [2022, 2021])
@pytest.mark.parametrize("task", [1, 2])
def test_rows_equal_those_of_the_definitions(year: Year, task: Task) -> None:
    random, rows, left_out = Random(year * 10 + task), 0, 0
    while rows < ROWS:
        dimensions = random.choice(SETS[year])
        world = made(random, year, task, dimensions)
        n = random.choice([None, None, 1, 5, 20, 10**12]) if task == 1 else None
        run = TrackRun.of("random", world.rankings, repeated="count")
        track = TrackEvaluator(year, task, [dim.name for dim in dimensions], world.pages, world.naive.qrels, n)
        for axes in measured(year, dimensions):
            evaluation = track.over([dimensions[axis].name for axis in axes]).evaluate(run)
            for topic in evaluation.left_out:
                assert not world.naive.target(topic, axes).any(), topic
            assert {row.topic for row in evaluation.rows} == world.rankings.keys() - evaluation.left_out.keys()
            left_out += len(evaluation.left_out)
            for row in evaluation.rows:
                rankings = world.rankings[row.topic]
                if isinstance(row, Task1Row):
                    ndcg, awrf = world.naive.task1(row.topic, rankings[0], axes, n)
                    theirs, ours = (ndcg, awrf, ndcg * awrf), (row.ndcg, row.awrf, row.score)
                else:
                    assert isinstance(row, Task2Row)
                    theirs, ours = world.naive.task2(row.topic, rankings, axes), (row.ee_l, row.ee_d, row.ee_r)
                    assert row.rankings == len(rankings)
                assert ours == pytest.approx(theirs, rel=EXACT, abs=EXACT), (row.topic, axes, n)
                rows += 1
    assert rows >= ROWS
    assert left_out
