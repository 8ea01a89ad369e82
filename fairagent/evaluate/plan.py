"""A checked experiment as plain values: all that a worker needs to know, on this machine or another."""

from __future__ import annotations

from fairagent.evaluate.answers.questions import Task
from fairagent.evaluate.fair_rag.section import Draws, FairRag
from fairagent.evaluate.stereotypes.section import LocalModel
from fairagent.evaluate.utility.section import OF_JUDGMENTS, Shown, Utility
from fairagent.measures import AWRF, Measure, Product, parse_measure
from fairagent.pipeline import loop_parts
from fairagent.settings import BudgetSettings, ModelSettings, Part, Price, Section, Settings

NO_RETRIEVAL = "none"
"""The engine of systems that answer questions from what their model knows."""


class SystemPlan(Section):
    """One system: its settings, and its index's folder.

    `task` says which questions it answers; None: it ranks documents. `draws`: at random, in a Fair RAG experiment.
    `shown`: what an answer is written from, in a utility experiment. `local`: a model on this machine chooses, and the
    system's own is not asked to.
    """

    settings: Settings
    index: str
    task: Task | None = None
    draws: Draws | None = None
    shown: Shown | None = None
    local: bool = False

    @property
    def searches(self) -> bool:
        """Whether it has a search engine: not nothing, and not what is taken from the judgments."""
        return self.settings.engine.kind not in (NO_RETRIEVAL, *OF_JUDGMENTS)

    @property
    def asks_model(self) -> bool:
        """Whether it calls a language model."""
        return bool(self.prompts)

    @property
    def searching(self) -> tuple[Part, ...]:
        """The parts that a search asks."""
        settings = self.settings
        return (settings.engine, *loop_parts(settings), settings.rerank)

    @property
    def prompts(self) -> tuple[str, ...]:
        """The ids of the templates that it asks its model with."""
        from fairagent.evaluate.answers.asking import PROMPT
        from fairagent.evaluate.answers.grading import PROMPTS as JUDGES
        from fairagent.evaluate.utility.writing import PROMPT as WRITING
        from fairagent.stereotypes.choice import PROMPT as CHOOSING
        from fairagent.stereotypes.files import READERS as CHOICES

        searching = tuple(id for part in self.searching for id in part.templates)
        if self.draws:
            return (*searching, *self.draws.prompts)
        if self.task is None:
            return (*searching, *((WRITING,) if self.shown and self.settings.generate.templates else ()))
        context = (*(self.settings.filter.templates if self.filters else ()), *self.settings.debias.templates)
        if self.task in CHOICES:
            return (*searching, *context, *(() if self.local else (CHOOSING,)))
        return (*searching, *context, PROMPT, JUDGES[self.task])

    @property
    def debiases(self) -> bool:
        """Whether what it answers from is chosen by DebiasRAG; also without retrieval."""
        return self.task is not None and self.settings.debias.kind != "none"

    @property
    def filters(self) -> bool:
        """Whether it asks a model which documents may be answered from."""
        return self.task is not None and self.searches and self.settings.filter.kind != "none"

    @property
    def without_context(self) -> bool:
        """Whether it answers from no documents at all."""
        return not self.searches and not self.debiases


class QuestionsPlan(Section):
    """Which questions are answered, and who judges the answers that no rule can read; None: the system's own model.

    `local` is the model on this machine that chooses; None: each system's own.
    """

    task: Task
    path: str
    judge: ModelSettings | None
    local: LocalModel | None = None


class Plan(Section):
    """What is to be done. Paths are absolute, `systems` begins with the baseline, `topics` are those that count."""

    name: str
    about: str
    collection: str
    topics: tuple[str, ...]
    dimensions: tuple[str, ...]
    per_group: int
    measures: tuple[str, ...]
    seed: int
    systems: dict[str, SystemPlan]
    prices: dict[str, Price]
    budget: BudgetSettings
    cache: str
    expected: dict[str, dict[str, dict[str, float]]]
    questions: QuestionsPlan | None = None
    fair_rag: FairRag | None = None
    utility: Utility | None = None

    @property
    def n(self) -> int:
        """The length of the rankings: the largest cut-off, or the most documents that an answer is given."""
        if self.questions:
            return max(system.settings.n for system in self.systems.values())
        if self.fair_rag:
            return self.fair_rag.k
        if self.utility:
            return max(self.utility.ks)
        return max(cutoff(parse_measure(measure)) for measure in self.measures)

    @property
    def baseline(self) -> str:
        """The system that the others are tested against."""
        return next(iter(self.systems))


def cutoff(measure: Measure) -> int:
    """How many ranks a measure looks at."""
    if isinstance(measure, Product):
        return max(cutoff(measure.left), cutoff(measure.right))
    return int(measure.n)  # type: ignore[attr-defined]


def of_groups(measure: Measure) -> AWRF | None:
    """The part of a measure that looks at groups, so that it has a value a dimension; None for relevance alone."""
    if isinstance(measure, Product):
        return of_groups(measure.left) or of_groups(measure.right)
    return measure if isinstance(measure, AWRF) else None
