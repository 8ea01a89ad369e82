"""The digests of large files, remembered: a file that has not changed is not read again.

What was hashed is noted in the user's cache folder, a small file each, under the file's path and state: size, inode,
device, and the times (ns) of its last change and of that of its status, which nobody can set back. A copy is another
file; a note that is damaged or of another path counts for nothing; where none can be written the file is read each
time. `fairagent doctor --verify` looks at no note.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from fairagent.digests import sealed, unsealed
from fairagent.errors import BackendUnavailable
from fairagent.files import write_whole
from fairagent.intake.json_text import parse_json
from fairagent.intake.text import file_bytes

LEAST = 1 << 20
"""Bytes: a smaller file is read in a millisecond, and nothing about it is noted."""
SETTLED = 2_000_000_000
"""Nanoseconds that a file has been left alone before it is read, or nothing is noted.

File systems count time in steps, of two seconds at most (FAT): what is written twice within a step has one state.
"""
LARGEST_NOTE = 10_000
"""Bytes."""


class State(NamedTuple):
    """By what a file is told from what it was."""

    size: int
    modified: int
    changed: int
    inode: int
    device: int


_known: dict[tuple[str, State], str] = {}
"""What this process has hashed: a cache folder that cannot be written to must not cost a pass for each question."""


def file_digest(path: Path, clock: Callable[[], int] = time.time_ns) -> str:
    """SHA-256 (hex) of a file; `clock` tells the time in ns since 1970. OSError where it cannot be read."""
    with path.open("rb") as file:
        state = _state(file.fileno())
        place = str(path.absolute())
        if state.size >= LEAST and (digest := _known.get((place, state)) or _noted(place, state)):
            return digest
        began = clock()
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        left_alone = max(state.modified, state.changed) < began - SETTLED and _state(file.fileno()) == state
    if state.size >= LEAST and left_alone:
        _known[place, state] = digest
        with suppress(BackendUnavailable):
            write_whole(_note(place), sealed(json.dumps({"state": state, "digest": digest}), place) + "\n")
    return digest


def folder() -> Path:
    """Where the notes are."""
    # Here and not above: most files are small.
    from platformdirs import user_cache_path

    return user_cache_path("fairagent") / "digests"


def _noted(place: str, state: State) -> str:
    """The digest of the file in this state; "" where there is no good note of it."""
    try:
        note = parse_json(unsealed(file_bytes(_note(place), LARGEST_NOTE), place).decode())
        return str(note["digest"]) if State(*note["state"]) == state else ""
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _note(place: str) -> Path:
    return folder() / f"{hashlib.sha256(place.encode('utf-8', 'surrogateescape')).hexdigest()[:32]}.json"


def _state(descriptor: int) -> State:
    found = os.fstat(descriptor)
    return State(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_dev)
