"""What the files of a folder held when they were finished, and whether they still do.

A finished folder of fairagent's has a record of all its files, each with its size and SHA-256. Opening the folder
compares the sizes, small files as a whole, and pieces of large ones; `fairagent doctor --verify` compares every byte.

The digest of a large file is noted in the user's cache folder, under its path and state (size, inode, device, and the
times (ns) of its last change and of that of its status, which nobody can set back), so that it is not read again.
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

from platformdirs import user_cache_path

from fairagent.errors import BackendUnavailable, Fault, IndexMismatch
from fairagent.storage.files import open_to_read, sealed, unsealed, write_whole
from fairagent.storage.readers import file_bytes, file_text, parse_json
from fairagent.types.clean import logger

RECORD = "fairagent-files.json"
"""The record's name; it is the last file that a finished folder gets, and marks it as one of fairagent's."""
WHOLE = 4 << 20
"""Bytes up to which a file is compared as a whole when its folder is opened."""
SAMPLES, SAMPLE = 16, 1 << 16
"""Of a larger one so many pieces of so many bytes: the first, the last, and 14 at places drawn by a seed."""
LARGEST = 1 << 26
"""Bytes of a record."""
LEAST = 1 << 20
"""Bytes: a smaller file is read in a millisecond, and nothing about it is noted."""
QUIET = 2_000_000_000
"""Nanoseconds that a file has been left alone before it is read, or nothing is noted: file systems count time in steps,
of two seconds at most (FAT)."""

_warn = cache(logger(__name__).warning)
_known: dict[tuple[str, tuple[int, ...]], str] = {}
"""What this process has hashed: a cache folder that cannot be written to must not cost a pass for each question."""


def record_files(folder: Path) -> None:
    """Write the record of all files in `folder`, in whatever depth."""
    files: dict[str, dict[str, Any]] = {}
    for name, path in _files(folder).items():
        files[name] = {"bytes": path.stat().st_size, "sha256": hash_file(path)}
        if files[name]["bytes"] > WHOLE:
            files[name]["sample"] = _sample(path)
    write_whole(folder / RECORD, json.dumps({"format": 1, "files": files}, indent=1) + "\n")


def hash_file(path: Path) -> str:
    """SHA-256 (hex) of a file."""
    with open_to_read(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def differences(folder: Path, whole: bool, digest: Callable[[Path], str] = hash_file) -> list[Fault] | None:
    """How the files in `folder` differ from its record; None where it has none.

    `whole`: by every byte, else by what can be compared in a moment. `digest` gives the SHA-256 of a whole file.
    """
    try:
        recorded: Mapping[str, Mapping[str, Any]] = parse_json(file_text(folder / RECORD, LARGEST))["files"]
        expected = {name: (of["bytes"], of["sha256"], of.get("sample")) for name, of in recorded.items()}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return [Fault(folder / RECORD, None, "cannot be read")]
    try:
        there = _files(folder)
    except OSError as error:
        # It is being replaced this moment.
        return [Fault(folder, None, f"cannot be read ({error.strerror or error})")]
    faults = [Fault(folder / name, None, "is missing") for name in sorted(expected.keys() - there.keys())]
    faults += [Fault(folder / name, None, "does not belong there") for name in sorted(there.keys() - expected.keys())]
    for name in sorted(expected.keys() & there.keys()):
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
    except (OSError, ValueError, KeyError, TypeError):
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
            drawn = hashlib.sha256(f"20220601 {last} {number}".encode()).digest()
            file.seek((0, last)[number] if number < 2 else int.from_bytes(drawn[:8]) % last)
            digest.update(file.read(SAMPLE))
    return digest.hexdigest()


def file_digest(path: Path, clock: Callable[[], int] = time.time_ns) -> str:
    """SHA-256 (hex) of a file; `clock` gives the time in ns since 1970. OSError where it cannot be read."""

    def state_of(descriptor: int) -> tuple[int, ...]:
        status = os.fstat(descriptor)
        return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev

    place = str(path.absolute())
    named = hashlib.sha256(place.encode("utf-8", "surrogateescape")).hexdigest()[:32]
    note = notes_folder() / f"{named}.json"
    with open_to_read(path) as file:
        state = state_of(file.fileno())
        if state[0] >= LEAST:
            if digest := _known.get((place, state)):
                return digest
            with suppress(OSError, ValueError, KeyError, TypeError):
                noted = parse_json(unsealed(file_bytes(note, 10_000), place).decode())
                if tuple(noted["state"]) == state:
                    return str(noted["digest"])
        began = clock()
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        left_alone = max(state[1:3]) < began - QUIET and state_of(file.fileno()) == state
    if state[0] >= LEAST and left_alone:
        _known[place, state] = digest
        with suppress(BackendUnavailable):
            write_whole(note, sealed(json.dumps({"state": state, "digest": digest}), place) + "\n")
    return digest


def notes_folder() -> Path:
    """Where the notes are."""
    return user_cache_path("fairagent") / "digests"
