"""Utility experiments: answers from the first k documents are compared with the relevant passages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from fairagent.answer.filtering import LONGEST_TITLE
from fairagent.collection import Collection
from fairagent.collection.records import listed
from fairagent.errors import DataError, FairAgentError, SettingsError
from fairagent.evaluate.comparison import SIGNIFICANT
from fairagent.evaluate.findings import cloud, query_group_files, query_group_tables
from fairagent.evaluate.kind import (
    Checking,
    Chosen,
    ExperimentKind,
    JsonObject,
    KindResults,
    MeasureInfo,
    Opened,
    Subject,
    Systems,
    choose_topics,
)
from fairagent.evaluate.plan import Plan, SystemPlan
from fairagent.evaluate.run import Results
from fairagent.evaluate.tables import Column, LinePlot, Note, PagePart, PageSection, PlotLine, PlotPoint, Table
from fairagent.llm.prompts import LETTER, Calls, Case, Prompts
from fairagent.measures.expected_exposure import Line, fitted_line
from fairagent.measures.parse import label_of
from fairagent.papers.utility.trial import (
    BY_PROMPT,
    IN_ORDER,
    NOT_COMPARABLE,
    OF_JUDGMENTS,
    TEMPLATES,
    Compat,
    Display,
    Utility,
    UtilityTrial,
    as_passage,
    check_similarity,
    grades_of,
    judged_ids,
    ranked_ids,
    read_passages,
)
from fairagent.retrieve.run_file import RunFile, read_run
from fairagent.types import Document
from fairagent.types.common import counted

TO_BASELINE, TO_ORDER = "†", "‡"


class UtilityKind(ExperimentKind):
    """Each system's documents, shown in each order; groups play no part."""

    kind: Literal["utility"] = "utility"
    utility: Utility = Utility()
    """From how many documents answers are written and what they are compared with."""

    engines: ClassVar[tuple[str, ...]] = OF_JUDGMENTS
    overall: ClassVar[str] = "all"

    @property
    def n(self) -> int:
        return max(self.utility.ks)

    def fair_in(self, checking: Checking) -> tuple[str, ...]:
        return ()

    def templates(self, system: SystemPlan) -> tuple[str, ...]:
        variants = (Display.model_validate(system.row).compat,) if system.row else self.utility.compat
        return tuple(TEMPLATES[one] for one in variants) if system.settings.generate.templates else ()

    def check(self, checking: Checking) -> None:
        problems, systems = checking.problems, checking.systems
        if any(not system.settings.filter.idle(system.settings) for system in systems.values()):
            problems.add(SettingsError, "filter: cannot be set: here a generator is given all k documents")
        problems.attempt("utility.similarity", check_similarity, self.utility.similarity)
        if strange := sorted(set(self.utility.scatter) - set(self.utility.ks)):
            there = listed(list(map(str, self.utility.ks)))
            problems.add(SettingsError, f"utility.scatter: {strange[0]} is none of the ks, which are: {there}")
        if len({_generator(system) for system in systems.values()}) > 1:
            problems.add(
                SettingsError,
                "systems: generate, model, prompts and context.tokens are one for all in a utility experiment: every "
                "row is measured against the same answer from no documents; put them into `settings`",
            )
        if self.utility.compat != ("ours",) and not all(map(self.templates, systems.values())):
            problems.add(SettingsError, "utility.compat: names a prompt, and no language model answers; generate: llm")
        names = [row for name, one in systems.items() for row in self._rows_of(name, one)]
        if len(set(names)) < len(names):
            problems.add(SettingsError, f"systems: a name is that of another's row; the rows are: {listed(names)}")

    def choose(self, checking: Checking) -> Chosen:
        collection, section = checking.collection, self.utility
        if collection is None:
            return Chosen()
        chosen = choose_topics(self, list(collection.topics), checking)
        excluded: dict[str, str] = {}
        relevant: dict[str, list[str]] = {}
        wanted = f"grade of {section.relevant} or more"
        for topic in chosen:
            grades = grades_of(collection, topic, section.grades)
            if passages := [id for id, grade in grades.items() if grade >= section.relevant]:
                relevant[topic] = passages
            else:
                excluded[topic] = f"no passage has a {wanted}"
        if not relevant:
            checking.problems.add(DataError, f"none of {len(chosen)} topics has a passage with a {wanted}")
            return Chosen((), excluded)
        texts = self._texts(checking, collection, list(relevant))
        for topic, passages in relevant.items():
            if not any(texts[id].text.strip() for id in passages if id in texts):
                excluded[topic] = "no relevant passage has a text"
        return Chosen(tuple(topic for topic in relevant if topic not in excluded), excluded)

    def _texts(self, checking: Checking, collection: Collection, topics: Sequence[str]) -> dict[str, Document]:
        """The texts of all that is judged and of what run files name; adds what is not there."""
        wanted = {"the judgments": judged_ids(collection, topics)}
        for name, system in checking.systems.items():
            engine = system.settings.engine
            if path := engine.files.get("path"):
                tag = getattr(engine, "tag", "")
                # A file with errors is reported with the system's engine.
                try:
                    run = RunFile(read_run(path, collection.topics, tag))
                except FairAgentError:
                    continue
                if without := [topic for topic in topics if topic not in run.rankings]:
                    message = f"systems.{name}: {path} has no ranking for {len(without)} of {len(topics)} topics"
                    checking.problems.add(DataError, f"{message}: {listed(without)}")
                wanted[f"systems.{name}"] = ranked_ids(run, [collection.topics[id] for id in topics], self.n)
        texts = checking.problems.attempt("", read_passages, collection, set().union(*wanted.values()))
        if texts is None:
            return {}
        for what, ids in wanted.items():
            if missing := sorted(id for id in ids if id not in texts):
                absent = f"{len(missing):,} of {len(ids):,} passages are not among the documents of {collection.name!r}"
                cure = "give it the documents that they belong to"
                checking.problems.add(DataError, f"{what}: {absent}: {listed(missing)}; {cure}")
        return texts

    def rows(self, systems: Systems) -> Systems:
        return {row: one for name, system in systems.items() for row, one in self._rows_of(name, system).items()}

    def _rows_of(self, name: str, system: SystemPlan) -> dict[str, SystemPlan]:
        orders = self.utility.orders
        shown = orders[:1] if system.settings.engine.kind in OF_JUDGMENTS else orders
        rows = {}
        for place, compat in enumerate(self.utility.compat):
            for order in shown:
                row = f"{name} {IN_ORDER[order]}".strip() + (f", {BY_PROMPT[compat]}" if place else "")
                display = Display(of=name, order=order, compat=compat)
                # As rows were before there were prompts to choose: runs from then stay good.
                rows[row] = system.model_copy(update={"row": display.model_dump(exclude_defaults=True)})
        return rows

    def judged_in(self, checking: Checking) -> tuple[str, ...]:
        return ()

    def measured(self, dimensions: Sequence[str]) -> tuple[MeasureInfo, ...]:
        return tuple(map(MeasureInfo, self.utility.measures))

    def fingerprint(self, plan: Plan, subject: Subject, environ: Mapping[str, str]) -> JsonObject:
        return {"utility": self.utility.model_dump(mode="json", exclude={"ks", "scatter", "compat"})}

    def worst_case(self, row: str, plan: Plan, subject: Subject) -> Iterator[Calls]:
        system, runs = plan.systems[row], self.utility.runs
        settings, queries = system.settings, [subject.topics[id].query for id in plan.topics]
        if not (templates := self.templates(system)):
            return
        case, shown = Case(settings, Prompts(settings.prompts), queries), Display.model_validate(system.row)
        first = counterpart(plan.systems[plan.baseline].row, shown.compat) == shown
        for k in (0, *self.utility.ks) if first else self.utility.ks:
            text = LETTER * 4 * (settings.context.tokens // max(k, 1))
            passage = as_passage(Document("", text, LETTER * LONGEST_TITLE), shown.compat)
            yield case.calls(templates[0], runs, passages=[passage] * k or None)

    def trial(self, opened: Opened) -> UtilityTrial:
        return UtilityTrial(opened, self.utility)

    # --- results

    def results(self, run: Results) -> KindResults:
        """A line for each row and k, utility and its correlation with ranking quality over k, and groups of queries."""
        rows = summary(run, self.utility)
        tables = [self._table(run, rows), *query_group_tables(run)] if rows else []
        page = self._page(run, rows, tables) if rows else None
        header = ("system", "k", "topics", "similarity", "P", "U", "nDCG", "r", "r_p", "fit_slope", "fit_intercept")
        tests = [f"{against}_{part}" for against in ("baseline", "rank_order") for part in ("difference", "t", "p")]
        lines = []
        for one in rows:
            line = [one.system, one.k, one.topics, self._similarity, one.performance, one.utility, one.quality]
            line += [one.r, one.p, *((one.fit.slope, one.fit.intercept) if one.fit else (None, None))]
            for test in (one.to_baseline, one.to_order):
                line += (test.difference, test.t, test.p) if test else (None, None, None)
            lines.append(line)
        return KindResults(
            tables, {"utility.csv": Table.of((*header, *tests), lines), **query_group_files(run)}, page=page
        )

    @property
    def short(self) -> tuple[str, str]:
        """What tables call utility and performance: both say where they are not comparable."""
        of_one = (self.utility.utility(1), self.utility.performance(1))
        return label_of(of_one[0]).removesuffix("@1"), label_of(of_one[1]).removesuffix("@1")

    @property
    def _similarity(self) -> str:
        similarity = self.utility.similarity
        return similarity.name + ("" if similarity.comparable else f" ({NOT_COMPARABLE})")

    def _table(self, run: Results, rows: Sequence[RowSummary]) -> Table:
        utility, performance = self.short
        columns: list[str | Column] = [
            *("row", performance, Column(utility, "+.4f"), "nDCG@k", Column("r", "+.3f"), "p(r)"),
            *(Column(name, none="") for name in ("t-test to baseline", "t-test to rank order")),
        ]
        lines = []
        for one in rows:
            line: list[object] = [f"{one.system} k={one.k}", one.performance, one.utility, one.quality, one.r, one.p]
            for test, mark in ((one.to_baseline, TO_BASELINE), (one.to_order, TO_ORDER)):
                p = "-" if test is None or test.p is None else f"{test.p:.4f}"
                significant = test is not None and test.p is not None and test.p < SIGNIFICANT
                line.append(test and f"{test.difference:+.4f} ({p}){mark if significant else ' '}")
            lines.append(line)
        by_prompt = ", both by the same prompt" if len(self.utility.compat) > 1 else ""
        relevant = self.utility.relevant
        notes = [
            f"{performance}: {self._similarity}, the highest over the relevant passages (grade {relevant} or more)",
            f"{utility}: the mean over the topics of (P - P_0) / P_0, where P_0 is of the answer from no documents",
            "r: Pearson's correlation of a topic's U with its nDCG@k, which is that of the list in rank order",
            f"t-tests: mean difference of U (two-sided p, paired, not corrected); {TO_BASELINE}: p < {SIGNIFICANT} to "
            f"{run.baseline}, {TO_ORDER}: to the same documents in rank order{by_prompt}",
        ]
        if left_out := by_topic(run, self.utility)[2]:
            notes.append(f"left out of U, since P_0 is 0: {counted(len(left_out), 'topic')}: {listed(left_out)}")
        title = f"utility and ranking quality ({counted(rows[0].topics, 'topic')})"
        return Table.of(columns, lines, title, notes)

    def _page(self, run: Results, rows: Sequence[RowSummary], tables: Sequence[Table]) -> PageSection:
        utility, section = self.short[0], self.utility
        colors = {name: number for number, name in enumerate(run.systems)}

        def lines(values: Mapping[str, Mapping[int, float]]) -> tuple[PlotLine, ...]:
            return tuple(
                PlotLine(name, color, tuple(PlotPoint(f"k={k}", float(k), value) for k, value in values[name].items()))
                for name, color in colors.items()
                if values[name]
            )

        of_u = {name: {0: 0.0, **{one.k: one.utility for one in rows if one.system == name}} for name in colors}
        of_r = {name: {one.k: one.r for one in rows if one.system == name and one.r is not None} for name in colors}
        plots = [LinePlot(f"{utility} over k", ("k", utility), lines(of_u))]
        values, topics, _ = by_topic(run, section)
        for k in section.scatter:
            clouds = []
            for name, color in colors.items():
                of_row = {topic: values[topic, name] for topic in topics}
                points = [PlotPoint(id, of[section.quality(k)], of[section.utility(k)]) for id, of in of_row.items()]
                clouds.append(cloud(name, color, points))
            caption = f"{utility} against nDCG@{k}, topic by topic"
            plots.append(LinePlot(caption, (f"nDCG@{k}", utility), tuple(clouds)))
        if any(of_r.values()):
            caption = f"correlation of {utility} and nDCG@k over k"
            plots.append(LinePlot(caption, ("k", "Pearson's r"), lines(of_r)))
        intro = Note(
            f"{utility} is what the first k documents add to an answer, as a share of what it is worth without any: P "
            f"is {section.similarity.name} to the closest relevant passage. r is the correlation of a topic's "
            "utility with its nDCG@k, the better the list the more its documents add."
        )
        warning = (
            f"Answers are compared by {section.similarity.name} and not by BERTScore: the numbers are "
            f"{NOT_COMPARABLE} with those of papers."
        )
        warnings = [] if section.similarity.comparable else [Note(warning, warning=True)]
        parts: tuple[PagePart, ...] = (intro, *warnings, *plots, *tables)
        return PageSection("Utility", "Does relevance reach the answer?", parts, tuple(colors.items()))


def _generator(system: SystemPlan) -> str:
    """What tells one generator from another: who answers, by which prompts, and how much it is shown."""
    settings = system.settings
    model = f"{settings.model.model_dump_json()} {settings.prompts}" if settings.generate.templates else ""
    return f"{settings.generate.model_dump_json()} {settings.context.tokens} {model}"


def counterpart(row: Mapping[str, Any], compat: Compat) -> Display:
    """What `row` shows, by the prompt of `compat`."""
    return Display.model_validate({**row, "compat": compat})


# --- tests


def pearson(utilities: ArrayLike, relevance: ArrayLike) -> tuple[float, float] | None:
    """Pearson's r of utility with ranking quality (nDCG@k), both (n,), one number a topic, and its two-sided p-value.

    None for fewer than three topics, and where one side is the same everywhere.

    >>> r, p = pearson([0.1, 0.2, 0.4], [0.3, 0.5, 0.9])
    >>> r > 0.999, pearson([0.1, 0.2, 0.4], [1, 1, 1])
    (True, None)
    """
    from scipy.stats import pearsonr

    x, y = np.asarray(utilities, dtype=np.float64), np.asarray(relevance, dtype=np.float64)
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    test = pearsonr(x, y)
    return float(test.statistic), float(test.pvalue)


@dataclass(frozen=True, slots=True)
class PairedTest:
    """The mean difference over the topics, Student's t and its two-sided p-value; these None without spread."""

    difference: float
    t: float | None
    p: float | None


def paired_test(values: ArrayLike, others: ArrayLike) -> PairedTest | None:
    """The paired t-test that `values` (n,) and `others` (n,) have the same mean; None for no topic.

    Without spread t has no value; p is 1 where nothing differs and 0 where everything differs by the same.

    >>> test = paired_test([1.0, 2.0, 4.0], [1.0, 1.0, 1.0])
    >>> round(test.difference, 4), round(test.t, 4), round(test.p, 4)
    (1.3333, 1.5119, 0.2697)
    """
    from scipy.stats import ttest_1samp

    differences = np.asarray(values, dtype=np.float64) - np.asarray(others, dtype=np.float64)
    if not len(differences):
        return None
    mean = float(differences.mean())
    if len(differences) < 2:
        return PairedTest(mean, None, None)
    if np.ptp(differences) == 0:
        return PairedTest(mean, None, float(mean == 0))
    test = ttest_1samp(differences, 0.0)
    return PairedTest(mean, float(test.statistic), float(test.pvalue))


@dataclass(frozen=True, slots=True)
class RowSummary:
    """One row at one k, over the `topics` that every row has and whose utility is defined.

    `performance`, `utility` and `quality` (nDCG@k) are means, `r` and `p` the correlation of utility with quality, and
    `fit` the line of utility on it. `to_baseline` tests its utility against the baseline's (None for itself),
    `to_order` against that of the same documents in rank order (None where they are).
    """

    system: str
    k: int
    topics: int
    performance: float
    utility: float
    quality: float
    r: float | None
    p: float | None
    fit: Line | None
    to_baseline: PairedTest | None
    to_order: PairedTest | None


def summary(run: Results, section: Utility) -> tuple[RowSummary, ...]:
    """A line for each row and k, row by row; none where no topic counts."""
    values, topics, _ = by_topic(run, section)

    def of(name: str, measure: str) -> list[float]:
        return [values[topic, name][measure] for topic in topics]

    def row_of(display: Display) -> str:
        return next(name for name, row in run.rows.items() if Display.model_validate(row) == display)

    rows = []
    for system, k in product(run.systems, section.ks) if topics else ():
        utilities, qualities = of(system, section.utility(k)), of(system, section.quality(k))
        display = Display.model_validate(run.rows[system])
        baseline = row_of(counterpart(run.rows[run.baseline], display.compat))
        in_order = row_of(display.model_copy(update={"order": "rank"}))
        r, p = pearson(utilities, qualities) or (None, None)
        line = RowSummary(
            system,
            k,
            len(topics),
            performance=fmean(of(system, section.performance(k))),
            utility=fmean(utilities),
            quality=fmean(qualities),
            r=r,
            p=p,
            fit=fitted_line(qualities, utilities),
            to_baseline=None if system == baseline else paired_test(utilities, of(baseline, section.utility(k))),
            to_order=None if system == in_order else paired_test(utilities, of(in_order, section.utility(k))),
        )
        rows.append(line)
    return tuple(rows)


def by_topic(
    run: Results, section: Utility
) -> tuple[Mapping[tuple[str, str], Mapping[str, float]], tuple[str, ...], tuple[str, ...]]:
    """The values, (topic, system) -> measure -> value, and the topics that every row has: with a utility, and without.

    A topic's utility is not defined where an answer from no documents is worth nothing.
    """
    values = {
        (one.topic, one.system): one.values[""]
        for one in run.outcomes
        if one.failed is None and one.topic not in run.excluded
    }
    first, topics = section.utility(section.ks[0]), dict.fromkeys(one.topic for one in run.outcomes)
    complete = [topic for topic in topics if all((topic, system) in values for system in run.systems)]
    # Each prompt has its own answer from no documents.
    defined = tuple(topic for topic in complete if all(first in values[topic, system] for system in run.systems))
    return values, defined, tuple(topic for topic in complete if topic not in defined)
