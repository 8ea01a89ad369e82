"""What a run has found: in each dimension the best system beside the baseline, the verdict, results by query group."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, astuple, dataclass
from itertools import groupby
from typing import Any, Literal

import numpy as np

from fairagent.collection import Collection
from fairagent.evaluate.comparison import Comparison, bootstrap_intervals, smallest_p, tested
from fairagent.evaluate.outcome import GroupShares
from fairagent.evaluate.run import MeanExposure, Results
from fairagent.evaluate.tables import Column, PlotLine, PlotPoint, Table, p_phrase
from fairagent.measures import AWRF, Measure, Product, awrf_bounds, jensen_shannon
from fairagent.measures.base import seeded
from fairagent.measures.expected_exposure import fitted_line
from fairagent.measures.parse import is_measure, leading_measure, short_labels
from fairagent.measures.unawareness import mean_under_error
from fairagent.types import FloatArray, exposure_rows
from fairagent.types.change import SHOWN_CHANGE, ExposureChange, Verdict, as_verdict, exposure_change, seen_change
from fairagent.types.clean import in_line
from fairagent.types.common import counted

RELEVANCE = ""
"""The dimension of measures of relevance alone."""


def comparisons_of(run: Results, dimension: str) -> dict[tuple[str, str], Comparison]:
    """The comparisons in one dimension as (system, measure) -> comparison."""
    return {(c.system, c.measure): c for c in run.comparisons if c.dimension == dimension}


def main_measure(run: Results, dimension: str) -> str | None:
    """The `leading_measure` of a dimension, of those that it was measured by."""
    return leading_measure([measure for measure in run.measures if (dimension, measure) in run.columns])


def best_mean(run: Results, rows: Sequence[Comparison]) -> float | None:
    """The best mean of a measure among systems that did not look at the judgments; None where nothing is better."""
    honest = [row for row in rows if row.system not in run.oracle_systems]
    if len(honest) < 2 or honest[0].measure in run.neutral:
        return None
    return max(honest, key=lambda row: run.gain(row.measure, row.mean)).mean


def mark(run: Results, row: Comparison) -> str:
    """A + or - for a system that is better or worse than the baseline (`tested`)."""
    return {"better": "+", "worse": "-", "": ""}[_tested(run, row)]


def _tested(run: Results, row: Comparison) -> Literal["better", "worse", ""]:
    difference = None if row.measure in run.neutral else row.difference
    return tested(row.randomization_holm, difference and run.gain(row.measure, difference))


@dataclass(frozen=True, slots=True)
class Tested:
    """The difference of a system from the baseline over `topics` topics, and what its test says (`tested`).

    `low` and `high` are the ends of its 95 % bootstrap interval, for which topics are resampled. `p` is that of the
    randomization test after Holm over the systems, `least` the smallest that it can say.
    """

    measure: str
    label: str
    difference: float
    low: float
    high: float
    topics: int
    p: float | None
    says: Literal["better", "worse", ""]
    least: float = 0.0

    def __str__(self) -> str:
        difference = f"{self.label} {self.difference:+.4f}"
        if self.p is None:
            return f"{difference}, {counted(self.topics, 'topic')}: not tested"
        p = f"{p_phrase(self.p, self.least)} after Holm"
        return f"{difference}, 95 % interval {self.low:+.4f} to {self.high:+.4f}, {p}"

    @property
    def fairness(self) -> Verdict:
        words: dict[str, Verdict] = {"better": "fairer", "worse": "less fair"}
        return words.get(self.says, "no measurable difference")


def tested_difference(run: Results, row: Comparison) -> Tested:
    """The paired test of a system, not the baseline, by one measure."""
    differences = [
        run.by_topic[topic][row.system].values[row.dimension][row.measure] - base[row.measure]
        for topic in run.counted_topics
        if row.measure in (base := run.by_topic[topic][run.baseline].values.get(row.dimension, {}))
    ]
    drawn = seeded(run.kind.seed, "difference", row.dimension, row.measure)
    low, high = bootstrap_intervals(np.array([differences]), drawn)
    return Tested(
        row.measure,
        short_labels(run.measures)[row.measure],
        float(row.difference or 0.0),
        float(low[0]),
        float(high[0]),
        row.topics,
        row.randomization_holm,
        _tested(run, row),
        smallest_p(row.topics) * (len(run.systems) - 1),
    )


@dataclass(frozen=True, slots=True)
class Finding:
    """The best system without a look at the judgments beside the baseline, by the `main_measure` and by `others`.

    `test` is of the main measure, `fairness` of the first AWRF of a dimension, or else of its first measure of groups
    alone; None where there is none.
    """

    dimension: str
    best: Comparison
    baseline: Comparison
    test: Tested
    fairness: Tested | None
    others: tuple[tuple[Comparison, Comparison], ...]
    exposures: tuple[MeanExposure, MeanExposure] | None

    def record(self) -> dict[str, Any]:
        """The finding as plain values, with the verdict in words."""
        tests = {"test": asdict(self.test), "fairness": self.fairness and asdict(self.fairness)}
        verdict = self.fairness.fairness if self.fairness and self.fairness.p is not None else None
        return {"dimension": self.dimension, "system": self.best.system, "verdict": verdict, **tests}


def findings(run: Results) -> tuple[Finding, ...]:
    """One finding a dimension in which the baseline and another system that saw no judgments were measured."""

    def every() -> Iterator[Finding]:
        for dimension in run.compared_in:
            compared, measure = comparisons_of(run, dimension), main_measure(run, dimension) or ""
            honest = [name for name in run.systems if name not in (run.baseline, *run.oracle_systems)]
            others = [compared[name, measure] for name in honest if (name, measure) in compared]
            if others and (run.baseline, measure) in compared:
                yield finding_of(run, dimension, max(others, key=lambda row: run.gain(row.measure, row.mean)))

    known: tuple[Finding, ...] = run.memo.get("findings", lambda: tuple(every()))
    return known


def finding_of(run: Results, dimension: str, best: Comparison) -> Finding:
    """The finding about one system in a dimension, whose main measure `best` is."""
    compared = comparisons_of(run, dimension)
    pairs = [
        (rows[best.system, other], rows[run.baseline, other])
        for rows in ((comparisons_of(run, RELEVANCE), compared) if dimension else (compared,))
        for other in run.measures
        if other != best.measure and {(best.system, other), (run.baseline, other)} <= rows.keys()
    ]
    exposures = {run.systems[mean.system]: mean for mean in run.mean_exposures(dimension)}
    both = {run.baseline, best.system} <= exposures.keys()
    of_groups = [
        row
        for row in (best, *(row for row, _ in pairs))
        if dimension and row.dimension == dimension and row.measure not in run.neutral and "*" not in row.measure
    ]
    fairness = next((row for row in of_groups if is_measure(row.measure, "AWRF")), next(iter(of_groups), None))
    return Finding(
        dimension,
        best,
        compared[run.baseline, best.measure],
        tested_difference(run, best),
        tested_difference(run, fairness) if fairness else None,
        tuple(pairs),
        (exposures[run.baseline], exposures[best.system]) if both else None,
    )


def change_of(run: Results, finding: Finding) -> ExposureChange | None:
    """What the best system changes for the groups, as means over the topics; None where no exposure was measured.

    The verdict is that of the test of fairness; a single topic can only be looked at (`seen_change`).
    """
    if finding.exposures is None:
        return None
    before, after = map(exposure_rows, finding.exposures)
    about: dict[str, Any] = {"source": run.targets.get(finding.dimension, "").partition(" ")[0]}
    if (test := finding.fairness) and test.p is None:
        about["verdict"] = seen_change(before, after, -run.gain(test.measure, test.difference))
    elif test:
        about |= {"verdict": test.fairness, "test": str(test)}
    return exposure_change(finding.dimension, before, after, **about)


def changes_by(run: Results, system: str) -> list[ExposureChange]:
    """What one system changes for the groups of each dimension in which it was measured, as `change_of`."""
    changes = []
    for dimension in run.dimensions:
        row = comparisons_of(run, dimension).get((system, main_measure(run, dimension) or ""))
        if row and (change := change_of(run, finding_of(run, dimension, row))):
            changes.append(change)
    return changes


UNLABELED_LESS = 0.02
"""By how much less attention a system gives documents without a label, for that to say anything of it."""


def better_systems(run: Results, system: str, collection: Collection) -> Iterator[str]:
    """Which systems are best by a measure by which `system` is not, and why: a sentence for each.

    What one is better at it may buy with relevance, or by passing over documents without a label: how many of these are
    relevant, or of a type that can have one, says what that is worth.
    """
    short = short_labels(run.measures)
    best: dict[str, list[str]] = {}
    for dimension, measure in run.columns:
        of_system = {name: run.compared[name, dimension, measure].mean for name in run.systems}
        first = max(of_system, key=lambda name: run.gain(measure, of_system[name]))
        if measure not in run.neutral and run.gain(measure, of_system[first] - of_system[system]) > SHOWN_CHANGE:
            best.setdefault(first, []).append(f"{short[measure]}{f' of {dimension}' if dimension else ''}")
    relevance = main_measure(run, RELEVANCE)
    unlabeled = {name: [mean.unknown for mean in run.mean_exposures(name)] for name in run.dimensions}
    for other in (name for name in run.systems if name in best):
        why, place = [], run.systems.index(other)
        ours, theirs = (run.compared[name, RELEVANCE, relevance].mean if relevance else 0.0 for name in (system, other))
        if relevance and ours - theirs > SHOWN_CHANGE:
            why.append(f"at {ours - theirs:.3f} less {short[relevance]} than the {system}")
        shares = {name: given[run.systems.index(system)] for name, given in unlabeled.items() if given}
        name = max(shares, key=lambda one: shares[one] - unlabeled[one][place], default="")
        if name and shares[name] - unlabeled[name][place] > UNLABELED_LESS:
            unable, relevant = _without_label(collection, name)
            of_type = f"{unable:.0%} of them are of a type that has none, and " if unable else ""
            why.append(
                f"documents without a {name} get {unlabeled[name][place]:.0%} of the attention, the {system}'s "
                f"{shares[name]:.0%}; {of_type}{relevant:.0%} of the relevant documents are among them"
            )
        yield f"{other} is best in {', '.join(best[other])}{': ' if why else ''}{'; '.join(why)}."


def _without_label(collection: Collection, dimension: str) -> tuple[float, float]:
    """Of all documents without a label the share that can have none; of the relevant ones the share without."""
    groups = collection.groups
    relevant = [id for grades in collection.qrels.values() for id, grade in grades.items() if grade > 0]
    ids = list(dict.fromkeys([*(one.id for one in collection.documents()), *relevant]))
    labeled = groups.memberships(dimension, ids)[:, 1:].sum(axis=1) > 0
    bare = dict.fromkeys(id for id, known in zip(ids, labeled.tolist(), strict=True) if not known)
    types = groups.of_type(dimension, list(bare))
    unable = 0.0 if types is None or not bare else 1 - float(np.mean(np.asarray(types, dtype=np.float64)))
    return unable, sum(id in bare for id in relevant) / max(len(relevant), 1)


def shown_by_all(run: Results, dimension: str) -> dict[str, list[GroupShares]]:
    """System -> what it gives the groups of a dimension on each of the topics on which all systems give something."""
    shown: dict[str, dict[str, GroupShares]] = {system: {} for system in run.systems}
    for outcome in run.answered:
        for one in outcome.exposures if outcome.failed is None else ():
            if one.dimension == dimension:
                shown[outcome.system][outcome.topic] = one
    topics = [topic for topic in shown[run.baseline] if all(topic in of_topic for of_topic in shown.values())]
    return {system: [of_topic[topic] for topic in topics] for system, of_topic in shown.items()}


def under_label_error(run: Results, dimension: str) -> dict[str, tuple[float, float, float]]:
    """System -> mean AWRF of made labels and the ends of its interval (`mean_under_error`); empty without any."""
    intervals = {}
    for system, shown in shown_by_all(run, dimension).items():
        likely = [one.likely for one in shown if one.likely is not None]
        # A mean over other topics than those of its neighbors would mislead.
        if likely and len(likely) == len(shown):
            intervals[system] = astuple(mean_under_error(np.array(likely)))
    return intervals


def label_error_text(likely: Sequence[float | None] | None, digits: int = 4) -> str:
    """AWRF with the ends of what label errors make of it, in one cell; "" where nothing is known of errors.

    >>> label_error_text((0.93, 0.9, 0.95))
    '0.9300 [0.9000, 0.9500]'
    """
    numbers = [f"{one:.{digits}f}" for one in likely or () if one is not None]
    return "{} [{}, {}]".format(*numbers) if numbers else ""


def verdict_lines(run: Results) -> Iterator[str]:
    """The verdict: for each dimension what the best system gives the groups instead of the baseline, and by how much.

    The best is chosen on the topics that it is shown for. Then come what loops add.
    """
    short = short_labels(run.measures)
    for one in findings(run):
        change, test = change_of(run, one), one.test
        if change:
            yield str(change)
        elif one.fairness and one.fairness.p is not None:
            yield in_line(as_verdict(one.dimension, one.fairness.fairness, str(one.fairness)))
        elif one.dimension:
            yield in_line(f"{one.dimension}:")
        sure = "" if test.p is None else f", {test.says or 'no measurable difference'} ({test})"
        numbers = f"{short[one.best.measure]} {one.best.mean:.4f} instead of {one.baseline.mean:.4f}"
        tried = len(run.systems) - 1 - len(set(run.oracle_systems) - {run.baseline})
        best = f"the best of {tried} beside " if tried > 1 else "instead of "
        yield "  " + in_line(f"{one.best.system}, {best}{run.baseline}: {numbers}{sure}")
    yield from (in_line(str(one)) for one in run.loops)


# --- by group of the query ------------------------------------------------------------------------------------------

# Do topics of one group (by subject, say) get worse rankings or answers than others? Each group's utility (the kind's
# measures), exposure of the documents' groups and attribution (the exposure in what answers rest on). Source: Dehghan &
# McDonald, 2026 (arXiv 2603.24218), who call these query group fairness, group exposure and group attribution.

DIFFERENCE = "largest difference"
"""Stands in the place of a group."""
FEW = 10
"""A group with fewer topics is named in a note."""

Place = tuple[str, str, str]
"""What a number is of: `measure`, `exposure` or `attribution`; dimension; measure or label."""


def by_query_group(run: Results) -> dict[tuple[str, str], dict[Place, tuple[float, int]]]:
    """(system, group) -> what -> its mean over the group's topics, and how many; then what is largest between two.

    Over the topics that all systems have answered; empty where no topic has a group.
    """
    group_of = {topic: run.by_topic[topic][run.baseline].group for topic in run.counted_topics}
    table: dict[tuple[str, str], dict[Place, tuple[float, int]]] = {}
    for system in run.systems if any(group_of.values()) else ():
        means: dict[Place, list[float]] = {}
        for group in sorted({*group_of.values()} - {""}):
            values: dict[Place, list[float]] = {}
            for outcome in (run.by_topic[topic][system] for topic, of in group_of.items() if of == group):
                for dimension, of_measure in outcome.values.items():
                    for name in (name for name in run.measures if name in of_measure):
                        values.setdefault(("measure", dimension, name), []).append(of_measure[name])
                for what, exposures in (("exposure", outcome.exposures), ("attribution", outcome.cited)):
                    for one in exposures:
                        # Each group's share of the labeled exposure, and the share without a label of all of it.
                        for label, share in zip((*one.labels, "no label"), (*one.shares, one.unknown), strict=True):
                            values.setdefault((what, one.dimension, label), []).append(share)
            table[system, group] = {place: (float(np.mean(of)), len(of)) for place, of in values.items()}
            for place, (mean, _) in table[system, group].items():
                means.setdefault(place, []).append(mean)
        table[system, DIFFERENCE] = {place: (max(of) - min(of), 0) for place, of in means.items() if len(of) > 1}
    return table


def query_group_tables(run: Results) -> list[Table]:
    """The measures by group of the query, then exposure and attribution in each dimension."""
    rows = by_query_group(run)
    if not rows:
        return []

    def table(places: Sequence[Place], heads: Sequence[Column], title: str, notes: Sequence[str] = ()) -> Table:
        lines: list[tuple[object, ...]] = []
        for (system, group), of in rows.items():
            there = [of[place] for place in places if place in of]
            if there or group != DIFFERENCE:
                topics = max((count for _, count in there), default=0)
                means = (of[place][0] if place in of else None for place in places)
                lines.append((system, group, None if group == DIFFERENCE else topics, *means))
        return Table.of(["system", "query group", Column("topics", none=""), *heads], lines, title, notes)

    heads = [Column(run.labels[measure], above=dimension or run.kind.overall) for dimension, measure in run.columns]
    notes = [f"{DIFFERENCE}: the highest mean of a group minus the lowest; groups differ in their topics as well"]
    sizes = {group: max((count for _, count in of.values()), default=0) for (_, group), of in rows.items()}
    if few := [f"{group} ({size})" for group, size in sizes.items() if size < FEW and group != DIFFERENCE]:
        notes.append(f"fewer than {FEW} topics, so that chance decides: {', '.join(few)}")
    if without := {one.topic for one in run.answered if not one.group and one.failed is None}:
        notes.append(f"{counted(len(without), 'topic')} without a group")
    tables = [table([("measure", *pair) for pair in run.columns], heads, "by group of the query", notes)]
    for what, title in (("exposure", "exposure"), ("attribution", "what answers rest on")):
        for dimension in run.dimensions:
            there = list(dict.fromkeys(place for of in rows.values() for place in of if place[:2] == (what, dimension)))
            if there:
                heads = [Column(label) for *_, label in there]
                tables.append(table(there, heads, f"{dimension}, {title} by group of the query"))
    return tables


def query_group_files(run: Results) -> dict[str, Table]:
    """A file with one line a number, where topics have groups; `query_group` is empty for the largest difference."""
    rows = by_query_group(run)
    lines = [
        (system, None if group == DIFFERENCE else group, *place, count or None, value)
        for last in (False, True)
        for (system, group), of in rows.items()
        if (group == DIFFERENCE) == last
        for place, (value, count) in of.items()
    ]
    names = ("system", "query_group", "quantity", "dimension", "name", "topics", "value")
    return {"query_groups.csv": Table.of(names, lines)} if lines else {}


# --- missing and predicted labels -----------------------------------------------------------------------------------

# AWRF of the labeled documents, and what it can be, from the outcomes' exposures alone; `measures.unawareness` has the
# mathematics.

NEGLIGIBLE = 1e-12
"""An exposure that is no more is rounding."""


@dataclass(frozen=True, slots=True)
class Unaware:
    """One system in one dimension: AWRF as means over the topics that count.

    `missing` is the share of exposure whose group is not known. `labeled` is the value of the rest (None where all
    labels are predicted), `lowest` and `highest` what it can be. `estimate` is that by predicted labels (PCC: their
    probabilities added up); `low` and `high` are its 95 % bootstrap interval over the topics (None without predicted
    labels). `likely` is AWRF as labels drawn from the chances have it, within
    `likely_low` and `likely_high` under label error (`measures.mean_under_error`).
    """

    system: str
    dimension: str
    topics: int
    missing: float
    labeled: float | None
    lowest: float
    highest: float
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    likely: float | None = None
    likely_low: float | None = None
    likely_high: float | None = None


def base_of(measures: Sequence[Measure]) -> float:
    """The base of the logarithm of the first AWRF among the measures; e without one."""
    factors = (part for one in measures for part in ((one.left, one.right) if isinstance(one, Product) else (one,)))
    first = next((one for one in factors if isinstance(one, AWRF)), None)
    return 2.0 if first and first.log == "2" else math.e


def unawareness(run: Results, base: float) -> list[Unaware]:
    """AWRF of every system in dimensions with predicted or missing labels."""
    return [row for name in run.dimensions for row in _of_dimension(run, name, base)]


def _of_dimension(run: Results, dimension: str, base: float) -> Iterator[Unaware]:
    exposures = list(shown_by_all(run, dimension).values())
    predicted = any(one.predicted for of_system in exposures for one in of_system)
    if not predicted and all(
        _missing(one) <= NEGLIGIBLE and one.target_known is None for of_system in exposures for one in of_system
    ):
        return
    values = np.array([[_value(one, base) for one in of_system] for of_system in exposures])
    interval = bootstrap_intervals(values, seeded(run.kind.seed, "unawareness", dimension)) if predicted else None
    likely = under_label_error(run, dimension) if predicted else {}
    for row, (system, mean) in enumerate(zip(run.systems, values.mean(axis=1).tolist(), strict=True)):
        missing = [0.0 if (of := _possible(one)) is None else of[0] for one in exposures[row]]
        lowest, highest = np.array([fairness_bounds(one, base) for one in exposures[row]]).mean(axis=0).tolist()
        more: list[Any] = []
        if interval is not None:
            more = [mean, *(float(end[row]) for end in interval), *likely.get(system, ())]
        labeled = None if predicted else mean
        yield Unaware(system, dimension, len(exposures[row]), float(np.mean(missing)), labeled, lowest, highest, *more)


def fairness_bounds(one: GroupShares, base: float = math.e) -> tuple[float, float]:
    """The least and the largest AWRF that missing labels allow; the lowest value where no document can have a group."""
    exposure = _possible(one)
    if exposure is None:
        return _lowest(base), _lowest(base)
    known = None if one.target_known is None else np.array(one.target_known)
    return awrf_bounds(exposure, np.array(one.target), base, known)


def _missing(one: GroupShares) -> float:
    return one.unknown if one.missing is None else one.missing


def _possible(one: GroupShares) -> FloatArray | None:
    """The exposure (1 + g,) of documents that have a group, known (not predicted) or not; None without any."""
    known, missing = (1.0 - one.unknown) * np.array(one.shares), _missing(one)
    if one.predicted:
        known, missing = np.zeros_like(known), missing + known.sum()
    total = missing + known.sum()
    return np.append(missing, known) / total if total > NEGLIGIBLE else None


def _value(one: GroupShares, base: float) -> float:
    """AWRF over the known or predicted groups; its lowest value where nothing has a label."""
    if not any(one.shares):
        return _lowest(base)
    return 1.0 - jensen_shannon(np.array(one.shares), np.array(one.target), base=base)


def _lowest(base: float) -> float:
    """AWRF of a ranking that shows no group anything."""
    return 1.0 - math.log(2.0) / math.log(base)


def unawareness_tables(run: Results, rows: Sequence[Unaware], base: float) -> Iterator[Table]:
    """AWRF in each dimension."""
    for dimension, group in groupby(rows, lambda row: row.dimension):
        of = list(group)
        predicted, erring = of[0].estimate is not None, of[0].likely is not None
        shown = ["system", "missing", "labeled", "lowest", "highest", *(["estimate"] * predicted)]
        lines = [
            [*(getattr(one, name) for name in shown), *([f"[{one.low:.4f}, {one.high:.4f}]"] if predicted else [])]
            + ([label_error_text((one.likely, one.likely_low, one.likely_high))] if erring else [])
            for one in of
        ]
        heads = [*shown, *(["95 % interval"] * predicted), *(["under label error"] * erring)]
        title = f"{dimension}, AWRF(unknown=ignore)@{run.n} under missing labels ({counted(of[0].topics, 'topic')})"
        yield Table.of(heads, lines, title, list(_unaware_notes(run, of, base)))


def _unaware_notes(run: Results, rows: Sequence[Unaware], base: float) -> Iterator[str]:
    row, logarithm = rows[0], "base 2" if base == 2.0 else "natural logarithm"
    yield f"missing: share of exposure in the first {run.n}, of documents that have a group, whose group is not known"
    yield (
        f"labeled: AWRF of the others ({logarithm}), its lowest value where nobody else is shown; lowest, highest: if "
        "the missing are given to groups in any way"
    )
    # The part of the target that is not known, by topic.
    of_topic = {
        outcome.topic: 1.0 - sum(one.target if one.target_known is None else one.target_known)
        for outcome in run.answered
        for one in outcome.exposures
        if one.dimension == row.dimension
    }
    if (lacking := float(np.mean(list(of_topic.values())))) > NEGLIGIBLE:
        yield (
            f"{lacking:.1%} of the target would come from documents without a label; lowest, highest: that is given to "
            "groups in any way, too"
        )
    above = [one.system for one in rows if one.lowest > row.highest]
    below = [one.system for one in rows if one.highest < row.lowest]
    for side, systems in (("above", above), ("below", below)):
        if systems:
            yield f"{side} {run.baseline}, whatever the missing are: {', '.join(systems)}"
    if row.estimate is not None:
        yield "estimate: AWRF by a classifier's probabilities, added up (PCC); the interval is over the topics"
        yield "a predicted label may be wrong: none of them counts as known"
    if row.likely is not None:
        yield (
            "under label error: AWRF as labels drawn from the chances have it, those that the target is counted from, "
            "too; in brackets what errors leave of the mean: topics err by themselves, but for what one labeler shares"
        )


def cloud(name: str, color: int, points: Sequence[PlotPoint]) -> PlotLine:
    """Points of a plot, each alone, and the two ends of the line of least squares through them, where it is defined."""
    line = fitted_line([point.x for point in points], [point.y for point in points]) if points else None
    ends = sorted({point.x for point in points}) if line else []
    fit = [PlotPoint("fit", x, line.at(x)) for x in (ends[0], ends[-1])] if line else []
    return PlotLine(name, color, tuple(fit), tuple(points))
