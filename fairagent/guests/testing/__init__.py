"""For tests of what is built on fairagent: doubles of models and servers, and an assertion of exposure."""

from fairagent.guests.testing.exposure import assert_exposure
from fairagent.guests.testing.models import ReplayModel, Scripted, ScriptedModel
from fairagent.guests.testing.server import Answer, LoopbackServer, completion, embeddings, error, streamed

__all__ = [
    "Answer",
    "LoopbackServer",
    "ReplayModel",
    "Scripted",
    "ScriptedModel",
    "assert_exposure",
    "completion",
    "embeddings",
    "error",
    "streamed",
]
