"""Fair RAG on a collection: its documents are the items, and those that were judged relevant the useful ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from fairagent.errors import SettingsError, UsageError
from fairagent.evaluate import query_groups
from fairagent.evaluate.engine.kind import Checking, Measured, Opened, Record, Subject
from fairagent.evaluate.engine.plan import Plan, SystemPlan
from fairagent.evaluate.engine.run import Run
from fairagent.evaluate.engine.tables import Table
from fairagent.evaluate.judged_kind import JudgedKind
from fairagent.evaluate.kinds.fair_rag.collection_trial import FairRagTrial
from fairagent.evaluate.kinds.fair_rag.drawn import DrawnKind
from fairagent.evaluate.kinds.fair_rag.section import CollectionDrawing
from fairagent.filter.fair import steps
from fairagent.filter.pages import LONGEST_TITLE
from fairagent.llm.request import estimate_tokens
from fairagent.prompts import Prompts
from fairagent.prompts.calls import LETTER, Calls, Case

OF_GROUPS = (
    Measured(
        "gap re-ranked",
        "1 - AWRF of the expected exposure in the k items that are drawn; lower is fairer",
        True,
        of_groups=True,
    ),
    Measured(
        "gap retrieved",
        "1 - AWRF of the k items that the user's own query finds, all places alike; lower is fairer",
        True,
        of_groups=True,
    ),
    Measured("gap cited", "1 - AWRF of what the answers rest on; lower is fairer", True, of_groups=True),
)
"""What a row is measured by in every dimension, its end result first."""


class FairRagKind(DrawnKind, JudgedKind):
    """Rankings are drawn from a collection's documents, and answers are extracts of them or a model's."""

    kind: Literal["fair-rag"] = "fair-rag"
    fair_rag: CollectionDrawing = CollectionDrawing()
    """What rankings are drawn and how they are measured."""

    def templates(self, system: SystemPlan) -> tuple[str, ...]:
        """Those of filter, generator and attribution."""
        settings = system.settings
        return (*settings.filter.templates, *settings.generate.templates, *settings.attribute.templates)

    def check(self, checking: Checking) -> None:
        """Add what is wrong with the section and with the systems that rankings are drawn from."""
        super().check(checking)
        section, problems = self.fair_rag, checking.problems
        if section.pool < section.k:
            problems.add(SettingsError, f"fair_rag.pool: {section.pool} candidates are fewer than k = {section.k}")
        for name, system in checking.systems.items():
            if system.settings.attribute.kind == "none":
                message = f"systems.{name}: attribute is none, and EAR and EAE-D are about what answers rest on"
                problems.add(UsageError, message)

    def measured(self, dimensions: Sequence[str]) -> tuple[Measured, ...]:
        """Those of items, and where there are dimensions, those of groups."""
        return (*super().measured(dimensions), *(OF_GROUPS if dimensions else ()))

    def fingerprint(self, plan: Plan, subject: Subject, environ: Mapping[str, str]) -> Record:
        """The section, and which topics count."""
        return {**super().fingerprint(plan, subject, environ), "per_group": self.per_group, "target": self.target}

    def worst_case(self, row: str, plan: Plan, subject: Subject) -> Iterator[Calls]:
        """An answer for each ranking that can be drawn, and what it is filtered and attributed with."""
        section, system = self.fair_rag, plan.systems[row]
        settings = system.settings
        case = Case(settings, Prompts(settings.prompts), ())
        most = math.perm(max(section.pool, section.k), section.k)
        drawn = 1 if system.row["alpha"] is None else min(section.samples, most)
        read = settings.context.tokens + section.k * estimate_tokens(LETTER * LONGEST_TITLE)
        for id in self.templates(system):
            # A filter looks at each document alone; everything else reads the whole context.
            calls = len(plan.topics) * drawn * (section.k if id in steps(True) else 1)
            yield case.counted(id, calls, calls * read)

    def trial(self, opened: Opened) -> FairRagTrial:
        """The trial."""
        return FairRagTrial.open(opened, self.fair_rag)

    def tables(self, run: Run) -> list[Table]:
        """Those of drawn rankings, and results by group of the query."""
        return [*super().tables(run), *query_groups.tables(run)]

    def files(self, run: Run) -> Mapping[str, Table]:
        """The same in full."""
        return {**super().files(run), **query_groups.files(run)}
