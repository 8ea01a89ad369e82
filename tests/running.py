"""Python and the program in processes of their own, without the user's settings, keys and servers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

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
    about = {"cwd": folder, "env": environment(**more), "input": given}
    done = subprocess.run([sys.executable, *arguments], capture_output=True, encoding="utf-8", check=False, **about)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def start(*arguments: str, folder: Path | None = None, program: str = PROGRAM, **more: str) -> subprocess.Popen[str]:
    """The program in a process of its own, as a user's shell would start it."""
    command, pipe = [sys.executable, "-c", program, *arguments], subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, env=environment(**more), stdout=pipe, stderr=pipe, encoding="utf-8")


def interrupted(script: str, after: float = 0.3) -> tuple[str, str, int]:
    """What a script prints and complains of after it was interrupted, and its exit code.

    It prints "ready" first; so many seconds later it gets the signal, and must still be at it then.
    """
    with start(program=textwrap.dedent(script), JAVA_HOME="") as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(timeout=after)
            process.send_signal(signal.SIGINT)
            out, error = process.communicate(timeout=250)
            return out, error, process.returncode
        finally:
            process.kill()


_HIDE = """
import sys
from importlib.machinery import PathFinder
class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in {modules} else super().find_spec(name, path, target)
sys.meta_path[sys.meta_path.index(PathFinder)] = Without
"""


def hiding(modules: Iterable[str], code: str) -> str:
    """Code after which these modules are not found, and then `code`."""
    return _HIDE.replace("{modules}", repr(set(modules))) + code
