"""GGUF files: what one says of its model, and llama.cpp's server for one.

The layout is that of the GGUF specification, versions 2 and 3 (ggml, docs/gguf.md): counts, key-value pairs, the list
of tensors, padding, and the tensors' data, all little-endian.
"""

from __future__ import annotations

import gc
import importlib
import mmap
import os
import re
import socket
import struct
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairagent.extend import BackendUnavailable, DataError, UsageError, expect_installed

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

    `context` (tokens, 0 where it is not there) is the longest text that the model was trained on.
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
                values = _values(mapped, file)
    except OSError as error:
        raise BackendUnavailable(f"{file} cannot be read: {error.strerror}") from None
    architecture = str(values.get("general.architecture", ""))
    return GgufHeader(
        architecture,
        str(values.get("general.name", "")) or file.stem,
        _positive(values.get(f"{architecture}.context_length"), 0),
        bool(values.get("tokenizer.chat_template")),
    )


def _positive(value: Value | None, otherwise: int) -> int:
    """The value if it is a positive whole number, else `otherwise`."""
    return value if isinstance(value, int) and value > 0 else otherwise


def _values(mapped: mmap.mmap, file: Path) -> dict[str, Value]:
    """The scalars and strings among the key-value pairs; DataError where the file is not whole."""
    if mapped.read(4) != MAGIC:
        raise DataError(f"{file} is no GGUF file (it does not begin with {MAGIC.decode()})")
    try:
        if (version := _number(mapped, "I")) not in VERSIONS:
            raise DataError(f"{file} is a GGUF file of version {version}; this reads {VERSIONS[0]} and {VERSIONS[1]}")
        tensors, pairs = _number(mapped, "Q"), _number(mapped, "Q")
        values: dict[str, Value] = {}
        for _ in range(pairs):
            key, value = _text(mapped), _value(mapped, _number(mapped, "I"), file)
            if value is not None:
                values[key] = value
        last = 0
        for _ in range(tensors):
            _text(mapped)
            mapped.seek(8 * _number(mapped, "I") + 4, os.SEEK_CUR)
            last = max(last, _number(mapped, "Q"))
        alignment = _positive(values.get("general.alignment"), ALIGNMENT)
        begin = -(-mapped.tell() // alignment) * alignment
        if not tensors or begin + last < len(mapped):
            return values
    except (struct.error, ValueError, OverflowError):
        pass
    raise DataError(f"{file} is damaged: it ends after {len(mapped):,} bytes; get the file again")


def _value(mapped: mmap.mmap, type_number: int, file: Path, depth: int = 0) -> Value | None:
    """The next value; an array is passed over, None."""
    if type_number == _STRING:
        return _text(mapped)
    if type_number in _SCALARS:
        return _number(mapped, _SCALARS[type_number])
    if type_number != _ARRAY or depth == DEEPEST:
        raise DataError(f"{file} is damaged: there is no value of type {type_number} in GGUF files")
    type_number, count = _number(mapped, "I"), _number(mapped, "Q")
    if type_number in _SCALARS:
        mapped.seek(count * struct.calcsize(f"<{_SCALARS[type_number]}"), os.SEEK_CUR)
    else:
        for _ in range(count):
            _value(mapped, type_number, file, depth + 1)
    return None


def _number(mapped: mmap.mmap, form: str) -> int:
    """The next number; struct.error at the end of the file."""
    number: int = struct.unpack(f"<{form}", mapped.read(struct.calcsize(f"<{form}")))[0]
    return number


def _text(mapped: mmap.mmap) -> str:
    """The next string; ValueError where the file ends within it."""
    length = _number(mapped, "Q")
    content = mapped.read(length)
    if len(content) < length:
        raise ValueError("cut off")
    return content.decode("utf-8", "replace")


LOOPBACK = "127.0.0.1"
SERVER = "xllamacpp"
LONGEST = 8192
"""Tokens of context by default; memory grows with them."""
CACHED_PROMPTS = 256
"""MB of prompts that the server caches; its own default is 8 GB."""
PLAIN = "{% for message in messages %}{{ message.content }}\n\n{% endfor %}"
_ERRORS_ONLY = 1
_REASON = re.compile(r"^[\d.]+ E (?:\w+ +)?(?:\w+\(?\)?: )?(.+)$", re.MULTILINE)
"""A line of its log, after the time: the level, and which part of it writes."""


@dataclass(frozen=True, slots=True)
class Queue:
    """How many requests are being answered, and how many wait for a slot."""

    answered: int
    waiting: int


class LocalServer:
    """Serves the model in a GGUF file on the loopback interface until it is closed, or its `with` block ends.

    `context` is the longest prompt and reply together of one request, in tokens; None is what the model was trained
    on, at most 8,192. `slots` requests are answered at a time with `threads` threads together, others wait. `port` 0 is
    a free one. `plain` puts the messages one below the other as plain text, for a model without a chat template.

    Raises BackendUnavailable without the package xllamacpp or the file; DataError for a file that is damaged, of an
    architecture that llama.cpp does not know, or without a chat template and not `plain`; UsageError for a port in use.
    """

    def __init__(
        self,
        file: Path,
        port: int = 0,
        context: int | None = None,
        threads: int = 1,
        slots: int = 1,
        plain: bool = False,
    ) -> None:
        header = read_header(file)
        if not header.chat_template and not plain:
            raise DataError(
                f"{file} has no chat template, so that no conversation can be put to it; take a model that was trained "
                "for conversations (often called instruct or chat), or have it continue plain text: --plain"
            )
        expect_installed(SERVER, "a model's server")
        self.file = file
        self.name = file.stem
        self.trained = header.context
        self.context = context or min(header.context or LONGEST, LONGEST)
        self.slots = slots
        self.threads = threads
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
        if plain:
            parameters.chat_template = PLAIN
        # llama.cpp shares one context among its slots.
        parameters.n_ctx, parameters.n_parallel = self.context * slots, slots
        parameters.cpuparams.n_threads = threads
        parameters.hostnames, parameters.port = [LOOPBACK], port
        # No web page that the user has open may call it.
        parameters.cors_origins, parameters.ui = f"http://{LOOPBACK}", False
        parameters.endpoint_metrics = True
        parameters.cache_ram_mib = CACHED_PROMPTS
        parameters.verbosity = _ERRORS_ONLY
        self._server: Any = _started(library, parameters, file)
        self.url = f"{self._server.listening_address}/v1"

    def queue(self) -> Queue:
        """The requests that the server counts now."""
        counts = dict(re.findall(r"^llamacpp:requests_(\w+) (\d+)", self._server.handle_metrics(), re.MULTILINE))
        return Queue(int(counts["processing"]), int(counts["deferred"]))

    def close(self) -> None:
        """Stop the server; what it is writing is cut off."""
        self._server = None
        gc.collect()

    def __enter__(self) -> LocalServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _started(library: Any, parameters: Any, file: Path) -> Any:
    """The server; where it does not start, DataError with the library's own reason."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        # The library writes to the process's standard error, past Python's.
        stderr = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            return library.Server(parameters)
        except RuntimeError:
            log.seek(0)
            reason = _REASON.search(log.read())
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
    raise DataError(f"llama.cpp cannot serve {file}: {reason[1] if reason else 'it gives no reason'}")
