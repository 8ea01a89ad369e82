"""A server on the loopback interface that answers the small exams."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairagent.guests.testing import LoopbackServer

from . import school


@pytest.fixture
def server(no_variables: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[LoopbackServer]:
    """The model of `school`, which is asked through the environment; replies are not kept."""
    monkeypatch.setenv("FAIRAGENT_CACHE", "''")
    with LoopbackServer(school.model) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server
