"""The connections to the studio: who is silent, slow or too many is cut off; and how the server ends.

uvicorn waits without end for a request that does not come, or comes byte by byte, and for a client that does not read.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.config import LOGGING_CONFIG
from uvicorn.protocols.http.h11_impl import H11Protocol

from fairagent.studio.lanes import Lanes

REQUEST_SECONDS = 10.0
"""In which a request has to arrive, whole, from the opening of the connection or the reply before on."""
READ_SECONDS = 20.0
"""That a client may leave a full connection unread."""
MOST_CONNECTIONS = 400
"""Above which the one that has been silent longest is cut off; a process may have about 1,000 files open."""
MOST_AHEAD = 1 << 16
"""Bytes of further requests that may come before the reply to the first."""
ENDING = 1.0
"""Seconds that clients have to take their replies when the server ends."""
LAST_RESORT = 3
"""Seconds after which uvicorn cancels what is still there then."""


class PatientProtocol(H11Protocol):
    """uvicorn's connection, with bounds on its client."""

    request_seconds = REQUEST_SECONDS
    read_seconds = READ_SECONDS
    most_connections = MOST_CONNECTIONS
    _late: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client is there; where there are too many, the one that has been silent longest is cut off."""
        super().connection_made(transport)
        self._expect()
        if len(self.connections) > self.most_connections:
            silent = [one for one in self.connections if isinstance(one, PatientProtocol) and one._late]
            min(silent, key=lambda one: one._late.when() if one._late else 0.0).transport.abort()

    def data_received(self, data: bytes) -> None:
        """Bytes have come."""
        super().data_received(data)
        self._look()
        if self._asked():
            # uvicorn stops to read where a further request has come, and would not see that the client leaves.
            if len(self.conn.trailing_data[0]) > MOST_AHEAD:
                self.transport.abort()
            else:
                self.flow.resume_reading()

    def on_response_complete(self) -> None:
        """The reply is sent, and the next request expected, which may be there already."""
        self._expect()
        super().on_response_complete()
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        _stop(self._late, self._unread)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """What was sent is not read."""
        self._unread = self.loop.call_later(self.read_seconds, self.transport.abort)
        super().pause_writing()

    def resume_writing(self) -> None:
        """The client reads on."""
        _stop(self._unread)
        super().resume_writing()

    def shutdown(self) -> None:
        """The server ends: a request that has not come whole does not count."""
        if self.cycle is not None and self.cycle.more_body and not self.cycle.response_complete:
            self.transport.abort()
        else:
            super().shutdown()

    def _asked(self) -> bool:
        """Whether there is a whole request without its reply."""
        return self.cycle is not None and not self.cycle.more_body and not self.cycle.response_complete

    def _expect(self) -> None:
        _stop(self._late)
        self._late = self.loop.call_later(self.request_seconds, self.transport.abort)

    def _look(self) -> None:
        if self._asked():
            _stop(self._late)
            self._late = None


def _stop(*timers: asyncio.TimerHandle | None) -> None:
    for timer in timers:
        if timer:
            timer.cancel()


class StudioServer(uvicorn.Server):
    """A server for `app` that ends at once on SIGINT, SIGTERM and SIGHUP: with it ends what `lanes` are doing.

    Where the program has set up its logging, uvicorn's lines go there.
    """

    def __init__(self, app: ASGIApp, lanes: Lanes, protocol: type[PatientProtocol] = PatientProtocol) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=protocol,
                log_config=None if logging.getLogger().handlers else LOGGING_CONFIG,
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                ws="none",
                lifespan="off",
                timeout_graceful_shutdown=LAST_RESORT,
            )
        )
        self._lanes = lanes

    async def shutdown(self, sockets: Any = None) -> None:
        """End all work, and after a second the connections of those who do not take their replies."""
        self._lanes.stop()
        asyncio.get_running_loop().call_later(ENDING, self._abort)
        await super().shutdown(sockets)

    def _abort(self) -> None:
        for connection in list(self.server_state.connections):
            connection.transport.abort()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take SIGHUP as uvicorn takes the others, unless the program ignores it (nohup)."""
        number = getattr(signal, "SIGHUP", signal.SIGTERM)
        with super().capture_signals():
            before = signal.getsignal(number)
            if threading.current_thread() is not threading.main_thread() or before is signal.SIG_IGN:
                yield
                return
            signal.signal(number, self.handle_exit)
            try:
                yield
            finally:
                signal.signal(number, before)
