"""What the files of a folder held when they were finished, and whether they still do.

A finished folder of fairagent's has a record of all its files, each with its size and SHA-256. Opening the folder
compares the sizes, small files as a whole, and of large ones as much as takes a moment; `fairagent doctor --verify`
compares every byte. A line of a file that grows carries a checksum of its own.

The digest of a large file is noted in the user's cache folder, so that a file that has not changed is not read again: a
small file each, under the file's path and state (size, inode, device, and the times (ns) of its last change and of that
of its status, which nobody can set back). A copy is another file; a note that is damaged or of another path counts for
nothing; where none can be written the file is read each time. `fairagent doctor --verify` looks at no note.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from fairagent.errors import BackendUnavailable, Fault, IndexMismatch
from fairagent.storage.files import write_whole
from fairagent.storage.readers import file_bytes, file_text, parse_json
from fairagent.storage.regular import open_to_read
from fairagent.types.clean import logger

RECORD = "fairagent-files.json"
"""The record's name; it is the last file that a finished folder gets, and marks it as one of fairagent's."""
WHOLE = 4 << 20
"""Bytes up to which a file is compared as a whole when its folder is opened."""
SAMPLES, SAMPLE = 16, 1 << 16
"""Of a larger one so many pieces of so many bytes: the first, the last, and 14 at places that the seed draws."""
SEED = 20220601
LARGEST = 1 << 26
"""Bytes of a record."""
TAIL = len(',"sha256":"0123456789abcdef"}')
LEAST = 1 << 20
"""Bytes: a smaller file is read in a millisecond, and nothing about it is noted."""
QUIET = 2_000_000_000
"""Nanoseconds that a file has been left alone before it is read, or nothing is noted.

File systems count time in steps, of two seconds at most (FAT): what is written twice within a step has one state.
"""
LARGEST_NOTE = 10_000
"""Bytes."""

log = logger(__name__)


def hash_file(path: Path) -> str:
    """SHA-256 (hex) of a file."""
    with open_to_read(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def record_files(folder: Path) -> None:
    """Write the record of all files in `folder`, in whatever depth."""
    files: dict[str, dict[str, Any]] = {}
    for name, path in _files(folder).items():
        files[name] = {"bytes": path.stat().st_size, "sha256": hash_file(path)}
        if files[name]["bytes"] > WHOLE:
            files[name]["sample"] = _sample(path)
    write_whole(folder / RECORD, json.dumps({"format": 1, "files": files}, indent=1) + "\n")


def differences(folder: Path, whole: bool, digest: Callable[[Path], str] = hash_file) -> list[Fault] | None:
    """How the files in `folder` differ from its record; None where it has none.

    `whole`: by every byte, else by what can be compared in a moment (at most 4 MB of a file). `digest` gives the
    SHA-256 of a whole file.
    """
    path = folder / RECORD
    try:
        recorded: Mapping[str, Mapping[str, Any]] = parse_json(file_text(path, LARGEST))["files"]
        names = set(recorded)
        expected = {name: (of["bytes"], of["sha256"], of.get("sample")) for name, of in recorded.items()}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return [Fault(path, None, "cannot be read")]
    there = _files(folder)
    faults = [Fault(folder / name, None, "is missing") for name in sorted(names - there.keys())]
    faults += [Fault(folder / name, None, "does not belong there") for name in sorted(there.keys() - names)]
    for name in sorted(names & there.keys()):
        size, of_whole, sample = expected[name]
        try:
            bytes_there = there[name].stat().st_size
            if bytes_there != size:
                faults.append(Fault(there[name], None, f"has {bytes_there:,} bytes, not {size}"))
            elif (_sample(there[name]) != sample) if sample and not whole else (digest(there[name]) != of_whole):
                faults.append(Fault(there[name], None, "is not what was written"))
        except OSError as error:
            faults.append(Fault(there[name], None, f"cannot be read ({error.strerror or error})"))
    return faults


def recorded(folder: Path, name: str) -> str:
    """The SHA-256 that a folder's record has of one of its files; "" where it has none."""
    try:
        return str(parse_json(file_text(folder / RECORD, LARGEST))["files"][name]["sha256"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""


def expect_whole(folder: Path, what: str, remedy: str) -> None:
    """Raise IndexMismatch, naming every damaged file, where a moment's look at `folder` shows damage to `what`.

    A folder without a record is from an earlier version, of which the log warns once.
    """
    faults = differences(folder, whole=False)
    if faults is None:
        _warn(f"{what} at {folder}: by a version that wrote no checksums ({RECORD}): damage goes unnoticed; {remedy}")
    elif faults:
        raise IndexMismatch(f"{what} at {folder}: damaged; {remedy}", faults)


@cache
def _warn(message: str) -> None:
    log.warning("%s", message)


def sealed(line: str, key: str = "") -> str:
    """A JSON object on one line, with a checksum as its last key; `key` is what the line has to belong to.

    >>> sealed('{"a":1}')
    '{"a":1,"sha256":"7395dc66860499cb"}'
    """
    return f'{line[:-1]},"sha256":"{checksum(line, key)}"}}'


def unsealed(line: bytes, key: str = "") -> bytes:
    """The object that was sealed; ValueError where the line is another one, or belongs to something else."""
    plain = line.rstrip(b"\n")
    body = plain[:-TAIL] + b"}"
    if plain[-TAIL:] != f',"sha256":"{checksum(body, key)}"}}'.encode():
        raise ValueError("its checksum is not that of its contents")
    return body


def checksum(text: str | bytes, key: str = "") -> str:
    """16 hex digits of the SHA-256 of a text and of the key that it belongs to."""
    plain = text.encode() if isinstance(text, str) else text
    return hashlib.sha256(key.encode() + b"\n" + plain).hexdigest()[:16]


def _files(folder: Path) -> dict[str, Path]:
    """The files in a folder by their places in it, but for the record and what begins with a dot.

    Folders in it that have a record of their own, or are being made, are not looked into.
    """
    files: dict[str, Path] = {}
    for path in folder.iterdir():
        if not path.is_dir():
            files[path.name] = path
        elif not (path.is_symlink() or path.suffix == ".partial" or (path / RECORD).is_file()):
            files |= {f"{path.name}/{name}": inner for name, inner in _files(path).items()}
    return {name: path for name, path in files.items() if name != RECORD and not path.name.startswith(".")}


def _sample(path: Path) -> str:
    """The SHA-256 of some pieces of a large file."""
    digest = hashlib.sha256()
    with open_to_read(path) as file:
        last = path.stat().st_size - SAMPLE
        for number in range(SAMPLES):
            drawn = hashlib.sha256(f"{SEED} {last} {number}".encode()).digest()
            file.seek((0, last)[number] if number < 2 else int.from_bytes(drawn[:8]) % last)
            digest.update(file.read(SAMPLE))
    return digest.hexdigest()


FileState = tuple[int, ...]
"""What a file is compared by with what it was: size, times (ns) of the last changes, inode, device."""


def _state_of(descriptor: int) -> FileState:
    """That of an open file."""
    stat = os.fstat(descriptor)
    return stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino, stat.st_dev


_known: dict[tuple[str, FileState], str] = {}
"""What this process has hashed: a cache folder that cannot be written to must not cost a pass for each question."""


def file_digest(path: Path, clock: Callable[[], int] = time.time_ns) -> str:
    """SHA-256 (hex) of a file; `clock` gives the time in ns since 1970. OSError where it cannot be read."""
    with open_to_read(path) as file:
        state = _state_of(file.fileno())
        place = str(path.absolute())
        if state[0] >= LEAST and (digest := _known.get((place, state)) or _noted(place, state)):
            return digest
        began = clock()
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        left_alone = max(state[1:3]) < began - QUIET and _state_of(file.fileno()) == state
    if state[0] >= LEAST and left_alone:
        _known[place, state] = digest
        with suppress(BackendUnavailable):
            write_whole(_note_path(place), sealed(json.dumps({"state": state, "digest": digest}), place) + "\n")
    return digest


def notes_folder() -> Path:
    """Where the notes are."""
    # Imported here, since most files are small.
    from platformdirs import user_cache_path

    return user_cache_path("fairagent") / "digests"


def _noted(place: str, state: FileState) -> str:
    """The digest of the file in this state; "" where there is no good note of it."""
    try:
        note = parse_json(unsealed(file_bytes(_note_path(place), LARGEST_NOTE), place).decode())
        return str(note["digest"]) if tuple(note["state"]) == state else ""
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _note_path(place: str) -> Path:
    return notes_folder() / f"{hashlib.sha256(place.encode('utf-8', 'surrogateescape')).hexdigest()[:32]}.json"
