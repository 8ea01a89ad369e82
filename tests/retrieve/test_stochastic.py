"""What is drawn from a pool: the same rankings from the same seed, topic and request."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from fairagent.errors import UsageError
from fairagent.retrieve.stochastic import (
    RequestCounter,
    checked_alpha,
    draw,
    sample_rankings,
    sampler_log_scores,
    topic_rng,
)
from fairagent.types import Ranking

POOL = Ranking(tuple(f"d{i}" for i in range(8)), np.arange(8.0, 0.0, -1.0))


def test_samples_are_those_of_seed_topic_and_request() -> None:
    samples = draw(POOL, 2, 3, topic_rng(1, "7"), 100)
    assert samples.ids == POOL.ids
    assert len(samples) == 100
    expected = sample_rankings(sampler_log_scores(POOL.scores, 2), 3, topic_rng(1, "7"), 100)
    assert samples.rankings.tolist() == expected.tolist()
    assert samples.ranking(4).ids == tuple(f"d{i}" for i in samples.rankings[4])
    assert samples.ranking(4).scores.tolist() == pytest.approx([1, 2 / 3, 1 / 3])
    for other in (topic_rng(2, "7"), topic_rng(1, "8"), topic_rng(1, "7", 1)):
        assert draw(POOL, 2, 3, other, 100).rankings.tolist() != expected.tolist()


@pytest.mark.parametrize(
    "wrong", [lambda: checked_alpha(-1), lambda: checked_alpha(float("nan")), lambda: topic_rng(-1, "7")]
)
def test_what_makes_no_sense(wrong: Callable[[], object]) -> None:
    with pytest.raises(UsageError, match="Plackett-Luce"):
        wrong()


def test_topics_long_not_asked_for_are_counted_anew() -> None:
    requests = RequestCounter(most=2)
    assert [requests.number(topic) for topic in "aabacb"] == [0, 1, 0, 2, 0, 0]
