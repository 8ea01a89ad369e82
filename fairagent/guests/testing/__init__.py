"""For tests of what is built on fairagent: doubles of models and servers, and an assertion of exposure."""

from fairagent.guests.testing.exposure import assert_exposure
from fairagent.guests.testing.models import ReplayModel, Scripted, ScriptedModel
from fairagent.guests.testing.server import LoopbackServer, ServerReply, completion, embeddings, error, streamed

__all__ = [
    "LoopbackServer",
    "ReplayModel",
    "Scripted",
    "ScriptedModel",
    "ServerReply",
    "assert_exposure",
    "completion",
    "embeddings",
    "error",
    "streamed",
]
