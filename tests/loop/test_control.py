"""The control law, by hand and as laws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loop_engine import LAWYERS, Dense, agent, begun
from scripted import by_letter

from fairagent.search.loop.actions import RefineAction
from fairagent.search.loop.candidates import Mixer
from fairagent.search.loop.controller import Controller
from fairagent.search.loop.document_types import DocumentType
from fairagent.search.loop.environment import Environment
from fairagent.search.loop.state import moved, start
from fairagent.types import Exposure


def shown(shares: list[float], target: list[float], dimension: str = "gender") -> Exposure:
    labels = tuple(f"g{number}" for number in range(len(shares)))
    return Exposure(dimension, labels, np.array(shares), np.array(target), 0.0, 0.1)


def test_a_step_by_hand() -> None:
    """Target .5 .5, exposure .1 .9, smoothing .02, eta .5: the roots of .52/.12 and .52/.92, normalized."""
    weights = moved(np.array([0.5, 0.5]), [shown([0.1, 0.9], [0.5, 0.5])], 0.5, 0.02)
    female, male = (0.52 / 0.12) ** 0.5, (0.52 / 0.92) ** 0.5
    assert weights == pytest.approx([female / (female + male), male / (female + male)])
    assert weights == pytest.approx([0.7347, 0.2653], abs=1e-4)


def test_dimensions_are_moved_apart_from_each_other() -> None:
    gender, region = shown([0.5, 0.5], [0.5, 0.5]), shown([1.0, 0.0, 0.0], [0.2, 0.3, 0.5], "region")
    weights = moved(np.array([0.6, 0.4, 0.2, 0.3, 0.5]), [gender, region], 1.0, 0.02)
    assert weights[:2] == pytest.approx([0.6, 0.4])
    assert weights[2:] == pytest.approx(moved(np.array([0.2, 0.3, 0.5]), [region], 1.0, 0.02))


shares = st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3).filter(lambda some: sum(some) > 0.1)


def _share(some: list[float]) -> list[float]:
    return [one / sum(some) for one in some]


@given(shares, shares, shares, st.floats(0.1, 2.0))
def test_weights_stay_a_distribution_and_who_lacks_more_gains(
    weights: list[float], shares: list[float], target: list[float], eta: float
) -> None:
    before, exposure = np.array(_share(weights)), shown(_share(shares), _share(target))
    after = moved(before, [exposure], eta, 0.02)
    assert after.min() >= 0
    assert after.sum() == pytest.approx(1)
    ratio = (exposure.target + 0.02) / (exposure.shares + 0.02)
    gain = after[before > 1e-6] / before[before > 1e-6]
    order = np.argsort(ratio[before > 1e-6])
    assert (np.diff(gain[order]) >= -1e-9 * gain.max()).all()


def test_the_first_weights_are_the_targets_over_the_groups_with_evidence() -> None:
    targets = begun(Dense(LAWYERS)).meter.targets
    assert start(targets, np.array([1.0, 1.0])) == pytest.approx([0.5, 0.5])
    assert start(targets, np.array([0.0, 1.0])) == pytest.approx([0.0, 1.0])
    assert start(targets, np.array([0.0, 0.0])) == pytest.approx([0.0, 0.0])


def test_a_step_that_overshoots_is_halved_twice_and_changes_nothing() -> None:
    result = agent(Dense(LAWYERS), Controller((RefineAction(9, 0.5),), mixer=Mixer(0.5), drift=0.1)).search("law")
    engine, first, *others = result.trace.steps
    assert (first.accepted, first.ranking.ids) == (False, engine.ranking.ids[:4]), "it changes nothing"
    reached = (np.array([weight for _, weight in first.weights]), first.exposures)
    for eta, step in zip((0.5, 0.25, 0.25, 0.125), others, strict=True):
        weights = np.array([weight for _, weight in step.weights])
        assert weights == pytest.approx(moved(*reached, eta, 0.02).tolist())
        assert not step.accepted
        if step.ranking.ids == first.ranking.ids:
            reached = (weights, step.exposures)
    assert result.trace.stopped == "a step was no gain: less relevant"
    assert result.ranking.ids == engine.ranking.ids[:4]


def test_the_drift_guard_refuses_a_list_that_is_fairer_and_less_relevant() -> None:
    guarded = (
        agent(Dense(LAWYERS), Controller((RefineAction(9, 0.5),), mixer=Mixer(0.5), drift=0.1)).search("law").trace
    )
    assert "less relevant" in [step.reason for step in guarded.steps]
    assert guarded.gap == pytest.approx(np.log(2), abs=1e-4), "four men stay"
    free = agent(Dense(LAWYERS), Controller((RefineAction(9, 0.5),), mixer=Mixer(0.5), drift=0.6)).search("law").trace
    assert free.gap == pytest.approx(0, abs=1e-6)
    assert free.stopped == "the gap is not above 0"


def test_a_group_without_documents_has_no_weight() -> None:
    groups = by_letter(LAWYERS, labels=("female", "male", "nonbinary"))
    steps = agent(Dense(LAWYERS), Controller((RefineAction(3, 0.5),), drift=0.6), groups).search("law").trace.steps[1:]
    assert steps
    for step in steps:
        weights = {group.label: weight for group, weight in step.weights}
        assert weights["nonbinary"] == 0
        assert sum(weights.values()) == pytest.approx(1)


def test_a_dimension_that_does_not_apply_weighs_nothing() -> None:
    """No document found can have a region, though most others can: the region's evidence and gap count 0."""

    class Types:
        def document_types(self, ids: Sequence[str], topic: str) -> list[DocumentType]:
            return [DocumentType("region", np.zeros(len(ids)), 0.6)]

    ids = [*LAWYERS, *(f"x{number}" for number in range(10))]
    table = by_letter([id + ("_" if id in LAWYERS else "a") for id in ids], region="2")
    engine = Dense({id + "_": text for id, text in LAWYERS.items()})
    search = begun(engine, groups=table)
    meter = Environment.begin(Controller(types=Types(), prior=0), search)[0].meter  # type: ignore[arg-type]
    assert meter.importance == (1, 0)
    # A label that nobody gave says nothing of that.
    assert Environment.begin(Controller(), search)[0].meter.importance == (1, 1)
    assert replace(meter, importance=(1.0, 0.0)).measure(search.steps[-1].ranking)[1].importance == 0


def test_evidence_that_leads_away_from_the_query_gets_half_of_its_share() -> None:
    ships = {f"{letter}{number}": "law law ship ship ship" for letter in "fn" for number in range(5)}
    texts = {f"m{number}": "law" for number in range(5)} | ships
    groups = by_letter(texts, labels=("female", "male", "nonbinary"))
    result = agent(Dense(texts), Controller((RefineAction(2),), mixer=Mixer(beta=0.9)), groups).search("law")
    far, near = [step for step in result.trace.steps if step.why]
    assert (far.accepted, far.reason) == (False, "less relevant")
    assert near.weights == far.weights
    gentle = agent(Dense(texts), Controller((RefineAction(1),), mixer=Mixer(beta=0.45)), groups).search("law")
    assert near.ranking.ids == gentle.trace.steps[-1].ranking.ids != far.ranking.ids
    assert near.ranking.scores == pytest.approx(gentle.trace.steps[-1].ranking.scores)
