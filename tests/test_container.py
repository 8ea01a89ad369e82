"""examples/serving: the container's files hold together with the program, and give away nothing."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from fairagent.cli import app

ROOT = Path(__file__).resolve().parents[1]
SERVING = ROOT / "examples" / "serving"
PINNED = re.compile(r"[a-z0-9./-]+:\d+\.\d+\.\d+[a-z0-9.-]*")


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions with their arguments, in order."""
    text = re.sub(r"\\\n", " ", (SERVING / "Dockerfile").read_text(encoding="utf-8"))
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]


def last(word: str) -> str:
    return [rest for name, rest in instructions() if name == word][-1]


def compose() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((SERVING / "compose.yaml").read_text(encoding="utf-8"))
    return read


def expect_command(words: list[str]) -> None:
    """That the program takes these words; nothing runs."""
    command: Any = get_command(app)
    context = command.make_context("fairagent", list(words), resilient_parsing=False)
    sub = command.get_command(context, words[0])
    sub.make_context(words[0], words[1:], parent=context)


def test_what_is_copied_is_there_and_let_through() -> None:
    through = [line[1:] for line in (SERVING / "Dockerfile.dockerignore").read_text().splitlines() if line[:1] == "!"]
    copied = [
        name
        for word, rest in instructions()
        if word == "COPY" and "--from" not in rest
        for name in shlex.split(rest)[:-1]
    ]
    assert sorted(copied) == sorted(through)
    for name in copied:
        assert (ROOT / name).exists(), name
    # What the wheel is made of (pyproject.toml) is among them.
    assert {"fairagent", "prompts", "README.md", "LICENSE"} <= set(copied)


def test_no_secret_is_in_it() -> None:
    kept = [rest for word, rest in instructions() if word in ("ENV", "ARG", "LABEL")]
    assert not re.search(r"key|secret|password|token", " ".join(kept), re.IGNORECASE)
    given = compose()["services"]["fairagent"]["environment"]
    assert all(value is None for value in given.values())


def test_the_program_takes_the_commands() -> None:
    assert json.loads(last("ENTRYPOINT")) == ["fairagent"]
    expect_command(json.loads(last("CMD")))
    words = [
        word.replace("${SEARCH_NAME:-localhost}", "localhost") for word in compose()["services"]["fairagent"]["command"]
    ]
    expect_command(words)
    with pytest.raises(Exception, match="No such option"):
        expect_command(["serve", "--hots", "0.0.0.0"])


def test_the_services_fit_together() -> None:
    services, volumes = compose()["services"], compose()["volumes"]
    own, engine = services["fairagent"], services["opensearch"]
    assert own["read_only"] is True
    assert own["cap_drop"] == ["ALL"]
    # The studio is reached by this machine alone, the engine by the studio alone.
    assert own["ports"] == ["127.0.0.1:8765:8765"]
    assert "ports" not in engine
    assert own["depends_on"]["opensearch"]["condition"] == "service_healthy"
    assert "healthcheck" in engine
    assert (SERVING / own["build"]["context"]).resolve() == ROOT
    assert (ROOT / own["build"]["dockerfile"]).is_file()
    for volume in (*own["volumes"], *engine["volumes"]):
        source = volume.split(":")[0]
        assert source.startswith("./") or source in volumes
