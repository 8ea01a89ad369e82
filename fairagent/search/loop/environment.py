"""What a loop's actions work with: one search, how it is measured, and how states are made of its candidates."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairagent.collection.exposure import ExposureMeter, finite_gap
from fairagent.errors import BackendUnavailable, DataError
from fairagent.retrieve.dense import VectorEngine
from fairagent.retrieve.fused import FusedRetriever
from fairagent.search.loop.base import Lack, Search, lacking
from fairagent.search.loop.channels import Evidence, Mixer, SecondSearch, has_evidence
from fairagent.search.loop.evidence import EvidenceDocuments, learn_from, words
from fairagent.search.loop.kinds import KindSource, bonus
from fairagent.search.loop.sources import ModelEvidence, Sources
from fairagent.search.loop.state import JudgedDocuments, State, sorted_by, start
from fairagent.search.rerank.base import ordered
from fairagent.types import FloatArray, Ranking

LOSS = 0.5
"""What a document that is surely irrelevant loses, in ranges of the engine's scores."""


@dataclass(frozen=True, slots=True, eq=False)
class Environment:
    """One `search`, measured by `meter`; `unit` is the range of the engine's own scores. The rest is the controller's.

    `mixer` makes evidence scores, `sources` ask a model for evidence (None: nobody is asked), `second` searches the
    whole collection by it (None: the candidates stay as they are).
    """

    search: Search
    meter: ExposureMeter
    unit: float
    mixer: Mixer
    feedback: int
    drift: float
    tolerance: float
    kinds: KindSource | None
    prior: float
    sources: Sources | None = None
    second: SecondSearch | None = None

    def counting_kinds(self, first: Ranking, fed: FloatArray) -> Environment:
        """The same where documents that cannot have a label get what they have of the best by estimated relevance.

        `fed` (n,) are the scores of the `first` list after feedback.
        """
        if not self.kinds or not self.prior:
            return self
        by_relevance = sorted_by(first, fed + self._added(first, fed))
        return replace(self, meter=self.meter.of_kinds(by_relevance, self.kinds.clustered))

    def begin(self, first: Ranking, fed: FloatArray) -> State:
        """The state before any action: the candidates by estimated relevance; `fed` as in `counting_kinds`."""
        added, none = self._added(first, fed), np.zeros(len(first))
        state = State(first, fed, added, none, fed, self._learned(first, fed + added, JudgedDocuments()))
        state = self.ranked(state, state.relevance)
        least, own_gap = (1 - self.drift) * state.estimated, finite_gap(self.meter.measure(first))
        return replace(state, own=state.served.ids, least=least, own_gap=own_gap)

    def ranked(self, state: State, scores: FloatArray) -> State:
        """The state with its candidates ranked by `scores` (n,): what would be served, and what that gives."""
        pool = self.search.pool(sorted_by(state.found, scores), self.meter, self.unit)
        served = self.search.serve(pool).top(self.search.n)
        return replace(state, scores=scores, served=served, exposures=self.meter.measure(served))

    def informed(self, state: State) -> State:
        """The state with what a model says of the groups, which is asked once in a loop."""
        return replace(state, model_evidence=self._ask_model(state)) if state.model_evidence is None else state

    def searched_again(self, state: State) -> tuple[State, tuple[str, ...]]:
        """The informed state with what the refined query finds in the whole collection, once in a loop, and notes.

        An engine that fails leaves the candidates as they are.
        """
        if self.second is None or state.again:
            return state, ()
        state, texts = replace(state, again=True), state.model_evidence.texts if state.model_evidence else ()
        weights = self._weighted(start(self.meter.targets, has_evidence(state.learned, texts)))
        evidence = Evidence(state.found, state.learned, texts, weights, self._short(state))
        try:
            found, known = self.second.documents(self.search, self.mixer, evidence), set(state.found.ids)
            joined = self.joined(state.found, [id for id in found if id not in known])
        except (BackendUnavailable, DataError) as error:
            return state, (f"the engine failed at the second search, and its first list is kept: {error}",)
        entering = set(joined.ids) - known
        if not entering:
            return state, ("the refined query finds no other documents",)
        self.meter.knowing(joined.ids)
        before = dict(zip(state.found.ids, state.scores.tolist(), strict=True))
        state = self._of_candidates(state, joined, state.judged)
        scores = np.array([before.get(id, new) for id, new in zip(joined.ids, state.relevance.tolist(), strict=True)])
        state = replace(state, scores=scores)
        return replace(state, entered=state.entered | entering), ()

    def joined(self, found: Ranking, entering: Sequence[str]) -> Ranking:
        """All of them by the engine's scores for the user's query, ties by id.

        To an engine of words a document without any of the user's is no answer: it stays out.
        """
        engine = self.search.engine
        scores = engine.score(self.search.query, entering)
        if not isinstance(engine, VectorEngine | FusedRetriever):
            entering, scores = [id for id, score in zip(entering, scores, strict=True) if score > 0], scores[scores > 0]
        ids = (*found.ids, *entering)
        return ordered(ids, np.concatenate([found.scores, scores]), len(ids))

    def _short(self, state: State) -> list[tuple[Lack, int]]:
        """The groups that have fewer candidates than places they should have, with the number of places."""
        due = [(lack, round(lack.target * self.search.n)) for lack in lacking(state.exposures)]
        return [(lack, n) for lack, n in due if self.of_group(state.found.ids, lack).sum() < n]

    def _weighted(self, weights: FloatArray) -> FloatArray:
        """The groups' weights (g,) by the importance of their dimensions."""
        sizes = [len(target.shares) for target in self.meter.targets]
        return np.repeat(np.array(self.meter.importance), sizes) * weights

    def mixed(self, state: State) -> State:
        """The informed state with its evidence as scores."""
        if state.mix is not None:
            return state
        texts = state.model_evidence.texts if state.model_evidence else ()
        return replace(state, mix=self.mixer.mix(self.search, state.found, state.learned, texts))

    def refined(self, state: State, weights: FloatArray) -> State:
        """The mixed state with its candidates ranked under these weights of the groups' evidence, (g,)."""
        assert state.mix is not None
        scores = state.mix.scores(state.added - state.lost, self._weighted(weights), state.control.part)
        return self.ranked(state, scores)

    def start(self, state: State) -> FloatArray:
        """The first weights of the mixed state's evidence, (g,)."""
        assert state.mix is not None
        return start(self.meter.targets, state.mix.has)

    def learned_anew(self, state: State, found: Ranking, judged: JudgedDocuments) -> State:
        """The informed state with other candidates or judgments: what is learned of them, under the weights reached.

        Where another set of groups has evidence now, the weights start anew.
        """
        before, reached = state.mix, state.control.reached
        state = self._of_candidates(state, found, judged)
        state = replace(state, least=(1 - self.drift) * state.estimate(state.own))
        if not (any(state.learned) and self.mixer.able(self.search.engine)):
            return self.ranked(state, state.relevance)
        state = self.mixed(state)
        same = before is not None and state.mix is not None and np.array_equal(before.has, state.mix.has)
        weights = reached[0] if reached and same else self.start(state)
        state = self.refined(state, weights)
        control = replace(state.control, halved=0, reached=(weights, state.exposures), ended="")
        return replace(state, control=control)

    def without(self, state: State, gone: Collection[str]) -> State:
        """The state without these candidates, the others as they are ranked."""
        stay = [place for place, id in enumerate(state.found.ids) if id not in gone]
        found = Ranking(tuple(state.found.ids[place] for place in stay), state.found.scores[stay])
        return self.ranked(self._of_candidates(state, found, state.judged), state.scores[stay])

    def _of_candidates(self, state: State, found: Ranking, judged: JudgedDocuments) -> State:
        """The state with other candidates or judgments, and what is learned of them."""
        fed = self.fed_back(found)
        added, lost = self._added(found, fed), self._lost(found, judged)
        learned = self._learned(found, fed + added - lost, judged)
        return replace(state, found=found, fed=fed, added=added, lost=lost, judged=judged, learned=learned, mix=None)

    def fed_back(self, found: Ranking) -> FloatArray:
        """The candidates' scores by the query after relevance feedback, (n,)."""
        if not self.mixer.rocchio or not self.mixer.able(self.search.engine):
            return found.scores
        return self.mixer.mix(self.search, found, ()).scores(np.zeros(len(found)), np.zeros(0))

    def best_of(self, state: State, lack: Lack, n: int) -> list[str]:
        """The ids of the best `n` candidates of a group by estimated relevance, best first."""
        order = np.argsort(-state.relevance, kind="stable")
        belongs = self.of_group(state.found.ids, lack)[order] > 0
        return [state.found.ids[place] for place in order[belongs][:n].tolist()]

    def of_group(self, ids: Sequence[str], lack: Lack) -> FloatArray:
        """How far these documents belong to a group, (n,)."""
        return np.asarray(np.hstack([rows[:, 1:] for rows in self.meter.memberships(ids)])[:, lack.place])

    def _added(self, found: Ranking, fed: FloatArray) -> FloatArray:
        """What their kinds add to their scores after feedback `fed` (n,), (n,)."""
        kinds = self.kinds.document_kinds(found.ids, self.search.query.id) if self.kinds and self.prior else []
        return bonus(fed, kinds, self.prior)[0]

    def _lost(self, found: Ranking, judged: JudgedDocuments) -> FloatArray:
        """What they lose by the judgments, (n,): nothing from a chance of one half on."""
        chances = np.array([judged.chance.get(id, 1.0) for id in found.ids])
        return np.asarray(LOSS * self.unit * np.maximum(1 - 2 * chances, 0))

    def _learned(self, found: Ranking, relevance: FloatArray, judged: JudgedDocuments) -> tuple[EvidenceDocuments, ...]:
        """The documents that evidence is learned from: of the groups judged those that are relevant, if any is."""
        memberships = self.meter.memberships(found.ids)
        if judged.groups:
            chances = np.array([judged.chance.get(id, 0.0) for id in found.ids])
            good = np.where(chances >= 0.5, chances, 0.0)
            place = 0
            memberships = tuple(rows.copy() for rows in memberships)
            for rows in memberships:
                for column in rows[:, 1:].T:
                    if place in judged.groups and (column * good).any():
                        column *= good
                    place += 1
        return tuple(learn_from(relevance, memberships, self.feedback))

    def _ask_model(self, state: State) -> ModelEvidence:
        if self.sources is None:
            return ModelEvidence()
        shown = self._words(state) if "grounded" in self.sources.kinds else {}
        return self.sources.ask(self.search.query.text, lacking(state.exposures), shown, len(state.learned))

    def _words(self, state: State) -> dict[int, list[str]]:
        """The words that the documents of each group have in common, by its place."""
        source = self.mixer.source
        if source is None:
            return {}
        postings, found = source.postings(state.found.ids), {}
        for place, one in enumerate(state.learned):
            if one:
                chosen = [word for word, _ in words(source, postings, one, len(state.found))]
                found[place] = source.words(postings.vocabulary[chosen]) if chosen else []
        return found
