"""One small task for all tests of a module that only read it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .small import write_task


@pytest.fixture(scope="session")
def one_thread() -> Iterator[None]:
    """Sums as small as these take longer when they are shared out."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def task_file(one_thread: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_task(tmp_path_factory.mktemp("fairft"))
