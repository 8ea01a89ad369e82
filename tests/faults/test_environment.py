"""Cases 41 to 44 of docs/reliability.md: what is not installed, not set, or set by someone else; and the key."""

from __future__ import annotations

import functools
import json
import logging
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fairagent import BackendUnavailable, UsageError, build_index, load_collection, open_agent
from fairagent.cli import app
from fairagent.cli.options import overrides
from fairagent.errors import SettingsError
from fairagent.guests.testing import LoopbackServer, completion, error
from fairagent.settings import BudgetSettings, ModelSettings, Settings, load_settings

from . import life
from .tiny import write

CANARY = "sk-canary-0123456789abcdef"


@pytest.fixture(autouse=True)
def own_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("FAIRAGENT_", "OPENAI_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer() as server:
        yield server


def test_219_a_setting_without_a_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty, an error that names it, or as if it were not set; so in a call (`--set cache=`), a file and a variable."""
    sections = {"budget": BudgetSettings, "model": ModelSettings}
    keys = [*Settings.model_fields, *(f"{name}.{key}" for name, one in sections.items() for key in one.model_fields)]
    refused, empty = [], []
    for key in keys:
        try:
            found = load_settings(overrides=overrides([f"{key}="]), environ={})
        except SettingsError as error:
            refused.append((key, str(error)))
            continue
        if functools.reduce(getattr, key.split("."), found) == "":
            empty.append(key)
    got = re.compile(r"\(got (nothing|'')\)|no value ''")
    assert [key for key, said in refused if f"\n  {key}" not in said or not got.search(said)] == []
    assert {"cache", "index", "collection", "model.name"} <= set(empty)
    assert {"n", "depth", "engine", "rerank"} <= {key for key, _ in refused}
    (tmp_path / "settings.yaml").write_text("cache:\n", encoding="utf-8")
    monkeypatch.setenv("FAIRAGENT_CACHE", "")
    assert load_settings(tmp_path / "settings.yaml", environ={}).cache == load_settings().cache == ""


def test_41_no_index(tmp_path: Path) -> None:
    file = write(tmp_path / "files")
    with pytest.raises(BackendUnavailable, match=r"no index at .*none; build it with `fairagent index`"):
        open_agent(file, tmp_path / "none")


def test_42_without_a_package_what_to_install_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for missing in ("sentence_transformers", "distributed"):
        monkeypatch.setitem(sys.modules, missing, None)

    from fairagent.evaluate.workers import dask
    from fairagent.guests.dense.encoders import SentenceEncoder

    with pytest.raises(BackendUnavailable, match=r"fairagent\[dense\]"):
        SentenceEncoder("all-MiniLM-L6-v2").encode(["a"])
    with pytest.raises(BackendUnavailable, match=r"fairagent\[dask\]"), dask("local"):
        pass


def test_43_the_key_is_in_nothing_that_is_written(
    server: LoopbackServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Not in what is printed, logged (DEBUG), kept, traced or shown; the server echoes it wherever it can."""
    file = life.write(tmp_path / "files")
    spoken = json.dumps({"keywords": ["she", CANARY]})
    server.script = [error(500, f"bad key {CANARY}"), error(400, f"response_format unsupported, {CANARY}")]
    server.script += [completion(spoken)] * 5 + [error(400, f"no, {CANARY}"), completion(spoken)]
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url.replace("http://", f"http://me:{CANARY}@"))
    monkeypatch.chdir(tmp_path)
    caplog.set_level(logging.DEBUG)
    done = CliRunner().invoke(app, ["evaluate", str(file), "--workers", "2", "--limit-topics", "4"])
    # What fails there falls back to the documents' words, and the trace says why.
    assert done.exit_code == 0, done.output
    assert server.keys[0] == f"Bearer {CANARY}"
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    names = {path.name for path in written}
    assert {"run.json", "journal.jsonl", "report.html", "results.csv", "cache.db"} <= names
    for path in written:
        assert CANARY.encode() not in path.read_bytes(), path
    assert "fairagent" in caplog.text
    assert CANARY not in caplog.text + done.output
    assert "Request options" not in caplog.text


@pytest.mark.slow
def test_43_log_prompts_shows_what_is_asked_and_never_the_key(server: LoopbackServer, tmp_path: Path) -> None:
    file = life.write(tmp_path / "files")
    server.script = [completion('{"keywords": ["she"]}')]
    command = ("evaluate", str(file), "--limit-topics", "1", "--log-prompts")
    code, said = life.finish(life.start(*command, folder=tmp_path, server=server, OPENAI_API_KEY=CANARY))
    assert code == 0, said
    assert server.keys[0] == f"Bearer {CANARY}"
    assert server.requests[0]["messages"][0]["content"].splitlines()[0] in said
    assert CANARY not in said


def test_44_what_the_shell_has_set_is_shown_and_recorded_by_its_host(
    server: LoopbackServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="no address of a server"):
        open_agent(*_indexed(tmp_path), loop="fair-qr", refine="llm", model={"name": "m", "base_url": "ftp://x"})
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    server.script = [completion('{"keywords": ["she"]}')]
    file = life.write(tmp_path / "files")
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(app, ["evaluate", str(file), "--limit-topics", "1"]).exit_code == 0
    (head,) = tmp_path.rglob("run.json")
    models = json.loads(head.read_text(encoding="utf-8"))["provenance"]["models"]
    assert {model["server"] for model in models.values()} == {server.url.removeprefix("http://").removesuffix("/v1")}


def _indexed(folder: Path) -> tuple[Path, Path]:
    file = write(folder / "tiny")
    build_index(load_collection(file), folder / "tiny-index")
    return file, folder / "tiny-index"
