"""What the page says of one topic: its values, how each system got to its ranking, and the rankings themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fairagent.evaluate.run import GroupShares, HitRecord, Outcome, Run, StepRecord
from fairagent.report.highlight import Pieces, highlighted, keywords_of
from fairagent.report.series import gains, main_measure, outcomes_by_topic
from fairagent.report.story import TOPIC_WORDS_SHOWN
from fairagent.report.text import percent

ROWS = 12_000
"""How many lines all rankings of the page may have together, so that it stays a page."""
FEWEST_HITS, MOST_HITS = 10, 50
EXTREMES = 3
"""How many of the best and of the worst topics are named."""

Palette = Mapping[tuple[str, str], int]
"""(dimension, label) -> the number of its color."""


@dataclass(frozen=True, slots=True)
class Chip:
    """A group that a document belongs to; `text` has the share where it is not the same for all of its groups."""

    color: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Bar:
    """The groups of one dimension as parts of one bar, above their targets: (color, SVG path) and all in words."""

    dimension: str
    parts: tuple[tuple[int | None, str], ...]
    words: str


@dataclass(frozen=True, slots=True)
class HitLine:
    """One line of a ranking; `moved` is how many ranks it rose from the baseline's, None where it was not there."""

    rank: int
    id: str
    title: Pieces
    relevant: bool
    chips: tuple[Chip, ...]
    moved: int | None


@dataclass(frozen=True, slots=True)
class StepLine:
    """One step of the story; `before` is the gap that it started from, `aim` (label, share before, after, target)."""

    record: StepRecord
    kind: str
    terms: tuple[tuple[str, float], ...]
    more: int
    before: float | None
    aim: tuple[str, float, float, float] | None
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Panel:
    """One system on one topic; `gains` are its gains over the baseline by dimension."""

    system: int
    name: str
    outcome: Outcome
    steps: tuple[StepLine, ...]
    bars: tuple[Bar, ...]
    hits: tuple[HitLine, ...]
    hidden: int
    gains: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class TopicView:
    """One topic with the panels of all systems that have run it, the baseline's apart."""

    number: int
    id: str
    query: str
    excluded: str | None
    baseline: Panel | None
    others: tuple[Panel, ...]

    @property
    def panels(self) -> tuple[Panel, ...]:
        """All panels, the baseline's first."""
        return (*((self.baseline,) if self.baseline else ()), *self.others)


@dataclass(frozen=True, slots=True)
class Extreme:
    """A topic that gained or lost much: by how much, from what to what."""

    topic: TopicView
    gain: float
    before: float
    after: float


def palette(run: Run) -> Palette:
    """Every group's color number, the dimensions' labels one after the other."""
    groups = dict.fromkeys(
        (exposure.dimension, label)
        for outcome in run.outcomes
        for exposure in (*outcome.exposures, *(e for step in outcome.steps for e in step.exposures))
        for label in exposure.labels
    )
    order = {dimension: place for place, dimension in enumerate(run.dimensions)}
    ordered = sorted(groups, key=lambda group: order.get(group[0], len(order)))
    return {group: number for number, group in enumerate(ordered)}


def topic_views(run: Run, colors: Palette) -> tuple[TopicView, ...]:
    """All topics in the order of the run, then those that were excluded before anything ran."""
    by_topic = outcomes_by_topic(run)
    shown = min(MOST_HITS, max(FEWEST_HITS, ROWS // max(1, len(run.outcomes))))
    measures = [main_measure(run, dimension) for dimension in run.dimensions]
    gained = [gains(run, d, m) if m else {} for d, m in zip(run.dimensions, measures, strict=True)]
    views = []
    for number, topic in enumerate([*by_topic, *(topic for topic in run.excluded if topic not in by_topic)], start=1):
        outcomes = by_topic.get(topic, {})
        ranks = _ranks(outcomes.get(run.baseline))
        panels = {
            system: _panel(
                run.systems.index(system),
                outcome,
                colors,
                ranks,
                shown,
                tuple(of_dimension.get(system, {}).get(topic) for of_dimension in gained),
            )
            for system, outcome in outcomes.items()
            if system in run.systems
        }
        query = next((outcome.query for outcome in outcomes.values()), "")
        others = tuple(panels[system] for system in run.systems if system in panels and system != run.baseline)
        views.append(TopicView(number, topic, query, run.excluded.get(topic), panels.get(run.baseline), others))
    return tuple(views)


def extremes(
    run: Run, views: Sequence[TopicView], dimension: str, measure: str, system: str
) -> tuple[tuple[Extreme, ...], tuple[Extreme, ...]]:
    """The topics with the largest gains and with the largest losses of `system`, the largest first.

    Ties go to the topic that stands earlier. What did not change is neither.
    """
    by_topic = outcomes_by_topic(run)
    of_id = {view.id: view for view in views}
    found = [
        Extreme(
            of_id[topic],
            gain,
            by_topic[topic][run.baseline].values[dimension][measure],
            by_topic[topic][system].values[dimension][measure],
        )
        for topic, gain in gains(run, dimension, measure)[system].items()
    ]
    best = sorted((e for e in found if e.gain > 0), key=lambda e: -e.gain)[:EXTREMES]
    worst = sorted((e for e in found if e.gain < 0), key=lambda e: e.gain)[:EXTREMES]
    return tuple(best), tuple(worst)


def _ranks(outcome: Outcome | None) -> dict[str, int]:
    return {hit.id: rank for rank, hit in enumerate(outcome.hits, start=1)} if outcome else {}


def _panel(
    system: int,
    outcome: Outcome,
    colors: Palette,
    baseline: Mapping[str, int],
    shown: int,
    gained: tuple[float | None, ...],
) -> Panel:
    added = keywords_of(text for step in outcome.steps if step.accepted for text, _ in step.terms)
    hits = tuple(
        _hit(rank, hit, colors, added, baseline) for rank, hit in enumerate(outcome.hits[:shown], start=1)
    )
    return Panel(
        system,
        outcome.system,
        outcome,
        tuple(_steps(outcome.steps, colors)),
        tuple(exposure_bar(exposure, colors) for exposure in outcome.exposures),
        hits,
        len(outcome.hits) - len(hits),
        gained,
    )


def _hit(rank: int, hit: HitRecord, colors: Palette, added: frozenset[str], baseline: Mapping[str, int]) -> HitLine:
    before = baseline.get(hit.id)
    return HitLine(
        rank,
        hit.id,
        highlighted(hit.title or hit.id, added),
        hit.relevant,
        tuple(chip for dimension, shares in hit.groups.items() for chip in _chips(dimension, shares, colors)),
        None if before is None else before - rank,
    )


def _chips(dimension: str, shares: Mapping[str, float], colors: Palette) -> Iterable[Chip]:
    unequal = len(set(shares.values())) > 1
    for label, share in shares.items():
        yield Chip(colors.get((dimension, label)), f"{label} {percent(share)}" if unequal else label)


def _steps(steps: Sequence[StepRecord], colors: Palette) -> Iterable[StepLine]:
    reached: StepRecord | None = None
    for step in steps:
        if reached is None:
            kind = "query"
        elif step.aim is None:
            kind = "expansion"
        else:
            kind = "refinement" if step.terms else "nothing"
        terms = step.terms if kind == "refinement" else step.terms[:TOPIC_WORDS_SHOWN]
        bars = () if kind == "nothing" else tuple(exposure_bar(exposure, colors) for exposure in step.exposures)
        aim = _aim(step, reached) if reached else None
        yield StepLine(step, kind, terms, len(step.terms) - len(terms), reached.gap if reached else None, aim, bars)
        reached = step if step.accepted else reached


def _aim(step: StepRecord, before: StepRecord) -> tuple[str, float, float, float] | None:
    """What became of the group that the step was for; `aim` names it as `fairagent.types.Group` prints itself."""
    for was, now in zip(before.exposures, step.exposures, strict=False):
        for place, label in enumerate(was.labels):
            if step.aim == f"{label} ({was.dimension})":
                return step.aim, was.shares[place], now.shares[place], was.target[place]
    return None


def exposure_bar(exposure: GroupShares, colors: Palette) -> Bar:
    """One dimension's shares (above) and targets (below, thin) as a bar of 100 x 10.

    >>> shares = GroupShares("gender", ("female", "male"), (0.25, 0.75), (0.5, 0.5), 0.0)
    >>> exposure_bar(shares, {("gender", "female"): 0, ("gender", "male"): 1}).parts[0]
    (0, 'M0 0h25v6.5h-25zM0 8h50v2h-50z')
    """
    parts: list[tuple[int | None, str]] = []
    share_from = target_from = 0.0
    for label, share, target in zip(exposure.labels, exposure.shares, exposure.target, strict=True):
        drawn = _part(share_from, share, "0", "6.5") + _part(target_from, target, "8", "2")
        if drawn:
            parts.append((colors.get((exposure.dimension, label)), drawn))
        share_from, target_from = share_from + share, target_from + target
    rows = zip(exposure.labels, exposure.shares, exposure.target, strict=True)
    words = ", ".join(f"{label} {percent(share)} (target {percent(target)})" for label, share, target in rows)
    unknown = f", no label {percent(exposure.unknown)}" if exposure.unknown else ""
    return Bar(exposure.dimension, tuple(parts), f"{exposure.dimension}: {words}{unknown}")


def _part(left: float, width: float, top: str, height: str) -> str:
    """A rectangle; nothing where it would not be seen."""
    if width < 0.0005:
        return ""
    return f"M{100 * left:.4g} {top}h{100 * width:.4g}v{height}h-{100 * width:.4g}z"
