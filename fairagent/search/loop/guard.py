"""The guard: what a loop would serve is compared with the engine's own list, so that nobody is served worse unseen."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from fairagent.collection.exposure import ExposureMeter, finite_gaps, worse_dimensions
from fairagent.errors import WorseThanEngine
from fairagent.types import Exposure, Ranking
from fairagent.types.common import UNLABELED, WORSE, Alarm

UNLABELED_OFF = 0.05
"""By how much the exposure of documents without a label may differ from their target before an alarm says so."""

OnWorse = Literal["keep", "engine", "error"]


@dataclass(frozen=True, slots=True, eq=False)
class Guarded:
    """The list that is served, with notes on it; `alarms` where it, or what it takes the place of, is worse."""

    ranking: Ranking
    notes: tuple[str, ...] = ()
    alarms: tuple[Alarm, ...] = ()


@dataclass(frozen=True, slots=True)
class Guard:
    """What is worse than the engine's own list, and what is done about it.

    In each dimension the served list may be less fair by `worse` (nats, by how much the dimension applies), and at
    least the share `floor` (0 to 1) of the relevance has to remain, as `retained_relevance` estimates it. `on_worse`:
    "keep" serves the list all the same, "engine" the engine's own, "error" raises WorseThanEngine.
    """

    on_worse: OnWorse = "engine"
    worse: float = 0.05
    floor: float = 0.4

    def complaint(self, served: Ranking, own: Ranking, deep: Ranking, meter: ExposureMeter) -> str:
        """In what `served` is worse than `own`, the head of the engine's list `deep`; "" where it is not."""
        now, before = meter.measure(served), meter.measure(own)
        complaints = [
            f"less fair in {exposure.dimension}, a gap of {gap:.3f}, the engine's is {was:.3f}"
            for exposure, gap, was in zip(now, finite_gaps(now), finite_gaps(before), strict=True)
            if gap - was > self.worse
        ]
        retained = retained_relevance(served, own, deep)
        if retained < self.floor:
            complaints.append(f"less relevant, with {retained:.0%} of what its list has by its own scores")
        return "; ".join(complaints)

    def choose(
        self, served: Ranking, own: Ranking, deep: Ranking, meter: ExposureMeter, stricter: Callable[[], Ranking | None]
    ) -> Guarded:
        """What the user gets: `served`, or with "engine" what is no worse than `own`.

        A `stricter` list, which gives exposure more weight, is tried before the engine's own. Raises WorseThanEngine.
        """
        complaint = self.complaint(served, own, deep, meter) if len(served) else ""
        if not complaint:
            return Guarded(served)
        if self.on_worse == "error":
            raise WorseThanEngine(f"what would be served is worse than the engine's own list: {complaint}")
        if self.on_worse == "keep":
            return Guarded(served, alarms=(Alarm(WORSE, f"{complaint}; it is served all the same"),))
        strict = stricter()
        if strict is not None and not self.complaint(strict, own, deep, meter):
            return Guarded(strict, (f"exposure was given more weight: the list was {complaint}",))
        return Guarded(own, alarms=(Alarm(WORSE, f"{complaint}; the engine's own list is served"),))


def less_fair(own: Sequence[Exposure], served: Sequence[Exposure]) -> tuple[str, ...]:
    """The dimensions in which what is served is less fair than the engine's own list, each as a note, however little.

    So are those that hardly apply to the query, and do not count.
    """
    worse = worse_dimensions(own, [replace(one, importance=1.0) for one in served])
    return tuple(
        f"less fair than the engine's own list in {after.dimension}: "
        f"a gap of {after.divergence:.4f}, the engine's is {was.divergence:.4f}"
        for was, after in zip(own, served, strict=True)
        if after.dimension in worse
    )


def unlabeled_off(served: Sequence[Exposure]) -> tuple[Alarm, ...]:
    """That documents without a label get more or less of the exposure than they should, an alarm a dimension."""
    return tuple(
        Alarm(
            UNLABELED,
            f"in {one.dimension} documents without a label get {one.unknown:.0%} of the exposure, "
            f"their target is {one.unknown_target:.0%}",
        )
        for one in served
        if one.unknown_target is not None and abs(one.unknown - one.unknown_target) > UNLABELED_OFF
    )


def moved_by_types(before: ExposureMeter, after: ExposureMeter) -> tuple[str, ...]:
    """Where types of documents have changed what those without a label should get, a note a dimension."""
    pairs = zip(after.targets, before.unlabeled, after.unlabeled, strict=False)
    dues = [(one.dimension, was.shares.sum(), now.shares.sum()) for one, was, now in pairs if was and now]
    return tuple(
        f"in {dimension} the target of documents without a label is {now:.0%}, not the {was:.0%} of the engine's list: "
        f"the query asks for the type of documents that {'have labels' if now < was else 'have none'}"
        for dimension, was, now in dues
        if abs(now - was) > UNLABELED_OFF
    )


def retained_relevance(served: Ranking, own: Ranking, deep: Ranking) -> float:
    """The mean of the engine's scores in `served` over that in `own`, 0 being the last score of its list `deep`.

    A document that the engine's list lacks counts as its last. 1 where all its scores are alike.
    """
    if not len(own):
        return 1.0
    least = float(deep.scores[-1])
    of = dict(zip(deep.ids, (deep.scores - least).tolist(), strict=True))
    best = sum(of[id] for id in own.ids) / len(own)
    return sum(of.get(id, 0.0) for id in served.ids) / len(served) / best if best > 0 else 1.0
