"""Test doubles for models and servers, shipped for those who build on fairagent."""

from fairagent.testing.replay import ReplayModel
from fairagent.testing.scripted import Scripted, ScriptedModel
from fairagent.testing.server import Answer, LoopbackServer, completion, error, streamed

__all__ = ["Answer", "LoopbackServer", "ReplayModel", "Scripted", "ScriptedModel", "completion", "error", "streamed"]
