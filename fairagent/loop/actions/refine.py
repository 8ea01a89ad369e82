"""One step of the controller: the query mixed with the groups' evidence, under weights that follow what they lack."""

from dataclasses import dataclass, replace

import numpy as np

from fairagent.loop.actions.base import Attempt, Offer
from fairagent.loop.control import HALVINGS, Control, Reached, moved
from fairagent.loop.environment import Environment
from fairagent.loop.lack import lacking
from fairagent.loop.state import State, refusal
from fairagent.types import FloatArray


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

    def act(self, environment: Environment, state: State) -> Attempt:
        """The next step of the control law."""
        state, notes = environment.searched_again(environment.informed(state))
        state = environment.mixed(state)
        weights = self._weights(environment, state)
        after = environment.refined(state, weights)
        bar = state.bar
        control = replace(state.control, made=state.control.made + 1)
        before, reached = state.control.reached, (weights, after.exposures)
        same = after.served.ids == state.served.ids and (before is None or not np.allclose(weights, before[0]))
        return Attempt(
            replace(after, control=replace(control, reached=reached)),
            replace(state, control=self._refused(control, reached, refusal(after, bar), same)),
            bar,
            notes,
            weights=weights,
        )

    def _ended(self, environment: Environment, state: State) -> str:
        """Why there is no further step; "" where there is one."""
        if not (environment.sources or any(state.learned)) or not environment.mixer.able(environment.search.engine):
            return "no group has evidence"
        if state.control.ended:
            return state.control.ended
        if state.gap <= environment.tolerance:
            return f"the gap is not above {environment.tolerance:g}"
        return f"{self.steps} steps were made" if state.control.made >= self.steps else ""

    def _weights(self, environment: Environment, state: State) -> FloatArray:
        control = state.control
        if control.reached is None:
            return environment.start(state)
        return moved(*control.reached, self.eta / 2**control.halved, self.smoothing)

    def _refused(self, control: Control, tried: Reached, reason: str, same: bool) -> Control:
        """What comes next: a step on from one that changed nothing, else half of it, or of the evidence's share."""
        if same:
            return replace(control, reached=tried)
        if control.halved == HALVINGS:
            return replace(control, ended=f"a step was no gain: {reason}")
        part = control.part / 2 if control.reached is None else control.part
        return replace(control, halved=control.halved + 1, part=part)
