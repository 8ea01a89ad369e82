"""examples/serving: the container's files hold together with the program, and give away nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from fairagent.cli import app

ROOT = Path(__file__).resolve().parents[1]
SERVING = ROOT / "examples" / "serving"


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


def test_the_program_takes_the_commands() -> None:
    assert json.loads(last("ENTRYPOINT")) == ["fairagent"]
    expect_command(json.loads(last("CMD")))
    words = [
        word.replace("${SEARCH_NAME:-localhost}", "localhost") for word in compose()["services"]["fairagent"]["command"]
    ]
    expect_command(words)
    with pytest.raises(Exception, match="No such option"):
        expect_command(["serve", "--hots", "0.0.0.0"])
