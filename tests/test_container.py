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


def expect_command(words: list[str]) -> None:
    """That the program takes these words; nothing runs."""
    command: Any = get_command(app)
    context = command.make_context("fairagent", list(words), resilient_parsing=False)
    command.get_command(context, words[0]).make_context(words[0], words[1:], parent=context)


def test_the_program_takes_the_commands() -> None:
    dockerfile = (SERVING / "Dockerfile").read_text(encoding="utf-8")
    entry, command = (re.findall(rf"^{word} (.+)$", dockerfile, re.MULTILINE)[-1] for word in ("ENTRYPOINT", "CMD"))
    assert json.loads(entry) == ["fairagent"]
    expect_command(json.loads(command))
    compose = yaml.safe_load((SERVING / "compose.yaml").read_text(encoding="utf-8"))
    words = compose["services"]["fairagent"]["command"]
    expect_command([word.replace("${SEARCH_NAME:-localhost}", "localhost") for word in words])
    with pytest.raises(Exception, match="No such option"):
        expect_command(["serve", "--hots", "0.0.0.0"])
