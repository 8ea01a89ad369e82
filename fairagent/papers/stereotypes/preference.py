"""What StereoSet and CrowS-Pairs have in common: a model prefers one of an item's sentences, after a context."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from fairagent.evaluate.engine.kind import Checking, Measured, Opened, Record, Subject
from fairagent.evaluate.engine.page import Note, PageSection
from fairagent.evaluate.engine.plan import Plan, SystemPlan
from fairagent.evaluate.engine.run import Run
from fairagent.evaluate.engine.tables import Column, Table
from fairagent.evaluate.kinds.stereotypes.benchmark import OVERALL
from fairagent.evaluate.kinds.stereotypes.choice import FORCED_CHOICE, PROMPT
from fairagent.evaluate.kinds.stereotypes.items import Example, Item
from fairagent.evaluate.kinds.stereotypes.likelihoods import Likelihoods
from fairagent.evaluate.kinds.stereotypes.trial import Choice, ChoiceTrial
from fairagent.evaluate.questions import QuestionFile, QuestionsKind, longest_context, questions_of, without_context
from fairagent.llm.request import estimate_tokens
from fairagent.prompts.calls import Calls, Case
from fairagent.types import FloatArray

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
    of_items: ClassVar[tuple[Measured, ...]]
    together: ClassVar[tuple[str, ...]]
    """What all items together are measured by, in percent."""
    notes: ClassVar[tuple[str, ...]]
    """What these numbers are."""
    searches: ClassVar[bool] = True

    @abstractmethod
    def numbers(self, choices: Mapping[str, Choice], scores: list[FloatArray]) -> Iterator[Numbers]:
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

    def measured(self, dimensions: Sequence[str]) -> tuple[Measured, ...]:
        """What every item is measured by."""
        return self.of_items

    @property
    def measured_together(self) -> tuple[str, ...]:
        """What all items together are."""
        return self.together

    def asked_with(self, system: SystemPlan) -> tuple[str, ...]:
        """The template by which a model is asked to choose."""
        return () if self.questions.likelihoods else (PROMPT,)

    def fingerprint(self, plan: Plan, subject: Subject, environ: Mapping[str, str]) -> Record:
        """The file's content, and the model of the likelihoods."""
        model = self.questions.likelihoods
        chosen = {"likelihoods": model.model_dump(exclude={"device", "batch"})} if model else {}
        return {"questions": {**super().fingerprint(plan, subject, environ)["questions"], **chosen}}

    def provenance(self) -> Record:
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
                outcome.topic: Choice.read(outcome.record)
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

    def records(self, run: Run) -> Record:
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
    item = next((one for one in items.values() if isinstance(one, Example) and one.part == "intersentence"), None)
    if item and model.kind != "server":
        scorer.score(item)
