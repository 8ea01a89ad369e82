"""What a GGUF file says of the model in it, read without the weights.

The layout is that of the GGUF specification, versions 2 and 3 (ggml, docs/gguf.md): counts, key-value pairs, the list
of tensors, padding, and the tensors' data, all little-endian.
"""

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

from fairagent.errors import BackendUnavailable, DataError

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
