"""A real language model, as `fairagent model serve` brings it, for tests marked `llm` (`make test-llm`).

It is small: what it says is worth nothing, and no test asserts any of it. Tests assert the form of replies, what became
of them, and that all tokens were counted.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from running import PROGRAM, environment

from fairagent.guests.local.server import small_model
from fairagent.llm.models import Models
from fairagent.llm.request import Model
from fairagent.settings import ModelSettings

READY = re.compile(r"ready (\S+) model=(\S+) context=(\d+)")
ROOT = Path(__file__).resolve().parents[2]
CONVERTED = ROOT / "build" / "models"
"""Converted models, each in a folder named by the hash of its GGUF file: they outlive a run of the tests."""
START = 120
"""Seconds in which a server has to be ready, on a machine that does other things as well."""


@dataclass(frozen=True)
class Served:
    """`fairagent model serve` in a process of its own; what it prints to standard error goes to the file `said`."""

    process: subprocess.Popen[str]
    url: str
    name: str
    context: int
    said: Path

    def tokens(self) -> tuple[int, int]:
        """The tokens that the server has read and written so far, by its own count."""
        with urllib.request.urlopen(f"{self.url.removesuffix('/v1')}/metrics") as answer:
            counts = dict(re.findall(r"^llamacpp:(\w+) (\d+)", answer.read().decode(), re.MULTILINE))
        read = int(counts["prompt_tokens_total"]) + int(counts["prompt_tokens_cached_total"])
        return read, int(counts["tokens_predicted_total"])

    def interrupt(self) -> int:
        """Ctrl-C; the exit code."""
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=60)
        return self.process.returncode


def start(folder: Path, *options: str) -> Served:
    """A server on a free port."""
    said = folder / "said.txt"
    with said.open("w", encoding="utf-8") as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, "model", "serve", "--port", "0", *options],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    assert process.stdout
    line = process.stdout.readline()
    found = READY.match(line)
    assert found, f"{line!r}; {said.read_text(encoding='utf-8')}"
    return Served(process, found[1], found[2], int(found[3]), said)


@pytest.fixture(scope="session")
def gguf() -> Path:
    """The small model's file."""
    file = small_model()
    if file is None or importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("no model is here: make local")
    return file


@pytest.fixture(scope="session")
def served(gguf: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The server that all tests ask."""
    served = start(tmp_path_factory.mktemp("served"), "--context", "4096")
    yield served
    assert served.interrupt() == 0


@pytest.fixture
def model(served: Served, surroundings: None) -> Iterator[Model]:
    """The model behind the door, which keeps no reply."""
    models = Models(environ=os.environ)
    yield models.open(settings(served))
    models.close()


def settings(served: Served, **more: object) -> ModelSettings:
    """How it is asked: as by default, but always the same way, and with patience."""
    values = {"name": served.name, "base_url": served.url, "context": served.context, "temperature": 0.0}
    return ModelSettings(**{**values, "timeout": 280, "attempts": 1, **more})


@pytest.fixture
def surroundings(served: Served, no_variables: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `settings` says, for commands."""
    chosen = settings(served)
    for name in ("name", "base_url", "context", "temperature", "timeout", "attempts"):
        monkeypatch.setenv(f"FAIRAGENT_MODEL__{name.upper()}", str(getattr(chosen, name)))
    monkeypatch.setenv("FAIRAGENT_CACHE", "''")


@pytest.fixture(scope="session")
def converted(gguf: Path) -> Path:
    """The model as a folder of transformers; it is converted once."""
    for package in ("gguf", "accelerate"):
        pytest.importorskip(package)
    with gguf.open("rb") as file:
        folder = CONVERTED / hashlib.file_digest(file, "sha256").hexdigest()[:16]
    folder.parent.mkdir(parents=True, exist_ok=True)
    if not folder.is_dir():
        script = ROOT / "evaluations" / "gguf_to_folder.py"
        subprocess.run([sys.executable, str(script), str(gguf), str(folder)], check=True)
    return folder
