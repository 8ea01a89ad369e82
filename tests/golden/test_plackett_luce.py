"""Plackett-Luce: chances against exact enumeration, draws by chi-square, the authors' seeded draws to the letter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from samplers import DRAWS, Sampler, all_ways
from scipy.stats import chisquare

from fairagent.retrieve.plackett_luce import (
    oracle_log_scores,
    placement_log_probabilities,
    race,
    sampler_log_scores,
)

pytestmark = pytest.mark.shared


def load(shared: Path, name: str) -> Any:
    return json.loads((shared / "golden" / "seed_systems" / f"{name}.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def golden(shared: Path) -> dict[str, Any]:
    found: dict[str, Any] = load(shared, "plackett_luce")
    assert len(found["cases"]) == 6
    return found


def test_normalization(shared: Path) -> None:
    cases = load(shared, "score_normalisation")["cases"]
    assert len(cases) == 27
    assert any(min(case["raw"]) < 0 for case in cases)
    for case in cases:
        raw, alpha = np.array(case["raw"], dtype=np.float64), case["alpha"]
        if case["retriever"] == "gold":
            # The oracle, which normalizes nothing; the paper has no other.
            assert case["paper_sampler_scores"] is None
            found = np.exp(oracle_log_scores(raw == 1, alpha))
            assert found == pytest.approx(case["authors_sampler_scores"], rel=1e-9), case["id"]
            continue
        paper = np.exp(sampler_log_scores(raw, alpha))
        assert paper == pytest.approx(case["paper_sampler_scores"], rel=1e-9), case["id"]
        authors = np.exp(sampler_log_scores(raw, alpha, compat="authors"))
        # 0 / 0 in the authors' code has a defined result here: uniform.
        constant = case["authors_sampler_scores"][0] == "nan"
        expected = [1.0] * len(raw) if constant else case["authors_sampler_scores"]
        assert authors == pytest.approx(expected, rel=1e-9), case["id"]


def test_probability_of_each_ranking(golden: dict[str, Any]) -> None:
    for case in golden["cases"]:
        log_scores = sampler_log_scores(np.array(case["raw_scores"]), case["alpha"])
        assert np.exp(log_scores) == pytest.approx(case["sampler_scores"], rel=1e-9), case["id"]
        for ranking, probability in case["rankings"]:
            found = np.exp(placement_log_probabilities(log_scores, ranking).sum())
            assert found == pytest.approx(probability, rel=1e-9), (case["id"], ranking)


def test_placement_probabilities(golden: dict[str, Any]) -> None:
    for case in golden["ranking_log_prob"]:
        log_scores = np.log(case["sampler_scores"])
        for ranking, expected, total in zip(case["rankings"], case["placement_probs"], case["log_prob"], strict=True):
            found = placement_log_probabilities(log_scores, ranking)
            assert np.exp(found) == pytest.approx(expected, rel=1e-9)
            assert found.sum() == pytest.approx(total, rel=1e-9)


@all_ways
def test_draws_follow_the_exact_distribution(sample: Sampler, golden: dict[str, Any]) -> None:
    rng = np.random.default_rng(2025)
    for case in golden["cases"]:
        log_scores = sampler_log_scores(np.array(case["raw_scores"]), case["alpha"])
        drawn = sample(log_scores, case["k"], rng, DRAWS)
        kinds, counts = np.unique(drawn, axis=0, return_counts=True)
        found = dict(zip(map(tuple, kinds.tolist()), counts.tolist(), strict=True))
        expected = {tuple(ranking): DRAWS * probability for ranking, probability in case["rankings"]}
        assert found.keys() <= expected.keys(), case["id"]
        # Kinds that are expected less than 5 times are judged together, and not by themselves at all if few.
        common = [ranking for ranking, times in expected.items() if times >= 5]
        seen = np.array([found.get(ranking, 0) for ranking in common] + [0.0])
        should = np.array([expected[ranking] for ranking in common] + [0.0])
        seen[-1], should[-1] = DRAWS - seen.sum(), DRAWS - should.sum()
        if should[-1] < 5:
            seen[-2], should[-2] = seen[-2:].sum(), should[-2:].sum()
            seen, should = seen[:-1], should[:-1]
        if len(seen) > 1:
            assert chisquare(seen, should).pvalue > 1e-4, case["id"]
        else:
            assert seen[0] == DRAWS, case["id"]


@all_ways
def test_inclusion_and_positions(sample: Sampler, golden: dict[str, Any]) -> None:
    rng = np.random.default_rng(7)
    for case in golden["cases"]:
        n, k = len(case["raw_scores"]), case["k"]
        log_scores = sampler_log_scores(np.array(case["raw_scores"]), case["alpha"])
        drawn = sample(log_scores, k, rng, DRAWS)
        # Five standard errors of a share of 20,000 draws.
        near = pytest.approx(case["inclusion_prob"], abs=5 * 0.5 / DRAWS**0.5)
        assert np.bincount(drawn.ravel(), minlength=n) / DRAWS == near, case["id"]
        for position, expected in enumerate(case["prob_item_at_position"]):
            share = np.bincount(drawn[:, position], minlength=n) / DRAWS
            assert share == pytest.approx(expected, abs=5 * 0.5 / DRAWS**0.5), case["id"]


def test_the_authors_seeded_draws(golden: dict[str, Any]) -> None:
    for example in golden["seeded_examples"]:
        log_scores = sampler_log_scores(np.array(example["raw_scores"]), example["alpha"], compat="authors")
        # The authors add Gumbel noise from numpy's legacy stream.
        stream = np.random.RandomState(example["numpy_legacy_seed"])
        noise = stream.gumbel(size=(example["n_samples"], len(log_scores)))
        assert race(log_scores, example["k"], -noise).tolist() == example["rankings"]
