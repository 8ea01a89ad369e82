"""No search at all: what answers then comes from what the generator knows."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from fairagent.errors import DataError
from fairagent.settings.parts import Part
from fairagent.site import Site
from fairagent.types import Document, FloatArray, Query, Ranking


class Nothing:
    """A `Retriever` that finds nothing."""

    def search(self, query: Query, n: int) -> Ranking:
        """An empty ranking."""
        return Ranking((), np.zeros(0))

    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        """Zeros, (n,)."""
        return np.zeros(len(ids))

    def document(self, id: str) -> Document:
        """Never one: DataError."""
        raise DataError(f"no document is kept where nothing is searched, so there is no {id!r}")


class NothingConfig(Part):
    """No retrieval."""

    kind: Literal["none"] = "none"

    def build(self, site: Site) -> Nothing:
        """The engine."""
        return Nothing()
