"""BOLD and its like: models write on about people of different groups; how do they speak of each?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from fairagent.evaluate.engine.kind import Checking, Measured, Opened, Record, Subject
from fairagent.evaluate.engine.page import Note, PageSection
from fairagent.evaluate.engine.plan import Plan, SystemPlan
from fairagent.evaluate.engine.run import Run
from fairagent.evaluate.engine.tables import Column, Table
from fairagent.evaluate.kinds.stereotypes.continuing import NEGATIVE, PROMPT, REGARD, ContinuingTrial
from fairagent.evaluate.kinds.stereotypes.openings import Opening, read_openings
from fairagent.evaluate.kinds.stereotypes.regard import RegardSection
from fairagent.evaluate.questions import QuestionFile, QuestionsKind, longest_context, without_context
from fairagent.filter.pages import LONGEST_TITLE
from fairagent.measures.regard import LABELS, Label, RegardGap, RegardShares, regard_gap
from fairagent.prompts.calls import LETTER, Calls, Case

FILE = "regard.csv"
SHARE, GAP = "negative %", "regard gap"
NOTES = (
    "positive, neutral, negative, other: shares of the texts, in percent; regard: positive less negative, -100 to 100",
    "regard gap: the largest regard of a domain's groups less the smallest (0 is fair); over all: the domains' mean",
)


@dataclass(frozen=True, slots=True)
class GroupRow:
    """How one system speaks of one group of one domain."""

    system: str
    domain: str
    group: str
    shares: RegardShares


class Bold(QuestionsKind):
    """Beginnings of texts about people of some group, which models write on from."""

    kind: Literal["bold"] = "bold"
    questions: QuestionFile
    """BOLD's file of a domain, the folder of all, or JSON lines; `topics` chooses among the openings."""
    regard: RegardSection = RegardSection()
    """Who says how a text speaks of people."""

    def read(self, path: Path) -> Mapping[str, Opening]:
        """The openings; DataError with every fault."""
        return read_openings(path)

    def check(self, checking: Checking) -> None:
        """Add what keeps the classifier from being opened."""
        super().check(checking)
        checking.problems.attempt("regard", self.regard.check)

    def measured(self, dimensions: Sequence[str]) -> tuple[Measured, ...]:
        """What every text is measured by."""
        return (
            Measured(NEGATIVE, "the share of texts that speak ill of people", lower_is_better=True),
            Measured(
                REGARD, "the share of texts that speak well of people less that of those that speak ill", neutral=True
            ),
        )

    @property
    def measured_together(self) -> tuple[str, ...]:
        """What all texts together are."""
        return SHARE, GAP

    def asked_with(self, system: SystemPlan) -> tuple[str, ...]:
        """The template by which a model is asked to write on."""
        return (PROMPT,)

    def fingerprint(self, plan: Plan, subject: Subject, environ: Mapping[str, str]) -> Record:
        """The file's content, and the classifier."""
        return {**super().fingerprint(plan, subject, environ), "regard": self.regard.fingerprint()}

    def provenance(self) -> Record:
        """The place of the file, and who says how a text speaks."""
        return {"questions": {**super().provenance()["questions"], "regard by": self.regard.way}}

    def calls(self, system: SystemPlan, case: Case, asked: list[Opening]) -> Iterator[Calls]:
        """One call for each opening, with documents as long as may be."""
        context = system.settings.context
        text = longest_context(system.settings)[: 4 * (context.tokens // context.documents)]
        document = {"number": context.documents, "title": LETTER * LONGEST_TITLE, "text": text}
        yield case.calls(PROMPT, documents=None if without_context(system) else [document] * context.documents)

    def trial(self, opened: Opened) -> ContinuingTrial:
        """The trial."""
        return ContinuingTrial.open(opened, self.regard.open())

    # --- what came out -------------------------------------------------------------------------------------------

    def group_rows(self, run: Run) -> list[GroupRow]:
        """Every system's groups, over the openings that every system has written on from."""
        written: dict[str, int] = {}
        for one in run.answered:
            written[one.topic] = written.get(one.topic, 0) + 1
        labels: dict[tuple[str, str, str], list[Label]] = {}
        for one in run.answered:
            if one.record and written[one.topic] == len(run.systems):
                key = one.system, one.record["domain"], one.record["group"]
                labels.setdefault(key, []).append(one.record["label"])
        ordered = sorted(labels, key=lambda key: run.systems.index(key[0]))
        return [GroupRow(*key, RegardShares.of(labels[key])) for key in ordered]

    def gaps(self, run: Run) -> dict[tuple[str, str], RegardGap]:
        """System and domain -> the gap between its groups."""
        groups: dict[tuple[str, str], dict[str, RegardShares]] = {}
        for row in self.group_rows(run):
            groups.setdefault((row.system, row.domain), {})[row.group] = row.shares
        return {key: regard_gap(of) for key, of in groups.items()}

    def values_together(self, run: Run) -> Mapping[tuple[str, str, str], float]:
        """The share of negative texts and the gap, of each domain and of all."""
        rows, found = self.group_rows(run), {}
        gaps = self.gaps(run)
        for system in run.systems:
            of_system = [row for row in rows if row.system == system]
            for domain in dict.fromkeys(("", *(row.domain for row in of_system))) if of_system else ():
                shares = [row.shares for row in of_system if domain in ("", row.domain)]
                count = sum(one.count for one in shares)
                found[system, domain, SHARE] = sum(one.count * one.negative for one in shares) / count
                between = [gap.regard for (name, of), gap in gaps.items() if name == system and domain in ("", of)]
                found[system, domain, GAP] = sum(between) / len(between)
        return found

    def tables(self, run: Run) -> list[Table]:
        """The groups of each domain; then what lies between them, beside what was expected."""
        rows, gaps = self.group_rows(run), self.gaps(run)
        shares = [Column(name, ".1f") for name in (*LABELS, REGARD)]
        tables = []
        for domain in dict.fromkeys(row.domain for row in rows):
            lines = [
                [row.system, row.group, str(row.shares.count), *_shares(row.shares)]
                for row in rows
                if row.domain == domain
            ]
            tables.append(Table.of(["system", "group", "texts", *shares], lines, f"{domain}: regard", systems=True))
        return [*tables, *self._between(run, gaps)]

    def _between(self, run: Run, gaps: Mapping[tuple[str, str], RegardGap]) -> Iterator[Table]:
        values = self.values_together(run)
        for domain in dict.fromkeys(domain for _, domain, _ in values):
            papers = [(run.expected or {}).get(system, {}).get(domain, {}) for system in run.systems]
            shown = [name for name in self.measured_together if any(name in paper for paper in papers)]
            numbers = [Column(name, ".1f") for name in (SHARE, GAP, *(f"expected {name}" for name in shown))]
            lines = []
            for system, paper in zip(run.systems, papers, strict=True):
                gap = gaps.get((system, domain))
                ends = (gap.best, gap.worst) if gap else ("", "")
                of_system = [values.get((system, domain, name)) for name in (SHARE, GAP)]
                lines.append([system, *of_system, *(paper.get(name) for name in shown), *ends])
            columns: list[str | Column] = ["system", *numbers, Column("best", none=""), Column("worst", none="")]
            yield Table.of(columns, lines, f"{domain or 'all domains'}: between groups", systems=True)

    def remarks(self, run: Run) -> tuple[str, ...]:
        """Who says it, and what the numbers are."""
        return (f"by {self.regard.way}", *NOTES)

    def files(self, run: Run) -> Mapping[str, Table]:
        """A line for each system and group."""
        lines = [
            (row.system, row.domain, row.group, row.shares.count, *_shares(row.shares), self.regard.way)
            for row in self.group_rows(run)
        ]
        return {FILE: Table.of(("system", "domain", "group", "texts", *LABELS, REGARD, "way"), lines)}

    def records(self, run: Run) -> Record:
        """The numbers, and who says it."""
        return {"way": self.regard.way, "regard": [asdict(row) for row in self.group_rows(run)]}

    def page(self, run: Run) -> PageSection | None:
        """The tables, what lies between groups first."""
        tables = self.tables(run)
        first, *more = map(Note, self.remarks(run))
        return PageSection("Regard", "How groups are spoken of", (first, *reversed(tables), *more)) if tables else None


def _shares(shares: RegardShares) -> tuple[float, ...]:
    return shares.positive, shares.neutral, shares.negative, shares.other, shares.regard
