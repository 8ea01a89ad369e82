"""The protected group of re-rankers that know only two: protected and not."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fairagent.errors import UsageError
from fairagent.exposure import dimensions_of
from fairagent.measures import Discount, group_exposure, known_part, most_underexposed
from fairagent.rerank.base import Pool
from fairagent.settings.parts import Part
from fairagent.site import Site


@dataclass(frozen=True, slots=True)
class ProtectedGroup:
    """A group by its place in a pool: the dimension, and the group among its known ones, both counted from 0.

    With the labels ("female", "male") of the first dimension, `ProtectedGroup(0, 1)` is male.
    """

    dimension: int
    group: int

    def share(self, pool: Pool) -> float:
        """The group's target share; UsageError where the pool has no such place."""
        self._check(pool)
        return float(pool.targets[self.dimension][self.group])

    def members(self, pool: Pool) -> NDArray[np.bool_]:
        """Which candidates belong to the group, with whatever share, (n,); UsageError as `share`."""
        self._check(pool)
        return pool.memberships[self.dimension][:, 1 + self.group] > 0

    def _check(self, pool: Pool) -> None:
        sizes = [len(target) for target in pool.targets]
        if not (0 <= self.dimension < len(sizes) and 0 <= self.group < sizes[self.dimension]):
            raise UsageError(f"{self} is in none of the pool's dimensions, which have {sizes} known groups")


def most_lacking(pool: Pool, discount: Discount) -> ProtectedGroup | None:
    """The group of `measures.most_underexposed` in the first `pool.n` candidates; None where none lacks anything."""
    top = pool.ranking.top(pool.n)
    weights = discount(len(top))
    shares = [known_part(group_exposure(rows[: len(top)], weights)) for rows in pool.memberships]
    place = most_underexposed(shares, pool.targets)
    return ProtectedGroup(*place) if place else None


class ProtectedPart(Part):
    """A re-ranker that knows one protected group."""

    of_groups: ClassVar[bool] = True
    group: dict[str, str] = Field(default={}, max_length=1)
    """The protected group, e.g. {gender: female}. Empty: the one that lacks most exposure among the first n candidates;
    for `deltr`, in most of the topics that it learns from."""

    def check(self, site: Site) -> None:
        """Raise UsageError where there is no such group."""
        self.place(site)

    def place(self, site: Site) -> ProtectedGroup | None:
        """The group's place in a pool, None where none is named; UsageError where there is no such group."""
        collection = site.collection
        for dimension, label in self.group.items():
            dimensions = dimensions_of(collection, site.settings)
            if dimension not in dimensions:
                raise UsageError(f"group: {dimension!r} is none of the system's dimensions ({', '.join(dimensions)})")
            labels = collection.groups.labels(dimension)
            if label not in labels:
                raise UsageError(f"group: {label!r} is no group of {dimension!r}, which has: {', '.join(labels)}")
            return ProtectedGroup(dimensions.index(dimension), labels.index(label))
        return None
