"""SEAT: the association test on the vectors that an encoder makes of sentences (or, WEAT, of words)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from fairagent.errors import DataError
from fairagent.measures.weat import SAMPLES, Association, association_test
from fairagent.retrieve.encoder import Encoder
from fairagent.stereotypes.files import TargetsAndAttributes
from fairagent.types import FloatArray

GENDER = ("sent-weat6", "sent-weat6b", "sent-weat7", "sent-weat7b", "sent-weat8", "sent-weat8b")
"""The tests of gender that the debiasing literature reports: career and family, mathematics, science and the arts."""


@dataclass(frozen=True, slots=True)
class Tested:
    """What one test came to."""

    test: TargetsAndAttributes
    association: Association


def seat(
    tests: Iterable[TargetsAndAttributes],
    encoder: Encoder,
    samples: int = SAMPLES,
    seed: int = 0,
    progress: Callable[[int], None] = lambda done: None,
) -> list[Tested]:
    """Every test on the encoder's vectors of its texts as documents; each test samples by `seed` anew.

    Raises DataError, naming the test, where an association is not defined, and what the encoder raises.
    """
    results = []
    vectors: dict[str, FloatArray] = {}
    for done, test in enumerate(tests, start=1):
        x, y, a, b = (_vectors(encoder, texts, vectors) for texts in (*test.targets, *test.attributes))
        try:
            found = association_test(x, y, a, b, samples, np.random.default_rng(seed))
        except DataError as error:
            raise DataError(f"{test.name}: {error}") from None
        results.append(Tested(test, found))
        progress(done)
    return results


def mean_effect(results: Sequence[Tested]) -> float:
    """The mean of |d| over the tests, in [0, 2]; 0 is fair."""
    return float(np.mean([abs(result.association.effect) for result in results]))


def _vectors(encoder: Encoder, texts: Sequence[str], known: dict[str, FloatArray]) -> FloatArray:
    """The vectors of `texts`, (n, d); those not yet `known`, which tests share, are added to it."""
    new = [text for text in dict.fromkeys(texts) if text not in known]
    if new:
        known.update(zip(new, np.asarray(encoder.documents(new), dtype=np.float64), strict=True))
    return np.array([known[text] for text in texts])
