"""For tests of what is built on fairagent: doubles of models and servers, and assertions of exposure."""

from fairagent.guests.testing.models import Scripted, ScriptedModel
from fairagent.guests.testing.searches import SearchExposure, assert_exposure_of, exposure_of
from fairagent.guests.testing.server import LoopbackServer, ServerReply, completion, embeddings, error, streamed

__all__ = [
    "LoopbackServer",
    "Scripted",
    "ScriptedModel",
    "SearchExposure",
    "ServerReply",
    "assert_exposure_of",
    "completion",
    "embeddings",
    "error",
    "exposure_of",
    "streamed",
]
