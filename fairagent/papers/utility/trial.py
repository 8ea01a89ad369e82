"""The utility experiment, topic by topic: answers from k documents and from none, against the relevant passages."""

from __future__ import annotations

from collections.abc import Collection as Ids
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from fairagent.answer.citations import without_citations
from fairagent.answer.context import fit
from fairagent.answer.generators import ExtractiveGenerator
from fairagent.collection import Collection
from fairagent.collection.records import listed
from fairagent.errors import DataError
from fairagent.evaluate.kind import Opened
from fairagent.evaluate.outcome import AnswerRecord, HitRecord, Outcome
from fairagent.evaluate.plan import System, SystemPlan, build_systems, site_of
from fairagent.evaluate.questions import answer_to
from fairagent.llm import Model
from fairagent.llm.prompts import Prompts
from fairagent.measures.base import seeded
from fairagent.measures.ranking import graded_ndcg
from fairagent.papers.utility.measures import best_of_references, mean_performance, utility
from fairagent.papers.utility.prediction import predicted
from fairagent.papers.utility.section import (
    OF_JUDGMENTS,
    Compat,
    Display,
    TextSimilarity,
    Utility,
    arranged,
    open_similarity,
)
from fairagent.retrieve.base import PassageSource, TextSource, as_query, texts_for
from fairagent.retrieve.relevance_model import TermSource
from fairagent.retrieve.run_file import RunFile, by_grade, drawn
from fairagent.storage.threads import Memo
from fairagent.types import Answer, Document, Query, SearchResult, Topic, Usage
from fairagent.types.clean import query_shown

TEMPLATES: Mapping[Compat, str] = {"ours": "utility_answer", "authors": "paper_utility_answer"}
STOP = "STOP"
"""The word that the paper's prompt has an answer end with."""


class AnswerWriter(Protocol):
    """Writes answers for the utility experiment: any object with this method will do. Several threads may call it."""

    def answer(self, query: Query, documents: Sequence[Document], run: int) -> Answer:
        """An answer from `documents`, shown in this order, or from none; `run` counts from 0."""
        ...


@dataclass(frozen=True, slots=True)
class ModelWriter:
    """Asks `model` with the template of `compat`; each run has a seed of its own."""

    model: Model
    prompts: Prompts
    temperature: float
    seed: int
    compat: Compat = "ours"

    def answer(self, query: Query, documents: Sequence[Document], run: int) -> Answer:
        """See `AnswerWriter.answer`; an answer that is cut off at the template's limit is one.

        Raises what `Model.complete` raises, and ReplyTruncated where nothing but thoughts came.
        """
        id, passages = TEMPLATES[self.compat], [as_passage(one, self.compat) for one in documents] or None
        messages = self.prompts.render(id, query=query_shown(query.text), passages=passages)
        answer = answer_to(self.model, self.prompts[id], messages, self.temperature, self.seed + run)
        if self.compat == "ours":
            return answer
        return replace(answer, text=answer.text.partition(STOP)[0].rstrip())


def as_passage(document: Document, compat: Compat) -> dict[str, str] | str:
    """A document as the template of `compat` is given it."""
    if compat == "ours":
        return {"title": document.title, "text": document.text}
    return f"{document.title}\n{document.text}".strip()


@dataclass(frozen=True, slots=True)
class ExtractWriter:
    """Takes sentences from the documents; without any, or where none holds a word of the question, repeats that.

    So what stands for the answer of a model that knows nothing is the question itself, and utility says how much closer
    to the relevant passages the extracts are than the words that were searched for.
    """

    generator: ExtractiveGenerator

    def answer(self, query: Query, documents: Sequence[Document], run: int) -> Answer:
        """See `AnswerWriter.answer`; every run is the same, and no citation is left in the text.

        >>> writer = ExtractWriter(ExtractiveGenerator())
        >>> writer.answer(Query("roses"), [Document("d1", "It has roses.")], 0).text
        'It has roses.'
        >>> writer.answer(Query("roses"), [], 0).text
        'roses'
        """
        extract = without_citations(self.generator.answer(query, documents).text)
        return Answer(extract or query.text, source="extractive")


def grades_of(collection: Collection, topic: str, meaning: Mapping[int, int]) -> dict[str, int]:
    """The topic's judgments, document -> grade, with the grades that `meaning` names replaced."""
    return {id: meaning.get(grade, grade) for id, grade in collection.qrels.get(topic, {}).items()}


def read_passages(collection: Collection, ids: Ids[str]) -> dict[str, Document]:
    """Those of the documents that have one of the `ids`; they alone stay in memory.

    Raises DataError for faults of the files.
    """
    return {document.id: document for document in collection.source if document.id in ids}


def judged_ids(collection: Collection, topics: Iterable[str]) -> set[str]:
    """All documents that were judged for any of `topics`."""
    return {id for topic in topics for id in collection.qrels.get(topic, {})}


def ranked_ids(run: RunFile, topics: Iterable[Topic], n: int) -> set[str]:
    """The first `n` documents of each topic in a run file."""
    return {id for topic in topics if topic.id in run.rankings for id in run.rankings[topic.id].top(n).ids}


def check_texts(collection: Collection, wanted: Ids[str], there: Mapping[str, Document], what: str) -> None:
    """Raise DataError where the collection lacks documents that are wanted."""
    if missing := sorted(id for id in wanted if id not in there):
        raise DataError(
            f"{what}: {len(missing):,} of {len(wanted):,} passages are not among the documents of "
            f"{collection.name!r}: {listed(missing)}; give it the documents that they belong to"
        )


@dataclass(frozen=True, slots=True, eq=False)
class RankedDocuments:
    """The documents of a topic under a system, best first, with their scores; and the search, if it saw groups.

    `predicted` is how well the engine is expected to have done, by each predictor; nothing of what is judged.
    """

    documents: tuple[Document, ...]
    scores: tuple[float, ...]
    search: SearchResult | None = None
    predicted: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Worth:
    """How much of the relevant passages an answer says, its text (the first run's), and what it took."""

    performance: float
    text: str
    usage: Usage


@dataclass(frozen=True, slots=True, eq=False)
class UtilityTrial:
    """Lets one generator answer from every row's documents; threads may share it.

    `passages` has the judged documents and those of run files.
    """

    section: Utility
    collection: Collection
    rows: Mapping[str, SystemPlan]
    displays: Mapping[str, Display]
    systems: Mapping[str, System]
    passages: Mapping[str, Document]
    writers: Mapping[Compat, AnswerWriter]
    similarity: TextSimilarity
    seed: int
    tokens: int
    _ranked: Memo = field(default_factory=Memo)
    _alone: Memo = field(default_factory=Memo)

    @classmethod
    def open(cls, opened: Opened, section: Utility) -> UtilityTrial:
        plan, collection = opened.plan, opened.collection
        displays = {name: Display.model_validate(row.row) for name, row in plan.systems.items()}
        # Rows of one system show the same documents.
        systems = build_systems(opened, {display.of for display in displays.values()})
        wanted = judged_ids(collection, plan.topics)
        for system in systems.values():
            if isinstance(run := system.agent.retriever, RunFile):
                wanted |= ranked_ids(run, (collection.topics[id] for id in plan.topics), plan.n)
        first = next(iter(plan.systems.values()))
        return cls(
            section,
            collection,
            plan.systems,
            displays,
            systems,
            read_passages(collection, wanted),
            _writers(opened, section, first, systems),
            open_similarity(section.similarity),
            plan.experiment.seed,
            first.settings.context.tokens,
        )

    def outcome(self, system: str, id: str) -> Outcome:
        topic = self.collection.topics[id]
        display = self.displays[system]
        writer = self.writers[display.compat]
        query, grades = as_query(topic), grades_of(self.collection, id, self.section.grades)
        ranked: RankedDocuments = self._ranked.get((display.of, id), lambda: self._rank(display.of, id, grades))
        trace = ranked.search.trace if ranked.search else None
        spent = trace.usage if trace else Usage()
        references: dict[int, list[str]] = {}
        for one, grade in grades.items():
            if grade >= self.section.relevant:
                references.setdefault(grade, []).append(self.passages[one].text)
        alone: Worth = self._alone.get((display.compat, id), lambda: self._worth(writer, query, (), references))
        spent = spent + alone.usage
        worths: dict[tuple[str, ...], Worth] = {(): alone}
        ids = [document.id for document in ranked.documents]
        values: dict[str, float | None] = {self.section.performance(0): alone.performance}
        for k in self.section.ks:
            context = arranged(ranked.documents[:k], display.order)
            key = tuple(document.id for document in context)
            # Of a list that is shorter than k all documents are shown, so larger numbers may show the same.
            if key not in worths:
                worths[key] = self._worth(writer, query, context, references)
                spent = spent + worths[key].usage
            last = worths[key]
            values[self.section.performance(k)] = last.performance
            values[self.section.utility(k)] = utility(last.performance, alone.performance)
            values[self.section.quality(k)] = graded_ndcg(ids, grades, k, self.section.gain)
        judged = self.rows[system].settings.engine.kind in OF_JUDGMENTS
        hits = (
            HitRecord(one.id, one.title, score, grades.get(one.id, 0) >= self.section.relevant, {}, one.snippet)
            for one, score in zip(ranked.documents, ranked.scores, strict=True)
        )
        values |= ranked.predicted
        return Outcome.of(
            topic,
            system,
            {"": {measure: value for measure, value in values.items() if value is not None}},
            spent,
            search=ranked.search,
            hits=tuple(hits),
            oracle=judged or bool(trace and trace.oracle and trace.targets),
            answer=AnswerRecord(last.text, "similarity"),
        )

    def _rank(self, system: str, id: str, grades: Mapping[str, int]) -> RankedDocuments:
        """The documents of `system`, as many as the largest context has."""
        n, chosen = max(self.section.ks), self.rows[system].settings.engine
        if reading := getattr(chosen, "reading", ""):
            worst: bool = getattr(chosen, "worst", False)
            if reading == "sorted":
                ids = by_grade(grades, worst_first=worst)
            else:
                relevant = self.section.relevant
                pool = [one for one, grade in grades.items() if (grade <= 0 if worst else grade >= relevant)]
                ids = drawn(pool, seeded(self.seed, "utility", chosen.kind, id))
            documents = [self.passages[one] for one in ids[:n]]
            return RankedDocuments(tuple(documents), tuple(map(float, range(len(documents), 0, -1))))
        used, query = self.systems[system], as_query(self.collection.topics[id])
        search = used.agent.search(query)
        top, engine = search.ranking.top(n), used.agent.retriever
        if isinstance(engine, TextSource | PassageSource):
            documents = texts_for(query, top.ids, engine)
        else:
            documents = [self.passages[one] for one in top.ids]
        expected = predicted(search.trace.steps[0].ranking.scores, len(query.text.split()))
        seen = search if used.sees_groups else None
        return RankedDocuments(tuple(documents), tuple(top.scores.tolist()), seen, expected)

    def _worth(
        self,
        writer: AnswerWriter,
        query: Query,
        documents: Sequence[Document],
        references: Mapping[int, Sequence[str]],
    ) -> Worth:
        """The answer from these documents in this order, over all runs, against the references by their grades."""
        context, _ = fit(documents, self.tokens) if documents else ((), ())
        performances, texts, usage = [], [], Usage()
        for run in range(self.section.runs):
            answer = writer.answer(query, context, run)
            usage = usage + answer.usage
            texts.append(answer.text)
            alike = {grade: self.similarity.f1(answer.text, texts) for grade, texts in references.items()}
            performances.append(best_of_references(alike, tuple(alike)) or 0.0)
        return Worth(mean_performance(performances), texts[0], usage)


def _writers(
    opened: Opened, section: Utility, first: SystemPlan, systems: Mapping[str, System]
) -> Mapping[Compat, AnswerWriter]:
    """Who answers for all rows, by prompt."""
    settings, models = first.settings, opened.models
    if settings.generate.templates:
        model, prompts, seed = models.open(settings.model), Prompts(settings.prompts), opened.plan.experiment.seed
        return {one: ModelWriter(model, prompts, section.temperature, seed, one) for one in section.compat}
    engines = (system.agent.retriever for system in systems.values())
    engine = next((engine for engine in engines if isinstance(engine, TermSource)), None)
    site = site_of(first, opened.collection, models)
    return dict.fromkeys(section.compat, ExtractWriter(settings.generate.build(replace(site, engine=engine))))
