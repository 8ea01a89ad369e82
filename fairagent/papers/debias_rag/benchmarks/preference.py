"""What StereoSet and CrowS-Pairs have in common: a model prefers one of an item's sentences, after a context.

StereoSet: a stereotype, its opposite and something unrelated; which of them does a model find likely?

CrowS-Pairs: a sentence about a disadvantaged group, and the same about another; which does a model find likelier?

A trial of preferences: a model scores every item's sentences after what each system retrieves for it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

import numpy as np

from fairagent.extend import (
    AnswerRecord,
    Calls,
    Case,
    Checking,
    Column,
    Contexts,
    DataError,
    Debiased,
    Document,
    FairAgent,
    Filtered,
    FloatArray,
    JsonObject,
    MeasureInfo,
    Note,
    Opened,
    Order,
    Outcome,
    PageSection,
    Plan,
    QuestionFile,
    QuestionsKind,
    Run,
    SearchResult,
    Site,
    Subject,
    System,
    SystemPlan,
    Table,
    Topic,
    Usage,
    arrange,
    build_contexts,
    build_systems,
    estimate_tokens,
    filter_alarms,
    longest_context,
    questions_of,
    site_of,
    without_context,
)
from fairagent.papers.debias_rag.benchmarks.items import (
    LM_SCORE,
    MORE,
    OVERALL,
    STEREOTYPE,
    Item,
    Pair,
    Part,
    StereoSetExample,
    crows_pairs_rows,
    read_crows_pairs,
    read_stereoset,
    stereoset_rows,
)
from fairagent.papers.debias_rag.benchmarks.scorers import (
    BETWEEN,
    FORCED_CHOICE,
    PROMPT,
    ChoiceScorer,
    Likelihoods,
    Scored,
    Scorer,
)

FILE = "stereotypes.csv"


class PreferenceQuestions(QuestionFile):
    """The section `questions:` of a benchmark whose sentences a model chooses among."""

    likelihoods: Likelihoods | None = None
    """The model whose likelihoods choose, after what each system retrieves; none: each system's own model is asked."""


@dataclass(frozen=True, slots=True)
class SetRow:
    """One system's numbers over the `count` items of one part and one kind, each or both "overall"."""

    system: str
    part: str
    kind: str
    values: Mapping[str, float | None]
    count: int


Numbers = tuple[str, str, Mapping[str, float | None], int]
"""Part, kind, values by their names, and how many items they are over."""


class PreferenceKind(QuestionsKind, ABC):
    """A benchmark of sentences that a model chooses among."""

    questions: PreferenceQuestions
    """The benchmark's items; `topics` chooses among them."""
    of_items: ClassVar[tuple[MeasureInfo, ...]]
    together: ClassVar[tuple[str, ...]]
    """What all items together are measured by, in percent."""
    notes: ClassVar[tuple[str, ...]]
    """What these numbers are."""
    searches: ClassVar[bool] = True

    @abstractmethod
    def numbers(self, choices: Mapping[str, ItemScores], scores: list[FloatArray]) -> Iterator[Numbers]:
        """The numbers of all items, of each part and of each kind."""

    @property
    def way(self) -> str:
        """How sentences are chosen."""
        return self.questions.likelihoods.way if self.questions.likelihoods else FORCED_CHOICE

    def check(self, checking: Checking) -> None:
        """Add what keeps the model of the likelihoods from being opened, or from scoring a part of the benchmark."""
        super().check(checking)
        if model := self.questions.likelihoods:
            items = questions_of(checking.subject) if checking.subject else {}
            checking.problems.attempt("questions.likelihoods", _check, model, items)

    def measured(self, dimensions: Sequence[str]) -> tuple[MeasureInfo, ...]:
        """What every item is measured by."""
        return self.of_items

    @property
    def measured_together(self) -> tuple[str, ...]:
        """What all items together are."""
        return self.together

    def prompts_used(self, system: SystemPlan) -> tuple[str, ...]:
        """The template by which a model is asked to choose."""
        return () if self.questions.likelihoods else (PROMPT,)

    def fingerprint(self, plan: Plan, subject: Subject, environ: Mapping[str, str]) -> JsonObject:
        """The file's content, and the model of the likelihoods."""
        model = self.questions.likelihoods
        chosen = {"likelihoods": model.model_dump(exclude={"device", "batch"})} if model else {}
        return {"questions": {**super().fingerprint(plan, subject, environ)["questions"], **chosen}}

    def provenance(self) -> JsonObject:
        """The place of the file, and how sentences are chosen."""
        return {"questions": {**super().provenance()["questions"], "chosen by": self.way}}

    def calls(self, system: SystemPlan, case: Case, asked: list[Item]) -> Iterator[Calls]:
        """One call for each item; its sentences are shown with all of the context."""
        if self.questions.likelihoods:
            return
        context = None if without_context(system) else longest_context(system.settings)
        around = case.tokens(PROMPT, sentences=[], context=context, opening="")
        read = sum(around + estimate_tokens(*item.texts) for item in asked)
        yield case.counted(PROMPT, len(asked), read)

    def trial(self, opened: Opened) -> ChoiceTrial:
        """The trial."""
        return ChoiceTrial.open(opened, self.questions.likelihoods.open() if self.questions.likelihoods else None)

    # --- what came out -------------------------------------------------------------------------------------------

    def set_rows(self, run: Run) -> list[SetRow]:
        """The numbers over the items that every system has scored."""
        seen: dict[str, int] = {}
        for outcome in run.answered:
            seen[outcome.topic] = seen.get(outcome.topic, 0) + 1
        rows = []
        for system in run.systems:
            choices = {
                outcome.topic: ItemScores.read(outcome.record)
                for outcome in run.answered
                if outcome.system == system and outcome.record and seen[outcome.topic] == len(run.systems)
            }
            scores = [np.array(choice.scores) for choice in choices.values()]
            rows += [SetRow(system, *numbers) for numbers in (self.numbers(choices, scores) if choices else ())]
        return rows

    def _expected(self, run: Run, row: SetRow) -> Mapping[str, float]:
        """The numbers to compare with: those of all parts together, by kind."""
        if row.part != OVERALL:
            return {}
        found = (run.expected or {}).get(row.system, {}).get("" if row.kind == OVERALL else row.kind, {})
        return {name: value for name, value in found.items() if name in self.together}

    def values_together(self, run: Run) -> Mapping[tuple[str, str, str], float]:
        """The numbers of all parts together, for all items and by kind."""
        return {
            (row.system, "" if row.kind == OVERALL else row.kind, name): value
            for row in self.set_rows(run)
            if row.part == OVERALL
            for name in self.together
            if (value := row.values.get(name)) is not None
        }

    def tables(self, run: Run) -> list[Table]:
        """A table for all items, each part and each kind."""
        rows = self.set_rows(run)
        tables = []
        for part, kind in dict.fromkeys((row.part, row.kind) for row in rows if OVERALL in (row.part, row.kind)):
            of_place = [row for row in rows if (row.part, row.kind) == (part, kind)]
            papers = [self._expected(run, row) for row in of_place]
            names = list(of_place[0].values)
            shown = [name for name in names if any(name in paper for paper in papers)]
            columns = [Column(name, ".2f") for name in (*names, *(f"expected {name}" for name in shown))]
            lines = [
                [row.system, *row.values.values(), *(paper.get(name) for name in shown)]
                for row, paper in zip(of_place, papers, strict=True)
            ]
            place = dict.fromkeys(name for name in (part, kind) if name != OVERALL)
            title = f"{', '.join(place) or 'all'} ({of_place[0].count:,} items)"
            tables.append(Table.of(["system", *columns], lines, title, systems=True))
        return tables

    def remarks(self, run: Run) -> tuple[str, ...]:
        """How the numbers were made, and what they are."""
        chosen = [outcome.record for outcome in run.answered if outcome.record]
        told = sum(bool(record.get("by_chance")) for record in chosen)
        by_chance = (f"{told:,} of {len(chosen):,} choices by the chances of the letters",) if told else ()
        return (f"by {self.way}", *by_chance, *self.notes)

    def files(self, run: Run) -> Mapping[str, Table]:
        """A line for each system, part, kind and measure."""
        lines = [
            (row.system, row.part, row.kind, name, value, row.count, self._expected(run, row).get(name), self.way)
            for row in self.set_rows(run)
            for name, value in row.values.items()
        ]
        return {FILE: Table.of(("system", "part", "kind", "measure", "value", "items", "expected", "way"), lines)}

    def records(self, run: Run) -> JsonObject:
        """The numbers, and how sentences were chosen."""
        return {"way": self.way, "stereotypes": [asdict(row) for row in self.set_rows(run)]}

    def page(self, run: Run) -> PageSection | None:
        """The tables, that of all items first."""
        tables = sorted(self.tables(run), key=lambda table: not table.title.startswith("all "))
        remarks = [Note(text) for text in self.remarks(run)]
        return PageSection("Stereotypes", "Stereotypes", (*remarks[:1], *tables, *remarks[1:])) if tables else None


def _check(model: Likelihoods, items: Mapping[str, Any]) -> None:
    """Raise BackendUnavailable where the model is not there or cannot score some part of the benchmark."""
    scorer = model.open()
    item = next(
        (one for one in items.values() if isinstance(one, StereoSetExample) and one.part == "intersentence"), None
    )
    if item and model.kind != "server":
        scorer.score(item)


class StereoSetQuestions(PreferenceQuestions):
    """The section `questions:`."""

    part: Literal["both", "intrasentence", "intersentence"] = "both"
    """Which examples."""


class StereoSet(PreferenceKind):
    """StereoSet's examples."""

    kind: Literal["stereoset"] = "stereoset"
    questions: StereoSetQuestions
    """StereoSet's examples; `topics` chooses among them."""
    of_items: ClassVar[tuple[MeasureInfo, ...]] = (
        MeasureInfo(
            STEREOTYPE,
            "the share of examples whose stereotype beats the anti-stereotype; .5 is fair",
            lower_is_better=True,
        ),
        MeasureInfo(LM_SCORE, "how often a meaningful sentence beats the unrelated one"),
    )
    together: ClassVar[tuple[str, ...]] = ("LMS", "SS", "ICAT")
    notes: ClassVar[tuple[str, ...]] = (
        "LMS: how often a meaningful sentence beats the unrelated one, in percent (100 is best)",
        "SS: how often the stereotype beats the anti-stereotype (50 is best); ICAT: LMS * min(SS, 100 - SS) / 50",
        "each number is a mean over its target terms",
    )

    def read(self, path: Path) -> Mapping[str, StereoSetExample]:
        """The examples of the part that is asked for; DataError with every fault, and where there is none."""
        part = self.questions.part
        found = {id: one for id, one in read_stereoset(path).items() if part in (one.part, "both")}
        if not found:
            raise DataError(f"{path} has no {part} examples")
        return found

    def numbers(self, choices: Mapping[str, ItemScores], scores: list[FloatArray]) -> Iterator[Numbers]:
        """LMS, SS and ICAT of every part and domain."""
        # Of an example its numbers depend on no more than this.
        examples = [
            StereoSetExample(id, cast(Part, choice.part), choice.kind, choice.target, "", "", "", "")
            for id, choice in choices.items()
        ]
        for row in stereoset_rows(examples, scores):
            score = row.score
            yield row.part, row.domain, {"LMS": score.lms, "SS": score.ss, "ICAT": score.icat}, score.count


class CrowsPairs(PreferenceKind):
    """CrowS-Pairs' pairs of sentences."""

    kind: Literal["crows-pairs"] = "crows-pairs"
    of_items: ClassVar[tuple[MeasureInfo, ...]] = (
        MeasureInfo(
            MORE,
            "the share of pairs whose more stereotyping sentence is preferred; .5 is fair",
            lower_is_better=True,
        ),
    )
    together: ClassVar[tuple[str, ...]] = ("CP-S", "CP-S stereo", "CP-S antistereo")
    notes: ClassVar[tuple[str, ...]] = (
        "CP-S: how often the more stereotyping sentence is preferred, in percent (50 is best); neutral pairs are not",
        "CP-S stereo, antistereo: over the pairs of that direction that are not neutral",
    )

    def read(self, path: Path) -> Mapping[str, Pair]:
        """The pairs; DataError with every fault."""
        return read_crows_pairs(path)

    def numbers(self, choices: Mapping[str, ItemScores], scores: list[FloatArray]) -> Iterator[Numbers]:
        """CP-S of all pairs, and of every bias type."""
        pairs = [Pair(id, choice.kind, "", "", choice.part == "stereo") for id, choice in choices.items()]
        for row in crows_pairs_rows(pairs, scores, next(iter(choices.values())).decimals):
            score = row.score
            values = (score.score, score.stereotype, score.anti_stereotype)
            yield OVERALL, row.kind, dict(zip(self.together, values, strict=True)), score.count


PREFERRED = "preference"
"""Who grades an answer that is a preferred sentence."""


@dataclass(frozen=True, slots=True)
class ItemScores:
    """How a model scored an item's sentences: what the numbers of all items together are made of.

    `kind` is its bias type; `part` intrasentence or intersentence, or of a pair stereo or antistereo; `target` its
    target term, "" for a pair; `decimals` to how many places the scores of a pair are rounded. `by_chance` is as in
    `Scored`.
    """

    kind: str
    part: str
    target: str
    scores: tuple[float, ...]
    decimals: int | None = None
    by_chance: bool = False

    @classmethod
    def of(cls, item: Item, scored: Scored, decimals: int | None) -> ItemScores:
        """That of an item."""
        scores = tuple(float(score) for score in scored.scores)
        if isinstance(item, StereoSetExample):
            return cls(item.kind, item.part, item.target, scores, decimals, scored.by_chance)
        return cls(item.kind, "stereo" if item.stereo else "antistereo", "", scores, decimals, scored.by_chance)

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> ItemScores:
        """That of an outcome's record."""
        return cls(**{**record, "scores": tuple(record["scores"])})


@dataclass(frozen=True, slots=True)
class ItemContext:
    """What an item's sentences were scored after, how it came about, and what all of it took."""

    documents: Sequence[Document]
    usage: Usage = field(default_factory=Usage)
    search: SearchResult | None = None
    filtered: Filtered | None = None
    debiased: Debiased | None = None


@dataclass(frozen=True, slots=True)
class Reader:
    """What finds a system's documents (None where it searches nothing), and what makes a context of them.

    Without a search the context is what `contexts.debiasing` makes, if there is one, else empty.
    """

    agent: FairAgent | None
    contexts: Contexts

    @classmethod
    def open(cls, site: Site, searching: System | None) -> Reader:
        """That of one system."""
        return cls(searching.agent if searching else None, build_contexts(site))

    def read(self, topic: Topic) -> ItemContext:
        """The context of one item."""
        if self.agent:
            found = self.agent.search(topic)
            made = self.contexts.make(found, self.agent.retriever)
            usage = found.trace.usage + made.usage
            return ItemContext(made.documents, usage, found, made.filtered, made.debiased)
        if self.contexts.debiasing:
            debiased = self.contexts.debiasing.apply(topic.query, ())
            return ItemContext(debiased.documents, debiased.usage, debiased=debiased)
        return ItemContext(())

    def oracle(self, context: ItemContext) -> bool:
        """Whether it looked at the judgments."""
        return bool(context.search and context.search.trace.oracle and self.agent and self.agent.settings.sees_groups)


@dataclass(frozen=True, slots=True)
class Participant:
    """One system: what it reads before an item's sentences, and what scores them."""

    reader: Reader
    scorer: Scorer
    order: Order

    def score(self, item: Item) -> tuple[Scored, ItemContext]:
        """The scores of the item's sentences, and what they were scored after."""
        context = self.reader.read(Topic(item.id, item.query))
        order = arrange(len(context.documents), self.order)
        texts = (context.documents[number - 1].text for number in order)
        return self.scorer.score(item, BETWEEN.join(text for text in texts if text)), context


@dataclass(frozen=True, slots=True, eq=False)
class ChoiceTrial:
    """Lets models choose under every system; threads may share it."""

    items: Mapping[str, Item]
    participants: Mapping[str, Participant]

    @classmethod
    def open(cls, opened: Opened, likelihoods: Scorer | None) -> ChoiceTrial:
        """The trial of an experiment; without `likelihoods` each system's own model is asked to choose."""
        searching = build_systems(opened)
        participants = {}
        for name, system in opened.plan.systems.items():
            found = searching.get(name)
            site = found.site if found else site_of(system, opened.collection, opened.models)
            scorer = likelihoods or ChoiceScorer(site.model, site.prompts, opened.plan.experiment.seed)
            participants[name] = Participant(Reader.open(site, found), scorer, system.settings.context.order)
        return cls(questions_of(opened.subject), participants)

    def outcome(self, system: str, id: str) -> Outcome:
        """See `Trial.outcome`."""
        item, participant = self.items[id], self.participants[system]
        scored, context = participant.score(item)
        if not np.isfinite(scored.scores).all():
            raise DataError(f"{participant.scorer.way}: a sentence's score is no finite number")
        decimals = participant.scorer.decimals
        values = item.values(scored.scores, decimals)
        preferred = item.sentences[int(np.argmax(scored.scores))]
        return Outcome.of(
            Topic(id, item.query),
            system,
            {"": values, item.kind: values},
            context.usage + scored.usage,
            search=context.search,
            oracle=participant.reader.oracle(context),
            answer=AnswerRecord.of(preferred, PREFERRED, context.filtered, context.debiased),
            record=asdict(ItemScores.of(item, scored, decimals)),
            alarms=filter_alarms(context.filtered.verdicts) if context.filtered else (),
        )
