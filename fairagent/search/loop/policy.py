"""A language model as the policy of a loop: it chooses the next action among those that could help."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from fairagent.answer.filtering import TEMPERATURE, Reason, reason_text
from fairagent.errors import BudgetExceeded, ModelError, ReplyInvalid
from fairagent.llm import Model, ModelRequest, Reply, ask
from fairagent.llm.asking import unless_failing, with_note
from fairagent.llm.exchange import mark_unusable
from fairagent.llm.prompts import Prompts
from fairagent.llm.prompts.calls import STAND_IN, Case
from fairagent.llm.reply import one_of
from fairagent.search.loop.base import Search, lacking
from fairagent.search.loop.widen import STOP, State, by_rules
from fairagent.types import Step
from fairagent.types.clean import query_shown, visible

CHOOSE = "choose_action"
SHOWN_GROUPS = 8
"""Groups that lack exposure that the model is shown, those that lack most."""
SHOWN_STEPS = 10
"""Actions taken so far that the model is shown, the last ones."""

ActionName = Literal["group", "documents", "neighbors", "keywords", "passages", "judge", "filter"]


class Choice(Reply):
    """The next action; one that was not offered is corrected once, then the rules choose, and the trace says so."""

    action: Literal["group", "documents", "neighbors", "keywords", "passages", "judge", "filter", "stop"]
    reason: Reason


@dataclass(frozen=True, slots=True)
class ModelPolicy:
    """Asks `model` with the template `choose_action`.

    A choice of what is not offered is corrected once. Where the model gives no usable reply, chooses wrongly again, or
    the budget is used up, the rules choose ("fallback"), or the error is raised ("fail").
    """

    model: Model
    prompts: Prompts
    on_error: Literal["fallback", "fail"] = "fallback"

    def __call__(
        self, search: Search, state: State, offers: Mapping[str, tuple[bool, str]], taken: Sequence[Step]
    ) -> tuple[str, str]:
        """See `Choose`. Raises FatalModelError, and with "fail" what else asking raises."""
        offered = [name for name, (could, _) in offers.items() if could]
        if not offered:
            return by_rules(search, state, offers, taken)

        def ruled(error: ModelError | BudgetExceeded) -> tuple[str, str]:
            name, why = by_rules(search, state, offers, taken)
            return name, f"{why} (by the rules; the model chose nothing: {error})"

        def chosen() -> tuple[str, str]:
            choice = self._choice(self._request(search, state, offers, taken), offered)
            why = reason_text(choice.reason) or "no reason given"
            return choice.action, f"the model: {why}" if choice.action == STOP else why

        return unless_failing(chosen, self.on_error, ruled, unpaid=True)

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
        self, search: Search, state: State, offers: Mapping[str, tuple[bool, str]], taken: Sequence[Step]
    ) -> ModelRequest:
        groups = [
            {
                "dimension": visible(lack.group.dimension),
                "group": visible(lack.group.label),
                "share": f"{lack.share:.1%}",
                "target": f"{lack.target:.1%}",
                "documents_found": int((state.members(lack) > 0).sum()),
            }
            for lack in lacking(state.served.exposures)[:SHOWN_GROUPS]
        ]
        offered = {name: visible(why) for name, (could, why) in offers.items() if could}
        variables = {
            "query": query_shown(search.query.text),
            "gap": f"{state.served.gap:.3f}",
            "groups": groups,
            "actions": [{"action": name, "why": why} for name, why in offered.items()],
            "history": [
                {"action": one.source, "kept": one.accepted, "reason": one.reason} for one in taken[-SHOWN_STEPS:]
            ],
        }
        return self.prompts.request(CHOOSE, variables, TEMPERATURE, narrowed={"action": one_of([*offered, STOP])})


def longest_choice(case: Case) -> dict[str, object]:
    """The most that the template is shown besides the query."""
    dimension, label = case.group
    share = {"share": "10.0%", "target": "50.0%", "documents_found": 100}
    why = f"{label} ({dimension}) has 10% of the exposure, its share is 50%, {STAND_IN * 8}"
    return {
        "gap": "0.100",
        "groups": [{"dimension": dimension, "group": label, **share}] * SHOWN_GROUPS,
        "actions": [{"action": "neighbors", "why": why}] * 7,
        "history": [{"action": "documents", "kept": False, "reason": "what would be served is no better"}]
        * SHOWN_STEPS,
    }
