"""Names that no file can have, and folders without a name."""

from __future__ import annotations

from pathlib import Path

import pytest
from faults import tiny

from fairagent import load_collection


@pytest.mark.parametrize("index", [".", "/"])
def test_an_index_whose_folder_has_no_name(index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tiny.write(tmp_path / "files")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    assert load_collection(file, index).groups.dimensions
