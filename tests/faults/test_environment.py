"""Cases 41 to 44 and 219: what is not installed, not set, or set by someone else; and the key."""

from __future__ import annotations

import functools
import json
import logging
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fairagent import BackendUnavailable, open_agent
from fairagent.cli import app
from fairagent.cli.options import overrides
from fairagent.errors import SettingsError
from fairagent.guests.dense.encoders import SentenceEncoder
from fairagent.guests.testing import LoopbackServer, completion, error
from fairagent.settings import BudgetSettings, ModelSettings, Settings, load_settings

from . import life
from .tiny import write

CANARY = "sk-canary-0123456789abcdef"


def test_219_a_setting_without_a_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty, an error that names it, or as if it were not set; so in a call (`--set cache=`), a file and a variable."""
    sections = {"budget": BudgetSettings, "model": ModelSettings}
    keys = [*Settings.model_fields, *(f"{name}.{key}" for name, one in sections.items() for key in one.model_fields)]
    refused, empty = [], []
    for key in keys:
        try:
            found = load_settings(overrides=overrides([f"{key}="]), environ={})
        except SettingsError as error:
            refused.append(key if f"\n  {key}" in str(error) else f"{key}: {error}")
            continue
        if functools.reduce(getattr, key.split("."), found) == "":
            empty.append(key)
    assert {"cache", "index", "collection", "model.name"} <= set(empty)
    assert {"n", "depth", "engine", "rerank"} <= set(refused) <= set(keys)
    (tmp_path / "settings.yaml").write_text("cache:\n", encoding="utf-8")
    monkeypatch.setenv("FAIRAGENT_CACHE", "")
    assert load_settings(tmp_path / "settings.yaml", environ={}).cache == load_settings().cache == ""


def test_41_and_42_without_an_index_or_a_package_what_to_do_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BackendUnavailable, match=r"no index at .*none; build it with `fairagent index`"):
        open_agent(write(tmp_path / "files"), tmp_path / "none")
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(BackendUnavailable, match=r"fairagent\[dense\]"):
        SentenceEncoder("all-MiniLM-L6-v2").encode(["a"])


def test_43_and_44_and_158_the_key_is_in_nothing_that_is_written(
    server: LoopbackServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Not in what is printed, logged (DEBUG), cached, traced or shown; the server echoes it wherever it can."""
    file = life.write(tmp_path / "files")
    spoken = json.dumps({"keywords": ["she", CANARY]})
    server.script = [error(500, f"bad key {CANARY}"), error(400, f"response_format unsupported, {CANARY}")]
    server.script += [completion(spoken)] * 5 + [error(400, f"no, {CANARY}"), completion(spoken)]
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url.replace("http://", f"http://me:{CANARY}@"))
    monkeypatch.chdir(tmp_path)
    caplog.set_level(logging.DEBUG)
    command = ["evaluate", str(file), "--workers", "2", "--limit-topics", "4", "--log-prompts"]
    done = CliRunner().invoke(app, command)
    # What fails there falls back to the documents' words, and the trace says why.
    assert done.exit_code == 0, done.output
    assert server.keys[0] == f"Bearer {CANARY}"
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"run.json", "journal.jsonl", "transcript.jsonl", "report.html", "results.csv", "cache.db"} <= {
        path.name for path in written
    }
    for path in written:
        assert CANARY.encode() not in path.read_bytes(), path
    # The host that the shell has set is recorded.
    (head,) = tmp_path.rglob("run.json")
    models = json.loads(head.read_text(encoding="utf-8"))["provenance"]["models"]
    assert {model["server"] for model in models.values()} == {server.url.removeprefix("http://").removesuffix("/v1")}
    # --log-prompts shows what is asked.
    assert server.requests[0]["messages"][0]["content"].splitlines()[0] in caplog.text + done.output
    assert CANARY not in caplog.text + done.output
