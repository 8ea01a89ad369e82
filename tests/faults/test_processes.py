"""Cases 51 to 53: forks, signals, and two processes that share a cache."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fairagent.evaluate.run import load_run
from fairagent.guests.testing import LoopbackServer, completion
from fairagent.llm.budget import Ledger
from fairagent.llm.cache import ReplyCache
from fairagent.llm.calls import CachingModel
from fairagent.llm.request import ModelReply, ModelRequest
from fairagent.storage.files import one_at_a_time

from . import life

ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("FAIRAGENT_", "OPENAI_"))} | {
    "PYTHONPATH": os.pathsep.join(sys.path),
    "NO_PROXY": "127.0.0.1",
}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return life.write(tmp_path_factory.mktemp("processes"))


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer() as server:
        yield server


def python(script: str, *arguments: str, **environ: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(script), *arguments]
    environment = ENVIRONMENT | environ
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def until(condition: object, seconds: float = 250.0) -> None:
    end = time.monotonic() + seconds
    assert callable(condition)
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)


# Case 51

FORKED = """
    import multiprocessing, os, subprocess, sys, time
    from pathlib import Path
    from fairagent.errors import BackendUnavailable
    from fairagent.guests.lucene.java import java_class, start_java, using_java

    def version():
        try:
            start_java()
            with using_java():
                return java_class("java.lang.System").getProperty("java.version")
        except BackendUnavailable as error:
            return f"refused: {error}"

    def tell(queue):
        queue.put(version())

    if __name__ == "__main__":
        fork = multiprocessing.get_context("fork")
        queue = fork.Queue()
        before = fork.Process(target=tell, args=(queue,))
        before.start()
        print(queue.get(timeout=60))
        before.join()
        print(version())
        with fork.Pool(1) as pool:
            print(pool.apply_async(version).get(timeout=250))
        child = os.fork()
        if not child:
            # One that never asks Java ends as it likes.
            sys.exit(7)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        print(subprocess.run(["echo", "fine"], capture_output=True, text=True, preexec_fn=lambda: None).stdout.strip())
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
    before, mine, forked, left, run, again = out.splitlines()
    assert before == mine == again
    assert forked.startswith("refused: this process was forked after Java had started in its parent")
    assert "Use spawn: multiprocessing.get_context('spawn'), gunicorn without --preload" in forked
    assert (left, run) == ("7", "fine")


# Case 52


def test_52_sigterm_ends_a_run_as_ctrl_c_does(file: Path, server: LoopbackServer, tmp_path: Path) -> None:
    server.script = life.Moody(lambda text: replace(completion(text), delay=0.1))
    command = ("evaluate", str(file), "--workers", "8", "--run", "run")
    process = life.start(*command, folder=tmp_path, server=server)
    until(lambda: len(server.requests) >= 8)
    process.send_signal(signal.SIGTERM)
    ended, said = life.finish(process)
    assert ended == 143, said
    assert "fairagent: ended by SIGTERM; what is done stays; to go on, repeat the command" in said
    assert "Traceback" not in said
    assert "PARTIAL" in (tmp_path / "run" / "results.txt").read_text(encoding="utf-8")
    assert load_run(tmp_path / "run").partial
    # The same command finishes it, and pays for nothing twice.
    assert life.finish(life.start(*command, folder=tmp_path, server=server))[0] == 0
    assert not load_run(tmp_path / "run").partial
    assert life.paid_twice(server) == []


def test_52_a_terminal_that_is_gone_is_no_other_error(file: Path, server: LoopbackServer, tmp_path: Path) -> None:
    server.script = life.Moody(lambda text: replace(completion(text), delay=0.5))
    terminal, inside = pty.openpty()
    program = [sys.executable, "-c", "from fairagent.cli import main; main()", "evaluate", str(file), "--run", "run"]
    process = subprocess.Popen(
        program,
        cwd=tmp_path,
        env=ENVIRONMENT | {"OPENAI_BASE_URL": server.url, "TERM": "xterm"},
        stdin=inside,
        stdout=inside,
        stderr=inside,
        start_new_session=True,
        preexec_fn=_take_terminal,
    )
    os.close(inside)
    reader = threading.Thread(target=_read_all, args=(terminal, stop := threading.Event()))
    reader.start()
    until(lambda: len(server.requests) >= 8)
    stop.set()
    reader.join()
    os.close(terminal)
    assert process.wait(timeout=250) == 129
    assert "PARTIAL" in (tmp_path / "run" / "results.txt").read_text(encoding="utf-8")


def _take_terminal() -> None:
    import fcntl
    import termios

    # Who runs the tests with nohup ignores the signal, and so would the process.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _read_all(terminal: int, stop: threading.Event) -> None:
    """Read what is written to a terminal, or its buffer would fill."""
    import select

    while not stop.is_set():
        if select.select([terminal], [], [], 0.05)[0]:
            os.read(terminal, 65536)


STARTED = """
    import signal, sys
    signal.signal(signal.SIGHUP, {before})
    from fairagent.cli import main
    sys.argv = ["fairagent", "--version"]
    try:
        main()
    except SystemExit:
        print(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN, callable(signal.getsignal(signal.SIGHUP)))
        print(callable(signal.getsignal(signal.SIGTERM)))
"""


@pytest.mark.parametrize(("before", "after"), [("signal.SIG_IGN", "True False"), ("signal.SIG_DFL", "False True")])
def test_52_who_shall_survive_his_terminal_does(before: str, after: str) -> None:
    """As nohup starts a program: deaf to SIGHUP."""
    out, error = python(STARTED.format(before=before)).communicate(timeout=120)
    assert out.splitlines()[1:] == [after, "True"], error


@pytest.mark.slow
def test_52_the_workers_of_a_cluster_end_with_it(file: Path, server: LoopbackServer, tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="the package distributed (extra: dask) is not installed")
    server.script = life.Moody(lambda text: replace(completion(text), delay=0.2))
    command = ("evaluate", str(file), "--dask", "local", "--workers", "2", "--run", "run")
    process = life.start(*command, folder=tmp_path, server=server)
    until(lambda: len(server.requests) >= 4, 120.0)
    workers = _children(process.pid)
    assert workers
    process.send_signal(signal.SIGTERM)
    ended, said = life.finish(process)
    assert ended == 143, said
    assert "PARTIAL" in (tmp_path / "run" / "results.txt").read_text(encoding="utf-8")
    until(lambda: not any(map(_lives, workers)), 20.0)


def _children(process: int) -> list[int]:
    """The processes that a process has started, and theirs."""
    found: list[int] = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == process:
            child = int(stat.parent.name)
            found += [child, *_children(child)]
    return found


def _lives(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# Case 53

ASKS = """
    import json, sys
    from fairagent.llm import ModelRequest
    from fairagent.llm.models import Models
    from fairagent.settings import ModelSettings

    url, cache, deadline = sys.argv[1:]
    models = Models(cache, environ={})
    model = models.open(ModelSettings(name="tiny", base_url=url, deadline=float(deadline), timeout=float(deadline)))
    assert model.model._client.chat.completions
    print("ready", flush=True)
    reply = model.complete(ModelRequest((("user", "Which color?"),)))
    print(json.dumps([reply.text, reply.cached, reply.seconds]))
    models.close()
"""


def test_53_of_two_processes_that_ask_the_same_one_asks_the_model(server: LoopbackServer, tmp_path: Path) -> None:
    server.script = [replace(completion("red"), delay=2.0)]
    asking = [python(ASKS, server.url, str(tmp_path / "cache"), "60") for _ in range(3)]
    told = []
    for process in asking:
        out, error = process.communicate(timeout=120)
        assert process.returncode == 0, error
        told.append(json.loads(out.splitlines()[-1]))
    assert len(server.requests) == 1
    assert [text for text, _, _ in told] == ["red"] * 3
    assert sorted(cached for _, cached, _ in told) == [False, True, True]
    assert not list((tmp_path / "cache").glob(".asking-*"))


def test_53_nobody_waits_for_one_that_was_killed(server: LoopbackServer, tmp_path: Path) -> None:
    hold = threading.Event()

    def first_hangs(_: object) -> object:
        if len(server.requests) == 1:
            hold.wait()
        return completion("red")

    server.script = first_hangs  # type: ignore[assignment]
    first = python(ASKS, server.url, str(tmp_path / "cache"), "3000")
    until(lambda: len(server.requests) == 1)
    second = python(ASKS, server.url, str(tmp_path / "cache"), "3000")
    assert second.stdout
    assert second.stdout.readline() == "ready\n"
    time.sleep(2.0)
    assert len(server.requests) == 1
    first.kill()
    # Who waited for it all the same would do so until it is no test any more.
    out, error = second.communicate()
    hold.set()
    first.communicate()
    assert json.loads(out)[:2] == ["red", False], error
    assert len(server.requests) == 2


class Held:
    """A model that answers once `free` is set, and counts."""

    def __init__(self) -> None:
        self.free = threading.Event()
        self.asked = 0

    def complete(self, request: ModelRequest) -> ModelReply:
        self.asked += 1
        self.free.wait()
        return ModelReply("red", 1, 1)

    def identity(self, request: ModelRequest) -> dict[str, object]:
        return {"messages": request.messages}

    def hide(self, text: str) -> str:
        return text

    def cost(self, input_tokens: int, output_tokens: int) -> float | None:
        return None


ASKED = ModelRequest((("user", "Which color?"),))


def test_53_who_has_waited_long_enough_asks_himself(tmp_path: Path) -> None:
    cache, other = ReplyCache(tmp_path / "cache"), ReplyCache(tmp_path / "cache")
    first, second = Held(), Held()
    second.free.set()
    slow, quick = CachingModel(first, cache, Ledger()), CachingModel(second, other, Ledger(), patience=0.3)
    thread = threading.Thread(target=slow.complete, args=(ASKED,))
    thread.start()
    until(lambda: first.asked == 1)
    # The first one is still at it.
    assert not quick.complete(ASKED).cached
    first.free.set()
    thread.join()
    assert (first.asked, second.asked) == (1, 1)
    assert quick.complete(ASKED).cached
    cache.close()
    other.close()


def test_53_where_nothing_can_be_locked_nobody_waits(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / "file" / ".asking"
    with one_at_a_time(path, 3000.0), one_at_a_time(path, 3000.0):
        assert not path.exists()
