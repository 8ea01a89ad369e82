"""The picture of the README: its numbers are those of the demo, and it can be read on white and on black."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "docs" / "before_after.py"


@pytest.mark.slow
@pytest.mark.vectors
def test_it_is_what_the_demo_comes_to() -> None:
    done = subprocess.run([sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
