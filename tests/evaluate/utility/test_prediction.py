"""Predictors by hand, and k chosen by them on topics that chose nothing."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from fairagent.papers.utility.prediction import BEST, CHANCE, FIXED, PREDICTORS, choices, predicted

from . import library

SCORES = np.array([4.0, 2.0, 2.0, 1.0, 1.0, 2.0])
"""Mean 2; of the first five too."""


def test_predictors_by_hand() -> None:
    found = predicted(SCORES, words=4)
    # Deviations 2, 0, 0, 1, 1, 0: variance 6 / 6; the mean of all is 2.
    assert found["NQC"] == pytest.approx(1 / 2)
    # The first five have the mean of all.
    assert found["WIG"] == pytest.approx(0)
    # (4 ln 2 + 0 + 0 + ln 2 + ln 2 + 0) / 6 / 2
    assert found["SMV"] == pytest.approx(6 * math.log(2) / 6 / 2)
    assert found["first score"] == 4


def test_wig_looks_at_the_first_five_and_the_length_of_the_query() -> None:
    scores = np.array([3.0] * 5 + [0.0] * 5)
    assert predicted(scores, words=9)["WIG"] == pytest.approx((3 - 1.5) / 3)


@pytest.mark.parametrize("scores", [[], [0.0], [-2.0, -2.0], [0.0, 0.0]])
def test_what_cannot_be_predicted_is_a_number_all_the_same(scores: list[float]) -> None:
    found = predicted(np.array(scores), words=0)
    assert list(found) == list(PREDICTORS)
    assert all(map(math.isfinite, found.values()))


def test_a_predictor_that_knows_gains_and_a_random_number_does_not() -> None:
    rng = np.random.default_rng(4)
    # Documents help a third of the queries, and harm the others by half as much: the mean is nothing.
    easy = np.arange(300) % 3 == 0
    utilities = np.column_stack([np.zeros(300), np.where(easy, 1.0, -0.5) + 0.1 * rng.standard_normal(300)])
    told = easy + 0.1 * rng.random(300)
    found = {one.way: one for one in choices(utilities, [0, 5], {"told": told}, folds=10)}
    assert list(found) == [FIXED, "told", CHANCE, BEST]
    assert found["told"].utility == pytest.approx(found[BEST].utility, abs=0.1)
    assert found["told"].none == pytest.approx(2 / 3, abs=0.05)
    test = found["told"].to_fixed
    assert test is not None
    assert test.p is not None
    assert test.p < 1e-9
    assert abs(found[CHANCE].utility - found[FIXED].utility) < 0.12
    assert found[FIXED].to_fixed is None


def test_every_row_with_scores_has_its_table(same_words: None, tmp_path: Path) -> None:
    experiment = library.EXPERIMENT.replace("relevant: 2}", "relevant: 2, folds: 2}")
    run = library.run(library.write(tmp_path, experiment), tmp_path / "run")
    titles = [table.title for table in run.of_kind.tables if "folds" in table.title]
    # What is taken from the judgments has no scores.
    assert [title.split(":")[0] for title in titles] == ["words", "words reversed", "run", "run reversed"]
    assert "random number" in (tmp_path / "run" / "results.txt").read_text(encoding="utf-8")
    words = next(one for one in run.outcomes if (one.topic, one.system) == ("q1", "words"))
    assert set(PREDICTORS) < set(words.values[""])
