"""The files under evaluations/stereotypes are right, ask the same systems, and avoid nothing that is tested."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from fairagent.evaluate.check import check_experiment, check_experiment_values, estimate
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
    pytest.importorskip("sentence_transformers")
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


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "shares"),
    [
        # 962, 810, 255 and 79 of 2,106: 91.4, 76.9, 24.2 and 7.5 of the 200.
        ("stereoset", {"race": 91, "profession": 77, "gender": 24, "religion": 8}),
        # 262 and 516 of 1,508: 34.7 and 68.4.
        ("crows_pairs", {"gender": 35, "race-color": 68}),
    ],
)
def test_the_choice_and_the_likelihoods_are_of_the_same_items(
    no_variables: None, shared: Path, name: str, shares: dict[str, int]
) -> None:
    environ = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    file = FOLDER / f"smollm2_{name}_choice.yaml"
    choice = check_experiment(file, environ=environ)
    counts = Counter(choice.subject.topics[id].group for id in choice.plan.topics)
    assert counts.total() == 200
    assert {kind: counts[kind] for kind in shares} == shares
    # As `--limit-topics 200` draws from all: of that file nothing else matters.
    likelihoods = read_yaml(FOLDER / f"smollm2_{name}.yaml")
    every = {key: value for key, value in read_yaml(file).items() if key != "topics"} | {"seed": likelihoods["seed"]}
    assert check_experiment_values(every, file, FOLDER, 200, environ).plan.topics == choice.plan.topics
    assert likelihoods["questions"]["path"] == every["questions"]["path"]
    assert f"({file.name})" in README
