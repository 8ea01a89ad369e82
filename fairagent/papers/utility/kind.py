"""Utility experiments: answers from the first k documents are compared with the relevant passages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar, Literal

import numpy as np

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
from fairagent.evaluate.run import Run
from fairagent.evaluate.tables import Column, LinePlot, Note, PagePart, PageSection, PlotLine, PlotPoint, Table
from fairagent.llm.prompts import LETTER, Calls, Case, Prompts
from fairagent.measures.curves import Line, fitted_line
from fairagent.measures.parse import label_of
from fairagent.papers.utility.measures import PairedTest, paired_test, pearson
from fairagent.papers.utility.prediction import PREDICTORS, choices
from fairagent.papers.utility.section import (
    BY_PROMPT,
    IN_ORDER,
    NOT_COMPARABLE,
    OF_JUDGMENTS,
    Compat,
    Display,
    Utility,
    check_similarity,
)
from fairagent.papers.utility.trial import (
    TEMPLATES,
    UtilityTrial,
    as_passage,
    check_texts,
    grades_of,
    judged_ids,
    ranked_ids,
    read_passages,
)
from fairagent.retrieve.run_file import RunFile, read_run
from fairagent.types import Document
from fairagent.types.common import counted

FILE = "utility.csv"
TO_BASELINE, TO_ORDER = "†", "‡"
OF_CHOICES = (
    "k is chosen on the other folds: one for all, or one for low, middling and high values of what predicts the "
    f"query's performance from the engine's scores; a random number is the control. *: p < {SIGNIFICANT}, not corrected"
)


class UtilityKind(ExperimentKind):
    """Each system's documents, shown in each order; groups play no part."""

    kind: Literal["utility"] = "utility"
    utility: Utility = Utility()
    """From how many documents answers are written and what they are compared with."""

    engines: ClassVar[tuple[str, ...]] = OF_JUDGMENTS
    overall: ClassVar[str] = "all"

    @property
    def n(self) -> int:
        """The largest context."""
        return max(self.utility.ks)

    def fair_in(self, checking: Checking) -> tuple[str, ...]:
        """None: unless its settings say otherwise, no system is fair in anything."""
        return ()

    def templates(self, system: SystemPlan) -> tuple[str, ...]:
        """The template of the answers; before there are rows, those of all."""
        variants = (Display.model_validate(system.row).compat,) if system.row else self.utility.compat
        return tuple(TEMPLATES[one] for one in variants) if system.settings.generate.templates else ()

    def check(self, checking: Checking) -> None:
        """Add what is wrong with the section, and systems that cannot be compared by it."""
        problems, systems = checking.problems, checking.systems
        if any(not system.settings.filter.idle(system.settings) for system in systems.values()):
            problems.add(SettingsError, "filter: cannot be set: here a generator is given all k documents")
        problems.attempt("utility.similarity", check_similarity, self.utility.similarity)
        if self.utility.folds == 1:
            problems.add(SettingsError, "utility.folds: with one fold no topic is left to choose on; take 2 or more")
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
        """The topics with a relevant passage that has a text; adds texts that lack."""
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
            checking.problems.attempt("", check_texts, collection, ids, texts, what)
        return texts

    def rows(self, systems: Systems) -> Systems:
        """A row for each system, prompt and order; what is taken from the judgments is shown in its own order alone."""
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
        """No dimension."""
        return ()

    def measured(self, dimensions: Sequence[str]) -> tuple[MeasureInfo, ...]:
        """Those of the section, for each k."""
        return tuple(map(MeasureInfo, self.utility.measures))

    def fingerprint(self, plan: Plan, subject: Subject, environ: Mapping[str, str]) -> JsonObject:
        """The section but for the ks, since a cached answer is one for all of them, and the prompts: rows have them."""
        return {"utility": self.utility.model_dump(mode="json", exclude={"ks", "scatter", "folds", "compat"})}

    def worst_case(self, row: str, plan: Plan, subject: Subject) -> Iterator[Calls]:
        """The answers of one row, from documents as long as may be; those from none are the first row's."""
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
        """The trial."""
        return UtilityTrial.open(opened, self.utility)

    # --- what came out -------------------------------------------------------------------------------------------

    def results(self, run: Run) -> KindResults:
        """The numbers by row and k."""
        return KindResults(self.tables(run), self.files(run), page=self.page(run))

    @property
    def short(self) -> tuple[str, str]:
        """What tables call utility and performance: both say where they are not comparable."""
        of_one = (self.utility.utility(1), self.utility.performance(1))
        return label_of(of_one[0]).removesuffix("@1"), label_of(of_one[1]).removesuffix("@1")

    def tables(self, run: Run) -> list[Table]:
        """A line for each row and k; then results by group of the query."""
        rows = summary(run, self.utility)
        if not rows:
            return []
        utility, performance = self.short
        tests = (Column(name, none="") for name in ("t-test to baseline", "t-test to rank order"))
        measures: list[str | Column] = [performance, Column(utility, "+.4f"), "nDCG@k", Column("r", "+.3f"), "p(r)"]
        lines = [
            (
                *(f"{one.system} k={one.k}", one.performance, one.utility, one.quality, one.r, one.p),
                *(_test(one.to_baseline, TO_BASELINE), _test(one.to_order, TO_ORDER)),
            )
            for one in rows
        ]
        title = f"utility and ranking quality ({counted(rows[0].topics, 'topic')})"
        of_all = Table.of(["row", *measures, *tests], lines, title, self._notes(run))
        return [of_all, *self._choice_tables(run), *query_group_tables(run)]

    def _choice_tables(self, run: Run) -> Iterator[Table]:
        """For each row whose engine gave scores: what choosing k by a predictor comes to."""
        values, topics, _ = _by_topic(run, self.utility)
        folds, ks = self.utility.folds, (0, *self.utility.ks)
        for name in run.systems if 0 < folds <= len(topics) else ():
            of_topics = [values[topic, name] for topic in topics]
            if any(predictor not in one for one in of_topics for predictor in PREDICTORS):
                continue
            utilities = np.array([[0.0, *(one[self.utility.utility(k)] for k in ks[1:])] for one in of_topics])
            by = {predictor: np.array([one[predictor] for one in of_topics]) for predictor in PREDICTORS}
            lines = [
                (one.way, one.utility, one.k, one.none, _test(one.to_fixed, "*"))
                for one in choices(utilities, ks, by, folds, run.kind.seed)
            ]
            columns: list[str | Column] = [
                "k by",
                Column(self.short[0], "+.4f"),
                Column("mean k", ".2f"),
                Column("not retrieved", ".2f"),
            ]
            title = f"{name}: k from {listed(list(map(str, ks)))}, {folds} folds of {counted(len(topics), 'topic')}"
            columns.append(Column("t-test to one k", none=""))
            yield Table.of(columns, lines, title, [OF_CHOICES])

    def _notes(self, run: Run) -> Iterator[str]:
        utility, performance = self.short
        against = f"the highest over the relevant passages (grade {self.utility.relevant} or more)"
        yield f"{performance}: {self._similarity}, {against}"
        yield (
            f"{utility}: the mean over the topics of (P - P_0) / P_0, where P_0 is that of the answer from no documents"
        )
        yield "r: Pearson's correlation of a topic's U with its nDCG@k, which is that of the list in rank order"
        yield (
            f"t-tests: mean difference of U (two-sided p, paired, not corrected); {TO_BASELINE}: p < {SIGNIFICANT} to "
            f"{run.baseline}, {TO_ORDER}: to the same documents in rank order"
            + (", both by the same prompt" if len(self.utility.compat) > 1 else "")
        )
        if left_out := without_utility(run, self.utility):
            yield f"left out of U, since P_0 is 0: {counted(len(left_out), 'topic')}: {listed(left_out)}"

    @property
    def _similarity(self) -> str:
        similarity = self.utility.similarity
        return similarity.name + ("" if similarity.comparable else f" ({NOT_COMPARABLE})")

    def files(self, run: Run) -> Mapping[str, Table]:
        """One line a row and k."""
        header = ("system", "k", "topics", "similarity", "P", "U", "nDCG", "r", "r_p", "fit_slope", "fit_intercept")
        tests = [f"{against}_{part}" for against in ("baseline", "rank_order") for part in ("difference", "t", "p")]
        lines = [
            (
                *(one.system, one.k, one.topics, self._similarity, one.performance, one.utility, one.quality),
                *(one.r, one.p, *((one.fit.slope, one.fit.intercept) if one.fit else (None, None))),
                *(part for test in (one.to_baseline, one.to_order) for part in _parts(test)),
            )
            for one in summary(run, self.utility)
        ]
        return {FILE: Table.of((*header, *tests), lines), **query_group_files(run)}

    def page(self, run: Run) -> PageSection | None:
        """Utility and its correlation with ranking quality over k, and the numbers."""
        rows = summary(run, self.utility)
        if not rows:
            return None
        utility, _ = self.short
        of_u = {name: {0: 0.0, **{one.k: one.utility for one in rows if one.system == name}} for name in run.systems}
        of_r = {
            name: {one.k: one.r for one in rows if one.system == name and one.r is not None} for name in run.systems
        }
        plots = [LinePlot(f"{utility} over k", ("k", utility), _lines(run, of_u))]
        for k in self.utility.scatter:
            clouds = (
                cloud(name, number, topic_points(run, self.utility, name, k)) for number, name in enumerate(run.systems)
            )
            caption = f"{utility} against nDCG@{k}, topic by topic"
            plots.append(LinePlot(caption, (f"nDCG@{k}", utility), tuple(clouds)))
        if any(of_r.values()):
            caption = f"correlation of {utility} and nDCG@k over k"
            plots.append(LinePlot(caption, ("k", "Pearson's r"), _lines(run, of_r)))
        intro = Note(
            f"{utility} is what the first k documents add to an answer, as a share of what it is worth without any: P "
            f"is {self.utility.similarity.name} to the closest relevant passage. r is the correlation of a topic's "
            "utility with its nDCG@k, the better the list the more its documents add."
        )
        warning = (
            f"Answers are compared by {self.utility.similarity.name} and not by BERTScore: the numbers are "
            f"{NOT_COMPARABLE} with those of papers."
        )
        warnings = [] if self.utility.similarity.comparable else [Note(warning, warning=True)]
        parts: tuple[PagePart, ...] = (intro, *warnings, *plots, *self.tables(run))
        legend = tuple((name, number) for number, name in enumerate(run.systems))
        return PageSection("Utility", "Does relevance reach the answer?", parts, legend)


def _generator(system: SystemPlan) -> str:
    """What tells one generator from another: who answers, by which prompts, and how much it is shown."""
    settings = system.settings
    model = f"{settings.model.model_dump_json()} {settings.prompts}" if settings.generate.templates else ""
    return f"{settings.generate.model_dump_json()} {settings.context.tokens} {model}"


def _lines(run: Run, of_system: Mapping[str, Mapping[int, float]]) -> tuple[PlotLine, ...]:
    return tuple(
        PlotLine(name, number, tuple(PlotPoint(f"k={k}", float(k), value) for k, value in of_system[name].items()))
        for number, name in enumerate(run.systems)
        if of_system[name]
    )


def _test(test: PairedTest | None, mark: str) -> str | None:
    if test is None:
        return None
    p = "-" if test.p is None else f"{test.p:.4f}"
    return f"{test.difference:+.4f} ({p}){mark if test.p is not None and test.p < SIGNIFICANT else ' '}"


def _parts(test: PairedTest | None) -> tuple[float | None, ...]:
    return (test.difference, test.t, test.p) if test else (None, None, None)


@dataclass(frozen=True, slots=True)
class RowSummary:
    """One row at one k, over the `topics` that every row has and whose utility is defined.

    `performance`, `utility` and `quality` (nDCG@k) are means, `r` and `p` the correlation of utility with quality, and
    `fit` the line of utility on it (None where they are not defined). `to_baseline` tests its utility against the
    baseline's (None for itself), `to_order` against that of the same documents in rank order (None where they are). The
    tests are not corrected for being several.
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


def summary(run: Run, section: Utility) -> tuple[RowSummary, ...]:
    """A line for each row and k, row by row; none where no topic counts."""
    values, topics, _ = _by_topic(run, section)
    return tuple(_summary(run, section, values, topics, *row) for row in product(run.systems, section.ks) if topics)


def _summary(run: Run, section: Utility, values: Values, topics: Sequence[str], system: str, k: int) -> RowSummary:
    def of(name: str, measure: str) -> list[float]:
        return [values[topic, name][measure] for topic in topics]

    performances, utilities = of(system, section.performance(k)), of(system, section.utility(k))
    qualities, display = of(system, section.quality(k)), Display.model_validate(run.rows[system])
    baseline = _row_of(run, counterpart(run.rows[run.baseline], display.compat))
    in_order = _row_of(run, display.model_copy(update={"order": "rank"}))
    correlation = pearson(utilities, qualities)
    return RowSummary(
        system,
        k,
        len(topics),
        sum(performances) / len(topics),
        sum(utilities) / len(topics),
        sum(qualities) / len(topics),
        correlation.r if correlation else None,
        correlation.p if correlation else None,
        fitted_line(qualities, utilities),
        None if system == baseline else paired_test(utilities, of(baseline, section.utility(k))),
        None if system == in_order else paired_test(utilities, of(in_order, section.utility(k))),
    )


def counterpart(row: Mapping[str, Any], compat: Compat) -> Display:
    """What `row` shows, by the prompt of `compat`."""
    return Display.model_validate({**row, "compat": compat})


def _row_of(run: Run, display: Display) -> str:
    return next(name for name, row in run.rows.items() if Display.model_validate(row) == display)


def topic_points(run: Run, section: Utility, system: str, k: int) -> list[PlotPoint]:
    """Every topic's nDCG@k and utility, of one row."""
    values, topics, _ = _by_topic(run, section)
    of_row = ((topic, values[topic, system]) for topic in topics)
    return [PlotPoint(topic, of[section.quality(k)], of[section.utility(k)]) for topic, of in of_row]


def without_utility(run: Run, section: Utility) -> tuple[str, ...]:
    """The topics that every row has and whose utility is not defined: an answer from no documents is worth nothing."""
    return _by_topic(run, section)[2]


Values = Mapping[tuple[str, str], Mapping[str, float]]
"""(topic, system) -> measure -> value."""


def _by_topic(run: Run, section: Utility) -> tuple[Values, tuple[str, ...], tuple[str, ...]]:
    """The values, and the topics that every row has: those with a utility, and those without, in their order."""
    values = {
        (one.topic, one.system): one.values[""]
        for one in run.outcomes
        if one.failed is None and one.topic not in run.excluded
    }
    first = section.utility(section.ks[0])
    complete = [
        topic
        for topic in dict.fromkeys(one.topic for one in run.outcomes)
        if all((topic, system) in values for system in run.systems)
    ]
    # Each prompt has its own answer from no documents.
    defined = tuple(topic for topic in complete if all(first in values[topic, system] for system in run.systems))
    return values, defined, tuple(topic for topic in complete if topic not in defined)
