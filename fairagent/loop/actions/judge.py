"""Precision: the best documents of groups that lack exposure are judged, and evidence is learned from the relevant."""

from dataclasses import dataclass

from fairagent.alarms import without_verdict
from fairagent.loop.actions.base import Attempt, Offer
from fairagent.loop.environment import Environment
from fairagent.loop.judges import Judge
from fairagent.loop.lack import Lack, lacking
from fairagent.loop.state import JudgedDocuments, State
from fairagent.retrieve.base import texts_for


@dataclass(frozen=True, slots=True)
class JudgeAction:
    """The first `documents` of each of the `groups` that lack most."""

    judge: Judge
    documents: int = 10
    groups: int = 3
    name: str = "judge"

    def offer(self, environment: Environment, state: State) -> Offer:
        """Open once, if a group that lacks exposure has documents."""
        if self.name in state.tried:
            return Offer(False, "it was tried")
        some = self._lacks(environment, state)
        if state.gap <= environment.tolerance or not some:
            return Offer(False, "no group that was found lacks exposure")
        return Offer(True, f"{some[0]}, though documents of it were found: are the best of them relevant?")

    def act(self, environment: Environment, state: State) -> Attempt:
        """Judge, take relevance from what is not relevant, and refine with what is learned from what is."""
        state = environment.informed(state)
        search, lacks = environment.search, self._lacks(environment, state)
        best = {lack: environment.best_of(state, lack, self.documents) for lack in lacks}
        ids = list(dict.fromkeys(id for some in best.values() for id in some))
        judgment = self.judge.judge(search.query.text, texts_for(search.query, ids, search.engine))
        chance = {id: one for id, one in zip(ids, judgment.chances, strict=True) if one is not None}
        notes = [_note(lack, some, chance) for lack, some in best.items()]
        alarms = without_verdict("judge", len(ids) - len(chance), len(ids))
        if not chance:
            failure = "no document was judged"
            return Attempt(state, state, state.gap, judgment.notes, failure=failure, alarms=alarms)
        judged = JudgedDocuments(chance, frozenset(lack.place for lack in lacks))
        after = environment.learned_anew(state, state.found, judged)
        weights = after.control.reached[0] if after.control.reached else None
        return Attempt(after, state, state.bar, (*notes, *judgment.notes), weights=weights, alarms=alarms)

    def _lacks(self, environment: Environment, state: State) -> list[Lack]:
        return [lack for lack in lacking(state.exposures) if state.learned[lack.place]][: self.groups]


def _note(lack: Lack, ids: list[str], chance: dict[str, float]) -> str:
    relevant = sum(chance.get(id, 0.0) >= 0.5 for id in ids)
    return f"{lack.group}: {relevant} of {sum(id in chance for id in ids)} documents judged are relevant"
