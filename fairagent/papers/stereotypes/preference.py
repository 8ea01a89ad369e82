"""What StereoSet and CrowS-Pairs have in common: a model prefers one of an item's sentences, after a context.

StereoSet: a stereotype, its opposite and something unrelated; which of them does a model find likely?

CrowS-Pairs: a sentence about a disadvantaged group, and the same about another; which does a model find likelier?
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

import numpy as np

from fairagent.extend import (
    Calls,
    Case,
    Checking,
    Column,
    DataError,
    FloatArray,
    JsonObject,
    Measured,
    Note,
    Opened,
    PageSection,
    Plan,
    QuestionFile,
    QuestionsKind,
    Run,
    Subject,
    SystemPlan,
    Table,
    estimate_tokens,
    longest_context,
    questions_of,
    without_context,
)
from fairagent.papers.stereotypes.files import read_crows_pairs, read_stereoset
from fairagent.papers.stereotypes.items import (
    LM_SCORE,
    MORE,
    OVERALL,
    STEREOTYPE,
    Example,
    Item,
    Pair,
    Part,
    crows_pairs_rows,
    stereoset_rows,
)
from fairagent.papers.stereotypes.scorers import FORCED_CHOICE, PROMPT, Likelihoods
from fairagent.papers.stereotypes.trial import Choice, ChoiceTrial

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
    item = next((one for one in items.values() if isinstance(one, Example) and one.part == "intersentence"), None)
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
    of_items: ClassVar[tuple[Measured, ...]] = (
        Measured(
            STEREOTYPE,
            "the share of examples whose stereotype beats the anti-stereotype; .5 is fair",
            lower_is_better=True,
        ),
        Measured(LM_SCORE, "how often a meaningful sentence beats the unrelated one"),
    )
    together: ClassVar[tuple[str, ...]] = ("LMS", "SS", "ICAT")
    notes: ClassVar[tuple[str, ...]] = (
        "LMS: how often a meaningful sentence beats the unrelated one, in percent (100 is best)",
        "SS: how often the stereotype beats the anti-stereotype (50 is best); ICAT: LMS * min(SS, 100 - SS) / 50",
        "each number is a mean over its target terms",
    )

    def read(self, path: Path) -> Mapping[str, Example]:
        """The examples of the part that is asked for; DataError with every fault, and where there is none."""
        part = self.questions.part
        found = {id: one for id, one in read_stereoset(path).items() if part in (one.part, "both")}
        if not found:
            raise DataError(f"{path} has no {part} examples")
        return found

    def numbers(self, choices: Mapping[str, Choice], scores: list[FloatArray]) -> Iterator[Numbers]:
        """LMS, SS and ICAT of every part and domain."""
        # Of an example its numbers depend on no more than this.
        examples = [
            Example(id, cast(Part, choice.part), choice.kind, choice.target, "", "", "", "")
            for id, choice in choices.items()
        ]
        for row in stereoset_rows(examples, scores):
            score = row.score
            yield row.part, row.domain, {"LMS": score.lms, "SS": score.ss, "ICAT": score.icat}, score.count


class CrowsPairs(PreferenceKind):
    """CrowS-Pairs' pairs of sentences."""

    kind: Literal["crows-pairs"] = "crows-pairs"
    of_items: ClassVar[tuple[Measured, ...]] = (
        Measured(
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

    def numbers(self, choices: Mapping[str, Choice], scores: list[FloatArray]) -> Iterator[Numbers]:
        """CP-S of all pairs, and of every bias type."""
        pairs = [Pair(id, choice.kind, "", "", choice.part == "stereo") for id, choice in choices.items()]
        for row in crows_pairs_rows(pairs, scores, next(iter(choices.values())).decimals):
            score = row.score
            values = (score.score, score.stereotype, score.anti_stereotype)
            yield OVERALL, row.kind, dict(zip(self.together, values, strict=True)), score.count
