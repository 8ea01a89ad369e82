"""The refiner that proposes nothing: for runs that measure the rest of the pipeline alone."""

from __future__ import annotations

from fairagent.refine.base import RefineState
from fairagent.types import Refinement


class NoRefiner:
    """Proposes no keyword."""

    def refine(self, state: RefineState) -> Refinement:
        """Nothing."""
        return Refinement((), "none", "no refiner is set")
