"""What all tests share: the outside data (skipped where absent), and Hypothesis without chance or clock."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

SHARED = Path(__file__).resolve().parents[2] / "shared"

# The same examples on every machine, however slow it is, and nothing left in the working folder.
settings.register_profile("fairagent", derandomize=True, deadline=None, database=None)
settings.load_profile("fairagent")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with real collections and golden values; a test that needs it skips without it."""
    if not SHARED.is_dir():
        pytest.skip(f"the data and golden files are not at {SHARED}")
    return SHARED


@pytest.fixture
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment without the user's settings, key and server; the loopback interface needs no proxy."""
    for name in list(os.environ):
        if name.startswith(("FAIRAGENT_", "OPENAI_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
