from __future__ import annotations

from pathlib import Path

import pytest
from gguf_files import gguf_bytes, gguf_file

from fairagent.errors import BackendUnavailable, DataError, UsageError
from fairagent.likelihood.gguf import convert


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is there already; nothing is overwritten"):
        convert(gguf_file(tmp_path), tmp_path)


@pytest.mark.parametrize("missing", ["gguf", "accelerate"])
def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    def installed(name: str, what: str) -> None:
        if name == missing:
            raise BackendUnavailable(f"{what} needs the package {name}")

    monkeypatch.setattr("fairagent.likelihood.gguf.installed", installed)
    with pytest.raises(BackendUnavailable, match=rf"fairagent\[local\].*needs the package {missing}"):
        convert(gguf_file(tmp_path), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_damaged_file(tmp_path: Path) -> None:
    file = tmp_path / "bad.gguf"
    file.write_bytes(gguf_bytes()[:-40])
    with pytest.raises(DataError, match="is damaged"):
        convert(file, tmp_path / "new")
