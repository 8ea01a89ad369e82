"""Case 217: a signal that comes while the program is still being imported, or when its work is done."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from . import life
from .test_processes import ENVIRONMENT

TRIALS = int(os.environ.get("FAULT_TRIALS", "2"))
PROGRAM = """
    import atexit, os, sys
    wanted, number, *sys.argv[1:] = sys.argv[1:]

    class Finder:
        "Sends the signal at the import of that name, or at the import of that number."

        seen = 0

        def find_spec(self, name, path=None, target=None):
            Finder.seen += 1
            if wanted in (name, str(Finder.seen)):
                os.kill(os.getpid(), int(number))

    if wanted == "end":
        atexit.register(lambda: os.kill(os.getpid(), int(number)))
    from fairagent.__main__ import main
    sys.meta_path.insert(0, Finder())
    if wanted == "count":
        atexit.register(lambda: print(Finder.seen, file=sys.stderr))
    main()
"""
SAID = {2: "fairagent: interrupted\n", 15: "fairagent: ended by SIGTERM\n", 1: "fairagent: ended by SIGHUP\n"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a collection, its index and an experiment."""
    return life.write(tmp_path_factory.mktemp("signals")).parent


def program(folder: Path, at: str, number: int, *arguments: str) -> tuple[int, str]:
    """The exit code of the program that got the signal there, and what it complained of."""
    # Who runs the tests with nohup ignores a signal, and so would the process.
    heard = "import signal; signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
    done = subprocess.run(
        [sys.executable, "-c", heard + textwrap.dedent(PROGRAM), at, str(number), *arguments],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stderr


SEARCH = ("search", "lawyer", "-c", "collection.yaml", "--index", "index", "--set", "engine=bm25")


@pytest.mark.parametrize(
    ("at", "number", "arguments"),
    [
        ("fairagent.cli.app", signal.SIGINT, ("--help",)),
        # Each command is imported when the help lists it, or when it is called.
        ("fairagent.cli.evaluate", signal.SIGTERM, ("--help",)),
        ("numpy", signal.SIGTERM, SEARCH),
        ("fairagent.evaluate.check", signal.SIGHUP, ("evaluate", "experiment.yaml", "--run", "run")),
    ],
)
def test_217_a_signal_during_an_import_is_heeded_after_it(
    folder: Path, at: str, number: int, arguments: tuple[str, ...]
) -> None:
    assert program(folder, at, number, *arguments) == (128 + number, SAID[number])


def test_217_a_signal_when_all_is_done_leaves_no_traceback(folder: Path) -> None:
    assert program(folder, "end", signal.SIGINT, "--version") == (130, "")


def test_217_at_any_import(folder: Path) -> None:
    """FAULT_TRIALS says at how many of a search's imports."""
    imports = int(program(folder, "count", 0, *SEARCH)[1])
    for trial in range(TRIALS):
        number = [2, 15, 1][trial % 3]
        found = program(folder, str(1 + trial * imports // TRIALS), number, *SEARCH)
        # The last ones may be those of the result's own end.
        assert found in ((128 + number, SAID[number]), (128 + number, "")), (trial, found)
