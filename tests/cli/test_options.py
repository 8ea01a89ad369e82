from __future__ import annotations

from pathlib import Path

import pytest

from fairagent.cli.options import overrides, settings_file, settings_of
from fairagent.errors import SettingsError, UsageError


def test_values_are_yaml() -> None:
    given = overrides(["n=5", "depth=1e3", "dimensions=[a, b]", "prompts=", "model.name='7'", "collection=a=b.yaml"])
    assert given == {
        "n": 5,
        "depth": "1e3",
        "dimensions": ["a", "b"],
        "prompts": None,
        "model": {"name": "7"},
        "collection": "a=b.yaml",
    }


def test_assignments_add_up_and_options_win() -> None:
    given = overrides(["rerank.kind=fused", "rerank.refined=0.2", "n=5"], n=7, index=None)
    assert given == {"rerank": {"kind": "fused", "refined": 0.2}, "n": 7}


@pytest.mark.parametrize("assignment", ["n", "=5", " =5", "n: 5", "n={"])
def test_what_is_no_assignment(assignment: str) -> None:
    with pytest.raises(UsageError, match="--set"):
        overrides([assignment])


def test_the_file_in_the_folder_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert settings_file(None) is None
    Path("fairagent.yaml").write_text("n: 3\n", encoding="utf-8")
    assert settings_file(None) == Path("fairagent.yaml")
    assert settings_file(Path("mine.yaml")) == Path("mine.yaml")
    assert settings_of(None, None).n == 3
    assert settings_of(None, ["n=4"], collection=Path("c.yaml")).collection == "c.yaml"
    with pytest.raises(SettingsError, match="no such file"):
        settings_of(Path("mine.yaml"), None)
