"""The loopback server under its names in these tests."""

from fairagent.guests.testing import Answer, completion, embeddings, error
from fairagent.guests.testing import LoopbackServer as Server

__all__ = ["Answer", "Server", "completion", "embeddings", "error"]
