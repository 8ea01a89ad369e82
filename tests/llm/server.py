"""The loopback server under its names in these tests."""

from fairagent.guests.testing import LoopbackServer as Server
from fairagent.guests.testing import ServerReply, completion, embeddings, error

__all__ = ["Server", "ServerReply", "completion", "embeddings", "error"]
