"""StereoSet and CrowS-Pairs: which of an item's sentences does a model prefer, after what each system retrieves?"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from fairagent.answer.context import Contexts, arrange
from fairagent.answer.filtering import filter_alarms
from fairagent.errors import DataError
from fairagent.evaluate.kind import Checking, JsonObject, KindResults, MeasureInfo, Opened, Subject
from fairagent.evaluate.outcome import AnswerRecord, Outcome
from fairagent.evaluate.plan import Plan, SystemPlan, build_systems, site_of
from fairagent.evaluate.questions import QuestionFile, QuestionsKind, longest_context, questions_of, without_context
from fairagent.evaluate.run import Run
from fairagent.evaluate.tables import Column, Note, PageSection, Table
from fairagent.llm.prompts import Calls, Case
from fairagent.llm.request import estimate_tokens
from fairagent.papers.debias_rag.benchmarks.items import (
    LM_SCORE,
    MORE,
    OVERALL,
    STEREOTYPE,
    Item,
    ItemScores,
    Numbers,
    Pair,
    StereoSetExample,
    crows_pairs_numbers,
    read_crows_pairs,
    read_stereoset,
    stereoset_numbers,
)
from fairagent.papers.debias_rag.benchmarks.scorers import (
    BETWEEN,
    FORCED_CHOICE,
    PROMPT,
    ChoiceScorer,
    Likelihoods,
    Scorer,
)
from fairagent.retrieve.site import Site
from fairagent.search.agent import FairAgent
from fairagent.search.pipeline import build_contexts
from fairagent.types import Debiased, Document, Filtered, SearchResult, Topic, Usage

FILE = "stereotypes.csv"
PREFERRED = "preference"
"""Who grades an answer that is a preferred sentence."""


@dataclass(frozen=True, slots=True)
class ItemContext:
    """What an item is shown after, how it came about, and what all of it took."""

    documents: Sequence[Document] = ()
    usage: Usage = field(default_factory=Usage)
    search: SearchResult | None = None
    filtered: Filtered | None = None
    debiased: Debiased | None = None
    oracle: bool = False
    """Whether it looked at the judgments."""

    def outcome(
        self, topic: Topic, system: str, values: dict[str, float], usage: Usage, answer: tuple[str, str], record: Any
    ) -> Outcome:
        """The outcome of an item; its topic's group is its bias type or domain, `answer` a text and who grades it."""
        return Outcome.of(
            Topic(topic.id, topic.query),
            system,
            {"": values, topic.group: values},
            self.usage + usage,
            search=self.search,
            oracle=self.oracle,
            answer=AnswerRecord.of(*answer, self.filtered, self.debiased),
            record=record,
            alarms=filter_alarms(self.filtered.verdicts) if self.filtered else (),
        )


@dataclass(frozen=True, slots=True)
class Reader:
    """What finds a system's documents (None where it searches nothing), and what makes a context of them.

    Without a search the context is what `contexts.debiasing` makes, if there is one, else empty.
    """

    site: Site
    agent: FairAgent | None
    contexts: Contexts

    def read(self, topic: Topic) -> ItemContext:
        """The context of one item."""
        if self.agent:
            result = self.agent.search(topic)
            made = self.contexts.make(result, self.agent.retriever)
            oracle = result.trace.oracle and self.agent.settings.sees_groups
            usage = result.trace.usage + made.usage
            return ItemContext(made.documents, usage, result, made.filtered, made.debiased, oracle)
        if self.contexts.debiasing:
            debiased = self.contexts.debiasing.apply(topic.query, ())
            return ItemContext(debiased.documents, debiased.usage, debiased=debiased)
        return ItemContext()


def open_readers(opened: Opened) -> dict[str, Reader]:
    """Those of all systems of an experiment."""
    searching, readers = build_systems(opened), {}
    for name, plan in opened.plan.systems.items():
        system = searching.get(name)
        site = system.site if system else site_of(plan, opened.collection, opened.models)
        readers[name] = Reader(site, system.agent if system else None, build_contexts(site))
    return readers


@dataclass(frozen=True, slots=True, eq=False)
class ChoiceTrial:
    """Lets models choose under every system; threads may share it."""

    items: Mapping[str, Item]
    readers: Mapping[str, Reader]
    scorers: Mapping[str, Scorer]

    def outcome(self, system: str, id: str) -> Outcome:
        """See `Trial.outcome`."""
        item, reader, scorer = self.items[id], self.readers[system], self.scorers[system]
        topic = Topic(id, item.query, group=item.kind)
        context = reader.read(topic)
        order = arrange(len(context.documents), reader.site.settings.context.order)
        texts = (context.documents[number - 1].text for number in order)
        scored = scorer.score(item, BETWEEN.join(text for text in texts if text))
        if not np.isfinite(scored.scores).all():
            raise DataError(f"{scorer.way}: a sentence's score is no finite number")
        preferred = item.sentences[int(np.argmax(scored.scores))]
        scores = tuple(map(float, scored.scores))
        return context.outcome(
            topic,
            system,
            item.values(scored.scores, scorer.decimals),
            scored.usage,
            (preferred, PREFERRED),
            asdict(ItemScores(item.kind, item.part, item.target, scores, scorer.decimals, scored.by_chance)),
        )


class PreferenceQuestions(QuestionFile):
    """The section `questions:` of a benchmark whose sentences a model chooses among."""

    likelihoods: Likelihoods | None = None
    """The model whose likelihoods choose, after what each system retrieves; none: each system's own model chooses."""


class PreferenceKind(QuestionsKind, ABC):
    """A benchmark of sentences that a model chooses among."""

    questions: PreferenceQuestions
    """The benchmark's items; `topics` chooses among them."""
    of_items: ClassVar[tuple[MeasureInfo, ...]]
    together: ClassVar[tuple[str, ...]]
    """What all items together are measured by, in percent."""
    notes: ClassVar[tuple[str, ...]]
    """What these numbers are."""

    @abstractmethod
    def numbers(self, scored: Sequence[ItemScores]) -> list[Numbers]:
        """The numbers of all items, of each part and of each bias type."""

    @property
    def way(self) -> str:
        """How sentences are chosen."""
        return self.questions.likelihoods.way if self.questions.likelihoods else FORCED_CHOICE

    def check(self, checking: Checking) -> None:
        """Add what keeps the model of the likelihoods from being opened, or from scoring a part of the benchmark."""
        super().check(checking)
        if model := self.questions.likelihoods:
            items = questions_of(checking.subject).values() if checking.subject else ()
            intersentence = (one for one in items if isinstance(one, StereoSetExample) and one.part == "intersentence")
            checking.problems.attempt("questions.likelihoods", _check, model, next(intersentence, None))

    def measured(self, dimensions: Sequence[str]) -> tuple[MeasureInfo, ...]:
        """What every item is measured by."""
        return self.of_items

    @property
    def measured_together(self) -> tuple[str, ...]:
        """What all items together are."""
        return self.together

    def prompts_used(self, system: SystemPlan) -> tuple[str, ...]:
        """The template that asks a model to choose."""
        return () if self.questions.likelihoods else (PROMPT,)

    def fingerprint(self, plan: Plan, subject: Subject, environ: Mapping[str, str]) -> JsonObject:
        """The file's content, and the model of the likelihoods."""
        model = self.questions.likelihoods
        chosen = {"likelihoods": model.model_dump(exclude={"device", "batch"})} if model else {}
        return {"questions": {**super().fingerprint(plan, subject, environ)["questions"], **chosen}}

    def provenance(self) -> JsonObject:
        """The place of the file, and how sentences are chosen."""
        return {"questions": {**super().provenance()["questions"], "chosen by": self.way}}

    def calls(self, system: SystemPlan, case: Case, questions: list[Item]) -> Iterator[Calls]:
        """One call for each item; its sentences are shown with all of the context."""
        if not self.questions.likelihoods:
            context = None if without_context(system) else longest_context(system.settings)
            around = case.tokens(PROMPT, sentences=[], context=context, opening="")
            yield case.counted(PROMPT, len(questions), sum(around + estimate_tokens(*item.texts) for item in questions))

    def trial(self, opened: Opened) -> ChoiceTrial:
        """The trial; without `likelihoods` each system's own model chooses."""
        readers, seed = open_readers(opened), opened.plan.experiment.seed
        chosen = self.questions.likelihoods.open() if self.questions.likelihoods else None
        scorers = {
            name: chosen or ChoiceScorer(reader.site.model, reader.site.prompts, seed)
            for name, reader in readers.items()
        }
        return ChoiceTrial(questions_of(opened.subject), readers, scorers)

    # --- what came out -------------------------------------------------------------------------------------------

    def results(self, run: Run) -> KindResults:
        """The numbers of all texts together."""
        return KindResults(
            self.tables(run),
            self.files(run),
            self.remarks(run),
            self.page(run),
            self.records(run),
            self.values_together(run),
        )

    def set_rows(self, run: Run) -> list[tuple[str, Numbers]]:
        """Every system's numbers, over the items that every system has scored."""
        counts = Counter(outcome.topic for outcome in run.answered)
        rows: list[tuple[str, Numbers]] = []
        for system in run.systems:
            scored = [
                ItemScores.read(outcome.record)
                for outcome in run.answered
                if outcome.system == system and outcome.record and counts[outcome.topic] == len(run.systems)
            ]
            rows += [(system, numbers) for numbers in (self.numbers(scored) if scored else ())]
        return rows

    def _expected(self, run: Run, system: str, row: Numbers) -> Mapping[str, float]:
        """The numbers to compare with: those of all parts together, by bias type."""
        if row.part != OVERALL:
            return {}
        expected = (run.expected or {}).get(system, {}).get("" if row.kind == OVERALL else row.kind, {})
        return {name: value for name, value in expected.items() if name in self.together}

    def values_together(self, run: Run) -> Mapping[tuple[str, str, str], float]:
        """The numbers of all parts together, for all items and by bias type."""
        return {
            (system, "" if row.kind == OVERALL else row.kind, name): value
            for system, row in self.set_rows(run)
            if row.part == OVERALL
            for name, value in row.values.items()
            if value is not None
        }

    def tables(self, run: Run) -> list[Table]:
        """A table for all items, each part and each bias type."""
        places: dict[tuple[str, str], list[tuple[str, Numbers, Mapping[str, float]]]] = {}
        for system, row in self.set_rows(run):
            if OVERALL in (row.part, row.kind):
                places.setdefault((row.part, row.kind), []).append((system, row, self._expected(run, system, row)))
        tables = []
        for place, rows in places.items():
            shown = [name for name in self.together if any(name in paper for _, _, paper in rows)]
            columns = [Column(name, ".2f") for name in (*self.together, *(f"expected {name}" for name in shown))]
            lines = [[system, *row.values.values(), *map(paper.get, shown)] for system, row, paper in rows]
            where = ", ".join(dict.fromkeys(name for name in place if name != OVERALL)) or "all"
            tables.append(Table.of(["system", *columns], lines, f"{where} ({rows[0][1].count:,} items)", systems=True))
        return tables

    def remarks(self, run: Run) -> tuple[str, ...]:
        """How the numbers were made, and what they are."""
        chosen = [outcome.record for outcome in run.answered if outcome.record]
        count = sum(bool(record.get("by_chance")) for record in chosen)
        by_chance = (f"{count:,} of {len(chosen):,} choices by the chances of the letters",) if count else ()
        return (f"by {self.way}", *by_chance, *self.notes)

    def files(self, run: Run) -> Mapping[str, Table]:
        """A line for each system, part, bias type and measure."""
        lines = [
            (system, row.part, row.kind, name, value, row.count, self._expected(run, system, row).get(name), self.way)
            for system, row in self.set_rows(run)
            for name, value in row.values.items()
        ]
        return {FILE: Table.of(("system", "part", "kind", "measure", "value", "items", "expected", "way"), lines)}

    def records(self, run: Run) -> JsonObject:
        """The numbers, and how sentences were chosen."""
        return {"way": self.way, "stereotypes": [{"system": name, **asdict(row)} for name, row in self.set_rows(run)]}

    def page(self, run: Run) -> PageSection | None:
        """The tables, that of all items first."""
        tables = sorted(self.tables(run), key=lambda table: not table.title.startswith("all "))
        remarks = [Note(text) for text in self.remarks(run)]
        return PageSection("Stereotypes", "Stereotypes", (*remarks[:1], *tables, *remarks[1:])) if tables else None


def _check(model: Likelihoods, item: Item | None) -> None:
    """Raise BackendUnavailable where the model is not there or cannot score the item."""
    scorer = model.open()
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
        """The examples of the chosen part; DataError with every fault, and where there is none."""
        part = self.questions.part
        examples = {id: one for id, one in read_stereoset(path).items() if part in (one.part, "both")}
        if not examples:
            raise DataError(f"{path} has no {part} examples")
        return examples

    def numbers(self, scored: Sequence[ItemScores]) -> list[Numbers]:
        """LMS, SS and ICAT of every part and domain."""
        return stereoset_numbers(scored, [one.scores for one in scored])


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

    def numbers(self, scored: Sequence[ItemScores]) -> list[Numbers]:
        """CP-S of all pairs, and of every bias type."""
        return crows_pairs_numbers(scored, [one.scores for one in scored], scored[0].decimals)
