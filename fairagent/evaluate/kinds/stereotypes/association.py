"""SEAT: the association test on the vectors that an encoder makes of sentences (or, WEAT, of words)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fairagent.debias.stage import DebiasRAG
from fairagent.errors import DataError
from fairagent.evaluate.kinds.stereotypes.files import TargetsAndAttributes
from fairagent.measures.weat import SAMPLES, Association, association_test
from fairagent.memo import Memo
from fairagent.retrieve.encoder import Embeddings, Encoder
from fairagent.types import FloatArray

GENDER = ("sent-weat6", "sent-weat6b", "sent-weat7", "sent-weat7b", "sent-weat8", "sent-weat8b")
"""The tests of gender that the debiasing literature reports: career and family, mathematics, science and the arts."""


@dataclass(frozen=True, slots=True)
class InContext:
    """An encoder that reads every text after the contexts that DebiasRAG makes for it, from no documents."""

    encoder: Encoder
    stage: DebiasRAG

    @property
    def name(self) -> str:
        """See `Encoder.name`."""
        return f"{self.encoder.name} (DebiasRAG)"

    def documents(self, texts: Sequence[str]) -> Embeddings:
        """See `Encoder.documents`."""
        return self.encoder.documents([self._shown(text) for text in texts])

    def queries(self, texts: Sequence[str]) -> Embeddings:
        """See `Encoder.queries`."""
        return self.encoder.queries([self._shown(text) for text in texts])

    def _shown(self, text: str) -> str:
        contexts = [document.text for document in self.stage.apply(text, ()).documents]
        return "\n\n".join([*contexts, text])


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
