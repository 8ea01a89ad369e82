"""`fairagent` run and killed many times: a process that has imported everything, and forks for each time.

The fork dies a stated time after its n-th step (a file opened, made, renamed, removed) in files named with a word.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from types import TracebackType
from typing import Self

PROGRAM = """
    import json, os, signal, sys, threading, time

    import openai, scipy.stats
    import fairagent.cli.index, fairagent.evaluate.experiment, fairagent.evaluate.ranking.kind
    import fairagent.llm.openai, fairagent.report.page
    from evaluate import words
    from fairagent.cli import main

    def live(at, wait, place, folder, arguments, environ):
        seen = 0

        def die():
            time.sleep(wait)
            os.kill(os.getpid(), signal.SIGKILL)

        def hook(event, given):
            nonlocal seen
            if event in ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir") and place in str(given[0]):
                seen += 1
                if seen == at:
                    threading.Thread(target=die, daemon=True).start() if wait else die()

        os.chdir(folder)
        os.environ.update(environ)
        sys.argv = ["fairagent", *arguments]
        said = os.open("said", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(said, 2)
        sys.addaudithook(hook)
        code = 0
        try:
            main()
        except SystemExit as error:
            code = error.code or 0
        os.write(said, f"seen {seen}".encode())
        os._exit(code)

    for line in sys.stdin:
        if not (pid := os.fork()):
            live(**json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


class Killing:
    """The program with all its modules, ready to run; to be used as a context."""

    def __enter__(self) -> Self:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("FAIRAGENT_", "OPENAI_"))}
        self._process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**kept, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()

    def run(self, folder: Path, *arguments: str, place: str, at: int = 0, wait: float = 0.0, **environ: str) -> int:
        """The exit code of `fairagent` with these arguments in `folder`; `at` 0 lets it live."""
        told = {"at": at, "wait": wait, "place": place, "folder": str(folder)}
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps({**told, "arguments": arguments, "environ": environ}) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    @staticmethod
    def said(folder: Path) -> str:
        """What the last run in `folder` complained of, and at the end how many steps it took."""
        return (folder / "said").read_text(encoding="utf-8")


def steps(folder: Path) -> int:
    """How many steps the last run in `folder` took, which was not killed."""
    return int(Killing.said(folder).split()[-1])
