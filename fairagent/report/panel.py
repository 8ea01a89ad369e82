"""One system on one topic: the story of its ranking, and the ranking with groups, relevance and keywords."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fairagent.evaluate.engine.outcome import GroupShares, HitRecord, Outcome, StepRecord
from fairagent.report.highlight import Pieces, highlighted, keywords_of
from fairagent.report.story import TOPIC_WORDS_SHOWN
from fairagent.report.text import percent
from fairagent.types import exposure_rows

Palette = Mapping[tuple[str, str], int]
"""(dimension, label) -> the number of its color."""


STEP_GROUPS = 24
"""With more groups than that in all dimensions, a step shows only the dimension that it was for."""


@dataclass(frozen=True, slots=True)
class Chip:
    """A group that a document belongs to; `text` has the share where it is not the same for all of its groups."""

    color: int | None
    text: str


@dataclass(frozen=True, slots=True)
class GroupBar:
    """The groups of one dimension as parts of one bar, above their targets: (color, SVG path) and all in words."""

    dimension: str
    parts: tuple[tuple[int | None, str], ...]
    words: str


@dataclass(frozen=True, slots=True)
class ShownHit:
    """One line of a ranking, as the page shows it.

    `moved` is how many ranks it rose from the baseline's, None where it was not there.
    """

    rank: int
    id: str
    title: Pieces
    snippet: str
    relevant: bool
    chips: tuple[Chip, ...]
    moved: int | None


@dataclass(frozen=True, slots=True)
class ShownStep:
    """One step of the story; `before` is the gap that it started from, `aim` (label, share before, after, target)."""

    record: StepRecord
    kind: str
    terms: tuple[tuple[str, float], ...]
    more: int
    before: float | None
    aim: tuple[str, float, float, float] | None
    exposures: tuple[GroupShares, ...]


@dataclass(frozen=True, slots=True)
class Panel:
    """One system on one topic; `gains` are its gains over the baseline by dimension."""

    system: int
    name: str
    outcome: Outcome
    steps: tuple[ShownStep, ...]
    exposures: tuple[GroupShares, ...]
    hits: tuple[ShownHit, ...]
    hidden: int
    gains: tuple[float | None, ...]


def panel_of(
    system: int,
    outcome: Outcome,
    colors: Palette,
    baseline: Mapping[str, int],
    shown: int,
    gained: tuple[float | None, ...],
) -> Panel:
    """What the page shows of `outcome`: the first `shown` documents, each with how far it rose.

    `system` is the system's number, `baseline` the ranks (id -> rank, from 1) of the baseline, `gained` the gains over
    it by dimension.
    """
    added = keywords_of(text for step in outcome.steps if step.accepted for text, _ in step.terms)
    hits = tuple(_hit(rank, hit, colors, added, baseline) for rank, hit in enumerate(outcome.hits[:shown], start=1))
    return Panel(
        system,
        outcome.system,
        outcome,
        tuple(_steps(outcome.steps)),
        outcome.exposures,
        hits,
        len(outcome.hits) - len(hits),
        gained,
    )


def _hit(rank: int, hit: HitRecord, colors: Palette, added: frozenset[str], baseline: Mapping[str, int]) -> ShownHit:
    before = baseline.get(hit.id)
    return ShownHit(
        rank,
        hit.id,
        highlighted(hit.title or hit.id, added),
        hit.snippet,
        hit.relevant,
        tuple(chip for dimension, shares in hit.groups.items() for chip in chips(dimension, shares, colors)),
        None if before is None else before - rank,
    )


def chips(dimension: str, shares: Mapping[str, float], colors: Palette) -> Iterable[Chip]:
    """The groups of one dimension that a document belongs to."""
    unequal = len(set(shares.values())) > 1
    for label, share in shares.items():
        yield Chip(colors.get((dimension, label)), f"{label} {percent(share)}" if unequal else label)


def _steps(steps: Sequence[StepRecord]) -> Iterable[ShownStep]:
    reached: StepRecord | None = None
    for step in steps:
        if reached is None:
            kind = "query"
        elif step.aim is None:
            kind = "expansion"
        else:
            kind = "refinement" if step.terms else "nothing"
        terms = step.terms if kind == "refinement" else step.terms[:TOPIC_WORDS_SHOWN]
        exposures = () if kind == "nothing" else tuple(e for e in step.exposures if _is_shown(e, step))
        aim = _aim(step, reached) if reached else None
        yield ShownStep(
            step, kind, terms, len(step.terms) - len(terms), reached.gap if reached else None, aim, exposures
        )
        reached = step if step.accepted else reached


def _is_shown(exposure: GroupShares, step: StepRecord) -> bool:
    groups = sum(len(each.labels) for each in step.exposures)
    return groups <= STEP_GROUPS or (step.aim or "").endswith(f" ({exposure.dimension})")


def _aim(step: StepRecord, before: StepRecord) -> tuple[str, float, float, float] | None:
    """What became of the group that the step was for; `aim` names it as `fairagent.types.Group` prints itself."""
    for was, now in zip(before.exposures, step.exposures, strict=False):
        for place, label in enumerate(was.labels):
            if step.aim == f"{label} ({was.dimension})":
                return step.aim, was.shares[place], now.shares[place], was.target[place]
    return None


def exposure_bar(exposure: GroupShares, colors: Palette) -> GroupBar:
    """One dimension's shares (above) and targets (below, thin) as a bar of 100 x 10, last what has no label.

    Where this has no target, the targets share what the groups have.

    >>> shares = GroupShares("gender", ("female", "male"), (0.25, 0.75), (0.5, 0.5), 0.0)
    >>> exposure_bar(shares, {("gender", "female"): 0, ("gender", "male"): 1}).parts[0]
    (0, 'M0 0h25v6.5h-25zM0 8h50v2h-50z')
    """
    parts: list[tuple[int | None, str]] = []
    share_from = target_from = 0.0
    rows = exposure_rows(exposure)
    of_known = 1 - exposure.unknown
    due_known = of_known if exposure.unknown_target is None else 1 - exposure.unknown_target
    for place, (label, share, target) in enumerate(rows):
        is_known = place < len(exposure.labels)
        width, due = (share * of_known, (target or 0) * due_known) if is_known else (share, target or 0)
        drawn = _part(share_from, width, "0", "6.5") + _part(target_from, due, "8", "2")
        if drawn:
            parts.append((colors.get((exposure.dimension, label)) if is_known else None, drawn))
        share_from, target_from = share_from + width, target_from + due
    words = ", ".join(
        f"{label} {percent(share)}" + ("" if target is None else f" (target {percent(target)})")
        for label, share, target in rows
        if share or target
    )
    return GroupBar(exposure.dimension, tuple(parts), f"{exposure.dimension}: {words}")


def _part(left: float, width: float, top: str, height: str) -> str:
    """A rectangle; nothing where it would not be seen."""
    if width < 0.0005:
        return ""
    return f"M{100 * left:.4g} {top}h{100 * width:.4g}v{height}h-{100 * width:.4g}z"
