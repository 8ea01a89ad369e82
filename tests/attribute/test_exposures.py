"""The exposure of what an answer rests on, beside that of its whole context."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scripted import by_letter, collection

from fairagent.answer.attribution import with_exposures
from fairagent.collection.exposure import ExposureMeter
from fairagent.measures import LOG2_MAX2, group_exposure
from fairagent.settings import Settings
from fairagent.types import Attribution, Ranking

IDS = ["f1", "m1", "f2", "m2", "u1"]


def meter() -> ExposureMeter:
    settings = Settings(n=2, target="uniform")
    return ExposureMeter.make(collection(by_letter(IDS)), "", settings, Ranking((), np.zeros(0)))


def test_a_fair_context_whose_answer_rests_on_one_group():
    found = with_exposures(Attribution("citations", np.array([0.0, 1.0, 0.0, 1.0, 0.0])), IDS, meter())
    (retrieved,), (attributed,) = found.retrieved, found.exposures
    # The whole context counts, though the meter's cut-off is 2; the unlabeled document is left out of the shares.
    assert (retrieved.labels, retrieved.shares.tolist()) == (("female", "male"), [0.5, 0.5])
    assert (retrieved.unknown, retrieved.divergence) == (pytest.approx(0.2), pytest.approx(0.0, abs=1e-9))
    assert attributed.shares.tolist() == [0.0, 1.0]
    assert attributed.divergence > 0.6
    assert found.kind == "citations"


def test_the_ranks_may_weigh():
    weights = np.array([1.0, 0.5, 0.0, 1.0, 1.0])
    found = with_exposures(Attribution("judge", weights), IDS, meter(), LOG2_MAX2)
    rows = np.array([[0, 1, 0], [0, 0, 1], [0, 1, 0], [0, 0, 1], [1, 0, 0]])
    shares = group_exposure(rows, LOG2_MAX2(5) * weights)
    assert found.exposures[0].unknown == pytest.approx(shares[0])
    assert found.exposures[0].shares == pytest.approx(shares[1:] / shares[1:].sum())


def test_an_answer_that_rests_on_nothing():
    (exposure,) = with_exposures(Attribution("nli", np.zeros(5)), IDS, meter()).exposures
    assert (exposure.shares.tolist(), exposure.unknown, exposure.divergence) == ([0.0, 0.0], 0.0, math.inf)
