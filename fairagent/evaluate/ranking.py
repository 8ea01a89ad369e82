"""Systems rank documents, and the rankings are judged by relevance and by the exposure that they give groups.

Also run files that are compared on a collection; rankings that are drawn at random; recall by group before anything is
re-ranked; and what a system changes of the baseline's ranking, which needs no judgments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, fields, replace
from functools import cached_property
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field

from fairagent.collection import Collection, Groups
from fairagent.collection.records import listed
from fairagent.errors import BackendUnavailable, UsageError
from fairagent.evaluate.findings import (
    Unaware,
    base_of,
    query_group_files,
    query_group_tables,
    unawareness,
    unawareness_tables,
)
from fairagent.evaluate.judging import SYSTEMS, Judge, JudgedKind
from fairagent.evaluate.kind import (
    SEARCH,
    Checking,
    Chosen,
    JsonObject,
    KindResults,
    MeasureInfo,
    Name,
    Opened,
    Subject,
    Values,
)
from fairagent.evaluate.outcome import GroupRecall, Outcome
from fairagent.evaluate.plan import Plan, System, build_systems
from fairagent.evaluate.retrievability import Retrievability, retrievabilities, retrievability_tables
from fairagent.evaluate.run import Results
from fairagent.evaluate.tables import Column, Note, PageSection, Table
from fairagent.measures import LOG2_MAX2, Measure, Product, min_max, parse_measure
from fairagent.measures.parse import label_of
from fairagent.retrieve.base import as_query, searched
from fairagent.retrieve.stochastic import draw, topic_rng
from fairagent.types import UNKNOWN, Draw, Exposure, Ranking
from fairagent.types.common import counted

OF_GROUPS = ("AWRF(unknown=ignore)@20", "unlabeled@20", "unlabeled(of=type)@20")
STANDARD = ("nDCG@20", OF_GROUPS[0], f"nDCG@20*{OF_GROUPS[0]}", *OF_GROUPS[1:])
UNJUDGED = ("changed@20", "kept@20", *OF_GROUPS)
"""The measures of a file that names none, where nothing is judged."""
LENGTH = 20
"""How long rankings are where no measure says it."""
WHOLE = 1_000_000_000
"""The depth of lists that are judged to their ends."""


@dataclass(frozen=True, slots=True)
class AgainstBaseline:
    """`changed` or `kept` at cut-off `n`, of a system's ranking beside the baseline's."""

    name: str
    n: int

    @classmethod
    def parse(cls, text: str) -> AgainstBaseline | None:
        """The measure of a text such as `changed@20`; None where it is none of these."""
        match = re.fullmatch(r"(changed|kept)@([1-9][0-9]*)", text.strip())
        return cls(match[1], int(match[2])) if match else None

    def __str__(self) -> str:
        return f"{self.name}@{self.n}"

    @property
    def measured(self) -> MeasureInfo:
        """It as a measure of the experiment: to change much is neither good nor bad."""
        if self.name == "changed":
            text = f"the share of the first {self.n} documents that the baseline does not show there"
            return MeasureInfo(str(self), text, neutral=True)
        text = (
            f"how much of the baseline's relevance scores the first {self.n} documents keep: the sum of their scores "
            "in the baseline's ranking (min-max, 0 where it lacks one), weighted by 1 / log2(max(rank, 2)), over that "
            "of its own"
        )
        return MeasureInfo(str(self), text)

    def value(self, scored: Sequence[tuple[str, float]], baseline: Sequence[tuple[str, float]]) -> float:
        """The value of a ranking with its scores, best first: in [0, 1] for `changed`; `kept` is 1 for the baseline."""
        shown = [id for id, _ in scored[: self.n]]
        if self.name == "changed":
            first = {id for id, _ in baseline[: self.n]}
            return sum(id not in first for id in shown) / len(shown) if shown else 0.0
        worth = min_max(np.array([score for _, score in baseline]))
        scores = dict(zip((id for id, _ in baseline), worth.tolist(), strict=True))
        value, most = (
            float(LOG2_MAX2(len(ids)) @ np.array([scores.get(id, 0.0) for id in ids]))
            for ids in (shown, list(scores)[: self.n])
        )
        return value / most if most else 0.0


@dataclass(frozen=True, slots=True)
class RankingTrial:
    """Lets systems rank documents, and judges the rankings; run files are `depth` documents deep.

    Of a system with `sampling.alpha` there are `draws` rankings a topic, drawn by `seed`: values and exposures are
    means over them, and everything else is that of the first.
    """

    judge: Judge
    systems: Mapping[str, System]
    depth: int
    draws: int
    seed: int

    def outcome(self, system: str, id: str) -> Outcome:
        used, judge, topic = self.systems[system], self.judge, self.judge.collection.topics[id]
        agent, sampling = used.agent, used.site.settings.sampling
        drawn: list[Ranking] = []
        if sampling.alpha is None:
            result = agent.search(topic)
        else:
            run = agent.find(topic, sampling.pool)
            seed = sampling.seed if "seed" in sampling.model_fields_set else self.seed
            samples = draw(run.pool, sampling.alpha, agent.settings.n, topic_rng(seed, topic.id), self.draws)
            drawn = [samples.ranking(number) for number in range(self.draws)]
            result = run.result(drawn[0], Draw(sampling.alpha, len(run.pool), seed, 0))
        trace, length = result.trace, len(result.ranking)
        deep = length < self.depth
        engines = searched(agent.retriever, as_query(topic), self.depth) if deep else trace.steps[0].ranking
        ranking = deepened(result.ranking, engines, self.depth)
        of_draws = [judge.values(id, deepened(one, engines, self.depth)) for one in drawn]
        # What a loop retrieved in its order, then the engine's list: all systems have as many, so that what enters has
        # to be worth more than what it displaces.
        retrieved = tuple(dict.fromkeys((*result.retrieved, *engines.ids)))[: self.depth]
        relevant = [document for document, grade in judge.collection.qrels.get(id, {}).items() if grade > 0]
        of_groups = relevant and any(measure.of_groups for measure in judge.measures.values())
        return Outcome.of(
            topic,
            system,
            over_draws(of_draws) if drawn else judge.values(id, ranking),
            trace.usage,
            search=result,
            hits=judge.hits(id, result.hits, result.ranking.scores),
            tail=tuple(zip(ranking.ids[length:], ranking.scores[length:].tolist(), strict=True)),
            exposures=mean_exposures([judge.exposures(id, one) for one in drawn or [result.ranking]]),
            recall=tuple(
                group_recall(judge.collection.groups, dimension, id, relevant, retrieved)
                for dimension, topics in judge.counted.items()
                if of_groups and id in topics
            ),
            entered=len(set(retrieved) - set(engines.ids)),
            oracle=trace.oracle and used.sees_groups,
            # What a search takes, and not its judgment.
            seconds=trace.seconds,
            record={"draws": len(drawn), "spread": over_draws(of_draws, deviation=True)} if drawn else None,
        )


def deepened(ranking: Ranking, more: Ranking, depth: int) -> Ranking:
    """`ranking`, and below it, to `depth`, what else is in the engine's list for the user's own words, in its order."""
    if depth <= len(ranking):
        return ranking
    shown = set(ranking.ids)
    rest = [place for place, id in enumerate(more.ids) if id not in shown][: depth - len(ranking)]
    # The scores of a re-ranker are on another scale: what stands below is worth no more.
    lowest = ranking.scores[-1] if len(ranking) else np.inf
    scores = np.concatenate([ranking.scores, np.minimum(more.scores[rest], lowest)])
    return Ranking((*ranking.ids, *(more.ids[place] for place in rest)), scores)


def mean_exposures(of_draws: Sequence[Sequence[Exposure]]) -> Sequence[Exposure]:
    """The exposures of several rankings of one topic, one a dimension: shares and what is unknown are means."""
    means = []
    for several in zip(*of_draws, strict=True):
        missing = [one.missing for one in several if one.missing is not None]
        means.append(
            replace(
                several[0],
                shares=np.mean([one.shares for one in several], axis=0),
                unknown=float(np.mean([one.unknown for one in several])),
                missing=float(np.mean(missing)) if len(missing) == len(several) else None,
            )
        )
    return means


def over_draws(
    of_draws: Sequence[Mapping[str, Mapping[str, float]]], deviation: bool = False
) -> dict[str, dict[str, float]]:
    """The mean of each value (dimension -> measure -> value) over the draws of a topic, or its standard deviation."""

    def summary(values: Sequence[float]) -> float:
        if deviation:
            return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
        return float(np.mean(values))

    return {
        dimension: {name: summary([one[dimension][name] for one in of_draws]) for name in values}
        for dimension, values in of_draws[0].items()
    }


def group_recall(
    groups: Groups, dimension: str, topic: str, relevant: Sequence[str], retrieved: Sequence[str]
) -> GroupRecall:
    """What of the `relevant` documents is `retrieved`, by group; one of several groups counts for each its share."""
    labels = (UNKNOWN, *groups.labels(dimension))
    rows = groups.memberships(dimension, relevant, topic) if relevant else np.zeros((0, len(labels)))
    known = frozenset(retrieved)
    there = np.array([id in known for id in relevant], dtype=np.bool_)
    return GroupRecall(dimension, labels, tuple(rows[there].sum(axis=0).tolist()), tuple(rows.sum(axis=0).tolist()))


class RankingKind(JudgedKind):
    """Systems rank a collection's documents, and the rankings are judged."""

    kind: Literal["ranking"] = "ranking"
    systems: dict[Name, Values] = Field(min_length=1, examples=[SYSTEMS])
    """Name -> settings that beat the shared ones; with a `profile`, laid over that."""
    measures: tuple[str, ...] = Field(STANDARD, min_length=1)
    """What rankings are judged by: ours (nDCG, AWRF, NDKL, unlabeled, products of two), those of ir-measures (AP, RR,
    P@5, R@100 ...), and `changed@20` and `kept@20`, which compare with the baseline's ranking. Left out for a
    collection without judgments: changed, kept, AWRF and unlabeled."""
    run_depth: int = Field(1000, ge=1)
    """How many documents run files hold, for measures that look deep. Exposure is measured, and systems are fair, in
    the first n: the largest cut-off of the measures that look at groups. Below stands what else the system's engine
    finds for the user's own words. Recall by group is that of so many documents retrieved."""

    draws: int = Field(100, ge=1)
    """How many rankings of a system with `sampling.alpha` are drawn for each topic. Its values are means over them,
    with the standard deviation in a table of its own; run files and pages have the first. The experiment's seed draws,
    unless `sampling.seed` is set."""

    needs_judgments: ClassVar[bool] = False
    ranks: ClassVar[bool] = True
    uses: ClassVar[frozenset[str]] = SEARCH | {"sampling"}

    @cached_property
    def parsed(self) -> tuple[Measure | AgainstBaseline, ...]:
        """The measures that can be read."""
        return tuple(measure for text in self.measures if not isinstance(measure := _read(text), Exception))

    @property
    def of_rankings(self) -> list[Measure]:
        return [one for one in self.parsed if isinstance(one, Measure)]

    @property
    def needs_groups(self) -> bool:
        return any(one.of_groups for one in self.of_rankings)

    @property
    def n(self) -> int:
        """The largest cut-off of the measures that look at groups; without any, of all that have one."""
        of_groups = [one.n for one in self.of_rankings if one.of_groups and one.n]
        return max(of_groups or [one.n for one in self.parsed if one.n], default=LENGTH)

    @property
    def overall(self) -> str:  # type: ignore[override]
        return "relevance" if any(one.of_relevance for one in self.of_rankings) else "ranking"

    def on(self, collection: Collection) -> Self:
        """With the measures that need no judgments, where there are none and the file names no measures."""
        kind = super().on(collection)
        if "measures" not in self.model_fields_set and self.unjudged(collection):
            return kind.model_copy(update={"measures": UNJUDGED})
        return kind

    def check(self, checking: Checking) -> None:
        problems, collection = checking.problems, checking.collection
        for error in map(_read, self.measures):
            if isinstance(error, Exception):
                problems.add(type(error), f"measures: {error}")
        for one in self.of_rankings if collection and self.unjudged(collection) else ():
            if one.of_relevance:
                problems.add(UsageError, f"measures: {one} needs judgments, and the collection has none")
        baseline = checking.systems.get(self.baseline or next(iter(checking.systems), ""))
        drawing = [name for name, system in checking.systems.items() if system.settings.sampling.alpha is not None]
        for against in self.parsed:
            if isinstance(against, AgainstBaseline):
                if against.name == "kept" and baseline:
                    problems.attempt("measures", baseline.settings.engine.expect_scores, str(against))
                if drawing:
                    many = f"compares two rankings, and sampling.alpha draws many of {listed(drawing)}"
                    problems.add(UsageError, f"measures: {against} {many}")

    def choose(self, checking: Checking) -> Chosen:
        """The topics with relevant documents; the others are searched for the run files alone."""
        chosen = super().choose(checking)
        return replace(chosen, unjudged=tuple(chosen.excluded))

    def measured(self, dimensions: Sequence[str]) -> tuple[MeasureInfo, ...]:
        return tuple(
            MeasureInfo(str(one), one.about, one.lower_is_better, one.neutral, one.of_groups)
            if isinstance(one, Measure)
            else one.measured
            for one in self.parsed
        )

    def fingerprint(self, plan: Plan, subject: Subject, environ: Mapping[str, str]) -> JsonObject:
        return {**super().fingerprint(plan, subject, environ), "run_depth": self.run_depth, "draws": self.draws}

    def trial(self, opened: Opened) -> RankingTrial:
        judge = Judge.of(opened.plan, opened.collection, list(map(str, self.of_rankings)))
        return RankingTrial(judge, build_systems(opened), self.run_depth, self.draws, opened.plan.experiment.seed)

    def completed(
        self, outcomes: Mapping[tuple[str, str], Outcome], topics: Sequence[str], plan: Plan
    ) -> Mapping[tuple[str, str], Outcome]:
        against = [one for one in self.parsed if isinstance(one, AgainstBaseline)]
        completed = dict(outcomes)
        for topic, system in ((topic, system) for topic in topics for system in plan.systems if against):
            outcome, baseline = outcomes[topic, system], outcomes[topic, plan.baseline].scored
            values = {str(one): one.value(outcome.scored, baseline) for one in against}
            overall = {**outcome.values.get("", {}), **values}
            completed[topic, system] = replace(outcome, values={**outcome.values, "": overall})
        return completed

    def results(self, run: Results) -> KindResults:
        """Draws and their spread, AWRF under missing labels, recall by group, and results by group of the query.

        Remarks say which ids are no document's, which rankings are empty, which measures look at what no system ranks.
        """
        empty: dict[str, list[str]] = {}
        for outcome in run.answered:
            if not outcome.hits:
                empty.setdefault(outcome.system, []).append(outcome.topic)
        source = run.provenance.get("collection")
        remarks = list(source.get("unknown", ())) if isinstance(source, Mapping) else []
        for system, ids in empty.items():
            lowest = f"for {counted(len(ids), 'topic')}, which count with the lowest values: {listed(ids)}"
            remarks.append(f"{system} has an empty ranking {lowest}")
        if below := [str(one) for one in self.of_rankings if one.n is None or one.n > run.n]:
            remarks.append(
                f"below rank {run.n} stands the engine's own list, whatever the system: {listed(below)} look there"
            )
        # What was drawn and counts: topic, system, dimension, measure, draws, mean and standard deviation.
        counts = set(run.counted_topics)
        drawn = [(one, one.record) for one in run.outcomes if one.topic in counts and "spread" in (one.record or {})]
        spreads = [
            (one.topic, one.system, dimension, name, record["draws"], one.values[dimension][name], deviation)
            for one, record in drawn
            if record
            for dimension, values in record["spread"].items()
            for name, deviation in values.items()
        ]
        base, recalls = base_of(self.of_rankings), mean_recalls(run)
        retrieved = retrievabilities(run) if self.needs_groups else []
        unaware = unawareness(run, base)
        tables, files = list(unawareness_tables(run, unaware, base)), query_group_files(run)
        tables += [*recall_tables(recalls), *retrievability_tables(retrieved, len(counts)), *query_group_tables(run)]
        if spreads:
            by_row: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
            for _, system, dimension, name, _, mean, deviation in spreads:
                by_row.setdefault((system, dimension, name), []).append((mean, deviation))
            lines = [
                (system, dimension or self.overall, label_of(name), len(values), *np.mean(values, axis=0).tolist())
                for (system, dimension, name), values in by_row.items()
            ]
            heads: list[str | Column] = ["system", "in", "measure", Column("topics", "d"), "mean", "spread"]
            note = "spread: the standard deviation of a topic's value over its draws, as a mean over the topics"
            title = f"drawn rankings ({counted(spreads[0][4], 'draw')} a topic)"
            tables.insert(0, Table.of(heads, lines, title, [note]))
            names = ("topic", "system", "dimension", "measure", "draws", "mean", "spread")
            files["draws.csv"] = Table.of(names, spreads)
        written = ("unawareness", Unaware, unaware), ("recall", MeanRecall, recalls)
        for name, cls, rows in (*written, ("retrievability", Retrievability, retrieved)):
            if rows:
                files[f"{name}.csv"] = Table.of([field.name for field in fields(cls)], map(astuple, rows))
        parts: list[Note | Table] = [*map(Note, remarks), *tables, *recall_tables(recalls, folded=True)]
        page = PageSection("Labels and topics", "What the means do not show", tuple(parts)) if parts else None
        return KindResults(tables, files, remarks, page, {"recall": [asdict(row) for row in recalls]})


def _read(text: str) -> Measure | AgainstBaseline | UsageError | BackendUnavailable:
    """The measure of a text, or what is wrong with it."""
    try:
        measure = AgainstBaseline.parse(text) or parse_measure(text)
    except (UsageError, BackendUnavailable) as error:
        return error
    if isinstance(measure, Product) and measure.left.n != measure.right.n:
        return UsageError(f"{text!r}: the factors of a product have the same cut-off here")
    return measure


@dataclass(frozen=True, slots=True)
class MeanRecall:
    """A system's mean recall at `depth` of a `group` ("": all), and how many documents the engine's own first lack."""

    system: str
    dimension: str
    group: str
    depth: int
    topics: int
    recall: float
    entered: float


def mean_recalls(run: Results) -> list[MeanRecall]:
    """Every system in every dimension, over the topics that all systems have answered: all, no label, each group."""
    rows, depth = [], getattr(run.kind, "run_depth", 0)
    for dimension in run.dimensions:
        for system in run.systems:
            outcomes = [run.by_topic[topic][system] for topic in run.counted_topics]
            pairs = [(one, recall) for one in outcomes for recall in one.recall if recall.dimension == dimension]
            if not pairs:
                continue
            entered = float(np.mean([outcome.entered for outcome, _ in pairs]))
            of_groups = [[one.retrieved for _, one in pairs], [one.relevant for _, one in pairs]]
            retrieved, relevant = (np.insert(np.array(of), 0, np.sum(of, axis=1), axis=1) for of in of_groups)
            for place, group in enumerate(("", *pairs[0][1].labels)):
                there = relevant[:, place] > 0
                if there.any():
                    mean = float((retrieved[there, place] / relevant[there, place]).mean())
                    rows.append(MeanRecall(system, dimension, group, depth, int(there.sum()), mean, entered))
    return rows


FEW = 4
"""A dimension with more groups has a column for the lowest recall alone; the page and the file have them all."""


def recall_tables(recalls: Sequence[MeanRecall], folded: bool = False) -> Iterator[Table]:
    """A table a dimension: a column for each of few groups, or the lowest of many and which it is.

    Those that are `folded` have all groups of the dimensions whose tables do not show them.
    """
    for dimension in dict.fromkeys(row.dimension for row in recalls):
        rows = [row for row in recalls if row.dimension == dimension]
        # The known groups that some topic has relevant documents of.
        groups = [group for group in dict.fromkeys(row.group for row in rows) if group not in ("", UNKNOWN)]
        if folded and len(groups) <= FEW:
            continue
        each, no_label = folded or len(groups) <= FEW, any(row.group == UNKNOWN for row in rows)
        lines = []
        for system in dict.fromkeys(row.system for row in rows):
            of = {row.group: row.recall for row in rows if row.system == system}
            lowest = min(groups, key=lambda group: of[group], default="")
            of_groups = [of[group] for group in groups] if each else [of[lowest], lowest]
            entered = next(row.entered for row in rows if row.system == system)
            lines.append([system, of[""], *of_groups, *([of[UNKNOWN]] if no_label else []), entered])
        names = [*(groups if each else ["lowest", "group"]), *(["no label"] if no_label else [])]
        depth, topics = rows[0].depth, max(row.topics for row in rows)
        # Run files that are compared are as deep as they are.
        within = f"@{depth}" if depth < WHOLE else ""
        title = f"{dimension}, recall{within} of the relevant documents of each group ({counted(topics, 'topic')})"
        notes = [
            "the loop's candidates, then the engine's list, before anything is re-ranked; means over the topics that "
            "have relevant documents of the group",
            *([f"entered: how many of the {depth:,} the engine's own first {depth:,} lack"] if within else []),
        ]
        heads: list[str | Column] = ["system", "all", *names, Column("entered", ".1f")]
        yield Table.of(heads, lines, title, notes, systems=True, folded=folded)
