"""`fairagent model` without a model: what it says, and its exit codes. tests/real has the real one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from gguf_files import gguf_bytes, gguf_file

from fairagent.cli import doctor, model
from fairagent.guests.local.gguf import Queue
from fairagent.guests.testing import LoopbackServer

from .conftest import Call


class Served:
    """Stands in the place of the server, which is interrupted when its queue was looked at often enough."""

    def __init__(
        self, file: Path, port: int, context: int | None, threads: int = 1, slots: int = 1, _plain: bool = False
    ) -> None:
        self.file, self.name, self.url = file, file.stem, "http://127.0.0.1:4711/v1"
        self.context, self.trained, self.threads, self.slots = context or 2048, 2048, threads, slots
        self.waiting: Iterator[int] = iter((0, 3, 3, 1, 0))
        self.closed = False
        LAST.append(self)

    def queue(self) -> Queue:
        waiting = next(self.waiting, None)
        if waiting is None:
            raise KeyboardInterrupt
        return Queue(1, waiting)

    def __enter__(self) -> Served:
        return self

    def __exit__(self, *_: object) -> None:
        self.closed = True


LAST: list[Served] = []


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairagent.guests.local.gguf.LocalServer", Served)
    monkeypatch.setattr(model, "time", SimpleNamespace(sleep=lambda seconds: None))


@pytest.mark.usefixtures("served")
def test_one_line_when_it_is_ready_then_who_waits_then_ctrl_c(call: Call, tmp_path: Path) -> None:
    result = call("model", "serve", "--model", str(gguf_file(tmp_path)))
    assert result.exit_code == 0
    assert result.stdout == "ready http://127.0.0.1:4711/v1 model=tiny-instruct context=2048 slots=1 threads=1\n"
    assert [line for line in result.stderr.splitlines() if "waiting" in line] == [
        "1 slot, 3 waiting",
        "1 slot, 1 waiting",
        "1 slot, 0 waiting",
    ]
    assert result.stderr.endswith("stopped\n")
    assert LAST[-1].closed


@pytest.mark.usefixtures("served")
def test_the_options_reach_the_server(call: Call, tmp_path: Path) -> None:
    file = str(gguf_file(tmp_path))
    result = call("model", "serve", "--model", file, "--context", "4096", "--threads", "2", "--slots", "3")
    assert "context=4096 slots=3 threads=2" in result.stdout
    assert "trained on 2,048 tokens" in result.stderr
    assert 'base_url: "http://127.0.0.1:4711/v1", context: 4096}' in result.stderr


@pytest.mark.parametrize("command", [["serve"], ["demo"]])
def test_no_model(call: Call, monkeypatch: pytest.MonkeyPatch, command: list[str]) -> None:
    monkeypatch.setattr("fairagent.guests.local.packaged.small_model", lambda: None)
    result = call("model", *command)
    assert (result.exit_code, result.stdout) == (3, "")
    assert "fairagent model get" in result.stderr


@pytest.mark.slow
def test_the_demo_asks_every_part_and_says_what_it_is_worth(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with LoopbackServer(lambda request: "Musicians played [1].") as server:

        class Here(Served):
            """At an address where somebody answers, though never in the form that a part asks for."""

            def __init__(self, *arguments: Any) -> None:
                super().__init__(*arguments)
                self.url = server.url

        monkeypatch.setattr("fairagent.guests.local.gguf.LocalServer", Here)
        result = call("model", "demo", "--model", str(gguf_file(tmp_path)), "--context", "8192")
        asked = json.dumps(server.requests)
    assert result.exit_code == 0, result.output
    assert "tiny-instruct on this machine: shows the plumbing, not the quality" in result.stdout
    assert "Musicians played [1]." in result.stdout
    assert result.stdout.endswith("tokens; shows the plumbing, not the quality\n")
    for part in (
        "a passage of at most forty words",
        "You judge documents",
        "You check documents",
        "You answer a question",
    ):
        assert part in asked
    assert LAST[-1].closed


def test_a_damaged_file_is_one_error(call: Call, tmp_path: Path) -> None:
    (tmp_path / "bad.gguf").write_bytes(gguf_bytes()[:-40])
    for command in (["serve", "--model", "bad.gguf"], ["convert", "bad.gguf", "new"]):
        result = call("model", *command)
        assert result.exit_code == 4
        assert "is damaged" in result.stderr
        assert "Traceback" not in result.output


def test_get_says_where_it_lies(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairagent.guests.local.packaged.small_model", lambda: Path("there.gguf"))
    monkeypatch.setattr("fairagent.guests.local.packaged.install_small_model", lambda: Path("there.gguf"))
    result = call("model", "get")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "there.gguf\n", "")


def test_get_asks_for_the_license(call: Call) -> None:
    result = call("model", "get", "gemma3-270m")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "https://ai.google.dev/gemma/terms" in result.stderr
    assert "--accept-license gemma" in result.stderr


@pytest.mark.parametrize(
    ("there", "found", "fix"),
    [
        ({"xllamacpp", "gguf", "accelerate", "transformers", "model"}, "model small.gguf, a server", ""),
        ({"xllamacpp", "model"}, "no likelihoods", "pip install 'fairagent[local]'"),
        ({"gguf", "accelerate", "transformers"}, "no model, no server, likelihoods", "`fairagent model get`"),
    ],
)
def test_doctor_says_what_is_there(monkeypatch: pytest.MonkeyPatch, there: set[str], found: str, fix: str) -> None:
    monkeypatch.setattr(doctor, "_lacking", lambda names: [name for name in names if name not in there])
    monkeypatch.setattr(
        "fairagent.guests.local.packaged.small_model", lambda: Path("small.gguf") if "model" in there else None
    )
    check = doctor.check_local_model()
    assert check.status == "ok"
    assert found in check.detail
    assert check.fix.startswith(fix) if fix else not check.fix
