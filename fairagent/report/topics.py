"""The topics of the page: each with what every system made of it, and those that gained or lost most."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from fairagent.evaluate.engine.exposures import outcomes_by_topic
from fairagent.evaluate.engine.outcome import Outcome
from fairagent.evaluate.engine.run import Run
from fairagent.report.panel import Palette, Panel, panel_of
from fairagent.report.series import gains, main_measure

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
    by_topic = outcomes_by_topic(run)
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
