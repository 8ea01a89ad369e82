"""uvicorn as the studio is served by: its limits on connections, and how it ends."""

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

from fairagent.studio.lanes import Lanes

KEPT_SECONDS = 10
"""That a connection may be silent after a reply."""
MOST_CONNECTIONS = 400
"""Above which requests are told to come again (503); a process may have about 1,000 files open."""
ENDING = 1.0
"""Seconds that clients have to take their replies when the server ends."""
LAST_RESORT = 3
"""Seconds after which uvicorn cancels what is still there then."""


class StudioServer(uvicorn.Server):
    """A server for `app` that ends at once on SIGINT, SIGTERM and SIGHUP: with it ends what `lanes` are doing.

    Where the program has set up its logging, uvicorn's lines go there.
    """

    def __init__(self, app: ASGIApp, lanes: Lanes, most: int = MOST_CONNECTIONS, kept: int = KEPT_SECONDS) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http="h11",
                limit_concurrency=most,
                timeout_keep_alive=kept,
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
