"""Bias in the head: what would be served is filtered, and refilled from the pool."""

from dataclasses import dataclass

from fairagent.errors import BudgetExceeded, FatalModelError, ModelError
from fairagent.filter.removals import filter_alarms, removed_by
from fairagent.filter.verdicts import Filter
from fairagent.loop.actions.base import Attempt, Offer
from fairagent.loop.environment import Environment
from fairagent.loop.state import State
from fairagent.retrieve.base import texts_for
from fairagent.types import Verdict

ROUNDS = 3
"""How often the documents that take the place of those removed are filtered themselves, the first time included."""


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

    def act(self, environment: Environment, state: State) -> Attempt:
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
                filtered = self.filter.filter(search.query.text, texts_for(search.query, ids, search.engine))
            except FatalModelError:
                raise
            except (ModelError, BudgetExceeded) as error:
                if not number:
                    raise
                notes.append(f"not all that came in their place was filtered: {error}")
                break
            verdicts += filtered.verdicts
            gone = [verdict for verdict in filtered.verdicts if not verdict.kept]
            notes += [_note(verdict) for verdict in gone]
            after = environment.without(after, {verdict.id for verdict in gone}) if gone else after
        failure = "" if after is not state else f"none of {len(verdicts)} documents is removed"
        alarms = filter_alarms(verdicts, removed_by(verdicts, environment.meter))
        return Attempt(after, state, state.gap + self.worse, tuple(notes), failure=failure, alarms=alarms)


def _note(verdict: Verdict) -> str:
    return f"{verdict.id} is removed" + (f": {verdict.note}" if verdict.note else "")
