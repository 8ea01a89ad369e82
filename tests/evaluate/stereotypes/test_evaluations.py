"""The files under evaluations/stereotypes are right, ask the same systems, and avoid nothing that is tested."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairagent.evaluate.engine.check import check_experiment
from fairagent.evaluate.engine.worst_case import estimate
from fairagent.settings import read_yaml

FOLDER = Path(__file__).resolve().parents[3] / "evaluations" / "stereotypes"
README = (FOLDER / "README.md").read_text(encoding="utf-8")


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "items", "kinds"),
    [
        ("stereoset", 4229, {"gender", "profession", "race", "religion"}),
        ("bold", 12, {"gender", "trade"}),
        ("crows_pairs", 1508, {"race-color", "gender", "age", "religion", "nationality", "disability"}),
    ],
)
def test_the_files_are_right(
    no_variables: None, shared: Path, tmp_path: Path, name: str, items: int, kinds: set[str]
) -> None:
    environ = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "FAIRAGENT_INDEX": str(tmp_path)}
    checked = check_experiment(FOLDER / f"{name}.yaml", environ=environ)
    assert len(checked.plan.topics) == items
    assert kinds <= set(checked.plan.dimensions)
    assert f"({name}.yaml)" in README
    calls = {line.system: line.calls for line in estimate(checked)}
    assert calls["no retrieval"] == calls["retrieval"] == items


def test_all_have_the_same_systems() -> None:
    one, other, third = (read_yaml(FOLDER / f"{name}.yaml") for name in ("stereoset", "crows_pairs", "bold"))
    assert one["systems"] == other["systems"] == third["systems"]
    assert one["settings"] == other["settings"]
    assert list(one["systems"]) == ["no retrieval", "retrieval", "FairFilter", "DebiasRAG"]
