"""The wheel: built, unpacked, and imported from an empty folder; `make dist` installs it and runs the program."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from installed import metadata_faults, wheel_faults

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (path,) = folder.glob("*.whl")
    return path


def run_installed(wheel: Path, folder: Path, code: str) -> str:
    """Run `code` in the empty `folder` with nothing of the checkout on the path but what the wheel holds."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    empty = folder / "empty"
    empty.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(folder / "site")}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=empty, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_prompts_are_the_checkouts(wheel, tmp_path):
    code = (
        "import fairagent; from fairagent.llm.prompts import Prompts; shipped = Prompts()\n"
        "print(fairagent.__file__); print({name: shipped[name].sha256 for name in shipped.ids})"
    )
    where, hashes = run_installed(wheel, tmp_path, code).splitlines()
    assert where.startswith(str(tmp_path))
    from fairagent.llm.prompts import Prompts

    here = Prompts()
    assert hashes == str({name: here[name].sha256 for name in here.ids})


def test_it_holds_the_package_and_nothing_else(wheel: Path) -> None:
    assert wheel_faults(wheel) == []
    assert metadata_faults(wheel) == []
