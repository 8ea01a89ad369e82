"""Stand-ins for tests without a network: shipped, because whoever builds on fairagent needs them too."""

from fairagent.testing.replay import ReplayModel
from fairagent.testing.scripted import Scripted, ScriptedModel
from fairagent.testing.server import Answer, LoopbackServer, completion, error, streamed

__all__ = ["Answer", "LoopbackServer", "ReplayModel", "Scripted", "ScriptedModel", "completion", "error", "streamed"]
