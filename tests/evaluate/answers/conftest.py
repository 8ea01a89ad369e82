"""A server on the loopback interface that answers the small exams."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairagent.testing import LoopbackServer

from . import school


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[LoopbackServer]:
    """The model of `school`, which is asked through the environment; replies are not kept."""
    for name in os.environ:
        if name.startswith(("FAIRAGENT_", "OPENAI_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("FAIRAGENT_CACHE", "''")
    with LoopbackServer(school.model) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server
