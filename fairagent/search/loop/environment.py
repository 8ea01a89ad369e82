"""What a loop's actions work with: one search, how it is measured, and how states are made of its candidates."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice, zip_longest
from typing import TYPE_CHECKING

import numpy as np

from fairagent.answer.citations import sentences
from fairagent.collection.exposure import ExposureMeter, finite_gap
from fairagent.errors import BackendUnavailable, DataError
from fairagent.retrieve.base import FusedEngine, scored, texts_for
from fairagent.retrieve.dense import VectorEngine
from fairagent.search.loop.base import Lack, Search, lacking, without
from fairagent.search.loop.candidates import Candidates, has_evidence
from fairagent.search.loop.document_types import HEAD, bonus
from fairagent.search.loop.evidence import EvidenceDocuments, grounding, learn_from, words
from fairagent.search.loop.sources import (
    LONGEST_SENTENCE,
    SHOWN_SENTENCES,
    EvidenceType,
    GroupText,
    ModelEvidence,
)
from fairagent.search.loop.state import JudgedDocuments, State, sorted_by, start
from fairagent.search.rerank.base import ordered
from fairagent.types import FloatArray, Ranking

if TYPE_CHECKING:
    from fairagent.search.loop.controller import Controller

LOSS = 0.5
"""What a document that is surely irrelevant loses, in ranges of the engine's scores."""


@dataclass(frozen=True, slots=True, eq=False)
class Environment:
    """One `search` of a `controller`, measured by `meter`; `unit` is the range of the engine's own scores."""

    controller: Controller
    search: Search
    meter: ExposureMeter
    unit: float

    @classmethod
    def begin(cls, controller: Controller, search: Search) -> tuple[Environment, State]:
        """The environment of a search, and its state before any action: the candidates by estimated relevance.

        A dimension counts by how much it applies to the first documents, where their types say so; documents that
        cannot have a label should get what they have of the best by estimated relevance.
        """
        first, types = search.steps[-1].ranking, controller.types
        unit = max(float(np.ptp(first.scores)), 1e-9)
        search = replace(search, retrieve=lru_cache(maxsize=64)(search.retrieve))
        known = types.document_types(first.ids, search.query.id) if types else []
        # The type's share of the list, relative to the collection's.
        applies = {one.dimension: min(1.0, float(one.of[:HEAD].mean()) / one.chance) for one in known}
        counts = tuple(applies.get(target.dimension, 1.0) for target in search.meter.targets)
        meter = replace(search.meter, importance=counts)
        candidates = Candidates(first, search, meter, controller.mixer)
        added = bonus(candidates.fed, known if controller.prior else [], controller.prior)
        if types and controller.prior:
            meter = meter.by_type(sorted_by(first, candidates.fed + added), types.clustered)
        environment, none = cls(controller, search, meter, unit), np.zeros(len(first))
        state = State(candidates, added, none, none)
        state = replace(state, learned=environment._learned(candidates, state.relevance, JudgedDocuments()))
        state = environment.ranked(state, state.relevance)
        least = (1 - controller.drift) * state.estimate(state.served.ids)
        return environment, replace(state, own=state.served.ids, least=least, own_gap=finite_gap(meter.measure(first)))

    @property
    def able(self) -> bool:
        """Whether the engine's scores can be refined."""
        return self.controller.mixer.able(self.search.engine)

    def ranked(self, state: State, scores: FloatArray) -> State:
        """The state with its candidates ranked by `scores` (n,): what would be served, and what that gives."""
        pool = self.search.pool(sorted_by(state.candidates.ranking, scores), self.meter, self.unit)
        served = self.search.serve(pool).top(self.search.n)
        return replace(state, scores=scores, pool=pool, served=served, exposures=self.meter.measure(served))

    def informed(self, state: State) -> State:
        """The state with what a model says of the groups, requested once in a loop."""
        if state.model_evidence is not None:
            return state
        evidence, sources = ModelEvidence(), self.controller.sources
        if sources:
            material: dict[EvidenceType, dict[int, list[str]]] = {}
            if "grounded" in sources.types:
                material["grounded"] = self._words(state)
            if "sentences" in sources.types:
                material["sentences"] = self._sentences(state)
            evidence = sources.ask(self.search.query.text, lacking(state.exposures), material, len(state.learned))
            if sources.weighting == "relevance":
                evidence = self._by_relevance(state, evidence)
        return replace(state, model_evidence=evidence)

    def _by_relevance(self, state: State, evidence: ModelEvidence) -> ModelEvidence:
        """The evidence, each text weighing as much as the candidates nearest to it are relevant."""
        groups = [f"{label} ({target.dimension})" for target in self.meter.targets for label in target.labels]
        notes = list(evidence.notes)

        def weighed(place: int, text: GroupText) -> GroupText:
            if not text:
                return text
            weight = grounding(state.candidates.similarity(text), state.relevance)
            notes.append(f"{groups[place]}: {text.text} counts {weight:.2f}, by the documents nearest to it")
            return replace(text, weight=weight)

        texts = tuple(tuple(weighed(place, one) for place, one in enumerate(part)) for part in evidence.texts)
        return replace(evidence, texts=texts, notes=tuple(notes))

    def searched_again(self, state: State) -> tuple[State, tuple[str, ...]]:
        """The informed state with what the refined query finds in the whole collection, once in a loop, and notes.

        An engine that fails leaves the candidates as they are.
        """
        if self.controller.second is None or state.again:
            return state, ()
        state = replace(state, again=True)
        weights = self._weighted(start(self.meter.targets, has_evidence(state.learned, state.texts)))
        candidates, known = state.candidates, set(state.candidates.ids)
        try:
            retrieved = self.controller.second.documents(state, weights, self.short(state))
            joined = self.joined(candidates.ranking, [id for id in retrieved if id not in known])
        except (BackendUnavailable, DataError) as error:
            return state, (f"the engine failed at the second search, so its first list stays: {error}",)
        entering = set(joined.ids) - known
        if not entering:
            return state, ("the refined query finds no other documents",)
        self.meter.with_cached(joined.ids)
        before = dict(zip(candidates.ids, state.scores.tolist(), strict=True))
        state = self._of_candidates(state, joined, state.judged)
        scores = np.array([before.get(id, new) for id, new in zip(joined.ids, state.relevance.tolist(), strict=True)])
        return replace(state, scores=scores, entered=state.entered | entering), ()

    def joined(self, ranking: Ranking, entering: Sequence[str]) -> Ranking:
        """All of them by the engine's scores for the user's query, ties by id.

        To an engine of words a document without any of the user's is no answer: it stays out.
        """
        engine = self.search.engine
        scores = scored(engine, self.search.query, entering)
        if not isinstance(engine, VectorEngine | FusedEngine):
            entering, scores = [id for id, score in zip(entering, scores, strict=True) if score > 0], scores[scores > 0]
        ids = (*ranking.ids, *entering)
        return ordered(ids, np.concatenate([ranking.scores, scores]), len(ids))

    def short(self, state: State) -> list[tuple[Lack, int]]:
        """The groups that have fewer candidates than places they should have, with the number of places."""
        due = [(lack, round(lack.target * self.search.n)) for lack in lacking(state.exposures)]
        return [(lack, n) for lack, n in due if state.candidates.groups[:, lack.place].sum() < n]

    def _weighted(self, weights: FloatArray) -> FloatArray:
        """The groups' weights (g,) by the importance of their dimensions."""
        sizes = [len(target.shares) for target in self.meter.targets]
        return np.repeat(np.array(self.meter.importance), sizes) * weights

    def mixed(self, state: State) -> State:
        """The informed state with its evidence as scores."""
        return state if state.mix else replace(state, mix=state.candidates.mix(state.learned, state.texts))

    def refined(self, state: State, weights: FloatArray) -> State:
        """The mixed state with its candidates ranked under these weights of the groups' evidence, (g,)."""
        assert state.mix is not None
        return self.ranked(
            state, state.mix.scores(state.added - state.lost, self._weighted(weights), state.control.part)
        )

    def start(self, state: State) -> FloatArray:
        """The first weights of the mixed state's evidence, (g,)."""
        assert state.mix is not None
        return start(self.meter.targets, state.mix.has)

    def learned_anew(self, state: State, ranking: Ranking, judged: JudgedDocuments) -> State:
        """The informed state with other candidates or judgments: what is learned of them, under the weights reached.

        Where another set of groups has evidence now, the weights start anew.
        """
        before, reached = state.mix, state.weights
        state = self._of_candidates(state, ranking, judged)
        state = replace(state, least=(1 - self.controller.drift) * state.estimate(state.own))
        if not (any(state.learned) and self.able):
            return self.ranked(state, state.relevance)
        state = self.mixed(state)
        same = before is not None and state.mix is not None and np.array_equal(before.has, state.mix.has)
        weights = reached if reached is not None and same else self.start(state)
        state = self.refined(state, weights)
        control = replace(state.control, halved=0, reached=(weights, state.exposures), ended="")
        return replace(state, control=control)

    def without(self, state: State, removed: Collection[str]) -> State:
        """The state without these candidates, the others as they are ranked."""
        stay = [place for place, id in enumerate(state.candidates.ids) if id not in removed]
        remaining = self._of_candidates(state, without(state.candidates.ranking, removed), state.judged)
        return self.ranked(remaining, state.scores[stay])

    def _of_candidates(self, state: State, ranking: Ranking, judged: JudgedDocuments) -> State:
        """The state with other candidates or judgments, and what is learned of them."""
        controller, candidates = self.controller, state.candidates
        if ranking is not candidates.ranking:
            candidates = Candidates(ranking, self.search, self.meter, controller.mixer)
        topic, prior = self.search.query.id, controller.prior
        types = controller.types.document_types(ranking.ids, topic) if controller.types and prior else []
        added = bonus(candidates.fed, types, prior)
        # Nothing is lost from a chance of one half on.
        chances = np.array([judged.chance.get(id, 1.0) for id in ranking.ids])
        lost = np.asarray(LOSS * self.unit * np.maximum(1 - 2 * chances, 0))
        learned = self._learned(candidates, candidates.fed + added - lost, judged)
        return replace(state, candidates=candidates, added=added, lost=lost, judged=judged, learned=learned, mix=None)

    def best_of(self, state: State, lack: Lack, n: int) -> list[str]:
        """The ids of the best `n` candidates of a group by estimated relevance, best first."""
        order = np.argsort(-state.relevance, kind="stable")
        belongs = state.candidates.groups[order, lack.place] > 0
        return [state.candidates.ids[place] for place in order[belongs][:n].tolist()]

    def of_group(self, ids: Sequence[str], lack: Lack) -> FloatArray:
        """How far these documents belong to a group, (n,)."""
        return np.hstack([rows[:, 1:] for rows in self.meter.memberships(ids)])[:, lack.place]

    def _learned(
        self, candidates: Candidates, relevance: FloatArray, judged: JudgedDocuments
    ) -> tuple[EvidenceDocuments, ...]:
        """The documents that evidence is learned from: of the groups judged those that are relevant, if any is."""
        memberships = candidates.memberships
        if judged.groups:
            chances = np.array([judged.chance.get(id, 0.0) for id in candidates.ids])
            good = np.where(chances >= 0.5, chances, 0.0)
            memberships = tuple(rows.copy() for rows in memberships)
            columns = [column for rows in memberships for column in rows[:, 1:].T]
            for place in judged.groups:
                if (columns[place] * good).any():
                    columns[place] *= good
        return tuple(learn_from(relevance, memberships, self.controller.feedback))

    def _words(self, state: State) -> dict[int, list[str]]:
        """The words that the documents of each group have in common, by its place."""
        source = self.controller.mixer.source
        if source is None:
            return {}
        postings = state.candidates.postings
        shown = {}
        for place, one in enumerate(state.learned):
            if one:
                best = [word for word, _ in words(source, postings, one)]
                shown[place] = source.words(postings.vocabulary[best]) if best else []
        return shown

    def _sentences(self, state: State) -> dict[int, list[str]]:
        """Sentences of the documents of each group that lacks exposure, by its place: first one of each document."""
        shown = {}
        for place in (lack.place for lack in lacking(state.exposures)):
            ids = [state.candidates.ids[row] for row in state.learned[place].places.tolist()]
            documents = texts_for(self.search.query, ids, self.search.engine) if ids else []
            by_turns = zip_longest(*(sentences(document.text or document.title) for document in documents))
            firsts = (one[:LONGEST_SENTENCE] for turn in by_turns for one in turn if one)
            shown[place] = list(islice(dict.fromkeys(firsts), SHOWN_SENTENCES))
        return shown
