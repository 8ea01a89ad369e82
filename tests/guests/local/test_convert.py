from __future__ import annotations

from pathlib import Path

import pytest
from gguf_files import gguf_bytes, gguf_file

from fairagent.errors import BackendUnavailable, DataError, UsageError
from fairagent.guests.local.likelihood import convert


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is there already; nothing is overwritten"):
        convert(gguf_file(tmp_path), tmp_path)


@pytest.mark.parametrize("missing", ["gguf", "accelerate", "transformers"])
def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    monkeypatch.setattr("fairagent.storage.packages.is_installed", lambda package: package != missing)
    with pytest.raises(BackendUnavailable, match=rf"needs the package {missing}.*fairagent\[local\]"):
        convert(gguf_file(tmp_path), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_damaged_file(tmp_path: Path) -> None:
    file = tmp_path / "bad.gguf"
    file.write_bytes(gguf_bytes()[:-40])
    with pytest.raises(DataError, match="is damaged"):
        convert(file, tmp_path / "new")
