"""Cases 51, 53 and 217: forks, two that share a cache, and signals while the program is imported or when it is done."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from fairagent.guests.testing import LoopbackServer, completion
from fairagent.llm.models import Models
from fairagent.llm.request import ModelRequest
from fairagent.settings import ModelSettings
from fairagent.storage.signals import SAME

from . import life
from .harness import trials

ENVIRONMENT = life.environment()


def python(script: str, *arguments: str) -> subprocess.Popen[str]:
    command, pipe = [sys.executable, "-c", textwrap.dedent(script), *arguments], subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=ENVIRONMENT)


HANGS = """
    import os, signal, sys
    from fairagent.llm import openai
    from fairagent.llm.models import Models
    from fairagent.llm import ModelRequest
    from fairagent.settings import ModelSettings

    def killed(self, request):
        print("asked", flush=True)
        signal.pause()

    openai.OpenAIModel.complete = killed
    model = Models(sys.argv[2], environ={}).open(ModelSettings(name="tiny", base_url=sys.argv[1], deadline=3000))
    model.complete(ModelRequest((("user", "Which color?"),)))
"""


def test_53_nobody_waits_for_one_that_was_killed(server: LoopbackServer, tmp_path: Path) -> None:
    server.script = [completion("red")]
    first = python(HANGS, server.url, str(tmp_path / "cache"))
    assert first.stdout
    assert first.stdout.readline() == "asked\n"
    named = ModelSettings(name="tiny", base_url=server.url, deadline=3000, timeout=3000)
    # As another process has them.
    with closing(Models(tmp_path / "cache", environ={})) as models, ThreadPoolExecutor(1) as pool:
        second = pool.submit(models.open(named).complete, ModelRequest((("user", "Which color?"),)))
        assert not second.done()
        first.kill()
        # Who waited for it all the same would do so until it is no test any more.
        reply = second.result()
    first.communicate()
    assert (reply.text, reply.cached, len(server.requests)) == ("red", False, 1)


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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a collection, its index and an experiment."""
    return life.write(tmp_path_factory.mktemp("signals")).parent


def ended(folder: Path, at: str, number: int, *arguments: str, deaf: bool = False) -> tuple[int, str]:
    """The exit code of the program that got the signal there, and what it complained of."""
    # Who runs the tests with nohup ignores a signal, and so would the process.
    heard = f"import signal; signal.signal(signal.SIGHUP, signal.{'SIG_IGN' if deaf else 'SIG_DFL'})\n"
    command = [sys.executable, "-c", heard + textwrap.dedent(PROGRAM), at, str(number), *arguments]
    done = in_folder(folder, *command)
    return done.returncode, done.stderr


def in_folder(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=120)


SEARCH = ("search", "lawyer", "-c", "collection.yaml", "--index", "index", "--set", "engine=bm25")


FORKED = """
    import multiprocessing, os, sys
    from fairagent.errors import BackendUnavailable
    from fairagent.guests.lucene.java import java_class, start_java, using_java

    def version():
        try:
            start_java()
            with using_java():
                return java_class("java.lang.System").getProperty("java.version")
        except BackendUnavailable as error:
            return f"refused: {error}"

    if __name__ == "__main__":
        print(version())
        with multiprocessing.get_context("fork").Pool(1) as pool:
            print(pool.apply_async(version).get(timeout=250))
        child = os.fork()
        if not child:
            # One that never asks Java ends as it likes.
            sys.exit(7)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        print(version())
"""


def test_51_after_java_has_started_a_fork_is_refused_at_its_first_use_and_nothing_else_is() -> None:
    pytest.importorskip("pyserini")
    process = python(FORKED)
    try:
        out, error = process.communicate(timeout=120)
    finally:
        process.kill()
    assert (process.returncode, error) == (0, "")
    mine, forked, left, again = out.splitlines()
    assert mine == again
    assert forked.startswith("refused: this process was forked after Java had started")
    assert left == "7"


SAID = {2: "fairagent: interrupted\n", 15: "fairagent: ended by SIGTERM\n", 1: "fairagent: ended by SIGHUP\n"}
EVALUATE = ("evaluate", "experiment.yaml", "--run", "run")


@pytest.mark.parametrize(
    ("at", "number", "arguments", "code", "words"),
    [
        ("fairagent.cli.app", signal.SIGINT, ("--help",), 130, SAID[2]),
        ("numpy", signal.SIGTERM, SEARCH, 143, SAID[15]),
        ("fairagent.evaluate.check", signal.SIGHUP, EVALUATE, 129, SAID[1]),
        ("end", signal.SIGINT, ("--version",), 130, ""),
    ],
)
def test_217_a_signal_during_an_import_is_heeded_after_it_and_at_the_end_without_a_traceback(
    folder: Path, at: str, number: int, arguments: tuple[str, ...], code: int, words: str
) -> None:
    assert ended(folder, at, number, *arguments) == (code, words)
    if at == "fairagent.cli.app":
        # Who shall survive his terminal does, as nohup starts a program: deaf to SIGHUP.
        assert ended(folder, at, signal.SIGHUP, "--version", deaf=True) == (0, "")


@pytest.mark.slow
def test_217_at_any_import(folder: Path) -> None:
    """FAULT_TRIALS says at how many of a search's imports."""
    imports = int(ended(folder, "count", 0, *SEARCH)[1])
    for trial in range(trials(6)):
        number = [2, 15, 1][trial % 3]
        found = ended(folder, str(1 + trial * imports // trials(6)), number, *SEARCH)
        # The last ones may be those of the result's own end.
        assert found in ((128 + number, SAID[number]), (128 + number, "")), (trial, found)


@pytest.mark.parametrize(
    ("shell", "code", "complaints"),
    [
        ('"$@" > /dev/full', 3, 1),
        ('{ "$@"; echo $? >&3; } | true', 141, 0),
        ('"$@" >&- 2>&-', 0, 0),
        ('"$@" --nonsense 2> /dev/full', 2, 0),
    ],
)
def test_217_output_that_cannot_be_written_or_read(folder: Path, shell: str, code: int, complaints: int) -> None:
    program = ("bash", "-c", f"exec 3>&1; {shell}; echo $? >&3", "bash", sys.executable, "-m", "fairagent")
    done = in_folder(folder, *program, "config", "--defaults")
    assert done.stdout.split()[-2 if "|" in shell else -1] == str(code)
    assert len(done.stderr.splitlines()) == complaints


SWALLOWED = """
    import os, signal, sys, time, weakref
    import fairagent.cli.app

    app = sys.modules["fairagent.cli.app"]
    deaf = "deaf" in sys.argv

    class Thing:
        pass

    def config():
        thing = Thing()
        # What is raised in such a callback goes nowhere.
        weakref.finalize(thing, os.kill, os.getpid(), signal.SIGTERM)
        del thing
        if deaf:
            try:
                time.sleep(20)
            except BaseException:
                print("asked", flush=True)
        time.sleep(20)

    app.command = lambda name: config
    sys.argv[1:] = ["config"]
    app.main()
"""


def test_217_a_signal_that_is_swallowed_comes_again_and_a_second_one_ends_what_heeds_none() -> None:
    process = python(SWALLOWED)
    assert process.communicate(timeout=15) == ("", SAID[signal.SIGTERM])
    assert process.returncode == 143
    process = python(SWALLOWED, "deaf")
    assert process.stdout
    assert process.stdout.readline() == "asked\n"
    time.sleep(SAME)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=15) == ("", "")
    assert process.returncode == 130
