"""What the widening loop may do: five ways to candidates of a group that lacks them, a judge, and a filter of bias."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fairagent.answer.filtering import Filter, filter_with
from fairagent.answer.removals import filter_alarms, removed_by
from fairagent.collection import Groups
from fairagent.errors import BudgetExceeded, FatalModelError, ModelError
from fairagent.retrieve.base import FusedEngine, Retriever, searched, texts_for
from fairagent.retrieve.dense import VectorEngine, VectorSearch
from fairagent.retrieve.graph import Graph
from fairagent.retrieve.relevance_model import TermSource, relevance_model, share_out, top_words
from fairagent.retrieve.where import Conditions, Restrictable, RestrictableParts, restricted
from fairagent.search.loop.base import Lack, Search, lacking, without
from fairagent.search.loop.judges import RelevanceJudge
from fairagent.search.loop.sources import Sources
from fairagent.search.loop.widen import State, Tried, joined
from fairagent.search.rerank.base import ordered
from fairagent.storage.threads import Memo
from fairagent.types import Query, Verdict
from fairagent.types.common import without_verdict

PLACES = 3
"""So many documents come in for each place that a group should have."""
SEEDS = 10
"""Documents of a group that its words, its vector and its neighbors are taken from, the best first."""
WORDS, MOST_COMMON = 10, 0.2
"""Words that a query of a group's documents has, and the share of all documents from which on a word says nothing."""
LOSS = 0.5
"""What a document that is surely irrelevant loses of its relevance."""
ROUNDS = 3
"""How often documents that take the place of removed ones are filtered themselves, the first time included."""


@dataclass(frozen=True, slots=True, eq=False)
class Widening:
    """An action that searches for documents of each group that is short of candidates, by `documents`.

    `able` says whether the engine can. Of what is found only the group's own documents come in.
    """

    name: str
    documents: Callable[[Search, State, Lack, int], Sequence[str]]
    able: Callable[[Search], bool] = lambda search: True

    def offer(self, search: Search, state: State) -> tuple[bool, str]:
        """Open while a group lacks candidates."""
        if not self.able(search):
            return False, f"{self.name}: the engine cannot"
        return lacks_candidates(search, state)

    def act(self, search: Search, state: State) -> Tried:
        """Search for all of these groups."""
        found = [(lack, due, self.documents(search, state, lack, PLACES * due)) for lack, due in state.short(search)]
        return joined(search, state, *of_groups(search, state, found))


def lacks_candidates(search: Search, state: State) -> tuple[bool, str]:
    """Whether a group lacks exposure because it has fewer candidates than places that it should have."""
    if not (short := state.short(search)):
        return False, "no group lacks candidates"
    return True, f"{short[0][0]}, and it lacks candidates"


def of_groups(
    search: Search, state: State, found: Sequence[tuple[Lack, int, Sequence[str]]]
) -> tuple[list[str], tuple[str, ...]]:
    """Of the documents `found` for groups, with the places that each should have, those that come in; a note a group.

    They belong to the group and are no candidates yet.
    """
    known = frozenset(state.candidates.ids) | state.removed
    entering: list[str] = []
    notes = []
    for lack, due, ids in found:
        own: list[str] = []
        if new := [id for id in dict.fromkeys(ids) if id not in known]:
            # Kept for the search, so that all candidates need not be looked up again.
            shares = np.hstack([rows[:, 1:] for rows in search.meter.with_cached(new).memberships(new)])[:, lack.place]
            own = [id for id, share in zip(new, shares.tolist(), strict=True) if share > 0][: PLACES * due]
        notes.append(f"{lack.group}: {len(own)} of its documents come in")
        entering += own
    return entering, tuple(notes)


@dataclass(frozen=True, slots=True, eq=False)
class AmongGroup:
    """The user's own query among the documents of the group alone, by engines that can be kept to some documents.

    What `engine` is kept to is made once; another is that of one search, under its `where`.
    """

    groups: Groups
    memo: Memo
    engine: Retriever | None = None

    def __call__(self, search: Search, state: State, lack: Lack, n: int) -> Sequence[str]:
        """The best documents of the group."""
        dimension, label = lack.group.dimension, lack.group.label
        if dimension in self.groups.oracle:
            return ()

        def kept_to() -> tuple[Retriever, Retriever]:
            # With the engine itself, so that no other ever has its id.
            return search.engine, restricted(search.engine, Conditions.of({dimension: label}, self.groups))[0]

        key = ("kept to", id(search.engine), dimension, label)
        _, kept = self.memo.get(key, kept_to) if search.engine is self.engine else kept_to()
        # Behind the group's documents that are candidates already.
        known = int((state.members(lack) > 0).sum())
        return searched(kept, search.query, n + known).ids

    @staticmethod
    def able(search: Search) -> bool:
        """Whether the engine can be kept to some documents."""
        return isinstance(search.engine, Restrictable | RestrictableParts)


@dataclass(frozen=True, slots=True, eq=False)
class OfDocuments:
    """What the group's own best documents have in common, beside the user's query: a vector, or words (`source`)."""

    source: TermSource | None

    def __call__(self, search: Search, state: State, lack: Lack, n: int) -> Sequence[str]:
        """What the refined query finds."""
        ids, found = state.best_of(lack, SEEDS), list[str]()
        if not ids:
            return ()
        engines = search.engine.engines if isinstance(search.engine, FusedEngine) else (search.engine,)
        for engine in engines:
            if isinstance(engine, VectorEngine) and isinstance(engine, VectorSearch):
                own = engine.query_vector(search.query)
                common = engine.vectors(ids).mean(axis=0)
                toward = _unit(own) + _unit(common)
                found += engine.nearest(_unit(toward), len(search.own)).ids
            elif words := self._words(search, ids):
                found += search.retrieve(words).ids if engine is search.engine else searched(engine, words, 500).ids
        return found

    def _words(self, search: Search, ids: Sequence[str]) -> Query | None:
        if self.source is None:
            return None
        postings = self.source.postings(ids)
        model = relevance_model(postings, np.ones(len(ids)))
        best = top_words(self.source, postings, model, WORDS, MOST_COMMON)
        size = float(max(len(self.source.analyze(search.query.text)), 1))
        added = share_out([(word, float(model[place])) for word, place in best], size) if best else ()
        return Query(search.query.text, search.query.id, (*search.query.terms, *added)) if added else None


def _unit(vector: np.ndarray) -> np.ndarray:
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-9))


@dataclass(frozen=True, slots=True, eq=False)
class Neighbors:
    """The documents near the group's own best ones, or near what is served, in the corpus `graph`."""

    graph: Graph

    def __call__(self, search: Search, state: State, lack: Lack, n: int) -> Sequence[str]:
        """Nearest first."""
        around = self.graph.neighbors(state.best_of(lack, SEEDS) or state.served.ranking.ids[:SEEDS])
        return [id for ids in around for id in ids]


@dataclass(frozen=True, slots=True, eq=False)
class AskModel:
    """An action by what a language model says of all groups that lack candidates, in one call: words or a passage."""

    name: str
    sources: Sources

    def offer(self, search: Search, state: State) -> tuple[bool, str]:
        """Open while a group lacks candidates."""
        return lacks_candidates(search, state)

    def act(self, search: Search, state: State) -> Tried:
        """Ask, and search by what is said of each group."""
        short = state.short(search)
        said = self.sources.ask(search.query, [lack for lack, _ in short])
        if not any(said.queries):
            return Tried(state.candidates, "the model says nothing usable", said.notes, refused=said.refused)
        asked = [(*one, query) for one, query in zip(short, said.queries, strict=True) if query is not None]
        found = [(lack, due, search.retrieve(query).ids) for lack, due, query in asked]
        entering, notes = of_groups(search, state, found)
        return joined(search, state, entering, said.notes + notes, refused=said.refused, proposals=said.proposals)


@dataclass(frozen=True, slots=True, eq=False)
class JudgeAction:
    """Judges the best `documents` of each of the `groups` that lack most: what is irrelevant loses relevance."""

    judge: RelevanceJudge
    documents: int = 10
    groups: int = 3
    name: str = "judge"

    def offer(self, search: Search, state: State) -> tuple[bool, str]:
        """Open if a group that lacks exposure has candidates."""
        some = self._best(state)
        if not some:
            return False, "no group among the candidates lacks exposure"
        return True, f"{next(iter(some))}, though it has candidates: are the best of them relevant?"

    def act(self, search: Search, state: State) -> Tried:
        """Judge them."""
        best = self._best(state)
        ids = list(dict.fromkeys(id for some in best.values() for id in some))
        judgment = self.judge.judge(search.query.text, texts_for(search.query, ids, search.engine))
        chance = {id: one for id, one in zip(ids, judgment.chances, strict=True) if one is not None}
        notes = []
        for lack, some in best.items():
            judged, relevant = sum(id in chance for id in some), sum(chance.get(id, 0.0) >= 0.5 for id in some)
            notes.append(f"{lack.group}: {relevant} of {judged} documents judged are relevant")
        alarms = without_verdict("judge", len(ids) - len(chance), len(ids))
        if not chance:
            return Tried(state.candidates, "no document was judged", judgment.notes, alarms=alarms)
        unit = max(float(np.ptp(search.own.scores)), 1e-9)
        # Nothing is lost from a chance of one half on.
        lost = np.array([LOSS * unit * max(1 - 2 * chance.get(id, 1.0), 0.0) for id in state.candidates.ids])
        candidates = ordered(state.candidates.ids, state.candidates.scores - lost, len(state.candidates))
        return Tried(candidates, "", (*notes, *judgment.notes), certain=True, alarms=alarms)

    def _best(self, state: State) -> dict[Lack, list[str]]:
        best = {lack: state.best_of(lack, self.documents) for lack in lacking(state.served.exposures)}
        return dict([(lack, some) for lack, some in best.items() if some][: self.groups])


@dataclass(frozen=True, slots=True, eq=False)
class FilterAction:
    """Removes what is biased from what would be served, and what takes its place."""

    filter: Filter
    name: str = "filter"

    def offer(self, search: Search, state: State) -> tuple[bool, str]:
        """Open if anything would be served."""
        return bool(len(state.served.ranking)), "what would be served was not checked for bias"

    def act(self, search: Search, state: State) -> Tried:
        """Filter what would be served, and what takes the place of the removed, a few times."""
        candidates, served = state.candidates, state.served
        verdicts: list[Verdict] = []
        notes: list[str] = []
        for number in range(ROUNDS):
            read = {verdict.id for verdict in verdicts}
            ids = [id for id in served.ranking.ids if id not in read]
            if not ids:
                break
            try:
                filtered = filter_with(self.filter, search.query, texts_for(search.query, ids, search.engine))
            except FatalModelError:
                raise
            except (ModelError, BudgetExceeded) as error:
                if not number:
                    raise
                notes.append(f"not all that came in their place was filtered: {error}")
                break
            verdicts += filtered.verdicts
            gone = [verdict for verdict in filtered.verdicts if not verdict.kept]
            if not gone:
                break
            notes += [f"{one.id} is removed" + (f": {one.note}" if one.note else "") for one in gone]
            candidates = without(candidates, {verdict.id for verdict in gone})
            served = search.serve(candidates, ())
        removed = frozenset(verdict.id for verdict in verdicts if not verdict.kept)
        alarms = filter_alarms(verdicts, removed_by(verdicts, search.meter))
        failure = "" if removed else f"none of {len(verdicts)} documents is removed"
        return Tried(candidates, failure, tuple(notes), certain=True, removed=removed, alarms=alarms)
