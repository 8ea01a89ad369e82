"""Draws of a topic by hand: values, the utility of sets, missing and graded judgments, the attention of places."""

from __future__ import annotations

import json
import runpy
from itertools import combinations
from pathlib import Path

import lamp_files
import numpy as np
import pytest

from evaluate import words
from fairagent.errors import DataError
from fairagent.papers.fair_rag.lamp import load_lamp
from fairagent.papers.fair_rag.trial import Drawing, TopicDraws, values

from .test_kind import EXPERIMENT

TWO = Drawing(k=2)
SCRIPT = runpy.run_path(str(Path(__file__).parents[3] / "evaluations" / "open_questions" / "sets.py"))
additivity, attention, worth_in_sets = SCRIPT["additivity"], SCRIPT["attention"], SCRIPT["worth_in_sets"]


def drawn(rankings: list[list[int]], useful: list[bool], rested_on: list[list[float]] | None) -> TopicDraws:
    weights = None if rested_on is None else np.array(rested_on)
    return TopicDraws(np.array(rankings, dtype=np.intp), np.array(useful), np.array([0.5, 1.0]), weights)


def test_by_hand() -> None:
    found = values(drawn([[0, 1], [0, 2]], [True, False, False, True], [[1, 0], [1, 1]]), TWO)
    # Item 0 always, 1 and 2 by turns: 1.5 of [1, 2]; one of two useful items is shown.
    assert found["EE-D"] == 0.5
    assert found["EE-R"] == 0.5
    # 1.5 - 2 + 2, of [0, 4].
    assert found["EE-L"] == 0.375
    assert (found["EU"], found["highest utility"]) == (0.75, 1.0)
    assert found["EAR"] == 0.75
    # (1, 0, .5): 1.25 of [1.5^2 / 4, 1 + .5^2].
    assert found["EAE-D"] == 1.0
    assert found["nDCG"] == pytest.approx(1 / (1 + 1 / np.log2(3)))


def test_places_that_are_left_over_are_of_no_use() -> None:
    # Only item 0 was found; 1 and 2, which are useful, were missed: one of the two that fit.
    found = values(drawn([[0], [0]], [True, True, True], None), TWO)
    assert found["EE-D"] == 1.0
    assert found["EE-R"] == 0.5
    assert 0 < found["EE-L"] < 1
    assert "EAR" not in found
    # With nothing useful in it, a short list is as bad as can be.
    worst = values(drawn([[0], [0]], [False, True, True], None), TWO)
    assert worst["EE-R"] == 0.0


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("width", [0, 1, 2])
@pytest.mark.parametrize("useful", [[True, False, False], [True, True, True], [False, False, True]])
def test_all_values_are_between_their_bounds(k: int, width: int, useful: list[bool]) -> None:
    width = min(width, k)
    rankings = [list(range(width)), list(range(width))[::-1]]
    found = values(drawn(rankings, useful, [[1.0] * width] * 2), Drawing(k=k))
    for name in ("nDCG", "EE-R", "EE-D", "EE-L", "EAR", "EAE-D"):
        assert 0.0 <= found[name] <= 1.0, name


SETS = np.array(list(combinations(range(4), 2)), dtype=np.intp)


def test_where_items_add_up_their_worth_in_sets_is_their_own() -> None:
    own = np.array([0.4, 0.2, 0.0, -0.1])
    found = worth_in_sets(SETS, own[SETS].sum(axis=1), 4)
    # A set with the item has one of the three others, one without two of them: own - (mean of the others).
    assert found == pytest.approx([own[d] - np.delete(own, d).mean() for d in range(4)])


def test_what_foretells_the_worth_of_sets() -> None:
    """A pair that helps only together is not the sum of its items; one that repeats another is redundant."""
    lists = np.tile(SETS, (40, 1))[np.random.default_rng(2).permutation(40 * len(SETS))]
    together = (np.sort(lists, axis=1) == [0, 1]).all(axis=1).astype(float)
    either, first = np.isin(lists, [0, 1]).sum(axis=1) / 2, (lists == 0).any(axis=1) * 1.0
    useful = np.array([True, True, False, False])
    pair, sum_of, repeated = (additivity(TopicDraws(lists, useful, worth, None)) for worth in (together, either, first))
    assert (sum_of.alone, sum_of.in_sets) == (pytest.approx(1), pytest.approx(1, abs=0.02))
    assert (sum_of.redundant, sum_of.helpful, repeated.redundant) == (0, 0, 0.5)
    assert pair.alone < 0.85
    assert repeated.in_sets > repeated.alone
    # All sets are worth the same; there is one set.
    for sets in (SETS, SETS[:1]):
        assert additivity(TopicDraws(sets, np.array([True, False, False, False]), np.ones(len(sets)), None)) is None


def test_one_valid_answer_is_enough_in_an_experiment(tmp_path: Path) -> None:
    few = EXPERIMENT.replace("seed: 7", "seed: 7\ntopics: 4")
    one_valid = few.replace("pool: 10}", "pool: 10, enough: one, grades: {1: 2}}")
    run = words.run(words.write(tmp_path / "one", one_valid), tmp_path / "one" / "run")
    plain = words.run(words.write(tmp_path / "plain", few), tmp_path / "plain" / "run")
    of = {(one.topic, one.system): one.values[""] for one in plain.outcomes}
    assert run.outcomes
    for one in run.outcomes:
        assert one.values[""]["EE-R"] == of[one.topic, one.system]["EE-R"]
        assert one.values[""]["EU"] >= of[one.topic, one.system]["EU"]


def test_a_question_may_have_several_valid_outputs(tmp_path: Path) -> None:
    questions, outputs = tmp_path / "questions.json", tmp_path / "outputs.json"
    questions.write_text(json.dumps([{"id": "1", "input": lamp_files.INPUTS["LaMP-3"], "profile": []}]))

    def write(*valid: str) -> None:
        outputs.write_text(json.dumps({"task": "LaMP_3", "golds": [{"id": "1", "output": list(valid)}]}))

    write("2", "4")
    lamp = load_lamp("LaMP-3", questions, outputs)
    golds = lamp.questions[0].golds
    assert golds == ("2", "4")
    # The error to the nearest valid output.
    assert [lamp.task.utility(answer, golds) for answer in ("4", "3", "2", "1")] == [0, 1, 0, 1]
    write("2", "good")
    with pytest.raises(DataError, match="'good' is none of"):
        load_lamp("LaMP-3", questions, outputs)
