"""One small task for all tests of a module that only read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from .small import write_task


@pytest.fixture(scope="session")
def task_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_task(tmp_path_factory.mktemp("fairft"))
