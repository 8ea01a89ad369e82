from __future__ import annotations

import math
import tracemalloc
from random import Random
from typing import Any

import numpy as np
import pytest

from fairagent.errors import DataError, UsageError
from fairagent.measures import LOG2_MAX2, blend, jensen_shannon
from fairagent.measures.trec_fair import (
    DIMENSIONS_2021,
    DIMENSIONS_2022,
    SUBSETS_2022,
    Amounts,
    Dimension,
    Pages,
    Space,
    Task1Row,
    TrackEvaluator,
    TrackRun,
    averaged_with_world,
)
from fairagent.measures.trec_fair.targets import FEW, grouped
from fairagent.types import UNKNOWN

G = Dimension("g", (UNKNOWN, "f", "m"), (0.5, 0.5))
H = Dimension("h", (UNKNOWN, "A", "B", "C"), (0.7, 0.2, 0.1))
J = Dimension("o", (UNKNOWN, "chemist", "jurist"))
X = Dimension("x", ("a", "b"))
GENDER = DIMENSIONS_2022[2:3]
LOWEST = 1.0 - math.log(2.0)


def gendered(genders: dict[int, str], quality: dict[int, str] | None = None) -> Pages:
    return Pages.from_alignments(
        GENDER, [(page, {"gender": {label: 1.0}}, (quality or {}).get(page)) for page, label in genders.items()]
    )


PAGES = gendered({1: "male", 2: "male", 3: "female", 4: UNKNOWN, 9: UNKNOWN}, {1: "Stub", 2: "C", 3: "Stub", 4: "FA"})
QRELS = {"A": [1, 2, 3, 4]}


def task1(run: TrackRun, pages: Pages = PAGES, qrels: dict[str, list[int]] = QRELS, n: int | None = None) -> Any:
    return TrackEvaluator(2022, 1, ["gender"], pages, qrels, n).evaluate(run).rows


def task2(run: TrackRun, pages: Pages = PAGES, qrels: dict[str, list[int]] = QRELS) -> Any:
    return TrackEvaluator(2022, 2, ["gender"], pages, qrels).evaluate(run).rows


def test_pages_without_metadata() -> None:
    (row,) = task1(TrackRun.of("mine", {"A": [[1, 77, 3]]}))
    assert (row.ndcg, row.awrf) == pytest.approx((0.520909, 0.902422), abs=5e-7)
    assert row.unknown == 1
    (row,) = task1(TrackRun.of("strange", {"A": [[77, 78]]}))
    assert (row.ndcg, row.awrf, row.score, row.unknown) == (0.0, LOWEST, 0.0, 2)
    (row,) = task1(TrackRun.of("strange", {"A": [[77]]}), qrels={"A": [1, 77]})
    assert row.score == row.ndcg * LOWEST > 0.0
    (empty,) = task2(TrackRun.of("strange", {"A": [[77, 78]]}))
    assert (empty.ee_d, empty.ee_r, empty.unknown) == (0.0, 0.0, 2)
    assert empty.ee_l > 0.0
    qrels = {"A": [1, 2, 3, 4, 77], "B": [1]}
    track = TrackEvaluator(2022, 1, ["gender"], PAGES, qrels)
    assert track.notes == ("relevant pages without metadata, which count in no target: 1 (topic A: 1)",)
    without = TrackEvaluator(2022, 1, ["gender"], PAGES, QRELS)
    assert without.notes == ()
    run = TrackRun.of("mine", {"A": [[1, 9, 3]]})
    row, other = task1(run, qrels=qrels)[0], task1(run)[0]
    assert row.awrf == other.awrf
    assert row.ndcg < other.ndcg
    assert (track.targets.dense(0) == without.targets.dense(0)).all()


def test_a_perfect_ranking_has_an_ndcg_of_one_and_not_more() -> None:
    pages, run = gendered(dict.fromkeys(range(800), "male")), TrackRun.of("best", {"A": [list(range(500))]})
    for relevant in (22, 500, 700):
        (row,) = task1(run, pages, {"A": list(range(relevant))})
        assert 1.0 - 1e-14 < row.ndcg <= 1.0


def test_topics_without_a_target_are_left_out_and_named() -> None:
    qrels = {"A": [1], "none": [], "unknown": [77, 78], "unclassed": [9]}
    run = TrackRun.of("mine", {topic: [[1, 9]] for topic in qrels})
    one = TrackEvaluator(2022, 1, ["gender"], PAGES, qrels).evaluate(run)
    assert [row.topic for row in one.rows] == ["A", "unclassed"]
    assert one.left_out == {"none": "no page is relevant", "unknown": "none of its 2 relevant pages has metadata"}
    two = TrackEvaluator(2022, 2, ["gender"], PAGES, qrels).evaluate(run)
    assert [row.topic for row in two.rows] == ["A"]
    assert two.left_out["unclassed"] == "none of its 1 relevant pages has metadata and a quality class"
    assert two.missing == ()


def test_longer_rankings_are_refused_or_cut_and_repeated_judgments_count_once() -> None:
    run = TrackRun.of("mine", {"A": [[1, 9, 3]]})
    assert task1(run, qrels={"A": [4, 1, 2, 1, 3, 3]}) == task1(run)
    pages = gendered(dict.fromkeys(range(600), "male"))
    run = TrackRun.of("long", {"A": [list(range(501))]})
    with pytest.raises(DataError, match=r"'long', topic A: 501 pages; Task 1 of 2022 takes at most 500; .*--n 500"):
        task1(run, pages, {"A": [1]})
    (cut,) = task1(run, pages, {"A": [1, 2, 3, 500]}, n=3)
    assert cut.ndcg == (1.0 + LOG2_MAX2(3)[2]) / LOG2_MAX2(3).sum()
    assert not task2(run, pages, {"A": [1]})  # no page has a quality class; a long ranking is none of Task 2's faults


def test_what_makes_no_sense_is_said() -> None:
    track = TrackEvaluator(2022, 1, ["gender"], PAGES, QRELS)
    with pytest.raises(DataError, match=r"2 of its 3 topics are not in the qrels \(X, Y\)"):
        track.evaluate(TrackRun.of("mine", {"A": [[1]], "X": [[1]], "Y": [[1]]}))
    with pytest.raises(DataError, match="several rankings of a topic; is it a run of Task 2"):
        track.evaluate(TrackRun.of("mine", {"A": [[1], [2]]}))
    with pytest.raises(UsageError, match="no dimension 'age'; there are: gender"):
        track.over(["age"])
    with pytest.raises(UsageError, match="there are the years 2021 and 2022"):
        TrackEvaluator(2020, 1, ["gender"], PAGES, QRELS)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="Task 2 has none"):
        TrackEvaluator(2022, 2, ["gender"], PAGES, QRELS, n=20)
    with pytest.raises(UsageError, match="2021 has dimensions with a background only"):
        TrackEvaluator(2021, 1, ["x"], Pages.from_alignments([X], []), QRELS)
    with pytest.raises(DataError, match="the qrels have no topics"):
        TrackEvaluator(2022, 1, ["gender"], PAGES, {})
    for pages in ([-1], [2**31], [1.5]):
        with pytest.raises(DataError, match="qrels, topic A: page ids are whole numbers"):
            TrackEvaluator(2022, 1, ["gender"], PAGES, {"A": pages})  # type: ignore[dict-item]
        with pytest.raises(DataError, match="run 'mine': page ids are whole numbers"):
            TrackRun.of("mine", {"A": [pages]})  # type: ignore[dict-item]
    with pytest.raises(DataError, match="run 'mine', topic A: page 3 is listed twice in a ranking"):
        TrackRun.of("mine", {"A": [[3, 4, 3]]})


def test_eleven_million_cells_are_never_formed() -> None:
    random = Random(5)
    entries = []
    for page in range(300):
        align = {
            dimension.name: dict.fromkeys(random.sample(dimension.labels, 2 if place < 2 else 1), 1.0)
            for place, dimension in enumerate(DIMENSIONS_2022)
        }
        entries.append((page, align, random.choice(["Stub", "B"])))
    pages, qrels = Pages.from_alignments(DIMENSIONS_2022, entries), {"A": random.sample(range(300), 50)}
    names = [dimension.name for dimension in DIMENSIONS_2022]
    run = TrackRun.of("mine", {"A": [list(range(200))]})
    tracemalloc.start()
    for task in (1, 2):
        track = TrackEvaluator(2022, task, names, pages, qrels)  # type: ignore[arg-type]
        assert track.targets.space.cells == 11_176_704
        for chosen in (names, *SUBSETS_2022.values()):
            assert track.over(chosen).evaluate(run).rows
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 11_176_704 // 4  # bytes: far below even one bit a cell and topic
    with pytest.raises(UsageError, match="11,176,704 cells are too many to write out"):
        track.targets.dense(0)


def test_task_1_of_2021_takes_a_ranking_of_unknown_pages_for_uniform() -> None:
    geo = {1: {"Asia": 1.0, "Europe": 1.0}, 2: {"Africa": 1.0}, 3: {UNKNOWN: 1.0}, 4: {UNKNOWN: 1.0}}
    genders = {1: UNKNOWN, 2: "female", 3: "male", 4: UNKNOWN}
    entries = [(page, {"geo": geo[page], "gender": {genders[page]: 1.0}}, "Stub") for page in geo]
    pages = Pages.from_alignments(DIMENSIONS_2021, entries)
    for names, cells in ((["geo"], 7), (["geo", "gender"], 31)):
        track = TrackEvaluator(2021, 1, names, pages, {"A": [1, 2, 3, 4]})
        (row,) = track.evaluate(TrackRun.of("mine", {"A": [[4, 77]]})).rows
        target = track.targets.dense(0)[1:]
        uniform = jensen_shannon(np.full(cells, 1 / cells), target / target.sum())
        assert isinstance(row, Task1Row)
        assert row.awrf == pytest.approx(1.0 - uniform, abs=1e-12)
    left_out = TrackEvaluator(2021, 1, ["geo", "gender"], pages, {"A": [4], "B": [3]}).left_out
    assert left_out == {"A": "none of its 1 relevant pages has metadata and a known label"}


def test_topics_that_the_run_has_no_line_for_are_missing_and_not_in_the_mean() -> None:
    qrels = {"A": [1, 3], "B": [2], "C": [3]}
    evaluation = TrackEvaluator(2022, 1, ["gender"], PAGES, qrels).evaluate(
        TrackRun.of("mine", {"C": [[3]], "A": [[2]]})
    )
    assert [row.topic for row in evaluation.rows] == ["A", "C"]  # the order of the qrels
    assert evaluation.missing == ("B",)
    assert evaluation.mean("ndcg") == 0.5
    nothing = TrackEvaluator(2022, 1, ["gender"], PAGES, qrels).evaluate(TrackRun.of("mine", {}))
    with pytest.raises(DataError, match="run 'mine' has no topic that can be evaluated"):
        nothing.mean("ndcg")


def test_ranks_start_at_one_in_every_ranking() -> None:
    run = TrackRun.of("mine", {"B": [[5, 6], [6, 5, 7]], "A": [[1]]})
    assert (run.topics, run.topic.tolist(), run.lengths.tolist()) == (("B", "A"), [0, 0, 1], [2, 3, 1])
    assert run.ranks().tolist() == [1, 2, 1, 2, 3, 1]
    assert run.line_topics().tolist() == [0, 0, 0, 0, 0, 1]
    assert run.discounts().round(5).tolist() == [1.0, 1.0, 1.0, 1.0, 0.63093, 1.0]


def test_the_order_of_dimensions_and_targets_of_one_summed_out() -> None:
    space = Space.of([X, H, J, G])
    assert [dimension.name for dimension in space.dimensions] == ["h", "g", "x", "o"]
    assert (space.heads, space.tails, space.cells) == (12, 6, 72)
    assert [dimension.name for dimension in space.only(["o", "h"]).dimensions] == ["h", "o"]
    assert (Space.of([X]).heads, Space.of([G]).tails) == (1, 1)
    summed = np.array([1.0, 1.0, 2.0])
    ours = averaged_with_world(Space.of([G]), Amounts(np.arange(3), summed), 1).dense(0)
    assert ours / ours.sum() == pytest.approx(blend(summed, np.array([0.5, 0.5])))


@pytest.mark.parametrize("spread", [1, 100 * FEW])
def test_grouping_does_not_depend_on_how_far_apart_the_keys_are(spread: int) -> None:
    keys, sums, counts = grouped(np.array([5, 2, 9, 5]) * spread, np.array([1.0, 2.0, 4.0, 8.0]))
    assert (keys.tolist(), sums.tolist()) == ([2 * spread, 5 * spread, 9 * spread], [2.0, 9.0, 4.0])
    assert counts.tolist() == [1, 2, 1]
