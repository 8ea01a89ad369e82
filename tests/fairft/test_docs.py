"""What the README of FairFT and evaluations/fairft show can be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from fairagent.papers.fairft.run import check
from fairagent.papers.fairft.settings import FairFTFile
from fairagent.settings import read_yaml, validate

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "fairagent" / "papers" / "fairft" / "README.md").read_text(encoding="utf-8")


def test_the_settings_shown_are_settings() -> None:
    (shown,) = re.findall(r"^```yaml\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)
    file = validate(FairFTFile, yaml.safe_load(shown), "the README")
    assert file.training == FairFTFile.model_fields["training"].default


@pytest.mark.shared
@pytest.mark.parametrize(("name", "rate", "source"), [("1b", 1e-5, "web"), ("mistral-7b", 1e-6, "wikipedia")])
def test_the_papers_settings_are_right_and_leak_nothing(
    shared: Path, tmp_path: Path, name: str, rate: float, source: str
) -> None:
    pytest.importorskip("sentence_transformers")
    folder = ROOT / "evaluations" / "papers" / "fairft" / "train"
    file = read_yaml(folder / f"{name}_{source}.yaml")
    # Its documents are not at hand.
    assert file["collection"] == f"../../collections/{source}.yaml"
    file["collection"] = str(ROOT / "evaluations" / "collections" / "wikilead.yaml")
    for section in (file["examples"], *file["test"]):
        section["path"] = str((folder / section["path"]).resolve())
    (tmp_path / "train.yaml").write_text(yaml.safe_dump(file), encoding="utf-8")
    checked = check(tmp_path / "train.yaml")
    assert checked.file.name == f"fairft-{name}-{source}"
    training = checked.file.training
    assert (training.documents, training.gamma, training.beta, training.batch) == (20, 0.1, 0.1, 20)
    assert (training.direction, training.rate) == ("p-q", rate)
    assert len(checked.held_out) == 100
    assert 850 < len(checked.training) <= 900
