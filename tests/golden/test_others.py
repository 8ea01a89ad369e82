"""What golden files are good for beside their rows: draws by chi-square, samples of partitions."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from samplers import DRAWS, Sampler, all_ways
from scipy.stats import chisquare

from fairagent.papers.debias_rag.benchmarks.seat import association_test
from fairagent.retrieve.stochastic import sampler_log_scores


def cases(golden: Path, name: str, section: str = "cases") -> list[dict[str, Any]]:
    found = json.loads((golden / "seed_systems" / f"{name}.json").read_text(encoding="utf-8"))
    return list(found[section])


@all_ways
def test_draws_follow_the_exact_distribution(sample: Sampler, golden: Path) -> None:
    rng = np.random.default_rng(2025)
    for case in cases(golden, "plackett_luce"):
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


def test_a_sample_of_partitions_comes_close(golden: Path) -> None:
    for case in cases(golden, "weat_seat"):
        x, y, a, b = (np.array(case[name]) for name in "XYAB")
        # Too few samples for all partitions of the largest; of the others, all are looked at all the same.
        samples = case["n_partitions"] - 1
        found = association_test(x, y, a, b, samples, np.random.default_rng(4))
        assert not found.exact
        assert found.p == pytest.approx(case["authors_p_value"], abs=3.5 * 0.5 / math.sqrt(samples) + 1 / samples)
        assert found.effect == pytest.approx(case["authors_effect_size"], rel=1e-9, abs=1e-12)
