"""llama.cpp's OpenAI-compatible server for a GGUF file, in this process (package xllamacpp)."""

from __future__ import annotations

import gc
import importlib
import os
import re
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from fairagent.errors import DataError, UsageError
from fairagent.llm.local.header import read_header
from fairagent.loading import expect_installed

LOOPBACK = "127.0.0.1"
LONGEST = 8192
"""Tokens of context where nothing else is asked for; memory grows with them."""
REPLIES_KEPT = 256
"""MB of prompts that the server remembers; its own default is 8 GB."""
_ERRORS_ONLY = 1
_SAID = re.compile(r"^[\d.]+ E (?:\w+ +)?(?:\w+\(?\)?: )?(.+)$", re.MULTILINE)
"""A line of its log, after the time: the level, and who says it."""


@dataclass(frozen=True, slots=True)
class Queue:
    """How many requests are being answered, and how many wait for a slot."""

    answered: int
    waiting: int


class LocalServer:
    """Serves the model in a GGUF file on the loopback interface until it is closed, or its `with` block ends.

    `context` is the longest prompt and reply together of one request, in tokens; None is what the model was trained
    on, at most 8,192. `slots` requests are answered at a time with `threads` threads together, others wait. `port` 0 is
    a free one.

    Raises BackendUnavailable without the package xllamacpp or the file; DataError for a file that is damaged, of an
    architecture that llama.cpp does not know, or without a chat template; UsageError for a port in use.
    """

    def __init__(self, file: Path, port: int = 0, context: int | None = None, threads: int = 1, slots: int = 1) -> None:
        header = read_header(file)
        if not header.chat_template:
            raise DataError(
                f"{file} has no chat template, so that no conversation can be put to it; take a model that was trained "
                "for conversations (often called instruct or chat)"
            )
        expect_installed("xllamacpp", "a model's server")
        self.file = file
        self.name = file.stem
        self.trained = header.context
        self.context = context or min(header.context or LONGEST, LONGEST)
        self.slots = slots
        self.threads = threads
        _check_port(port)
        library = importlib.import_module("xllamacpp")
        wanted = library.CommonParams()
        wanted.model.path = str(file)
        wanted.model_alias = {self.name}
        # llama.cpp shares one context among its slots.
        wanted.n_ctx, wanted.n_parallel = self.context * slots, slots
        wanted.cpuparams.n_threads = threads
        wanted.hostnames, wanted.port = [LOOPBACK], port
        # No web page that the user has open may ask it.
        wanted.cors_origins, wanted.ui = f"http://{LOOPBACK}", False
        wanted.endpoint_metrics = True
        wanted.cache_ram_mib = REPLIES_KEPT
        wanted.verbosity = _ERRORS_ONLY
        self._server: Any = _started(library, wanted, file)
        self.url = f"{self._server.listening_address}/v1"

    def queue(self) -> Queue:
        """What the server is doing now, by its own count."""
        counts = dict(re.findall(r"^llamacpp:requests_(\w+) (\d+)", self._server.handle_metrics(), re.MULTILINE))
        return Queue(int(counts["processing"]), int(counts["deferred"]))

    def close(self) -> None:
        """Stop the server; what it is writing is cut off."""
        self._server = None
        gc.collect()

    def __enter__(self) -> LocalServer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _check_port(port: int) -> None:
    with socket.socket() as tried:
        # As the server does it: an address that was left a moment ago is free.
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((LOOPBACK, port))
        except OSError:
            raise UsageError(
                f"port {port} of this machine is in use; name another with --port, or 0 for a free one"
            ) from None


def _started(library: Any, wanted: Any, file: Path) -> Any:
    """The server; where it does not start, DataError with the library's own reason."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        try:
            with _errors_into(log):
                return library.Server(wanted)
        except RuntimeError:
            log.seek(0)
            said = _SAID.search(log.read())
    reason = said[1] if said else "it gives no reason"
    raise DataError(f"llama.cpp cannot serve {file}: {reason}")


@contextmanager
def _errors_into(log: IO[str]) -> Iterator[None]:
    """Standard error goes to `log`: the library writes to the process's, past Python's."""
    kept = os.dup(2)
    os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
