"""Fixtures that all tests share: the outside data (skipped where absent)."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with real collections and golden values; a test that needs it skips without it."""
    if not SHARED.is_dir():
        pytest.skip(f"the data and golden files are not at {SHARED}")
    return SHARED
