"""The controller's actions: each says whether it could help, and tries.

`refine` mixes the query with the groups' evidence, under weights that follow what they lack. `judge` is for precision:
the best documents of groups that lack exposure are judged, and evidence is learned from the relevant. `neighbors` is
for supply: documents near the best ones of a group come in where there are too few of the group. `filter` removes bias
from what would be served, and refills it.
"""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from fairagent.answer.filtering import Filter, filter_with
from fairagent.answer.removals import filter_alarms, removed_by
from fairagent.errors import BudgetExceeded, FatalModelError, ModelError
from fairagent.retrieve.base import texts_for
from fairagent.retrieve.graph import Graph
from fairagent.search.loop.base import Lack, lacking
from fairagent.search.loop.environment import Environment
from fairagent.search.loop.judges import RelevanceJudge
from fairagent.search.loop.state import JudgedDocuments, State, moved
from fairagent.types import FloatArray, Verdict
from fairagent.types.common import Alarm, without_verdict

STOP = "stop"
"""The choice that ends a loop; it can always be made."""
HALVINGS = 2
"""How often a step that overshoots is halved."""
ROUNDS = 3
"""How often documents that take the place of removed ones are filtered themselves, the first time included."""
SEEDS = 10
"""Documents of a group whose neighbors are looked at, the best first."""


@dataclass(frozen=True, slots=True)
class Offer:
    """Whether an action is `open`, and `why` it could help now or why it could not."""

    open: bool
    why: str


@dataclass(frozen=True, slots=True, eq=False)
class ActionOutcome:
    """An action's outcome: the state `after` it, if that is accepted, and the one that remains `otherwise`.

    The gap of what would be served has to be below `bar`; with a `failure` nothing is accepted. `notes` say what was
    done, `weights` (g,) are those of the groups' evidence, where it is mixed in; `alarms` are as in `Step`.
    """

    after: State
    otherwise: State
    bar: float
    notes: tuple[str, ...] = ()
    failure: str = ""
    weights: FloatArray | None = None
    alarms: tuple[Alarm, ...] = ()


class Action(Protocol):
    """Any object like this will do."""

    @property
    def name(self) -> str:
        """What settings, the trace and a model call it."""
        ...

    def offer(self, environment: Environment, state: State) -> Offer:
        """Whether it could help now."""
        ...

    def act(self, environment: Environment, state: State) -> ActionOutcome:
        """Try it. Raises what the models raise that it asks."""
        ...


@dataclass(frozen=True, slots=True)
class RefineAction:
    """At most `steps` steps with the exponent `eta`; one that overshoots is halved, twice at most.

    A step that changes nothing is none too far: the next goes on from it. Where the first refined list is no gain, the
    evidence gets half of its share of this query.
    """

    steps: int = 3
    eta: float = 0.5
    smoothing: float = 0.02
    name: str = "refine"

    def offer(self, environment: Environment, state: State) -> Offer:
        """Open as long as there is evidence, a gap, and a step left that may be a gain."""
        if ended := self._ended(environment, state):
            return Offer(False, ended)
        lacks = lacking(state.exposures)
        return Offer(True, str(lacks[0]) if lacks else "what the groups have in common is relevance feedback")

    def act(self, environment: Environment, state: State) -> ActionOutcome:
        """The next step of the control law."""
        state, notes = environment.searched_again(environment.informed(state))
        state = environment.mixed(state)
        control, bar = replace(state.control, made=state.control.made + 1), state.bar
        before = control.reached
        eta = self.eta / 2**control.halved
        weights = moved(*before, eta, self.smoothing) if before else environment.start(state)
        after = environment.refined(state, weights)
        reached = (weights, after.exposures)
        same = after.served.ids == state.served.ids and (before is None or not np.allclose(weights, before[0]))
        # What comes next: a step on from one that changed nothing, else half of it, or of the evidence's share.
        if same:
            refused = replace(control, reached=reached)
        elif control.halved == HALVINGS:
            refused = replace(control, ended=f"a step was no gain: {after.refusal(bar)}")
        else:
            refused = replace(control, halved=control.halved + 1, part=control.part if before else control.part / 2)
        accepted = replace(after, control=replace(control, reached=reached))
        return ActionOutcome(accepted, replace(state, control=refused), bar, notes, weights=weights)

    def _ended(self, environment: Environment, state: State) -> str:
        """Why there is no further step; "" where there is one."""
        if not ((environment.controller.sources or any(state.learned)) and environment.able):
            return "no group has evidence"
        if state.control.ended:
            return state.control.ended
        if state.gap <= environment.controller.tolerance:
            return f"the gap is not above {environment.controller.tolerance:g}"
        return f"the limit of {self.steps} steps is reached" if state.control.made >= self.steps else ""


@dataclass(frozen=True, slots=True)
class FilterAction:
    """Accepted if the gap does not rise by more than `worse`: the gain is the bias that is gone, which no gap tells."""

    filter: Filter
    worse: float = 0.01
    name: str = "filter"

    def offer(self, environment: Environment, state: State) -> Offer:
        """Open once, if anything would be served."""
        if self.name in state.tried:
            return Offer(False, "it was tried")
        return Offer(bool(len(state.served)), "what would be served was not checked for bias")

    def act(self, environment: Environment, state: State) -> ActionOutcome:
        """Filter what would be served, and what takes the place of the removed."""
        search, after = environment.search, state
        verdicts: list[Verdict] = []
        notes: list[str] = []
        for number in range(ROUNDS):
            read = {verdict.id for verdict in verdicts}
            ids = [id for id in after.served.ids if id not in read]
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
            notes += [f"{one.id} is removed" + (f": {one.note}" if one.note else "") for one in gone]
            after = environment.without(after, {verdict.id for verdict in gone}) if gone else after
        failure = "" if after is not state else f"none of {len(verdicts)} documents is removed"
        alarms = filter_alarms(verdicts, removed_by(verdicts, environment.meter))
        return ActionOutcome(after, state, state.gap + self.worse, tuple(notes), failure=failure, alarms=alarms)


@dataclass(frozen=True, slots=True)
class JudgeAction:
    """The first `documents` of each of the `groups` that lack most."""

    judge: RelevanceJudge
    documents: int = 10
    groups: int = 3
    name: str = "judge"

    def offer(self, environment: Environment, state: State) -> Offer:
        """Open once, if a group that lacks exposure has documents."""
        if self.name in state.tried:
            return Offer(False, "it was tried")
        some = self._lacks(environment, state)
        if state.gap <= environment.controller.tolerance or not some:
            return Offer(False, "no group among the candidates lacks exposure")
        return Offer(True, f"{some[0]}, though it has candidates: are the best of them relevant?")

    def act(self, environment: Environment, state: State) -> ActionOutcome:
        """Judge, take relevance from what is not relevant, and refine with what is learned from what is."""
        state = environment.informed(state)
        search, lacks = environment.search, self._lacks(environment, state)
        best = {lack: environment.best_of(state, lack, self.documents) for lack in lacks}
        ids = list(dict.fromkeys(id for some in best.values() for id in some))
        judgment = self.judge.judge(search.query.text, texts_for(search.query, ids, search.engine))
        chance = {id: one for id, one in zip(ids, judgment.chances, strict=True) if one is not None}
        notes = []
        for lack, some in best.items():
            judged, relevant = sum(id in chance for id in some), sum(chance.get(id, 0.0) >= 0.5 for id in some)
            notes.append(f"{lack.group}: {relevant} of {judged} documents judged are relevant")
        alarms = without_verdict("judge", len(ids) - len(chance), len(ids))
        if not chance:
            failure = "no document was judged"
            return ActionOutcome(state, state, state.gap, judgment.notes, failure=failure, alarms=alarms)
        all_judged = JudgedDocuments(chance, frozenset(lack.place for lack in lacks))
        after = environment.learned_anew(state, state.candidates.ranking, all_judged)
        return ActionOutcome(after, state, state.bar, (*notes, *judgment.notes), "", after.weights, alarms)

    def _lacks(self, environment: Environment, state: State) -> list[Lack]:
        return [lack for lack in lacking(state.exposures) if state.learned[lack.place]][: self.groups]


@dataclass(frozen=True, slots=True, eq=False)
class NeighborsAction:
    """By the corpus `graph`; a document that comes in has the engine's own score for the query."""

    graph: Graph
    name: str = "neighbors"

    def offer(self, environment: Environment, state: State) -> Offer:
        """Open once, if a group that lacks exposure has fewer documents in the pool than places it should have."""
        if self.name in state.tried:
            return Offer(False, "it was tried")
        short = environment.short(state)
        if state.gap <= environment.controller.tolerance or not short:
            return Offer(False, "no group lacks documents")
        return Offer(True, f"{short[0][0]}, and too few of its documents are candidates for so many places")

    def act(self, environment: Environment, state: State) -> ActionOutcome:
        """Let the group's own among the neighbors in, and refine with what is now the groups' evidence."""
        state = environment.informed(state)
        entering: dict[str, None] = {}
        notes = []
        for lack, _ in environment.short(state):
            near = self._near(environment, state, lack)
            notes.append(f"{lack.group}: {len(near)} of its documents come in")
            entering |= dict.fromkeys(near)
        if not entering:
            return ActionOutcome(state, state, state.gap, tuple(notes), failure="no neighbor is new")
        joined = environment.joined(state.candidates.ranking, list(entering))
        after = environment.learned_anew(state, joined, state.judged)
        return ActionOutcome(after, state, state.bar, tuple(notes), weights=after.weights)

    def _near(self, environment: Environment, state: State, lack: Lack) -> list[str]:
        """The group's documents near its best ones, or near what is served, that are no candidates yet."""
        around = self.graph.neighbors(environment.best_of(state, lack, SEEDS) or state.served.ids[:SEEDS])
        known = set(state.candidates.ids)
        near = [id for id in dict.fromkeys(id for ids in around for id in ids) if id not in known]
        near = environment.search.allowed(near)
        return [id for id, part in zip(near, environment.of_group(near, lack).tolist(), strict=True) if part > 0]
