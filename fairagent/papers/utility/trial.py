"""The utility experiment, topic by topic: answers from k documents and from none, against the relevant passages.

The section `utility:` says what a row shows and is measured by, and how texts are compared.
"""

from __future__ import annotations

import threading
from collections.abc import Collection as Ids
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from pydantic import AfterValidator, BeforeValidator, Field

from fairagent.answer.citations import without_citations
from fairagent.answer.context import fit
from fairagent.answer.generators import ExtractiveGenerator
from fairagent.collection import Collection
from fairagent.errors import BackendUnavailable
from fairagent.evaluate.kind import Opened
from fairagent.evaluate.outcome import AnswerRecord, HitRecord, Outcome
from fairagent.evaluate.plan import build_systems, site_of
from fairagent.evaluate.questions import answer_to
from fairagent.llm import Model
from fairagent.llm.prompts import Prompts
from fairagent.measures import LOG2_PLUS1, NDCG
from fairagent.measures.base import seeded
from fairagent.measures.ranking import Gain, graded_ndcg
from fairagent.retrieve.base import PassageSource, TextSource, as_query, texts_for
from fairagent.retrieve.encoders import BUNDLED, Embeddings, open_encoder
from fairagent.retrieve.relevance_model import TermSource
from fairagent.retrieve.run_file import RunFile, by_grade, drawn
from fairagent.settings import Section
from fairagent.storage.packages import expect_fitting, expect_installed, without_progress
from fairagent.storage.threads import Memo
from fairagent.types import Answer, Document, FloatArray, Query, SearchResult, Topic, Usage
from fairagent.types.clean import query_shown

Item = TypeVar("Item")


def utility(with_documents: float, without: float) -> float | None:
    """U = (P_k - P_0) / P_0: what k documents add to the performance of an answer, as a share of that without any.

    None where the answer without documents is worth 0. Source: Tian et al. 2025, "Is relevance propagated from
    retriever to generator in RAG?".

    >>> utility(0.75, 0.5), utility(0.75, 0.0)
    (0.5, None)
    """
    return (with_documents - without) / without if without else None


@dataclass(frozen=True, slots=True)
class Match:
    """Precision, recall and F1 of a candidate text against a reference text, each in [-1, 1]."""

    precision: float
    recall: float
    f1: float


def greedy_match(
    candidate: ArrayLike, reference: ArrayLike, candidate_weights: ArrayLike, reference_weights: ArrayLike
) -> Match:
    """How well the tokens of `candidate` (c, d) and `reference` (r, d), all finite, find each other by cosine.

    Every token takes the most similar token of the other text; precision is the mean over the candidate's tokens by
    their weights (c,), recall that over the reference's by theirs (r,), F1 their harmonic mean. Weights are >= 0; what
    is not defined is 0. Source: Zhang et al. 2020, BERTScore, equations 1 to 3.

    >>> match = greedy_match([[1, 0], [0, 1]], [[2, 0]], [1, 1], [1])
    >>> match.precision, match.recall, round(match.f1, 4)
    (0.5, 1.0, 0.6667)
    """
    weights = [np.asarray(of, dtype=np.float64) for of in (candidate_weights, reference_weights)]
    if not all(of.sum() for of in weights):
        return Match(0.0, 0.0, 0.0)
    sides = []
    for vectors in (candidate, reference):
        rows = np.asarray(vectors, dtype=np.float64)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        # A vector of length 0 is like none.
        sides.append(rows / np.where(lengths > 0, lengths, 1.0))
    alike = sides[0] @ sides[1].T
    precision, recall = (float(of @ alike.max(axis=1 - side) / of.sum()) for side, of in enumerate(weights))
    both = precision + recall
    return Match(precision, recall, 2 * precision * recall / both if both else 0.0)


def best_of_references(of_label: Mapping[int, Sequence[float]], labels: Iterable[int]) -> float | None:
    """The highest of the values that a text has against the references of these relevance `labels`; None without any.

    >>> best_of_references({2: [0.6, 0.71], 3: [0.7]}, (2, 3)), best_of_references({2: [0.5]}, (3,))
    (0.71, None)
    """
    return max((value for label in labels for value in of_label.get(label, ())), default=None)


Order = Literal["rank", "reversed", "ends", "middle"]
"""The best first; the best last; the best two at the ends; the best in the middle."""


def arranged(items: Sequence[Item], order: Order) -> list[Item]:
    """The items, best first, in `order`.

    >>> arranged(["a", "b", "c", "d", "e"], "ends"), arranged(["a", "b", "c", "d", "e"], "middle")
    (['b', 'd', 'e', 'c', 'a'], ['d', 'b', 'a', 'c', 'e'])
    """
    if order == "rank":
        return list(items)
    if order == "reversed":
        return list(items)[::-1]
    inwards = items[::-1] if order == "ends" else items
    # The first in the middle, the others one by one before and behind it.
    return [*inwards[1::2][::-1], *inwards[:1], *inwards[2::2]]


NOT_COMPARABLE = "not comparable"
"""Stands in the name of every measure that is not BERTScore."""
OF_JUDGMENTS = ("oracle", "adversarial")
"""Engines whose documents are taken from the judgments."""
IN_ORDER = {"rank": "", "reversed": "reversed", "ends": "best at the ends", "middle": "best in the middle"}
"""What a row's name says of the order of its documents."""


Compat = Literal["ours", "authors"]
BY_PROMPT = {"ours": "our prompt", "authors": "the paper's prompt"}
"""What a row's name says of the prompt, where it is not the first."""


class SimilaritySection(Section):
    """How alike an answer and a relevant passage are."""

    kind: Literal["minilm", "bert-score"] = "minilm"
    """bert-score: the library with `model`; minilm: the bundled encoder's tokens, whose numbers compare with no
    others."""
    model: str = Field("bert-large-uncased", min_length=1)
    """bert-score: a model's folder, or its name in the Hugging Face cache."""
    layer: int = Field(18, ge=1)
    """bert-score: the layer whose vectors are compared."""

    @property
    def name(self) -> str:
        return "MiniLM tokens" if self.kind == "minilm" else f"BERTScore-F1({self.model}, layer {self.layer})"

    @property
    def comparable(self) -> bool:
        """Whether its numbers compare with published ones."""
        return self.kind == "bert-score"


def _ks(values: tuple[int, ...]) -> tuple[int, ...]:
    """The numbers in their order, each once, without 0: an answer from no documents is always there."""
    ks = tuple(sorted({k for k in values if k}))
    if not ks or ks[0] < 0:
        raise ValueError("expected numbers of documents, at least one of them above 0 and none below")
    return ks


class Utility(Section):
    """The whole section."""

    ks: Annotated[tuple[int, ...], AfterValidator(_ks)] = (1, 2, 5, 10, 15)
    """How many documents an answer is given; one from none is always there."""
    orders: Annotated[tuple[Order, ...], AfterValidator(lambda given: tuple(dict.fromkeys(("rank", *given))))] = (
        "rank",
        "reversed",
    )
    """In which order they are shown: each is a row of its own for every system that ranks. The rank order always is."""
    compat: Annotated[
        tuple[Compat, ...],
        BeforeValidator(lambda given: (given,) if isinstance(given, str) else given),
        AfterValidator(lambda given: tuple(dict.fromkeys(given))),
    ] = Field(("ours",), min_length=1)
    """Whose prompt asks for the answers: ours (`utility_answer`), or one that asks what the paper's asks and no more
    (authors: `paper_utility_answer`), whose answers end at STOP; of several, each is a row of its own."""
    scatter: tuple[int, ...] = ()
    """At which of the `ks` every topic's utility is drawn against its nDCG@k, with the line of least squares."""
    relevant: int = Field(1, ge=1)
    """The smallest grade of a passage that answers are compared with, and that an oracle draws from."""
    grades: dict[int, int] = Field(default={})
    """Grades of the judgments -> what they mean here, where a higher one is not better; the others stay."""
    gain: Gain = "linear"
    """Of nDCG@k: a grade, or 2^grade - 1."""
    similarity: SimilaritySection = SimilaritySection()
    temperature: float = Field(0.3, ge=0)
    """Where a language model answers (`generate: llm`): 0 for its likeliest words; the paper's is 0.3."""
    runs: int = Field(1, ge=1)
    """Answers to each prompt, each with a seed of its own: performance is averaged over them, utility comes after."""

    @property
    def measures(self) -> tuple[str, ...]:
        return (
            *(self.utility(k) for k in self.ks),
            *(self.performance(k) for k in (0, *self.ks)),
            *(self.quality(k) for k in self.ks),
        )

    def utility(self, k: int) -> str:
        return self._of_answers("U", k)

    def performance(self, k: int) -> str:
        """How much of the relevant passages an answer from `k` documents says."""
        return self._of_answers("P", k)

    def quality(self, k: int) -> str:
        return str(NDCG(k, LOG2_PLUS1, self.gain))

    def _of_answers(self, letter: str, k: int) -> str:
        mark = "" if self.similarity.comparable else f"[{NOT_COMPARABLE}]"
        return f"{letter}{mark}(similarity={self.similarity.name}, relevant={self.relevant})@{k}"


class Display(Section):
    """How one row shows its documents: those of the system `of`, in this order, and by which prompt."""

    of: str
    order: Order
    compat: Compat = "ours"


class MiniLMTokens:
    """Greedy matching of the bundled encoder's token vectors: works offline, with numbers that are no BERTScore."""

    name = SimilaritySection().name

    def __init__(self) -> None:
        encoder: Any = open_encoder(BUNDLED)

        # The references of a topic are compared with many answers.
        @lru_cache(256)
        def tokens(text: str) -> tuple[Embeddings, FloatArray]:
            vectors = encoder.tokens(text)
            weights = np.ones(len(vectors))
            # The marks around a text weigh nothing.
            weights[[0, -1]] = 0.0
            return vectors, weights

        self._tokens = tokens

    def f1(self, text: str, references: Sequence[str]) -> list[float]:
        if not text.strip():
            return [0.0] * len(references)
        ours, our_weights = self._tokens(text)
        values = []
        for reference in references:
            theirs, their_weights = self._tokens(reference)
            values.append(greedy_match(ours, theirs, our_weights, their_weights).f1 if reference.strip() else 0.0)
        return values


class BertScore:
    """BERTScore-F1 by the library bert-score, without inverse document frequencies and without a baseline.

    `model` is a model's folder or its name in the Hugging Face cache, `layer` the layer whose vectors are compared.
    Nothing is downloaded: BackendUnavailable says what is missing.
    """

    def __init__(self, model: str, layer: int) -> None:
        self.name = SimilaritySection(kind="bert-score", model=model, layer=layer).name
        import bert_score as library

        folder = _folder(model)
        self._lock = threading.Lock()
        with without_progress():
            try:
                self._scorer: Any = library.BERTScorer(
                    model_type=folder, num_layers=layer, idf=False, rescale_with_baseline=False
                )
            except (OSError, AssertionError) as error:
                raise BackendUnavailable(f"the model {model!r} cannot be used for BERTScore: {error}") from error
        expect_fitting(self._scorer._tokenizer, self._scorer._model, model)

    def f1(self, text: str, references: Sequence[str]) -> list[float]:
        filled = [reference for reference in references if reference.strip()] if text.strip() else []
        if filled:
            with self._lock:
                _, _, values = self._scorer.score([text] * len(filled), filled)
            scores = iter(values.tolist())
        return [next(scores) if filled and reference.strip() else 0.0 for reference in references]


def open_similarity(section: SimilaritySection) -> MiniLMTokens | BertScore:
    """The one that an experiment names; BackendUnavailable where its package or its model is missing."""
    return MiniLMTokens() if section.kind == "minilm" else BertScore(section.model, section.layer)


def check_similarity(section: SimilaritySection) -> None:
    """Raise BackendUnavailable where a package or the model is missing, without loading a large model."""
    if section.kind == "minilm":
        open_encoder(BUNDLED)
    else:
        _folder(section.model)


def _folder(model: str) -> str:
    expect_installed("bert-score", "BERTScore")
    if Path(model).is_dir():
        return model
    import huggingface_hub as hub

    try:
        # A name may be in the cache; the library itself would ask the network.
        return str(hub.snapshot_download(model, local_files_only=True))
    except (OSError, ValueError) as error:
        raise BackendUnavailable(
            f"no model {model!r} on this machine for BERTScore; name a model's folder, download it beforehand, or use "
            "similarity: {kind: minilm}, whose numbers are not comparable"
        ) from error


TEMPLATES: Mapping[Compat, str] = {"ours": "utility_answer", "authors": "paper_utility_answer"}


@dataclass(frozen=True, slots=True)
class ModelWriter:
    """Asks `model` with the template of `compat`; each run has a seed of its own."""

    model: Model
    prompts: Prompts
    temperature: float
    seed: int
    compat: Compat = "ours"

    def answer(self, query: Query, documents: Sequence[Document], run: int) -> Answer:
        """An answer that is cut off at the template's limit is one; the paper's prompt has an answer end with STOP."""
        id, passages = TEMPLATES[self.compat], [as_passage(one, self.compat) for one in documents] or None
        messages = self.prompts.render(id, query=query_shown(query.text), passages=passages)
        answer = answer_to(self.model, self.prompts[id], messages, self.temperature, self.seed + run)
        if self.compat == "ours":
            return answer
        return replace(answer, text=answer.text.partition("STOP")[0].rstrip())


def as_passage(document: Document, compat: Compat) -> dict[str, str] | str:
    """A document as the template of `compat` is given it."""
    if compat == "ours":
        return {"title": document.title, "text": document.text}
    return f"{document.title}\n{document.text}".strip()


@dataclass(frozen=True, slots=True)
class ExtractWriter:
    """Takes sentences from the documents; without any, or where none holds a word of the question, repeats that.

    Utility then says how much closer to the relevant passages the extracts are than the words that were searched for.

    >>> writer = ExtractWriter(ExtractiveGenerator())
    >>> writer.answer(Query("roses"), [Document("d1", "It has roses.")], 0).text
    'It has roses.'
    >>> writer.answer(Query("roses"), [], 0).text
    'roses'
    """

    generator: ExtractiveGenerator

    def answer(self, query: Query, documents: Sequence[Document], run: int) -> Answer:
        """Every run is the same, and no citation is left in the text."""
        extract = without_citations(self.generator.answer(query, documents).text)
        return Answer(extract or query.text, source="extractive")


def grades_of(collection: Collection, topic: str, meaning: Mapping[int, int]) -> dict[str, int]:
    """The topic's judgments, document -> grade, with the grades that `meaning` names replaced."""
    return {id: meaning.get(grade, grade) for id, grade in collection.qrels.get(topic, {}).items()}


def read_passages(collection: Collection, ids: Ids[str]) -> dict[str, Document]:
    """Those of the documents that have one of the `ids`; they alone stay in memory. DataError for faults of files."""
    return {document.id: document for document in collection.source if document.id in ids}


def judged_ids(collection: Collection, topics: Iterable[str]) -> set[str]:
    """All documents that were judged for any of `topics`."""
    return {id for topic in topics for id in collection.qrels.get(topic, {})}


def ranked_ids(run: RunFile, topics: Iterable[Topic], n: int) -> set[str]:
    """The first `n` documents of each topic in a run file."""
    return {id for topic in topics if topic.id in run.rankings for id in run.rankings[topic.id].top(n).ids}


@dataclass(frozen=True, slots=True, eq=False)
class RankedDocuments:
    """The documents of a topic under a system, best first, with their scores; and the search, if it saw groups."""

    documents: tuple[Document, ...]
    scores: tuple[float, ...]
    search: SearchResult | None = None


class Worth(NamedTuple):
    """How much of the relevant passages an answer says, its text (the first run's), and what it took."""

    performance: float
    text: str
    usage: Usage


class UtilityTrial:
    """Lets one generator answer from every row's documents."""

    def __init__(self, opened: Opened, section: Utility) -> None:
        plan, collection = opened.plan, opened.collection
        self.section, self.collection, self.rows, self.seed = section, collection, plan.systems, plan.experiment.seed
        self.displays = {name: Display.model_validate(row.row) for name, row in plan.systems.items()}
        # Rows of one system show the same documents.
        self.systems = build_systems(opened, {display.of for display in self.displays.values()})
        engines = [system.agent.retriever for system in self.systems.values()]
        wanted = judged_ids(collection, plan.topics)
        for run in (engine for engine in engines if isinstance(engine, RunFile)):
            wanted |= ranked_ids(run, (collection.topics[id] for id in plan.topics), plan.n)
        # The documents that were judged, and those of run files.
        self.passages = read_passages(collection, wanted)
        first = next(iter(plan.systems.values()))
        settings, models = first.settings, opened.models
        self.writers: dict[Compat, ModelWriter | ExtractWriter]
        if settings.generate.templates:
            writing = models.open(settings.model), Prompts(settings.prompts), section.temperature, self.seed
            self.writers = {compat: ModelWriter(*writing, compat) for compat in section.compat}
        else:
            engine = next((engine for engine in engines if isinstance(engine, TermSource)), None)
            site = replace(site_of(first, collection, models), engine=engine)
            self.writers = dict.fromkeys(section.compat, ExtractWriter(settings.generate.build(site)))
        self.similarity, self.tokens = open_similarity(section.similarity), settings.context.tokens
        self._ranked, self._alone = Memo(), Memo()

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
        judged = bool(getattr(self.rows[system].settings.engine, "reading", ""))
        hits = (
            HitRecord(one.id, one.title, score, grades.get(one.id, 0) >= self.section.relevant, {}, one.snippet)
            for one, score in zip(ranked.documents, ranked.scores, strict=True)
        )
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
        seen = search if used.sees_groups else None
        return RankedDocuments(tuple(documents), tuple(top.scores.tolist()), seen)

    def _worth(
        self,
        writer: ModelWriter | ExtractWriter,
        query: Query,
        documents: Sequence[Document],
        references: Mapping[int, Sequence[str]],
    ) -> Worth:
        context, _ = fit(documents, self.tokens) if documents else ((), ())
        performances, texts, usage = [], [], Usage()
        for run in range(self.section.runs):
            answer = writer.answer(query, context, run)
            usage = usage + answer.usage
            texts.append(answer.text)
            alike = {grade: self.similarity.f1(answer.text, of_grade) for grade, of_grade in references.items()}
            performances.append(best_of_references(alike, alike) or 0.0)
        return Worth(fmean(performances), texts[0], usage)
