"""The studio's process: a port of this machine, the server on it, and its end."""

from __future__ import annotations

import errno
import secrets
import socket
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import uvicorn

from fairagent.extend import UsageError
from fairagent.studio.app import studio_app
from fairagent.studio.desk import Desk, StartSettings
from fairagent.studio.lanes import Lanes
from fairagent.studio.server import KEY

HOST = "127.0.0.1"
PATIENCE = 2
"""Seconds that requests have to end in when the server shuts down."""


def listening(port: int) -> socket.socket:
    """A socket on `port` of this machine, 0 for a free one; UsageError where another program has it."""
    opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((HOST, port))
        # Now, and not when the index is open: who starts a second server hears of it at once.
        opened.listen(128)
    except OSError as error:
        opened.close()
        if error.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        why = "is in use, perhaps by another `fairagent serve`" if error.errno == errno.EADDRINUSE else "is not ours"
        raise UsageError(f"port {port} of this machine {why}; name another with --port, or 0 for a free one") from None
    return opened


def serve(
    origin: StartSettings, port: int, needs_token: bool, runs: Path, prompts: Path | None, say: Callable[[str], None]
) -> None:
    """Serve until a signal ends the process; `runs` and `prompts` are as in `studio_app`, `say` prints the address.

    Raises UsageError for a port in use, and what `Desk` does.
    """
    with closing(listening(port)) as opened, closing(Desk(origin)) as desk:
        desk.warm()
        port = opened.getsockname()[1]
        token = secrets.token_urlsafe(24) if needs_token else ""
        app = studio_app(desk, Lanes(desk.lanes), port, token, runs, prompts)
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            lifespan="off",
            timeout_graceful_shutdown=PATIENCE,
        )
        say(f"http://{HOST}:{port}/" + (f"?{KEY}={token}" if token else ""))
        uvicorn.Server(config).run(sockets=[opened])
