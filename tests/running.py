"""Python and the program in processes of their own, without the user's settings, keys and servers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

Install = Callable[..., Path]
"""Of the fixture `install`: the package, its entry points, and its files by name."""
PROGRAM = "from fairagent.cli import main; main()"


def environment(**more: str) -> dict[str, str]:
    """The variables of such a process."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("FAIRAGENT_", "OPENAI_"))}
    return {**ours, "PYTHONPATH": os.pathsep.join(sys.path), **more}


def python(
    *arguments: str, folder: Path | None = None, code: int = 0, given: str | None = None, **more: str
) -> subprocess.CompletedProcess[str]:
    """What came of Python with these arguments in `folder`; it must end with the exit code `code`."""
    command, variables = [sys.executable, *arguments], environment(**more)
    done = subprocess.run(
        command, cwd=folder, env=variables, input=given, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


def start(*arguments: str, folder: Path, program: str = PROGRAM, **more: str) -> subprocess.Popen[str]:
    """The program in a process of its own, as a user's shell would start it."""
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        cwd=folder,
        env=environment(**more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
