"""The topics of the page as one JSON object, which the page's script draws when a topic is opened.

What occurs often is written once: documents, keywords, sources, reasons, targets and the lists of labels are in tables,
and stand elsewhere as their number. Shares have four decimals. Every text is cleaned here, and the script shows it as
nothing but text.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from markupsafe import Markup

from fairagent.evaluate.findings import main_measure
from fairagent.evaluate.outcome import GroupShares, HitRecord, Outcome, StepRecord
from fairagent.evaluate.run import Run
from fairagent.report.story import TOPIC_WORDS_SHOWN
from fairagent.report.text import gap_text, money
from fairagent.types import exposure_rows
from fairagent.types.change import percent
from fairagent.types.clean import printable

STEP_GROUPS = 24
"""With more groups than that in all dimensions, a step shows only the dimension that it was for."""
ROWS = 8_000
"""How many lines all rankings of the page may have together, so that it stays a page."""
PANELS = 600
"""How many answers to questions the page may show."""
FEWEST_HITS, MOST_HITS = 10, 50
SNIPPETS = 1_500_000
"""Characters of all snippets of the page together, about."""
SHORTEST_SNIPPET = 60

Palette = Mapping[tuple[str, str], int]
"""(dimension, label) -> the number of its color."""
Record = dict[str, Any]


# --- groups ---------------------------------------------------------------------------------------------------------


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


def chips(groups: Mapping[str, Mapping[str, float]], colors: Palette) -> tuple[Chip, ...]:
    """The groups that a document belongs to: dimension -> label -> share."""
    return tuple(
        Chip(colors.get((dimension, label)), f"{label} {percent(share)}" if len(set(shares.values())) > 1 else label)
        for dimension, shares in groups.items()
        for label, share in shares.items()
    )


def exposure_bar(exposure: GroupShares, colors: Palette) -> GroupBar:
    """One dimension's shares (above) and targets (below, thin) as a bar of 100 x 10, last what has no label."""
    parts: list[tuple[int | None, str]] = []
    share_from = target_from = 0.0
    rows = exposure_rows(exposure)
    of_known = 1 - exposure.unknown
    due_known = of_known if exposure.unknown_target is None else 1 - exposure.unknown_target
    for place, (label, share, target) in enumerate(rows):
        is_known = place < len(exposure.labels)
        width, due = (share * of_known, (target or 0) * due_known) if is_known else (share, target or 0)
        drawn = _rectangle(share_from, width, "0", "6.5") + _rectangle(target_from, due, "8", "2")
        if drawn:
            parts.append((colors.get((exposure.dimension, label)) if is_known else None, drawn))
        share_from, target_from = share_from + width, target_from + due
    words = ", ".join(
        f"{label} {percent(share)}" + ("" if target is None else f" (target {percent(target)})")
        for label, share, target in rows
        if share or target
    )
    return GroupBar(exposure.dimension, tuple(parts), f"{exposure.dimension}: {words}")


def _rectangle(left: float, width: float, top: str, height: str) -> str:
    """Its path; nothing where it would not be seen."""
    return "" if width < 0.0005 else f"M{100 * left:.4g} {top}h{100 * width:.4g}v{height}h-{100 * width:.4g}z"


# --- topics ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TopicView:
    """One topic: number of the system -> its outcome (the baseline's first), and its gains by dimension."""

    number: int
    id: str
    query: str
    excluded: str | None
    outcomes: Mapping[int, Outcome]
    gains: Mapping[int, tuple[float | None, ...]]


def topic_views(run: Run) -> tuple[TopicView, ...]:
    """All topics in the order of the run (of questions the first), then those excluded before anything ran."""
    by_topic = run.by_topic
    if run.kind.classes:
        by_topic = dict(islice(by_topic.items(), max(1, PANELS // len(run.systems))))
    measures = [main_measure(run, dimension) for dimension in run.compared_in]
    gained = [gains(run, d, m) if m else {} for d, m in zip(run.compared_in, measures, strict=True)]
    views = []
    order = sorted(range(len(run.systems)), key=lambda number: run.systems[number] != run.baseline)
    unseen = [] if run.kind.classes else [topic for topic in run.excluded if topic not in by_topic]
    for number, topic in enumerate([*by_topic, *unseen], start=1):
        of_topic = by_topic.get(topic, {})
        outcomes = {system: of_topic[name] for system in order if (name := run.systems[system]) in of_topic}
        of_system = {
            system: tuple(of_dimension.get(one.system, {}).get(topic) for of_dimension in gained)
            for system, one in outcomes.items()
        }
        query = next((outcome.query for outcome in of_topic.values()), "")
        views.append(TopicView(number, topic, query, run.excluded.get(topic), outcomes, of_system))
    return tuple(views)


def gains(run: Run, dimension: str, measure: str) -> dict[str, dict[str, float]]:
    """System -> topic -> by how much it is better than the baseline, where both have a value."""
    outcomes = run.by_topic
    gained: dict[str, dict[str, float]] = {system: {} for system in run.systems if system != run.baseline}
    for topic in run.counted_topics:
        values = {name: one.values.get(dimension, {}).get(measure) for name, one in outcomes[topic].items()}
        base = values[run.baseline]
        for system, of_system in gained.items():
            value = values[system]
            if base is not None and value is not None:
                of_system[topic] = run.gain(measure, value, base)
    return gained


# --- JSON -----------------------------------------------------------------------------------------------------------


def topics_json(run: Run, views: Sequence[TopicView], columns: Sequence[tuple[str, str]], colors: Palette) -> Markup:
    """All topics for a script element: nothing in it ends that element."""
    tables = TopicTables(colors, min(MOST_HITS, max(FEWEST_HITS, ROWS // max(1, len(run.outcomes)))))
    topics = [
        {
            "id": view.id,
            "query": view.query,
            "excluded": view.excluded,
            "panels": [tables.panel(view, system, columns, run.baseline) for system in view.outcomes],
        }
        for view in views
    ]
    whole = {
        "ranked": not run.kind.classes,
        "baseline": run.systems.index(run.baseline),
        "documents": tables.documents,
        "snippets": cut(tables.snippets),
        "scales": list(tables.scales),
        "texts": list(tables.texts),
        "topics": topics,
    }
    text = json.dumps(_clean(whole), separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c"))


class TopicTables:
    """What is written once, in the order of its first use; of a ranking the first `most` documents are shown."""

    def __init__(self, colors: Palette, most: int = MOST_HITS) -> None:
        self.documents: list[Any] = []
        self.snippets: list[str] = []
        self.scales: dict[tuple[Any, ...], int] = {}
        self.texts: dict[str, int] = {}
        self._places: dict[object, int] = {}
        self._colors = colors
        self._most = most

    def text(self, text: str | None) -> int | None:
        """The number of a text that occurs often; None where there is none."""
        return self.texts.setdefault(text, len(self.texts)) if text else None

    def exposure(self, exposure: GroupShares) -> list[Any]:
        """The dimension with its labels, colors and target as a number; the shares; what has no label (its target)."""
        numbers = tuple(self._colors.get((exposure.dimension, label)) for label in exposure.labels)
        scale = (exposure.dimension, tuple(exposure.labels), numbers, tuple(map(_short, exposure.target)))
        place = self.scales.setdefault(scale, len(self.scales))
        *known, unknown = exposure_rows(exposure)
        due = [] if unknown.target is None else [_short(unknown.target)]
        return [place, [_short(row.share) for row in known], _short(unknown.share), *due]

    def panel(self, view: TopicView, system: int, columns: Sequence[tuple[str, str]], baseline: str) -> Record:
        """One system on one topic: its values and gains, the story of its ranking, and the ranking."""
        outcome, answer = view.outcomes[system], view.outcomes[system].answer
        values = [outcome.values.get(dimension, {}).get(measure) for dimension, measure in columns]
        tokens = [outcome.input_tokens, outcome.output_tokens, money(outcome.cost)] if outcome.calls else []
        before = next((one.hits for one in view.outcomes.values() if one.system == baseline), ())
        ranks = {hit.id: rank for rank, hit in enumerate(before, start=1)}
        return _filled(
            {
                "system": system,
                "values": [None if value is None else round(value, 4) for value in values],
                "gains": [None if gain is None else round(gain, 6) for gain in view.gains[system]],
                "failed": outcome.failed,
                "query": outcome.query if outcome.query != view.query else None,
                "answer": answer and [answer.text, answer.graded_by, list(answer.removed)],
                "steps": list(self.steps(outcome.steps)),
                "stopped": self.text(outcome.stopped),
                "took": [outcome.calls, *tokens],
                "exposures": [self.exposure(exposure) for exposure in outcome.exposures],
                "hits": [
                    self.hit(hit, rank, ranks.get(hit.id))
                    for rank, hit in enumerate(outcome.hits[: self._most], start=1)
                ],
                "hidden": max(0, len(outcome.hits) - self._most) or None,
            }
        )

    def hit(self, hit: HitRecord, rank: int, before: int | None) -> list[Any]:
        """The document, whether it is relevant, and how far it rose."""
        title, groups = hit.title or hit.id, chips(hit.groups, self._colors)
        place = self._places.setdefault((title, hit.snippet, groups), len(self.documents))
        if place == len(self.documents):
            self.documents.append([title, [[chip.color, chip.text] for chip in groups]])
            self.snippets.append(hit.snippet)
        return [place, int(hit.relevant), None if before is None else before - rank]

    def steps(self, steps: Sequence[StepRecord]) -> Iterable[Record]:
        """The steps of a story; "was" is what became of the group that a step was for: its share, then, and target."""
        reached: StepRecord | None = None
        for step in steps:
            refined = reached is not None and step.aim is not None
            terms = step.terms if refined else step.terms[:TOPIC_WORDS_SHOWN]
            was = _aim(step, reached) if reached else None
            exposures = [] if refined and not terms else [one for one in step.exposures if _is_shown(one, step)]
            yield _filled(
                {
                    "source": self.text(step.source),
                    "aim": self.text(step.aim),
                    "was": was and list(map(_short, was)),
                    "terms": [[self.text(text), f"{weight:.2g}"] for text, weight in terms],
                    "more": len(step.terms) - len(terms) or None,
                    "dropped": list(step.dropped),
                    "refused": list(step.refused),
                    "proposed": f"{step.usable} of {step.proposed}" if step.proposed else None,
                    "why": self.text(step.why),
                    "reason": self.text(step.reason),
                    "gap": gap_text(step.gap),
                    "discarded": not step.accepted,
                    "worse": list(step.worse),
                    "entered": step.entered or None,
                    "exposures": [self.exposure(exposure) for exposure in exposures],
                }
            )
            reached = step if step.accepted else reached


def _is_shown(exposure: GroupShares, step: StepRecord) -> bool:
    groups = sum(len(each.labels) for each in step.exposures)
    return groups <= STEP_GROUPS or (step.aim or "").endswith(f" ({exposure.dimension})")


def _aim(step: StepRecord, before: StepRecord) -> tuple[float, float, float] | None:
    """Share before, share after and target of the step's group, named as `fairagent.types.Group` prints itself."""
    for was, now in zip(before.exposures, step.exposures, strict=False):
        for place, label in enumerate(was.labels):
            if step.aim == f"{label} ({was.dimension})":
                return was.shares[place], now.shares[place], was.target[place]
    return None


def cut(snippets: list[str]) -> list[str]:
    """The snippets, so short that the page stays a page; none where too little would be left of them."""
    length = SNIPPETS // max(1, len(snippets))
    return [text[:length] for text in snippets] if length >= SHORTEST_SNIPPET else []


def _filled(record: Record) -> Record:
    """What there is of it; a number that is 0 is there."""
    return {key: value for key, value in record.items() if value or type(value) is int}


def _short(share: float) -> float:
    """Four decimals are more than is drawn; what is there does not become nothing."""
    return round(share, 4) or (0.0001 if share > 0 else 0)


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {key: _clean(part) for key, part in value.items()}
    return [_clean(part) for part in value] if isinstance(value, list | tuple) else value
