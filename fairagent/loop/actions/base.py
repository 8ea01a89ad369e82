"""What an action is: it says whether it could help, and tries."""

from dataclasses import dataclass
from typing import Protocol

from fairagent.alarms import Alarm
from fairagent.loop.environment import Environment
from fairagent.loop.state import State
from fairagent.types import FloatArray

STOP = "stop"
"""The choice that ends a loop; it can always be made."""


@dataclass(frozen=True, slots=True)
class Offer:
    """Whether an action is `open`, and `why` it could help now or why it could not."""

    open: bool
    why: str


@dataclass(frozen=True, slots=True, eq=False)
class Attempt:
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

    def act(self, environment: Environment, state: State) -> Attempt:
        """Try it. Raises what the models raise that it asks."""
        ...
