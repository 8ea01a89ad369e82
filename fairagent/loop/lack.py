"""Which groups lack exposure, and by how much."""

from collections.abc import Sequence
from dataclasses import dataclass

from fairagent.types import Exposure, Group


@dataclass(frozen=True, slots=True)
class Lack:
    """A group that has less exposure than its share; `place` is its place among the groups of all dimensions."""

    group: Group
    place: int
    share: float
    target: float
    size: float

    def __str__(self) -> str:
        return f"{self.group} has {self.share:.0%} of the exposure, its share is {self.target:.0%}"


def lacking(exposures: Sequence[Exposure]) -> list[Lack]:
    """The groups that lack exposure, the one that lacks most first; by the importance of their dimensions."""
    found, place = [], 0
    for one in exposures:
        for label, share, target in zip(one.labels, one.shares.tolist(), one.target.tolist(), strict=True):
            size = one.importance * (target - share)
            if size > 0:
                found.append(Lack(Group(one.dimension, label), place, share, target, size))
            place += 1
    return sorted(found, key=lambda lack: -lack.size)
