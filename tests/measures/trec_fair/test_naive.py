"""Our sparse arrays against the track's definitions in dense ones (`naive.py`): thousands of random rows, to 1e-12."""

from __future__ import annotations

from dataclasses import dataclass
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
from fairagent.types import UNKNOWN

from .naive import NaiveTrack

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
