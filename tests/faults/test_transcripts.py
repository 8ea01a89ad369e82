"""Cases 155 to 161: what models were asked stays on record, whatever ends a run, and steers nobody's terminal."""

from __future__ import annotations

import errno
import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from fairagent.cli import app
from fairagent.cli.doctor import verified
from fairagent.errors import BackendUnavailable, FatalModelError, UsageError
from fairagent.evaluate import workers as engine_workers
from fairagent.evaluate.check import check_experiment
from fairagent.evaluate.experiment import run_experiment
from fairagent.evaluate.workers import crew, dask, threads
from fairagent.guests.testing import LoopbackServer, completion, error
from fairagent.llm.exchange import Exchange, read_transcript
from fairagent.storage import lines

from . import life

KEY = "sk-canary-0123456789abcdef"
HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202e<script>document.title='owned'</script>\r\nrank 1"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return life.write(tmp_path_factory.mktemp("asked"))


@pytest.fixture
def server(no_variables: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    with LoopbackServer(life.Moody()) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


def kept(folder: Path) -> list[Exchange]:
    """The exchanges of a run; every line can be read."""
    found = list(read_transcript(folder / "transcript.jsonl"))
    assert None not in found
    return [one for one in found if one]


def asked_of(server: LoopbackServer) -> Counter[str]:
    return Counter(request["messages"][-1]["content"] for request in server.requests)


# Case 155


def test_155_every_call_is_kept_with_its_topic_and_system(file: Path, server: LoopbackServer, tmp_path: Path) -> None:
    life.run(file, tmp_path / "run", 3, limit=5)
    paid = [one for one in kept(tmp_path / "run") if not one.cached]
    assert Counter(one.messages[-1][1] for one in paid) == asked_of(server)
    assert {one.system for one in paid} == {"asked", "asked more", "asked warmly"}
    assert len({one.topic for one in paid}) == 5
    assert {one.prompt for one in paid} == {"refine_query"}
    journal = [json.loads(line) for line in (tmp_path / "run" / "journal.jsonl").read_text().splitlines()]
    calls = {(one["topic"], one["system"]): one["calls"] for one in journal if one["calls"]}
    assert Counter((one.topic, one.system) for one in kept(tmp_path / "run")) == calls


def test_155_a_run_that_ends_has_the_call_that_ended_it(file: Path, server: LoopbackServer, tmp_path: Path) -> None:
    good = life.Moody()
    refused = error(401, "no such key")
    server.script = lambda request: good(request) if len(server.requests) < 4 else refused
    with pytest.raises(FatalModelError):
        life.run(file, tmp_path / "run")
    last = kept(tmp_path / "run")[-1]
    assert "401" in last.error
    assert (last.text, last.calls) == ("", 1)


# Case 156


def search(tmp_path: Path, file: Path, *more: str, command: str = "search") -> Result:
    chosen = ("engine=bm25", "loop=fair-qr", "refine=llm", "model.name=tiny", "iterations=1", "target=uniform")
    asked = [part for one in (*chosen, f"cache={tmp_path / 'replies'}") for part in ("--set", one)]
    options = ["-c", str(file.with_name("collection.yaml")), "--index", str(file.with_name("index"))]
    return CliRunner().invoke(app, [command, "judge", *options, *asked, *more])


def test_156_a_transcript_that_cannot_be_written_is_said_before_anything_is_asked(
    file: Path, server: LoopbackServer, tmp_path: Path
) -> None:
    (tmp_path / "notes.md").write_text("mine\n")
    for name, code, says in (
        ("notes.md", 2, "is there and is no transcript; name another file"),
        (".", 4, "is a folder and no regular file"),
        ("no/such/place.jsonl", 3, "cannot be written (No such file or directory)"),
    ):
        done = search(tmp_path, file, "--transcript", str(tmp_path / name))
        assert done.exit_code == code, done.output
        assert says in done.stderr.replace("\n", " ")
        assert "fairagent: " in done.stderr
    assert server.requests == []
    assert (tmp_path / "notes.md").read_text() == "mine\n"
    checked = check_experiment(file, environ=dict(os.environ))
    with threads(1) as workers:
        with pytest.raises(KeyboardInterrupt):
            run_experiment(checked, tmp_path / "run", workers, progress=interrupt)
        (tmp_path / "run" / "transcript.jsonl").write_text("mine\n")
        with pytest.raises(UsageError, match="is no transcript"):
            run_experiment(checked, tmp_path / "run", workers)
    assert server.requests == []


def interrupt(done: int, of: int) -> None:
    raise KeyboardInterrupt


def test_156_a_search_adds_to_its_transcript(file: Path, server: LoopbackServer, tmp_path: Path) -> None:
    for _ in range(2):
        done = search(tmp_path, file, "--transcript", str(tmp_path / "asked.jsonl"))
        assert done.exit_code == 0, done.output
    first, second = (one for one in read_transcript(tmp_path / "asked.jsonl") if one)
    assert (first.cached, second.cached) == (False, True)
    assert first.messages == second.messages
    assert len(server.requests) == 1
    path = tmp_path / "answered.jsonl"
    more = ("--set", "generate.kind=llm", "--transcript", str(path))
    assert search(tmp_path, file, *more, command="answer").exit_code == 0
    told = [one.prompt for one in read_transcript(path) if one]
    assert (told[0], told[-1], set(told[1:-1])) == ("refine_query", "answer", {"fairness_filter"})


# Case 157


def test_157_a_full_disk_in_the_middle_loses_no_reply_that_was_paid_for(
    file: Path, server: LoopbackServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The transcript's first line finds no room; whoever makes some and repeats the command goes on."""

    class Full:
        def __getattr__(self, name: str) -> object:
            return getattr(os, name)

        def write(self, descriptor: int, content: bytes) -> int:
            if os.readlink(f"/proc/self/fd/{descriptor}").endswith("transcript.jsonl"):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return os.write(descriptor, content)

    with monkeypatch.context() as patch:
        patch.setattr(lines, "os", Full())
        with pytest.raises(BackendUnavailable, match=r"transcript\.jsonl cannot be written \(No space"):
            life.run(file, tmp_path / "run", limit=3)
    assert len(server.requests) == 1
    life.run(file, tmp_path / "run", limit=3)
    assert life.paid_twice(server) == []


# Case 158


def test_158_the_key_is_in_no_file_of_the_run(
    file: Path, server: LoopbackServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever a server echoes it: in an overload, in a reply of no use, in a good one."""
    answers = [error(503, f"busy: {KEY}"), completion(f"no: {KEY}"), completion(f'{{"keywords": ["she"]}} {KEY}')]
    server.script = lambda request: answers[min(len(server.requests) - 1, 2)]
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    life.run(file, tmp_path / "run", limit=3)
    assert server.keys[0] == f"Bearer {KEY}"
    first = kept(tmp_path / "run")[0]
    assert [("***" in one.error, "***" in one.text) for one in first.attempts] == [(True, False), (False, True)]
    assert first.text.endswith("***")
    for path in (tmp_path / "run").rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes(), path


# Case 159


# Case 160


def test_160_torn_and_damaged_lines_cost_themselves_alone(file: Path, server: LoopbackServer, tmp_path: Path) -> None:
    life.run(file, tmp_path / "run", limit=4)
    expected, path = life.files(tmp_path / "run"), tmp_path / "run" / "transcript.jsonl"
    kept = path.read_bytes().splitlines(keepends=True)
    kept[1] = kept[1].replace(b'"calls":1', b'"calls":2')
    path.write_bytes(b"".join(kept) + b'{"exchange":1,"at":"20')
    journal = tmp_path / "run" / "journal.jsonl"
    # The last lines are of the systems and, beside each, of what it is without its loop.
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-4]))
    life.run(file, tmp_path / "run", limit=4)
    found = list(read_transcript(path))
    assert [place for place, one in enumerate(found) if one is None] == [1]
    told = {check.name: check for check in verified(tmp_path / "run")}
    assert told["transcript"].status == "problem"
    assert told["transcript"].detail == "line 2"
    assert told["tables"].status == "ok"
    assert len(found) > len(kept)
    assert life.files(tmp_path / "run") == expected


# Case 161


@pytest.mark.parametrize("kind", ["crew", pytest.param("cluster", marks=pytest.mark.slow)])
def test_161_processes_write_one_transcript(
    file: Path, server: LoopbackServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    if kind == "cluster":
        pytest.importorskip("distributed", reason="the package distributed (extra: dask) is not installed")
    monkeypatch.setattr(engine_workers, "PATIENCE", 0.0)
    monkeypatch.setattr(engine_workers, "WORTH", 0.0)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    checked = check_experiment(file, 4, environ={**os.environ, "FAIRAGENT_CACHE": "''"})
    with crew(2) if kind == "crew" else dask("local", 2) as workers:
        run_experiment(checked, tmp_path / "run", workers)
    found = kept(tmp_path / "run")
    assert Counter(one.messages[-1][1] for one in found) == asked_of(server)
    assert len({one.topic for one in found}) == 4
    assert all(one.system for one in found)
