"""The wheel: built, unpacked, and imported from an empty folder; `make dist` installs it and runs the program."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from installed import metadata_faults, wheel_faults
from running import python

from fairagent.llm.prompts import Prompts

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    python("-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder), folder=ROOT)
    (path,) = folder.glob("*.whl")
    return path


def test_prompts_are_the_checkouts(wheel: Path, tmp_path: Path) -> None:
    """In an empty folder, with nothing of the checkout on the path but what the wheel holds."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    (tmp_path / "empty").mkdir()
    code = (
        "import fairagent; from fairagent.llm.prompts import Prompts; shipped = Prompts()\n"
        "print(fairagent.__file__); print({name: shipped[name].sha256 for name in shipped.ids})"
    )
    printed = python("-c", code, folder=tmp_path / "empty", PYTHONPATH=str(tmp_path / "site")).stdout
    where, hashes = printed.splitlines()
    assert where.startswith(str(tmp_path))
    here = Prompts()
    assert hashes == str({name: here[name].sha256 for name in here.ids})


def test_it_holds_the_package_and_nothing_else(wheel: Path) -> None:
    assert wheel_faults(wheel) == []
    assert metadata_faults(wheel) == []
