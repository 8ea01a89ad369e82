"""What a loop may do next, each in a file of its own."""

from fairagent.loop.actions.base import STOP, Action, Attempt

__all__ = ["STOP", "Action", "Attempt"]
