"""The Fair RAG experiment, topic by topic: rankings are drawn, answered from, and measured.

On a collection its documents are the items, and those that were judged relevant are useful; in LaMP each question has
items of its own, and answers are compared with the right ones. The sections `fair_rag:` and `lamp:` say how.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from fairagent.answer.answering import Answerer, Attributor, attribute_with
from fairagent.answer.context import fit
from fairagent.answer.filtering import filter_with
from fairagent.answer.generators import answer_with
from fairagent.collection.exposure import ExposureMeter
from fairagent.evaluate.judging import Judge
from fairagent.evaluate.kind import FileSection, Name, Opened
from fairagent.evaluate.outcome import HitRecord, Outcome
from fairagent.evaluate.plan import System, SystemPlan, build_systems, site_of
from fairagent.llm import Model
from fairagent.llm.prompts import Prompts
from fairagent.measures import LOG2_PLUS1, UNIFORM, expected_exposure, item_exposure, jensen_shannon
from fairagent.measures.answers import (
    Normalization,
    attributed_exposure,
    expected_attribution_rate,
    normalized_attributed_disparity,
)
from fairagent.papers.fair_rag.lamp import Lamp, answer_from, score_items
from fairagent.retrieve.base import as_query, texts_for
from fairagent.retrieve.encoders import EncoderPart
from fairagent.retrieve.stochastic import checked_alpha, sample_rankings, sampler_log_scores, topic_rng
from fairagent.retrieve.vectors import encoder
from fairagent.search.pipeline import build_answerer
from fairagent.search.run import hits_of
from fairagent.settings import Section
from fairagent.storage.threads import Memo
from fairagent.types import Document, FloatArray, Ranking, SearchResult, Topic, Usage

HIGHEST = "highest utility"
"""The best utility of a row's draws: what EU is normalized by, and no measure."""
NORMALIZED = "normalized EU"


class Drawing(Section):
    """The section `fair_rag:`, as both kinds have it."""

    k: int = Field(5, ge=1)
    """How many items a generator is given: the machine user reads them all and nothing else."""
    samples: int = Field(100, ge=1)
    """Rankings that are drawn for a query."""
    runs: int = Field(1, ge=1)
    """How often they are drawn anew, each time with other random numbers: every run has rows of its own."""
    medians: dict[Name, tuple[str, ...]] = Field(default={}, examples=[{"BM25": ["BM25+small", "BM25+large"]}])
    """Name -> systems whose curves it is the median of, over all of their runs: slope, AUC, normalized EU and its
    difference in each interval of disparity. `expected` may name it."""
    queries: int = Field(0, ge=0)
    """How many queries the page shows one by one, utility against disparity; topics.csv has all of them."""
    alphas: tuple[Annotated[float, Field(ge=0, allow_inf_nan=False)], ...] = Field((1.0, 2.0, 4.0, 8.0), min_length=1)
    """How close to the engine's order they are: 0 is uniform, 8 almost that order."""
    deterministic: bool = True
    """Whether each system has a row for its own order, as well as for its draws."""
    oracle: float | None = Field(8.0, ge=0)
    """alpha of the rankings that are drawn by usefulness itself, for each generator; null: none."""
    normalization: Normalization = "conditional"
    """What attributed disparity is measured against (`fairagent.measures.answers`)."""
    highest: Literal["all", "same-retriever"] = "all"
    """Whose best utility EU is divided by: all rows' with the same generator (the paper), or those of the same system
    and the oracle (the authors' code)."""
    compat: Literal["authors"] | None = None
    """authors: scores and exposures are normalized as in their code."""


class CollectionDrawing(Drawing):
    """The section `fair_rag:` of an experiment on a collection."""

    pool: int = Field(100, ge=1)
    """How many documents of the collection a ranking is drawn from."""
    grades: dict[int, int] = Field(default={})
    """Grades of the judgments -> what they mean here, where a higher one is not better; the others stay. Above 0 is
    useful."""
    enough: Literal["all", "one"] = "all"
    """What an answer is worth: the share of the useful documents that it rests on (of k at most), or 1 where it rests
    on any: where each of them is a valid answer, one is enough."""


class LampFiles(FileSection):
    """The section `lamp:`: questions in LaMP's format, each of which has items of its own."""

    paths: ClassVar[tuple[str, ...]] = ("questions", "outputs", "labels")

    task: Literal["LaMP-1", "LaMP-2", "LaMP-3", "LaMP-4", "LaMP-5", "LaMP-6", "LaMP-7"]
    """Which of LaMP's tasks."""
    questions: str = Field(min_length=1)
    """The file of the questions with their items, relative to this file."""
    outputs: str = Field(min_length=1)
    """The file of the right outputs."""
    labels: str = "labels"
    """The folder of the items' utility labels, which `fairagent labels FILE` makes: a file a generator."""


class Draws(Section):
    """How the rankings of one row are drawn: from `system`, by `alpha` (None: its own order, once).

    Where `oracle`, by usefulness. Runs are counted from 0; a system's own order is that of all of them.
    """

    system: str
    alpha: float | None
    oracle: bool = False
    run: int = 0


def generator(system: SystemPlan) -> str:
    """What tells one generator from another: who answers, by which prompts."""
    settings = system.settings
    return f"{settings.generate.model_dump_json()} {settings.model.model_dump_json()} {settings.prompts}"


def oracle_log_scores(useful: ArrayLike, alpha: float) -> FloatArray:
    """The ln z of each item (n,) under an oracle that knows which are `useful`: z is 10^alpha, or 0^alpha for the rest.

    >>> oracle_log_scores([True, False], alpha=2).round(3).tolist()
    [4.605, -inf]
    """
    checked_alpha(alpha)
    helps = np.asarray(useful, dtype=bool)
    return np.where(helps, alpha * np.log(10), -np.inf) if alpha else np.zeros(len(helps))


@dataclass(frozen=True, slots=True, eq=False)
class TopicDraws:
    """The rankings of one topic: `rankings` (N, k') hold indices of its n items, of which `useful` (n,) are.

    `utilities` (N,) are what the answers to them are worth, `rested_on` (N, k') says how far each rests on each item,
    None where answers are not attributed.
    """

    rankings: NDArray[np.intp]
    useful: NDArray[np.bool_]
    utilities: FloatArray
    rested_on: FloatArray | None

    @property
    def exposure(self) -> FloatArray:
        """How often each item is among the first k', (n,)."""
        return item_exposure(self.rankings, len(self.useful))

    @property
    def attributed(self) -> FloatArray:
        """How often an answer rests on each item, (n,); 0 where nothing was retrieved."""
        if self.rested_on is None or not self.rested_on.size:
            return np.zeros(len(self.useful))
        return attributed_exposure(self.rankings, self.rested_on, len(self.useful))


def values(drawn: TopicDraws, section: Drawing) -> dict[str, float]:
    """Measure -> value, all but the normalized EU, which takes the other rows.

    Where fewer items are retrieved than a ranking has places, each place that is left over shows a blank, an item of
    no use that is always there: a short list is no fairer for that, and no better.
    """
    exposure, due, k = drawn.exposure, drawn.useful, section.k
    places = min(k, len(due))
    if (width := drawn.rankings.shape[1]) < places:
        # As many blanks as places, so that a list of blanks is the worst there is.
        exposure = np.concatenate([exposure, np.arange(places) < places - width])
        due, k = np.concatenate([due, np.zeros(places, dtype=np.bool_)]), places
    expected = expected_exposure(exposure, due, k, section.compat)
    measured = {
        "nDCG": expected_ndcg(drawn.rankings, drawn.useful, section.k),
        "EE-R": expected.relevance.normalized,
        "EE-D": expected.disparity.normalized,
        "EE-L": expected.difference.normalized,
        "EU": float(drawn.utilities.mean()),
        HIGHEST: float(drawn.utilities.max()),
    }
    if drawn.rested_on is not None:
        some, attributed = drawn.rested_on.size, drawn.attributed
        disparity = normalized_attributed_disparity(attributed, section.k, section.normalization) if some else 0.0
        measured |= {"EAR": expected_attribution_rate(drawn.rested_on) if some else 0.0, "EAE-D": disparity}
    return measured


def expected_ndcg(rankings: NDArray[np.intp], useful: NDArray[np.bool_], k: int) -> float:
    """The mean binary nDCG@k (discount 1 / log2(rank + 1)) of `rankings` (N, k'); 0 where nothing is useful.

    >>> expected_ndcg(np.array([[0, 1], [1, 0]]), np.array([True, False]), k=2).__round__(4)
    0.8155
    """
    best = LOG2_PLUS1(min(k, int(useful.sum()))).sum()
    # The ideal ranking is the same for all draws, so that the mean of their gains is enough.
    return float(useful[rankings].mean(axis=0) @ LOG2_PLUS1(rankings.shape[1]) / best) if best else 0.0


def rankings(
    draws: Draws, scores: FloatArray, useful: NDArray[np.bool_], section: Drawing, seed: int, topic: str
) -> NDArray[np.intp]:
    """The rankings of a row, (N, k'), as indices of the items; N is 1 for a system's own order.

    `scores` (m,) are those of the first m items, which are drawn from; ties of their own order go to the first. The
    oracle draws from all n by whether they are `useful` (n,). All rows of a topic and run share their random numbers.
    """
    n = len(useful) if draws.oracle else len(scores)
    if draws.alpha is None or not n:
        return np.argsort(-scores, kind="stable")[: section.k][None, :]
    if draws.oracle:
        log_scores = oracle_log_scores(useful, draws.alpha)
    else:
        log_scores = sampler_log_scores(scores, draws.alpha, section.compat)
    return sample_rankings(log_scores, section.k, topic_rng(seed, topic, draws.run), section.samples)


def most_exposed(items: Sequence[str], exposure: FloatArray, k: int) -> Ranking:
    """The `k` items with the most exposure, which are their scores; ties in the order of `items`.

    >>> most_exposed(["a", "b", "c"], np.array([0.5, 1.0, 0.0]), k=2).ids
    ('b', 'a')
    """
    order = [item for item in np.argsort(-exposure, kind="stable")[:k].tolist() if exposure[item] > 0]
    return Ranking(tuple(items[item] for item in order), exposure[order])


Answered = tuple[float, FloatArray | None, Usage]
"""What the answer to a ranking is worth, how far it rests on each item (k',), and what it took."""


def drawn_and_answered(
    lists: NDArray[np.intp], useful: NDArray[np.bool_], answer: Callable[[tuple[int, ...]], Answered]
) -> tuple[TopicDraws, Usage]:
    """The rankings `lists` (N, k') with their answers; each different ranking is answered once."""
    answers: dict[tuple[int, ...], Answered] = {}
    ranked = [tuple(ranking) for ranking in lists.tolist()]
    for ranking in ranked:
        if ranking not in answers:
            answers[ranking] = answer(ranking)
    weights = [answers[ranking][1] for ranking in ranked]
    rested_on = None if weights[0] is None else np.array(weights)
    utilities = np.array([answers[ranking][0] for ranking in ranked])
    return TopicDraws(lists, useful, utilities, rested_on), sum((usage for *_, usage in answers.values()), Usage())


@dataclass(frozen=True, slots=True, eq=False)
class DrawnSystem:
    """One row: the system whose candidates are drawn, how they are, and who answers from them."""

    system: System
    answerer: Answerer
    draws: Draws


class FairRagTrial:
    """Draws rankings of each topic, answers from them and measures all of it; threads may share it."""

    def __init__(self, opened: Opened, section: CollectionDrawing) -> None:
        plan, systems = opened.plan, build_systems(opened)
        self.judge, self.section, self.seed = Judge.of(plan, opened.collection), section, plan.experiment.seed
        self.rows: dict[str, DrawnSystem] = {}
        self._candidates = Memo()
        answerers: dict[str, Answerer] = {}
        for name, row in plan.systems.items():
            draws, system = Draws.model_validate(row.row), systems[name]
            if draws.system not in answerers:
                answerer = build_answerer(replace(system.site, engine=system.agent.retriever))
                writer: Any = answerer.generator
                # The same documents are read again and again.
                if analyze := getattr(writer, "analyze", None):
                    cached = replace(writer, analyze=lru_cache(maxsize=200_000)(analyze))
                    answerer = replace(answerer, generator=cached)
                answerers[draws.system] = answerer
            self.rows[name] = DrawnSystem(system, answerers[draws.system], draws)

    def outcome(self, system: str, id: str) -> Outcome:
        collection, k, row = self.judge.collection, self.section.k, self.rows[system]
        query, retriever = as_query(collection.topics[id]), row.system.agent.retriever

        def candidates() -> tuple[SearchResult, Ranking]:
            """The system's search, and its candidates, best first: the first k are its own ranking."""
            run = row.system.agent.find(collection.topics[id], self.section.pool)
            return run.result(run.pool), run.pool

        search, pool = self._candidates.get((row.draws.system, id), candidates)
        # The pool first, then what is useful and was not retrieved.
        grades = {one: self.section.grades.get(grade, grade) for one, grade in collection.qrels[id].items()}
        pooled = set(pool.ids)
        items = (*pool.ids, *sorted(one for one, grade in grades.items() if grade > 0 and one not in pooled))
        useful = np.array([grades.get(item, 0) > 0 for item in items])
        lists = rankings(row.draws, pool.scores, useful, self.section, self.seed, id)
        drawn_from = sorted({*lists.ravel().tolist()})
        texts = dict(zip(drawn_from, texts_for(query, [items[item] for item in drawn_from], retriever), strict=True))
        enough = 1 if self.section.enough == "one" else max(1, min(k, int(useful.sum())))

        def answer(ranking: tuple[int, ...]) -> Answered:
            documents, contexts, spent = [texts[item] for item in ranking], row.answerer.contexts, Usage()
            passed = tuple(documents)
            if contexts.filter:
                filtered = filter_with(contexts.filter, query, documents)
                passed, spent = filtered.documents, filtered.usage
            context, _ = fit(passed, contexts.tokens)
            reply = answer_with(row.answerer.generator, query, context)
            assert row.answerer.attributor  # checked before
            attribution = attribute_with(row.answerer.attributor, query, reply, context)
            of = dict(zip((document.id for document in context), attribution.weights.tolist(), strict=True))
            # 0 for those that the filter removes.
            weights = np.array([of.get(document.id, 0.0) for document in documents])
            worth = min(float((weights * useful[list(ranking)]).sum()) / enough, 1.0)
            return worth, weights, spent + reply.usage + attribution.usage

        drawn, usage = drawn_and_answered(lists, useful, answer)
        meter = ExposureMeter(collection, id, self.judge.targets(id), k, UNIFORM, "js")
        first = search.trace.steps[0].ranking.top(k)
        stages = {
            "gap retrieved": meter.weigh(first.ids, np.ones(len(first))),
            "gap re-ranked": meter.weigh(items, drawn.exposure),
            "gap cited": meter.weigh(items, drawn.attributed),
        }
        by_dimension: dict[str, dict[str, float]] = {target.dimension: {} for target in meter.targets}
        for stage, exposures in stages.items():
            for exposure in exposures:
                # All of it, ln 2, where nothing is shown that has a label.
                some = exposure.shares.any()
                gap = jensen_shannon(exposure.shares, exposure.target) if some else math.log(2)
                by_dimension[exposure.dimension][stage] = gap
        shown = most_exposed(items, drawn.exposure, k)
        return Outcome.of(
            collection.topics[id],
            system,
            {"": values(drawn, self.section), **by_dimension},
            search.trace.usage + usage,
            search=search,
            hits=self.judge.hits(id, hits_of(shown, meter, row.system.agent.retriever), shown.scores),
            exposures=stages["gap re-ranked"],
            cited=stages["gap cited"],
            oracle=row.draws.oracle or (search.trace.oracle and row.system.sees_groups),
        )


@dataclass(frozen=True, slots=True, eq=False)
class LampSystem:
    """One row: what scores the items, how they are drawn, who answers, and which items help that generator."""

    engine: Any
    draws: Draws
    model: Model
    prompts: Prompts
    attributor: Attributor | None
    useful: Mapping[str, NDArray[np.bool_]]


class LampTrial:
    """Draws rankings of each question's items, has it answered from them and measures all of it; threads may share it.

    An answer is worth what the task's metric says; where less is better (LaMP-3), what is missing to the worst.
    """

    def __init__(
        self, opened: Opened, section: Drawing, lamp: Lamp, useful: Mapping[str, Mapping[str, NDArray[np.bool_]]]
    ) -> None:
        self.section, self.seed, memo = section, opened.plan.experiment.seed, opened.memo
        self.questions = {question.id: question for question in lamp.questions}
        self.rows: dict[str, LampSystem] = {}
        self._scored = Memo()
        for name, system in opened.plan.systems.items():
            site = site_of(system, opened.collection, opened.models, memo=memo)
            engine, draws = system.settings.engine, Draws.model_validate(system.row)
            scorer: Any = "okapi"
            if named := getattr(engine, "text_encoder", ""):
                scorer = encoder(site, named)
            elif isinstance(engine, EncoderPart):
                scorer = engine.open_encoder(memo)
            attributor = memo.get(("attributor", draws.system), partial(system.settings.attribute.build, site))
            helping = useful[generator(system)]
            self.rows[name] = LampSystem(scorer, draws, site.model, site.prompts, attributor, helping)

    def outcome(self, system: str, id: str) -> Outcome:
        row, question = self.rows[system], self.questions[id]
        scores = self._scored.get((row.draws.system, id), lambda: score_items(question, row.engine))
        useful, utility = row.useful[id], question.task.utility

        def answer(ranking: tuple[int, ...]) -> Answered:
            items = [question.items[item] for item in ranking]
            reply = answer_from(row.model, row.prompts, question, items)
            usage, weights = reply.usage, None
            if row.attributor:
                documents = [Document(item.id, item.text) for item in items]
                attribution = row.attributor.attribute(question.query, reply, documents)
                usage, weights = usage + attribution.usage, attribution.weights
            worth = utility(reply.text, question.golds)
            return utility.upper - worth if utility.lower_is_better else worth, weights, usage

        lists = rankings(row.draws, scores, useful, self.section, self.seed, id)
        drawn, usage = drawn_and_answered(lists, useful, answer)
        shown = most_exposed([item.id for item in question.items], drawn.exposure, self.section.k)
        helping = {item.id: bool(helps) for item, helps in zip(question.items, useful, strict=True)}
        ranked = zip(shown.ids, shown.scores.tolist(), strict=True)
        return Outcome.of(
            Topic(id, question.query),
            system,
            {"": values(drawn, self.section)},
            usage,
            hits=tuple(HitRecord(item, "", score, helping[item], {}) for item, score in ranked),
            oracle=row.draws.oracle,
        )
