"""What all tests share: the outside data (skipped where absent), and Hypothesis without chance or clock."""

from __future__ import annotations

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
