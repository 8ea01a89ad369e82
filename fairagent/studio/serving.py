"""`serve`: where the studio listens, whom it lets in, and how it ends."""

# ruff: noqa: E402
from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import re
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairagent.errors import UsageError
from fairagent.search.pipeline import unasked
from fairagent.storage.packages import expect_installed

expect_installed("uvicorn", "fairagent serve")

import uvicorn
from starlette.types import ASGIApp
from uvicorn.config import LOGGING_CONFIG

from fairagent.studio.app import studio_app
from fairagent.studio.desk import Desk
from fairagent.studio.lanes import Lanes
from fairagent.studio.server import Admission, Door, SpendingBook, hash_of, hosts_of, read_users

HERE = "127.0.0.1"
KEPT_SECONDS = 10
"""That a connection may be silent after a reply."""
MOST_CONNECTIONS = 400
"""Above which requests are refused (503); a process may have about 1,000 files open."""
ENDING = 1.0
"""Seconds that clients have to take their replies when the server ends."""
LAST_RESORT = 3
"""Seconds after which uvicorn cancels what is still there then."""
TOKEN = re.compile(r"[A-Za-z0-9_-]{16,100}")
SPENT = ".spent"
"""What the name of the database of what users spent ends with, after that of their file."""
IN_THE_OPEN = (
    "Others on this network can reach it. It speaks plain HTTP, in which tokens can be read on their way: put a proxy "
    "with TLS before it."
)


@dataclass(frozen=True, slots=True)
class Serving:
    """Where the server listens, and who may ask.

    `names` are what it is called besides its address; `users` is the file of those who may ask, None: whoever has
    `token` ("": one that is made, and printed), or without `needs_token` anybody on this machine.
    """

    address: str = HERE
    port: int = 0
    names: tuple[str, ...] = ()
    users: Path | None = None
    needs_token: bool = True
    token: str = ""
    open_metrics: bool = False


def listening(port: int, address: str = HERE) -> socket.socket:
    """A socket on `port` of this machine, 0 for a free one; UsageError where another program has it."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    # TCP by name: asyncio looks for it before it sends small replies at once, which else wait 40 ms for the client.
    opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((address, port))
        # Now, and not when the index is open: who starts a second server hears of it at once.
        opened.listen(128)
    except OSError as error:
        opened.close()
        if error.errno == errno.EADDRNOTAVAIL:
            raise UsageError(f"--host {address} is no address of this machine") from None
        if error.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        why = "is in use, perhaps by another `fairagent serve`" if error.errno == errno.EADDRINUSE else "is not ours"
        raise UsageError(f"port {port} of this machine {why}; name another with --port, or 0 for a free one") from None
    return opened


def serve(
    open_desk: Callable[[], Desk], serving: Serving, runs: Path, prompts: Path | None, say: Callable[[str], None]
) -> None:
    """Serve until a signal ends the process; `runs` and `prompts` are as in `studio_app`, `say` prints the address.

    Raises UsageError for a port in use, and what makes no sense or is not safe; and what `read_users`, `SpendingBook`
    and a desk raise.
    """
    try:
        parsed = ipaddress.ip_address(serving.address)
    except ValueError:
        raise UsageError(
            f"--host {serving.address}: expected an address of this machine, e.g. 0.0.0.0 for all of them; names go "
            "to --allow-host"
        ) from None
    if not serving.needs_token and not (parsed.is_loopback and not serving.names):
        raise UsageError(
            "--no-token is for this machine alone: with --host or --allow-host whoever reaches the server could "
            "search and spend. For readers without a token put a proxy before it that adds one"
        )
    if serving.token and not TOKEN.fullmatch(serving.token):
        raise UsageError("FAIRAGENT_TOKEN: expected 16 to 100 letters, digits, - or _")
    if serving.users is not None and not serving.needs_token:
        raise UsageError("--tokens names who may ask, and --no-token lets in anybody; leave one of them out")
    with ExitStack() as stack:
        # Before the collection, which takes its time: errors are raised at once.
        opened = stack.enter_context(closing(listening(serving.port, serving.address)))
        port = opened.getsockname()[1]
        hosts = hosts_of(serving.address, port, serving.names)
        made, book = "", None
        admission: Admission | None = None
        if serving.users is not None:
            admission = read_users(serving.users)
            beside = serving.users.with_name(serving.users.name + SPENT)
            book = stack.enter_context(closing(SpendingBook(beside)))
        elif serving.needs_token:
            made = "" if serving.token else secrets.token_urlsafe(24)
            admission = {hash_of(serving.token or made): None}
        desk = stack.enter_context(closing(open_desk()))
        desk.warm()
        lanes = Lanes()
        app = studio_app(desk, lanes, Door(hosts, admission, book, serving.open_metrics), runs, prompts)
        # What follows # is sent to no server: the page keeps it for its tab, and takes it out of the address.
        host = f"[{serving.address}]" if ":" in serving.address else serving.address
        say(f"http://{host}:{port}/" + (f"#token={made}" if made else ""))
        if not parsed.is_loopback:
            say(IN_THE_OPEN)
        if line := unasked(desk.settings):
            say(line)
        say("Ctrl-C ends it.")
        StudioServer(app, lanes).run(sockets=[opened])


class StudioServer(uvicorn.Server):
    """A server for `app` that ends at once on SIGINT, SIGTERM and SIGHUP: with it ends what `lanes` are doing.

    Where the program has set up its logging, uvicorn's lines go there.
    """

    def __init__(self, app: ASGIApp, lanes: Lanes, most: int = MOST_CONNECTIONS, idle: int = KEPT_SECONDS) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http="h11",
                limit_concurrency=most,
                timeout_keep_alive=idle,
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
