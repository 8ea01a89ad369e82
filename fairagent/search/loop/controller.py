"""The loop that decides: actions, each measured by what would be served, and accepted only if that is better.

The query q takes in what its first documents have in common, whoever they are about: relevance feedback (Rocchio). Then
comes the controller of group evidence, the action `refine`. For each group g its evidence E_g is what its own best
documents have in common, or what a model says of it. The refined query is (1 - beta) q + beta sum_g w_g E_g, with w
beginning at the target t; what would be served is measured, and w_g <- w_g ((t_g + s) / (e_g + s))^eta, until the gap
stops falling. It is FAIR-QR's promise (arXiv 2503.21092), fulfilled by control rather than by words added to a query.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from fairagent.collection.exposure import total_gap, worse_dimensions
from fairagent.errors import BudgetExceeded, ModelError
from fairagent.llm.asking import unless_failing
from fairagent.llm.budget import ledger
from fairagent.search.loop.actions import STOP, Action, ActionOutcome, RefineAction
from fairagent.search.loop.base import LoopResult, Search
from fairagent.search.loop.candidates import Mixer
from fairagent.search.loop.document_types import TypeSource
from fairagent.search.loop.environment import Environment
from fairagent.search.loop.fair_qr import measured
from fairagent.search.loop.guard import Guard
from fairagent.search.loop.policy import Decision, Policy, Rules
from fairagent.search.loop.second_search import SecondSearch
from fairagent.search.loop.sources import Sources
from fairagent.search.loop.state import State, sorted_by
from fairagent.types import Group, Proposals, Step, Usage


@dataclass(frozen=True, slots=True, eq=False)
class Controller:
    """`actions`, chosen by `policy`, until nothing is left or the gap is within `tolerance`.

    An action counts if what would be served after it has a smaller gap, and its estimated relevance, the mean score by
    the engine, `types` and judges, stays above (1 - `drift`) of that of the engine's own list. `mixer` makes scores of
    the groups' evidence, learned from `feedback` documents, and of what `sources` ask a model (None: no model).
    `prior` is the weight of the types of documents, 0 for none. `second` searches the whole collection by the evidence
    (None: the candidates stay as they are). `guard` is as in `LoopResult`.
    """

    actions: tuple[Action, ...] = (RefineAction(),)
    policy: Policy = field(default_factory=Rules)
    mixer: Mixer = field(default_factory=Mixer)
    feedback: int = 20
    drift: float = 0.1
    tolerance: float = 0.0
    prior: float = 0.6
    guard: Guard | None = field(default_factory=Guard)
    types: TypeSource | None = None
    sources: Sources | None = None
    second: SecondSearch | None = None
    on_error: Literal["fallback", "fail"] = "fallback"

    def run(self, search: Search) -> LoopResult:
        """See `Loop.run`: the candidates with the scores of the last list accepted.

        What an action's model raises ends the loop with what was reached, but for FatalModelError and with "fail".
        """
        first = search.steps[-1].ranking
        if not len(first):
            search.on_step(search.steps[-1])
            return LoopResult(first, search.steps, "the query retrieves nothing", search.meter)
        environment, state = Environment.begin(self, search)
        steps = [measured(environment.meter, step) for step in search.steps]
        # What the first action has to beat is no retrieval, and would be seen nowhere else.
        steps[-1] = replace(steps[-1], notes=(f"re-ranked, before any action: the gap is {state.gap:.4f}",))
        search.on_step(steps[-1])
        begun, stopped = len(steps), ""
        while not stopped:
            state, step, stopped = self._next(environment, state, steps, begun)
            if step:
                steps.append(step)
                search.on_step(step)
        return LoopResult(
            sorted_by(state.candidates.ranking, state.scores),
            tuple(steps),
            stopped,
            environment.meter,
            environment.unit,
            self.guard,
            removed=frozenset(first.ids) - frozenset(state.candidates.ids),
            served=state.served,
            pool=state.pool,
            entered=state.entered,
        )

    def _next(
        self, environment: Environment, state: State, steps: Sequence[Step], begun: int
    ) -> tuple[State, Step | None, str]:
        """The state after one more action, the action as a step, and why the loop ends; "" where it does not.

        The first `begun` of the `steps` are retrievals.
        """
        actions = {action.name: action for action in self.actions}
        offers = {name: action.offer(environment, state) for name, action in actions.items()}
        with ledger() as book:
            decision = self.policy.choose(environment, state, offers, steps[begun:])
            if decision.action == STOP:
                paid = book.usage != Usage()
                return state, _stop(environment, state, decision, book.usage) if paid else None, decision.why
            stopped = ""

            def ended(error: ModelError | BudgetExceeded) -> ActionOutcome:
                nonlocal stopped
                stopped = f"{decision.action}: {error}"
                return ActionOutcome(state, state, state.gap, failure=str(error))

            act = partial(actions[decision.action].act, environment, state)
            outcome = unless_failing(act, self.on_error, ended, unpaid=True)
        reason = outcome.failure or outcome.after.refusal(outcome.bar)
        before = next(step for step in reversed(steps) if step.accepted)
        step = _step(environment, state, decision, outcome, reason, book.usage, before)
        reached = outcome.otherwise if reason else outcome.after
        return replace(reached, tried=state.tried | {decision.action}), step, stopped


def _step(
    environment: Environment,
    state: State,
    decision: Decision,
    outcome: ActionOutcome,
    reason: str,
    usage: Usage,
    before: Step,
) -> Step:
    """What an action did, and what became of it; `before` is the last step that was accepted."""
    after, evidence = outcome.after, outcome.otherwise.model_evidence
    new = evidence if evidence and state.model_evidence is None else None
    groups = [Group(target.dimension, label) for target in environment.meter.targets for label in target.labels]
    return Step(
        decision.action,
        environment.search.query,
        after.served,
        after.exposures,
        total_gap(after.exposures),
        accepted=not reason,
        usage=usage,
        refused=new.refused if new else (),
        proposals=new.proposals if new else Proposals(),
        weights=() if outcome.weights is None else tuple(zip(groups, outcome.weights.tolist(), strict=True)),
        reason=reason,
        why=decision.why,
        notes=(*(new.notes if new else ()), *outcome.notes),
        alarms=outcome.alarms,
        entered=len(outcome.otherwise.entered - state.entered),
        worse=() if reason else worse_dimensions(before.exposures, after.exposures),
    )


def _stop(environment: Environment, state: State, decision: Decision, usage: Usage) -> Step:
    """That a model chose to end the loop: the list stays, and the reply has its price."""
    gap = total_gap(state.exposures)
    query, why = environment.search.query, decision.why
    return Step(STOP, query, state.served, state.exposures, gap, accepted=False, usage=usage, reason=why, why=why)
