"""A model behind a server on the loopback interface, for experiments that ask one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from fairagent.guests.testing import LoopbackServer, ServerReply

Loopback = Callable[[Callable[..., ServerReply]], LoopbackServer]


@pytest.fixture
def loopback(no_variables: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    """Starts a server with a script, which the environment names; replies are not cached."""
    monkeypatch.setenv("FAIRAGENT_CACHE", "''")
    with ExitStack() as stack:

        def start(script: Callable[..., ServerReply]) -> LoopbackServer:
            server = stack.enter_context(LoopbackServer(script))
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
            return server

        yield start
