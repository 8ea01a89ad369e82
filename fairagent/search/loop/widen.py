"""The loop that widens: candidates of the groups that lack them come in, and the user's own query orders all of them.

A further search only adds candidates; each is as relevant as the engine says for the user's query. The frontier of more
candidates has the lists of fewer still in it, so what is served cannot become worse, and a step is accepted if it
becomes better. Nothing is searched for where candidates are not what is lacking. This is FAIR-QR's promise (arXiv
2503.21092): refined queries retrieve, the original one ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, NamedTuple, Protocol

import numpy as np

from fairagent.collection.exposure import worse_dimensions
from fairagent.errors import BackendUnavailable, BudgetExceeded, DataError, ModelError
from fairagent.llm.asking import unless_failing
from fairagent.llm.budget import ledger
from fairagent.search.loop.base import Lack, LoopResult, Search, Served, lacking, relevance_in
from fairagent.search.rerank.frontier import worth
from fairagent.types import FloatArray, Proposals, Ranking, Step, Usage
from fairagent.types.common import Alarm

STOP = "stop"
"""The choice that ends a loop; it can always be made."""


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """Where a loop stands: the `candidates` by estimated relevance, and what the user would get of them.

    `tried` are the actions that were taken, `removed` the documents that a filter took out, `entered` those that only a
    further search has retrieved.
    """

    candidates: Ranking
    served: Served
    tried: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    entered: frozenset[str] = frozenset()

    def members(self, lack: Lack) -> FloatArray:
        """How far each candidate belongs to a group, (n,), in the order of `candidates`."""
        return np.hstack([rows[:, 1:] for rows in self.served.pool.memberships])[:, lack.place]

    def best_of(self, lack: Lack, n: int) -> list[str]:
        """The best `n` candidates of a group."""
        return [self.candidates.ids[place] for place in np.flatnonzero(self.members(lack) > 0)[:n].tolist()]

    def short(self, search: Search) -> list[tuple[Lack, int]]:
        """The groups that lack exposure and have fewer candidates than places they should have, with these places."""
        due = [(lack, round(lack.target * search.n)) for lack in lacking(self.served.exposures)]
        return [(lack, n) for lack, n in due if self.members(lack).sum() < n]


class Tried(NamedTuple):
    """What an action came to: the `candidates` after it, in whatever order, or why there are no others (`failure`).

    An outcome that is `certain` is accepted whatever it does to the list: it is better knowledge, or bias that is gone.
    """

    candidates: Ranking
    failure: str = ""
    notes: tuple[str, ...] = ()
    certain: bool = False
    removed: frozenset[str] = frozenset()
    refused: tuple[str, ...] = ()
    proposals: Proposals = Proposals()
    alarms: tuple[Alarm, ...] = ()


class Action(Protocol):
    """What a loop may do, once: any object like this will do."""

    @property
    def name(self) -> str:
        """What settings, the trace and a model call it."""
        ...

    def offer(self, search: Search, state: State) -> tuple[bool, str]:
        """Whether it could help now, and why, or why not."""
        ...

    def act(self, search: Search, state: State) -> Tried:
        """Try it. Raises what the models raise that it asks."""
        ...


Choose = Callable[[Search, State, Mapping[str, tuple[bool, str]], Sequence[Step]], tuple[str, str]]
"""Which action comes next, or `STOP`, and why; it is given what each offers, and the steps so far."""


def by_rules(
    search: Search, state: State, offers: Mapping[str, tuple[bool, str]], taken: Sequence[Step]
) -> tuple[str, str]:
    """The first action that could help; why none could where there is none."""
    for name, (could, why) in offers.items():
        if could:
            return name, why
    return STOP, "; ".join(dict.fromkeys(why for _, why in offers.values())) or "no action is left"


@dataclass(frozen=True, slots=True)
class Widen:
    """Takes `actions` in the order that `choose` says, each at most once, until none could help.

    What an action's model raises ends the loop with what was reached ("fallback"), but for FatalModelError, or is
    raised ("fail").
    """

    actions: tuple[Action, ...]
    choose: Choose = by_rules
    on_error: Literal["fallback", "fail"] = "fallback"

    def run(self, search: Search) -> LoopResult:
        """See `Loop.run`."""
        search.on_step(search.steps[-1])
        state = State(search.candidates, search.serve(search.candidates, ()))
        steps, stopped = list(search.steps), "" if len(search.own) else "the query retrieves nothing"
        while not stopped:
            left = {one.name: one for one in self.actions if one.name not in state.tried}
            offers = {name: action.offer(search, state) for name, action in left.items()}
            with ledger() as book:
                name, why = self.choose(search, state, offers, steps[len(search.steps) :])
                if name == STOP:
                    stopped = why
                    if book.usage != Usage():
                        steps.append(
                            self._step(search, state, STOP, why, Tried(state.candidates, why), book.usage, why)
                        )
                        search.on_step(steps[-1])
                    break

                def failed(error: ModelError | BudgetExceeded, name: str = name) -> Tried:
                    nonlocal stopped
                    stopped = f"{name}: {error}"
                    return Tried(state.candidates, str(error))  # noqa: B023

                tried = unless_failing(partial(_act, left[name], search, state), self.on_error, failed, unpaid=True)
            after, reason = self._after(search, state, tried)
            steps.append(self._step(search, after or state, name, why, tried, book.usage, reason, state))
            search.on_step(steps[-1])
            state = replace(state if reason or after is None else after, tried=state.tried | {name})
        return LoopResult(
            state.candidates,
            tuple(steps),
            stopped,
            search.own,
            state.removed,
            state.served,
            state.entered & frozenset(state.candidates.ids),
        )

    def _after(self, search: Search, state: State, tried: Tried) -> tuple[State | None, str]:
        """The state with what an action came to, and why it is not accepted; "" where it is."""
        if tried.failure:
            return None, tried.failure
        removed = state.removed | tried.removed
        frontier, length = state.served.frontier, min(search.n, len(tried.candidates))
        every = map(frontier.ranking, range(len(frontier.gap))) if frontier else ()
        # Those of fewer candidates than are shown are shorter than what there is now.
        others = [one for one in every if len(one) == length and removed.isdisjoint(one.ids)]
        served = search.serve(tried.candidates, others)
        candidates = served.pool.ranking
        entered = state.entered | (frozenset(candidates.ids) - frozenset(state.candidates.ids))
        after = replace(state, candidates=candidates, served=served, removed=removed, entered=entered)
        if tried.certain:
            return after, ""
        # The list so far beside the new one, both by what is known of relevance now.
        before = relevance_in(served.weighed, state.served.ranking, search.meter)
        dial = served.dial
        gained = worth(dial, served.relevance, served.gap) > worth(dial, before, state.served.gap)
        return after, "" if gained else "what would be served is no better"

    def _step(
        self,
        search: Search,
        state: State,
        name: str,
        why: str,
        tried: Tried,
        usage: Usage,
        reason: str,
        before: State | None = None,
    ) -> Step:
        served = state.served
        entered = frozenset(tried.candidates.ids) - frozenset(before.candidates.ids if before else ())
        return Step(
            name,
            search.query,
            served.ranking,
            served.exposures,
            served.gap,
            accepted=not reason,
            usage=usage,
            refused=tried.refused,
            proposals=tried.proposals,
            reason=reason,
            why=why,
            notes=tried.notes,
            alarms=tried.alarms,
            entered=len(entered) if before else 0,
            worse=() if reason or not before else worse_dimensions(before.served.exposures, served.exposures),
        )


def _act(action: Action, search: Search, state: State) -> Tried:
    """What the action comes to; an engine that fails at it leaves what there is."""
    try:
        return action.act(search, state)
    except (BackendUnavailable, DataError) as error:
        return Tried(state.candidates, f"the engine failed, so its first list stays: {error}")


def joined(search: Search, state: State, entering: Sequence[str], notes: tuple[str, ...], **more: object) -> Tried:
    """The candidates with these documents, as an action's outcome."""
    known = frozenset(state.candidates.ids) | state.removed
    new = [id for id in dict.fromkeys(entering) if id not in known]
    ranking = search.joined(state.candidates, new) if new else state.candidates
    failure = "" if len(ranking) > len(state.candidates) else "no other document is found"
    return Tried(ranking, failure, notes)._replace(**more)  # type: ignore[arg-type]
