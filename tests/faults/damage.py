"""Damage to files as disks, copies and people do it, drawn by a seed; and how often to try."""

from __future__ import annotations

import os
import random
from pathlib import Path


def trials(few: int) -> int:
    """How many random cases a test tries: `few`, or as many as the environment says (FAULT_TRIALS=150 pytest ...)."""
    return int(os.environ.get("FAULT_TRIALS", few))


def harm(folder: Path, chance: random.Random, files: list[str] | None = None) -> str:
    """Damage one of the folder's files, or of these, or exchange two; says how. At least one byte is another then."""
    names = files or sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    name = chance.choice([name for name in names if (folder / name).stat().st_size])
    path = folder / name
    before = path.read_bytes()
    how = chance.choice(["flip", "flip", "flips", "digit", "cut", "zeros", "noise", "swap", "remove", "twice"])
    after = bytearray(before)
    place = chance.randrange(len(before))
    if how in ("flip", "flips"):
        for _ in range(1 if how == "flip" else chance.randint(2, 40)):
            after[chance.randrange(len(before))] ^= 1 << chance.randrange(8)
    elif how == "digit":
        digits = [at for at, byte in enumerate(before) if 48 <= byte <= 57]
        at = chance.choice(digits or [place])
        after[at] = 48 + (after[at] - 48 + chance.randint(1, 9)) % 10
    elif how == "cut":
        del after[place:]
    elif how == "zeros":
        after[place : place + 512] = bytes(len(after[place : place + 512]))
    elif how == "noise":
        after[place : place + 64] = chance.randbytes(len(after[place : place + 64]))
    elif how == "twice":
        after[place:place] = after[place : place + 100]
    elif how == "swap":
        other = folder / chance.choice([one for one in names if one != name] or [name])
        after = bytearray(other.read_bytes())
        other.write_bytes(before)
    if how == "remove":
        path.unlink()
    else:
        if after == before:
            after[place] ^= 1
        path.write_bytes(after)
    return f"{how} {name} at {place}"
