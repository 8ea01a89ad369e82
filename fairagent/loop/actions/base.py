"""What an action is: it says whether it could help, and tries."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from fairagent.loop.ground import Ground
from fairagent.loop.state import State
from fairagent.types import FloatArray

STOP = "stop"
"""The action that ends a loop; it is always offered."""


@dataclass(frozen=True, slots=True, eq=False)
class Attempt:
    """An action's outcome: the state `after` it, which counts if it is accepted, and the one that remains `otherwise`.

    The list has to have a gap below `bar`. `notes` say what was done, `refused` what of a model's words was no use,
    `failure` why it could not be done; `weights` (g,) are those of the groups' evidence, empty where it has none.
    """

    after: State
    otherwise: State
    bar: float
    notes: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    failure: str = ""
    weights: FloatArray = field(default_factory=lambda: _NONE)


class Action(Protocol):
    """Any object like this will do."""

    @property
    def name(self) -> str:
        """What the settings, the trace and a model call it."""
        ...

    def offer(self, ground: Ground, state: State) -> str:
        """Why it could help now; "" where it could not."""
        ...

    def act(self, ground: Ground, state: State) -> Attempt:
        """Try it. Raises what the models that it asks raise."""
        ...
