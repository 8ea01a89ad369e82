"""One step of the controller: the query mixed with the groups' evidence, under weights that follow what they lack."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fairagent.loop.actions.base import Attempt
from fairagent.loop.control import HALVINGS, Control, moved
from fairagent.loop.ground import Ground
from fairagent.loop.lack import lacking
from fairagent.loop.state import State, refusal


@dataclass(frozen=True, slots=True)
class Refine:
    """At most `steps` steps of exponent `eta`; one that overshoots is halved, twice at most.

    The first refined list takes the place of the engine's own whatever its gap, if it is relevant enough: every group's
    evidence is relevance feedback.
    """

    steps: int = 3
    eta: float = 0.5
    smoothing: float = 0.02
    name: str = "refine"

    def offer(self, ground: Ground, state: State) -> str:
        """As long as there is evidence, and a step left that may be a gain."""
        if self.ended(ground, state):
            return ""
        lacks = lacking(state.exposures)
        return f"{lacks[0]}" if lacks else "no group lacks exposure; their evidence is relevance feedback all the same"

    def ended(self, ground: Ground, state: State) -> str:
        """Why there is no further step; "" where there is one."""
        evidence = any(state.learned) or ground.sources is not None
        if not (evidence and ground.mixer.able(ground.search.engine)):
            return "no group has evidence"
        control = state.control
        return control.ended or (f"{self.steps} steps were made" if control.made >= self.steps else "")

    def act(self, ground: Ground, state: State) -> Attempt:
        """The next step of the control law."""
        asked, state = state.said is None, ground.mixed(state)
        control, said = state.control, state.said
        assert control.weights is not None and said is not None
        after = ground.refined(state, control.weights)
        bar = np.inf if state.first else state.gap
        control = replace(control, made=control.made + 1)
        return Attempt(
            replace(after, control=self._gained(control, after)),
            replace(state, control=self._halved(control, refusal(after, bar))),
            bar,
            said.notes if asked else (),
            said.refused if asked else (),
            weights=control.weights,
        )

    def _gained(self, control: Control, after: State) -> Control:
        assert control.weights is not None
        weights = moved(control.weights, after.exposures, control.eta, self.smoothing)
        return replace(control, weights=weights, reached=(control.weights, after.exposures))

    def _halved(self, control: Control, reason: str) -> Control:
        """Half a step from what was reached; none where nothing was, or it was halved often enough."""
        if control.reached is None or control.eta <= self.eta / 2**HALVINGS:
            return replace(control, ended=f"a step was no gain: {reason}")
        eta = control.eta / 2
        return replace(control, eta=eta, weights=moved(*control.reached, eta, self.smoothing))
