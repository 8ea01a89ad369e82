"""The `Refiner` protocol, and `RefineState`, what the loop tells a refiner."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from fairagent.retrieve.base import Retriever, Vocabulary
from fairagent.types import Exposure, FloatArray, Group, Query, Ranking, Refinement, Term


@dataclass(frozen=True, slots=True, eq=False)
class RefineState:
    """The loop's state when it wants keywords for `group`, the most under-exposed one.

    `query` is the user's own, `current` the one whose ranking gave `exposures`; `ranking` is the deep list of
    the user's query and `memberships` its documents' groups, (n, 1 + g) a dimension; `tried` are the keywords
    of earlier refinements.
    """

    query: Query
    current: Query
    ranking: Ranking
    memberships: Mapping[str, FloatArray]
    exposures: tuple[Exposure, ...]
    group: Group
    tried: frozenset[str]

    @property
    def exposure(self) -> Exposure:
        """The exposure in the dimension of `group`."""
        return next(exposure for exposure in self.exposures if exposure.dimension == self.group.dimension)


class Refiner(Protocol):
    """Proposes keywords for the next query: any object with this method will do."""

    def refine(self, state: RefineState) -> Refinement:
        """Keywords that bring documents of `state.group`; none, and a note why, where there is nothing to say."""
        ...


def new_keywords(
    proposed: Refinement, tried: Collection[str], engine: Retriever
) -> tuple[tuple[Term, ...], tuple[str, ...]]:
    """The proposed keywords that are new and occur in the index, and the words of those that do not occur."""
    new = [term for term in proposed.terms if term.text not in tried]
    if not isinstance(engine, Vocabulary):
        return tuple(new), ()
    found = [engine.document_frequency(term.text) > 0 for term in new]
    added = tuple(term for term, occurs in zip(new, found, strict=True) if occurs)
    return added, tuple(term.text for term, occurs in zip(new, found, strict=True) if not occurs)
