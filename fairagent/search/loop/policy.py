"""What chooses the next action: rules, or a language model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from fairagent.answer.filtering import TEMPERATURE, Reason, reason_text
from fairagent.errors import BudgetExceeded, ModelError, ReplyInvalid
from fairagent.llm import Model, ModelRequest, Reply, ask
from fairagent.llm.asking import unless_failing, with_note
from fairagent.llm.exchange import mark_unusable
from fairagent.llm.prompts import Prompts
from fairagent.llm.prompts.calls import STAND_IN, Case
from fairagent.llm.reply import one_of
from fairagent.search.loop.actions import STOP, Offer
from fairagent.search.loop.base import lacking
from fairagent.search.loop.environment import Environment
from fairagent.search.loop.state import State
from fairagent.types import Step
from fairagent.types.clean import query_shown, visible

CHOOSE = "choose_action"
SHOWN_GROUPS = 8
"""Groups that lack exposure that the model is shown, those that lack most."""
SHOWN_STEPS = 10
"""Actions taken so far that the model is shown, the last ones."""

ActionName = Literal["neighbors", "judge", "refine", "filter"]


class Choice(Reply):
    """The next action; one that was not offered is corrected once, then the rules choose, and the trace says so."""

    action: Literal["neighbors", "judge", "refine", "filter", "stop"]
    reason: Reason


@dataclass(frozen=True, slots=True)
class Decision:
    """The `action` that comes next, and why."""

    action: str
    why: str


class Policy(Protocol):
    """Any object with this method will do."""

    def choose(
        self, environment: Environment, state: State, offers: Mapping[str, Offer], taken: Sequence[Step]
    ) -> Decision:
        """One of the open `offers`, or stop; `taken` are the steps of the actions so far."""
        ...


@dataclass(frozen=True, slots=True)
class Rules:
    """The first action that is open, in the order in which they are given: by what is missing."""

    def choose(
        self, environment: Environment, state: State, offers: Mapping[str, Offer], taken: Sequence[Step]
    ) -> Decision:
        """See `Policy.choose`."""
        offered = (Decision(name, offer.why) for name, offer in offers.items() if offer.open)
        return next(offered, Decision(STOP, nothing_left(offers)))


@dataclass(frozen=True, slots=True)
class ModelPolicy:
    """Asks `model` with the template `choose_action`.

    A choice of what is not offered is corrected once. It stops, and says why, where the model repeats a choice that has
    failed twice. Where it gives no usable reply, chooses wrongly again, or the budget is used up, `Rules` choose
    ("fallback"), or the error is raised ("fail").
    """

    model: Model
    prompts: Prompts
    on_error: Literal["fallback", "fail"] = "fallback"

    def choose(
        self, environment: Environment, state: State, offers: Mapping[str, Offer], taken: Sequence[Step]
    ) -> Decision:
        """See `Policy.choose`. Raises FatalModelError, and with "fail" what else asking raises."""
        offered = [name for name, offer in offers.items() if offer.open]
        if not offered:
            return Decision(STOP, nothing_left(offers))

        def by_rules(error: ModelError | BudgetExceeded) -> Decision:
            decision = Rules().choose(environment, state, offers, taken)
            return replace(decision, why=f"{decision.why} (by the rules; the model chose nothing: {error})")

        def chosen() -> Decision:
            choice = self._choice(self._request(environment, state, offers, taken), offered)
            why = reason_text(choice.reason) or "no reason given"
            if choice.action == STOP:
                return Decision(STOP, f"the model: {why}")
            if [step.source for step in taken[-2:] if not step.accepted] == [choice.action] * 2:
                return Decision(STOP, f"the model chose {choice.action} again, which had failed twice")
            return Decision(choice.action, why)

        return unless_failing(chosen, self.on_error, by_rules, unpaid=True)

    def _choice(self, request: ModelRequest, offered: Sequence[str]) -> Choice:
        """What the model chooses of what is offered; ReplyInvalid where it chooses something else twice."""
        names = ", ".join([*offered, STOP])
        current = request
        for _ in range(2):
            choice, _ = ask(self.model, current, Choice)
            if choice.action in {*offered, STOP}:
                return choice
            fault = f"{choice.action} is not offered, only {names}"
            note = f"Your previous choice cannot be taken: {fault}.\nChoose again."
            mark_unusable(fault, note)
            current = with_note(request, note)
        raise ReplyInvalid(f"twice what cannot be taken: {fault}")

    def _request(
        self, environment: Environment, state: State, offers: Mapping[str, Offer], taken: Sequence[Step]
    ) -> ModelRequest:
        groups = [
            {
                "dimension": visible(lack.group.dimension),
                "group": visible(lack.group.label),
                "share": f"{lack.share:.1%}",
                "target": f"{lack.target:.1%}",
                "documents_found": int((state.candidates.groups[:, lack.place] > 0).sum()),
            }
            for lack in lacking(state.exposures)[:SHOWN_GROUPS]
        ]
        offered = {name: visible(offer.why) for name, offer in offers.items() if offer.open}
        history = taken[-SHOWN_STEPS:]
        variables = {
            "query": query_shown(environment.search.query.text),
            "gap": f"{state.gap:.3f}",
            "groups": groups,
            "actions": [{"action": name, "why": why} for name, why in offered.items()],
            "history": [{"action": one.source, "kept": one.accepted, "reason": one.reason} for one in history],
        }
        return self.prompts.request(CHOOSE, variables, TEMPERATURE, narrowed={"action": one_of([*offered, STOP])})


def nothing_left(offers: Mapping[str, Offer]) -> str:
    """Why no action is open; of a single one its own words."""
    if len(offers) == 1:
        return next(iter(offers.values())).why
    return "; ".join(f"{name}: {offer.why}" for name, offer in offers.items()) or "no action is offered"


def longest_choice(case: Case) -> dict[str, object]:
    """The most that the template is shown besides the query."""
    dimension, label = case.group
    share = {"share": "10.0%", "target": "50.0%", "documents_found": 100}
    why = f"{label} ({dimension}) has 10% of the exposure, its share is 50%, {STAND_IN * 8}"
    return {
        "gap": "0.100",
        "groups": [{"dimension": dimension, "group": label, **share}] * SHOWN_GROUPS,
        "actions": [{"action": "neighbors", "why": why}] * 4,
        "history": [{"action": "refine", "kept": False, "reason": "the gap did not fall"}] * SHOWN_STEPS,
    }
