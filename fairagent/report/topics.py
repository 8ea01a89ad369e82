"""The topics of the page: each with what every system made of it, and those that gained or lost most.

One system on one topic: the story of its ranking, and the ranking with groups, relevance and keywords.

What models were asked for each topic, as the page shows it: from the transcript beside the run.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from fairagent.evaluate.outcome import GroupShares, HitRecord, Outcome, StepRecord
from fairagent.evaluate.run import Run
from fairagent.llm.exchange import Exchange, read_transcript
from fairagent.report.series import gains, main_measure
from fairagent.report.story import TOPIC_WORDS_SHOWN
from fairagent.report.text import Pieces, highlighted, keywords_of, percent
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


ROWS = 8_000
"""How many lines all rankings of the page may have together, so that it stays a page."""
PANELS = 600
"""How many answers to questions the page may show."""
FEWEST_HITS, MOST_HITS = 10, 50
EXTREMES = 3
"""How many of the best and of the worst topics are named."""


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
    """All topics in the order of the run, then those that were excluded before anything ran.

    Of questions, of which benchmarks have thousands, only the first.
    """
    by_topic = run.by_topic
    shown = min(MOST_HITS, max(FEWEST_HITS, ROWS // max(1, len(run.outcomes))))
    if run.kind.classes:
        by_topic = dict(islice(by_topic.items(), max(1, PANELS // len(run.systems))))
    measures = [main_measure(run, dimension) for dimension in run.compared_in]
    gained = [gains(run, d, m) if m else {} for d, m in zip(run.compared_in, measures, strict=True)]
    views = []
    unseen = [] if run.kind.classes else [topic for topic in run.excluded if topic not in by_topic]
    for number, topic in enumerate([*by_topic, *unseen], start=1):
        outcomes = by_topic.get(topic, {})
        ranks = _ranks(outcomes.get(run.baseline))
        panels = {
            system: panel_of(
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
    by_topic = run.by_topic
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


LONGEST = 4_000
"""Characters of one text."""
MOST = 2_000_000
"""Characters of all exchanges of the page together, about."""

Asked = Mapping[tuple[str, str], Sequence["ShownExchange"]]
"""(topic, system) -> its exchanges, in the order of the transcript."""


@dataclass(frozen=True, slots=True)
class ShownExchange:
    """One exchange without times, which differ from run to run: (role, text) of each message, the reply, its tokens.

    `faults` are why attempts, or all of it, came to nothing.
    """

    prompt: str
    messages: tuple[tuple[str, str], ...]
    reply: str
    faults: tuple[str, ...]
    input_tokens: int
    output_tokens: int


def shown_exchanges(path: Path) -> Asked:
    """The exchanges of a transcript; of the same question to the same end only the last, which may be from the cache.

    Long texts are cut, and what would make the page too large is left out: all of it is in the file. Nothing where
    there is none.
    """
    last: dict[tuple[str, str], dict[object, ShownExchange]] = {}
    for one in read_transcript(path):
        if one and one.topic:
            last.setdefault((one.topic, one.system), {})[one.prompt, one.messages] = _shown(one)
    found, room = {}, MOST
    for key, exchanges in last.items():
        listed = list(exchanges.values())
        room -= sum(len(one.reply) + sum(len(text) for _, text in one.messages) for one in listed)
        if room < 0:
            break
        found[key] = listed
    return found


def _shown(one: Exchange) -> ShownExchange:
    messages = tuple((role, _cut(text)) for role, text in one.messages)
    faults = (*(attempt.error for attempt in one.attempts), *([one.error] if one.error else []))
    return ShownExchange(one.prompt, messages, _cut(one.text), faults, one.input_tokens, one.output_tokens)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text) - LONGEST:,} more characters)"
