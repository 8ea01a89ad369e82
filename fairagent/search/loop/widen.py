"""The loop that widens: candidates of the groups that lack them come in, and the user's own query orders all of them.

A further search only adds candidates; each is as relevant as the engine says for the user's query. The frontier of more
candidates has the lists of fewer still in it, so what is served cannot become worse, and a step is accepted if it
becomes better. Nothing is searched for where candidates are not what is lacking. This is FAIR-QR's promise (arXiv
2503.21092): refined queries retrieve, the original one ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from fairagent.answer.filtering import (
    Filter,
    Page,
    ask_verdicts,
    batches,
    filter_alarms,
    filter_with,
    page_of,
    removed_by,
)
from fairagent.collection import Groups
from fairagent.collection.exposure import worse_dimensions
from fairagent.errors import BackendUnavailable, BudgetExceeded, DataError, FatalModelError, ModelError
from fairagent.llm import Model
from fairagent.llm.budget import in_threads, ledger
from fairagent.llm.exchange import unless_failing
from fairagent.llm.prompts import Prompts
from fairagent.retrieve.base import FusedEngine, Retriever, searched, texts_for
from fairagent.retrieve.dense import VectorEngine, VectorSearch
from fairagent.retrieve.graph import Graph
from fairagent.retrieve.relevance_model import TermSource, relevance_model, share_out, top_words
from fairagent.retrieve.where import Conditions, restrictable, restricted
from fairagent.search.loop.base import FinalList, Lack, LoopResult, Search, lacking, relevance_in, without
from fairagent.search.loop.group_words import GroupQueries, Sources
from fairagent.search.rerank.base import ordered
from fairagent.search.rerank.frontier import worth
from fairagent.storage.threads import Memo
from fairagent.types import Document, FloatArray, Proposals, Ranking, Step, Usage, Verdict
from fairagent.types.clean import query_shown
from fairagent.types.common import UNFINISHED, Alarm, without_verdict

PLACES = 3
"""So many documents come in for each place that a group should have."""
SEEDS = 10
"""Documents of a group that its words, its vector and its neighbors are taken from, the best first."""
LOSS = 0.5
"""What a document that is surely irrelevant loses of its relevance."""
ROUNDS = 3
"""How often documents that take the place of removed ones are filtered themselves, the first time included."""
RELEVANCE = "judge_relevance"


@dataclass(frozen=True, slots=True)
class ModelJudge:
    """A language model's yes or no with the template `judge_relevance`, `batch` documents a call, eight at a time.

    Where a call fails, its documents are not judged ("fallback"), or the error is raised ("fail").
    """

    model: Model
    prompts: Prompts
    batch: int = 5
    on_error: Literal["fallback", "fail"] = "fallback"

    def judge(self, query: str, documents: Sequence[Document]) -> tuple[list[float | None], tuple[str, ...]]:
        """The chance in [0, 1] that each document is relevant, None where it was not judged, and notes that say why.

        Raises FatalModelError, and with "fail" what else asking raises.
        """

        def reply(pages: Sequence[Page]) -> tuple[list[float | None], str]:
            def judged() -> tuple[list[float | None], str]:
                verdicts, _ = ask_verdicts(self.model, self.prompts, RELEVANCE, pages, query=query_shown(query))
                return [float(verdict.passed) for verdict in verdicts], ""

            unjudged: list[float | None] = [None] * len(pages)
            return unless_failing(judged, self.on_error, lambda error: (unjudged, str(error)), unpaid=True)

        replies = in_threads(reply, batches(list(map(page_of, documents)), self.batch), 8, "judge")
        chances = [chance for some, _ in replies for chance in some]
        failures = dict.fromkeys(failure for _, failure in replies if failure)
        missing = sum(chance is None for chance in chances)
        notes = (f"{missing} of {len(chances)} documents were not judged: {failure}" for failure in failures)
        return chances, tuple(notes)


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """Where a loop stands: the `candidates` by estimated relevance, and what the user would get of them.

    `verdicts` are those of a filter, in so many `rounds`.
    """

    candidates: Ranking
    reranked: FinalList
    removed: frozenset[str] = frozenset()
    entered: frozenset[str] = frozenset()
    verdicts: tuple[Verdict, ...] = ()
    rounds: int = 0

    @property
    def unread(self) -> list[str]:
        """What would be served and no filter has read."""
        read = {verdict.id for verdict in self.verdicts}
        return [id for id in self.reranked.ranking.ids if id not in read]

    def members(self, lack: Lack) -> FloatArray:
        """How far each candidate belongs to a group, (n,), in the order of `candidates`."""
        return np.hstack([rows[:, 1:] for rows in self.reranked.pool.memberships])[:, lack.place]

    def best_of(self, lack: Lack, n: int) -> list[str]:
        return [self.candidates.ids[place] for place in np.flatnonzero(self.members(lack) > 0)[:n].tolist()]

    def due(self, search: Search) -> list[tuple[Lack, int]]:
        """The groups that lack exposure, with the places that they should have."""
        return [(lack, round(lack.target * search.n)) for lack in lacking(self.reranked.exposures)]

    def short(self, search: Search) -> list[tuple[Lack, int]]:
        """Those of `due` that have fewer candidates than these places."""
        return [(lack, n) for lack, n in self.due(search) if self.members(lack).sum() < n]

    def underserved(self, search: Search) -> list[tuple[Lack, int]]:
        """Those of `due` that lack about a place or more, or are short of candidates."""
        short = self.short(search)
        return [one for one in self.due(search) if one in short or (one[0].target - one[0].share) * search.n >= 1]


@dataclass(frozen=True, slots=True, eq=False)
class Tried:
    """What an action came to: the `candidates` after it, in any order, or why there are no others (`failure`).

    One that is `certain` is accepted whatever it does to the list: it is better knowledge, or bias that is gone. One
    `on_trial`, a model's, is accepted only if some of what it brings in would be served.
    """

    candidates: Ranking
    failure: str = ""
    notes: tuple[str, ...] = ()
    certain: bool = False
    on_trial: bool = False
    removed: frozenset[str] = frozenset()
    dropped: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    proposals: Proposals = Proposals()
    alarms: tuple[Alarm, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    rounds: int = 0


def lacks_exposure(search: Search, state: State) -> tuple[bool, str]:
    """Whether a group lacks about a place or more in what would be served, whatever its candidates are."""
    if not (lacks := state.underserved(search)):
        return False, "no group lacks a place"
    return True, str(lacks[0][0])


def lacks_candidates(search: Search, state: State) -> tuple[bool, str]:
    """Whether a group lacks exposure because it has fewer candidates than places that it should have."""
    if not (short := state.short(search)):
        return False, "no group lacks candidates"
    return True, f"{short[0][0]}, and it lacks candidates"


@dataclass(frozen=True, slots=True, eq=False)
class Action:
    """What a loop may do, once: `act` tries it; `offer` says whether it could help now, and why (not).

    One that `must` be done is never left out: it is taken whenever it offers to, and what fails in it fails the search.
    `of_group`, if any, does the same for one group alone.
    """

    name: str
    act: Callable[[Search, State], Tried]
    offer: Callable[[Search, State], tuple[bool, str]] = lacks_candidates
    must: bool = False
    of_group: Callable[[Search, State, Lack], Tried] | None = None


@dataclass(slots=True, eq=False)
class LoopRun:
    """A loop on its way: where it stands, its steps so far, and the failure of a model that it goes on without.

    What an action's model raises ends the loop with what was reached ("fallback"), but for FatalModelError and what an
    action raises that must be done, or is raised ("fail").
    """

    search: Search
    on_error: Literal["fallback", "fail"]
    state: State
    steps: list[Step]
    failed: str = ""

    def in_order(self, actions: Sequence[Action]) -> str:
        """Take the first of `actions` that could help, each at most once, until none could; why it ended."""
        left = list(actions)
        while True:
            offers = [(action, *action.offer(self.search, self.state)) for action in left]
            action, why = next(((one, why) for one, could, why in offers if could), (None, ""))
            if action is None:
                return self.failed or "; ".join(dict.fromkeys(why for _, _, why in offers)) or "no action is left"
            if not action.must:
                left.remove(action)
            self.take(action, why, Usage())
            if self.failed or self.state.rounds >= ROUNDS:
                left = [one for one in left if one.must]

    def take(self, action: Action, why: str, before: Usage) -> Step:
        """The step that an action comes to, undone unless it is accepted; `before` is what it took to choose it."""
        state = self.state
        with ledger() as book:
            try:
                tried = action.act(self.search, state)
            except FatalModelError:
                raise
            except (BackendUnavailable, DataError) as error:
                if action.must:
                    raise
                tried = Tried(state.candidates, f"the engine failed, so its first list stays: {error}")
            except (ModelError, BudgetExceeded) as error:
                if self.on_error == "fail" or action.must:
                    raise
                tried = Tried(state.candidates, str(error))
                self.failed = self.failed or f"{action.name}: {error}"
        after, reason, objectives = _after(self.search, state, tried)
        now, entering = after.reranked, frozenset(tried.candidates.ids) - frozenset(state.candidates.ids)
        step = Step(
            source=action.name,
            query=self.search.query,
            ranking=now.ranking,
            exposures=now.exposures,
            gap=now.gap,
            accepted=not reason,
            usage=before + book.usage,
            dropped=tried.dropped,
            refused=tried.refused,
            proposals=tried.proposals,
            reason=reason,
            why=why,
            notes=tried.notes,
            alarms=tried.alarms,
            entered=len(entering),
            worse=() if reason else worse_dimensions(state.reranked.exposures, now.exposures),
            was=state.reranked.gap,
            objectives=objectives,
        )
        self.steps.append(step)
        self.search.on_step(step)
        verdicts, rounds = (*state.verdicts, *tried.verdicts), state.rounds + tried.rounds
        self.state = replace(state if reason else after, verdicts=verdicts, rounds=rounds)
        return step


Policy = Callable[[LoopRun, Sequence[Action]], str]
"""Takes actions in place of their order, and says why it ended."""


@dataclass(frozen=True, slots=True)
class Widen:
    """Takes `actions` in their order, or as the `policy` says; see `LoopRun` for `on_error`."""

    actions: tuple[Action, ...]
    on_error: Literal["fallback", "fail"] = "fallback"
    policy: Policy | None = None

    def under(self, policy: Policy) -> Widen:
        """The loop under this policy."""
        return replace(self, policy=policy)

    def run(self, search: Search) -> LoopResult:
        search.on_step(search.steps[-1])
        state = State(search.candidates, search.rerank(search.candidates, ()))
        running, stopped = LoopRun(search, self.on_error, state, list(search.steps)), "the query retrieves nothing"
        if len(search.engine_list):
            stopped = self.policy(running, self.actions) if self.policy else running.in_order(self.actions)
        state = running.state
        return LoopResult(
            candidates=state.candidates,
            steps=tuple(running.steps),
            stopped=stopped,
            engine_list=search.engine_list,
            removed=state.removed,
            reranked=state.reranked,
            entered=state.entered & frozenset(state.candidates.ids),
        )


def _after(search: Search, state: State, tried: Tried) -> tuple[State, str, tuple[float, float]]:
    """The state with what an action came to, why it is not accepted ("" where it is), and J before and with it."""
    if tried.failure:
        return state, tried.failure, (state.reranked.objective, state.reranked.objective)
    removed = state.removed | tried.removed
    frontier, length = state.reranked.frontier, min(search.n, len(tried.candidates))
    # After a filter only what it has read is served, not what another list has; so no list of before stays.
    every = map(frontier.ranking, range(len(frontier.gap))) if frontier and not tried.removed else ()
    # Lists made of fewer candidates than are shown are too short to be compared.
    others = [one for one in every if len(one) == length and removed.isdisjoint(one.ids)]
    now = search.rerank(tried.candidates, others)
    candidates = now.pool.ranking
    new = frozenset(candidates.ids) - frozenset(state.candidates.ids)
    after = State(candidates, now, removed, state.entered | new)
    # The list so far is compared with the new one by the relevance that is known now.
    before = relevance_in(now.estimates, state.reranked.ranking, search.meter)
    rises = worth(now.dial, now.relevance, now.gap) > worth(now.dial, before, state.reranked.gap)
    reason = "" if tried.certain or rises else "what would be served is no better"
    if tried.on_trial and new.isdisjoint(now.ranking.ids):
        reason = "none of what comes in would be served"
    return after, reason, (before - now.dial.price * state.reranked.gap, now.objective)


Documents = Callable[[Search, State, Lack, int], Sequence[str]]
"""The ids of documents that may belong to a group which lacks candidates, about so many, best first."""


def widening(name: str, documents: Documents, able: Callable[[Search], bool] = lambda search: True) -> Action:
    """The action that searches for documents of each group that is short of candidates, where the engine is `able`."""

    def offer(search: Search, state: State) -> tuple[bool, str]:
        return lacks_candidates(search, state) if able(search) else (False, f"{name}: the engine cannot")

    def act(search: Search, state: State) -> Tried:
        short = state.short(search)
        return widened(search, state, [(*one, documents(search, state, one[0], PLACES * one[1])) for one in short])

    return Action(name, act, offer)


def widened(search: Search, state: State, results: Sequence[tuple[Lack, int, Sequence[str]]]) -> Tried:
    """The candidates with those retrieved ids that belong to their group; `results` has (group, its places, ids)."""
    known = frozenset(state.candidates.ids) | state.removed
    entering: dict[str, None] = {}
    notes = []
    for lack, due, ids in results:
        members: list[str] = []
        if new := [id for id in dict.fromkeys(ids) if id not in known]:
            # Kept for the rest of the search, so that no candidate is looked up twice.
            shares = np.hstack([rows[:, 1:] for rows in search.meter.with_cached(new).memberships(new)])[:, lack.place]
            members = [id for id, share in zip(new, shares.tolist(), strict=True) if share > 0][: PLACES * due]
        notes.append(f"{lack.group}: {len(members)} of its documents come in")
        entering |= dict.fromkeys(members)
    candidates = search.joined(state.candidates, list(entering)) if entering else state.candidates
    failure = "" if len(candidates) > len(state.candidates) else "no other document is found"
    return Tried(candidates, failure, tuple(notes))


def among_group(groups: Groups, memo: Memo, engine: Retriever | None = None) -> Action:
    """The user's own query among the documents of the group alone, by engines that can be kept to some documents.

    What `engine` is kept to is made once; any other engine is that of one search, under its `where`.
    """

    def documents(search: Search, state: State, lack: Lack, n: int) -> Sequence[str]:
        dimension, label = lack.group.dimension, lack.group.label
        if dimension in groups.oracle:
            return ()

        def restrict() -> tuple[Retriever, Retriever]:
            # The engine is kept with it, so that its id is not given to another object.
            return search.engine, restricted(search.engine, Conditions.of({dimension: label}, groups))[0]

        key = ("kept to", id(search.engine), dimension, label)
        _, restricted_engine = memo.get(key, restrict) if search.engine is engine else restrict()
        # The group's documents that are candidates already come first in that list.
        known = int((state.members(lack) > 0).sum())
        return searched(restricted_engine, search.query, n + known).ids

    return widening("group", documents, lambda search: restrictable(search.engine))


def of_documents(source: TermSource | None, able: bool = True) -> Action:
    """What the group's own best documents have in common, beside the user's query: a vector, or words (`source`)."""

    def documents(search: Search, state: State, lack: Lack, n: int) -> Sequence[str]:
        ids, results = state.best_of(lack, SEEDS), list[str]()
        for engine in search.engine.engines if isinstance(search.engine, FusedEngine) else (search.engine,):
            if not ids:
                break
            if isinstance(engine, VectorEngine) and isinstance(engine, VectorSearch):
                toward = _unit(engine.query_vector(search.query)) + _unit(engine.vectors(ids).mean(axis=0))
                results += engine.nearest(_unit(toward), len(search.engine_list)).ids
            elif source:
                # The query with ten words of these documents that at most a fifth of all documents have.
                postings = source.postings(ids)
                model = relevance_model(postings, np.ones(len(ids)))
                best = top_words(source, postings, model, 10, 0.2)
                size = float(max(len(source.analyze(search.query.text)), 1))
                if added := share_out([(word, float(model[place])) for word, place in best], size) if best else ():
                    query = replace(search.query, terms=(*search.query.terms, *added))
                    own = engine is search.engine
                    results += search.retrieve(query).ids if own else searched(engine, query, 500).ids
        return results

    return widening("documents", documents, lambda search: able)


def _unit(vector: np.ndarray) -> np.ndarray:
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-9))


def near_in(graph: Graph) -> Action:
    """The documents near the group's own best ones, or near what is served, in the corpus `graph`, nearest first."""

    def documents(search: Search, state: State, lack: Lack, n: int) -> Sequence[str]:
        around = graph.neighbors(state.best_of(lack, SEEDS) or state.reranked.ranking.ids[:SEEDS])
        return [id for ids in around for id in ids]

    return widening("neighbors", documents)


def by_model(name: str, sources: Sources) -> Action:
    """What a language model proposes for all groups that lack candidates, in one call: words or a passage each."""

    def act(search: Search, state: State) -> Tried:
        groups = state.underserved(search)
        reply = sources.ask(search.query, [lack for lack, _ in groups], search.engine)
        return among_words(search, state, groups, reply)

    return Action(name, act, lacks_exposure)


def among_words(search: Search, state: State, groups: Sequence[tuple[Lack, int]], reply: GroupQueries) -> Tried:
    """What comes in by a model's queries for these groups, each with the places that it should have."""
    tried = Tried(state.candidates, "the model says nothing usable")
    lines = list(reply.notes)
    if any(reply.queries):
        queries = [(*one, query) for one, query in zip(groups, reply.queries, strict=True) if query is not None]
        results = [(lack, due, search.retrieve(query).ids) for lack, due, query in queries]
        tried = widened(search, state, results)
        entering = frozenset(tried.candidates.ids) - frozenset(state.candidates.ids)
        entered = {lack.group: entering.intersection(ids) for lack, _, ids in results}
        for (lack, _), words in zip(groups, reply.words, strict=True):
            if words:
                lines.append(f"{lack.group}: {words_in(words, entered[lack.group], search.engine)}")
    return replace(
        tried,
        on_trial=True,
        notes=(*lines, *tried.notes),
        dropped=reply.dropped,
        refused=reply.refused,
        proposals=reply.proposals,
    )


def words_in(words: Sequence[str], ids: Collection[str], engine: object) -> str:
    """The words, each with how many of these documents hold it, where the engine tells the words of documents."""
    engines = engine.engines if isinstance(engine, FusedEngine) else (engine,)
    source = next((one for one in engines if isinstance(one, TermSource)), None)
    if not ids or source is None:
        return ", ".join(words)
    postings = source.postings(sorted(ids))
    readable = source.words(postings.vocabulary)
    places = {term: place for place, one in enumerate(readable) if one for term in source.analyze(one)}
    counts = []
    for word in words:
        rows = [set(postings.row[postings.term == places.get(term, -1)].tolist()) for term in source.analyze(word)]
        counts.append(f"{word} (in {len(set.intersection(*rows)) if rows else 0})")
    return ", ".join(counts)


def judging(judge: ModelJudge, documents: int = 10, groups: int = 3) -> Action:
    """Judges the best `documents` of each of the `groups` that lack most: what is irrelevant loses relevance."""

    def best_of(state: State) -> dict[Lack, list[str]]:
        best = {lack: state.best_of(lack, documents) for lack in lacking(state.reranked.exposures)}
        return dict([(lack, some) for lack, some in best.items() if some][:groups])

    def offer(search: Search, state: State) -> tuple[bool, str]:
        if not (some := best_of(state)):
            return False, "no group among the candidates lacks exposure"
        return True, f"{next(iter(some))}, though it has candidates: are the best of them relevant?"

    def judged(search: Search, state: State, best: Mapping[Lack, Sequence[str]]) -> Tried:
        ids = list(dict.fromkeys(id for some in best.values() for id in some))
        chances, unjudged = judge.judge(search.query.text, texts_for(search.query, ids, search.engine))
        chance = {id: one for id, one in zip(ids, chances, strict=True) if one is not None}
        notes = []
        for lack, some in best.items():
            number, relevant = sum(id in chance for id in some), sum(chance.get(id, 0.0) >= 0.5 for id in some)
            notes.append(f"{lack.group}: {relevant} of {number} documents judged are relevant")
        alarms = without_verdict(len(ids) - len(chance), len(ids))
        if not chance:
            return Tried(state.candidates, "no document was judged", unjudged, alarms=alarms)
        unit = max(float(np.ptp(search.engine_list.scores)), 1e-9)
        # A document with a chance of one half or more loses nothing.
        lost = np.array([LOSS * unit * max(1 - 2 * chance.get(id, 1.0), 0.0) for id in state.candidates.ids])
        candidates = ordered(state.candidates.ids, state.candidates.scores - lost, len(state.candidates))
        return Tried(candidates, "", (*notes, *unjudged), certain=True, alarms=alarms)

    def of_group(search: Search, state: State, lack: Lack) -> Tried:
        return judged(search, state, {lack: state.best_of(lack, documents)})

    return Action("judge", lambda search, state: judged(search, state, best_of(state)), offer, of_group=of_group)


def filtering(filter: Filter) -> Action:
    """Removes what is biased from what would be served, and what takes its place."""

    def offer(search: Search, state: State) -> tuple[bool, str]:
        if state.unread and state.rounds < ROUNDS:
            return True, "what would be served was not checked for bias"
        return False, "the filter's rounds are over" if state.unread else "the filter has read all that is served"

    def act(search: Search, before: State) -> Tried:
        state, notes = before, list[str]()
        while state.unread and state.rounds < ROUNDS:
            filtered = filter_with(filter, search.query, texts_for(search.query, state.unread, search.engine))
            gone = [verdict for verdict in filtered.verdicts if not verdict.kept]
            notes += [f"{one.id} is removed" + (f": {one.note}" if one.note else "") for one in gone]
            candidates = without(state.candidates, {verdict.id for verdict in gone})
            state = replace(
                state,
                candidates=candidates,
                reranked=search.rerank(candidates, ()) if gone else state.reranked,
                verdicts=(*state.verdicts, *filtered.verdicts),
                rounds=state.rounds + 1,
            )
        verdicts = state.verdicts[len(before.verdicts) :]
        removed = frozenset(verdict.id for verdict in verdicts if not verdict.kept)
        alarms = filter_alarms(state.verdicts, removed_by(state.verdicts, search.meter))
        if state.unread:
            left = f"{len(state.unread)} of {len(state.reranked.ranking)} documents were not read in {ROUNDS} rounds"
            alarms += (Alarm(UNFINISHED, left),)
        return Tried(
            candidates=state.candidates,
            failure="" if removed else f"none of {len(verdicts)} documents is removed",
            notes=tuple(notes),
            certain=True,
            removed=removed,
            alarms=alarms,
            verdicts=verdicts,
            rounds=state.rounds - before.rounds,
        )

    return Action("filter", act, offer, must=True)
