"""SEAT: the association test on the vectors that an encoder makes of sentences (or, WEAT, of words)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fairagent.errors import DataError
from fairagent.evaluate.kinds.stereotypes.files import TargetsAndAttributes
from fairagent.measures.weat import SAMPLES, Association, association_test
from fairagent.memo import Memo
from fairagent.retrieve.encoder import Encoder
from fairagent.types import FloatArray

GENDER = ("sent-weat6", "sent-weat6b", "sent-weat7", "sent-weat7b", "sent-weat8", "sent-weat8b")
"""The tests of gender that the debiasing literature reports: career and family, mathematics, science and the arts."""


@dataclass(frozen=True, slots=True)
class Associations:
    """Tests an encoder's vectors of texts as documents; threads may share it. Each test samples by `seed` anew."""

    encoder: Encoder
    samples: int = SAMPLES
    seed: int = 0
    _vectors: Memo = field(default_factory=Memo)

    def test(self, test: TargetsAndAttributes) -> Association:
        """What one test comes to.

        Raises DataError, naming the test, where an association is not defined, and what the encoder raises.
        """
        x, y, a, b = (self._vectors_of(texts) for texts in (*test.targets, *test.attributes))
        try:
            return association_test(x, y, a, b, self.samples, np.random.default_rng(self.seed))
        except DataError as error:
            raise DataError(f"{test.name}: {error}") from None

    def _vectors_of(self, texts: Sequence[str]) -> FloatArray:
        """The vectors of `texts`, (n, d); tests share their sets."""

        def made() -> FloatArray:
            return np.asarray(self.encoder.documents(list(texts)), dtype=np.float64)

        vectors: FloatArray = self._vectors.get(tuple(texts), made)
        return vectors
