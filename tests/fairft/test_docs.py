"""What the README of FairFT and evaluations/fairft show can be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from fairagent.papers.fairft.run import check
from fairagent.papers.fairft.settings import FairFTFile
from fairagent.settings import validate

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "fairagent" / "papers" / "fairft" / "README.md").read_text(encoding="utf-8")


def test_the_settings_shown_are_settings() -> None:
    (shown,) = re.findall(r"^```yaml\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)
    file = validate(FairFTFile, yaml.safe_load(shown), "the README")
    assert file.training == FairFTFile.model_fields["training"].default


@pytest.mark.shared
@pytest.mark.parametrize(("name", "rate"), [("fairft_self", 1e-6), ("fairft_1b", 1e-5)])
def test_the_papers_settings_are_right_and_leak_nothing(shared: Path, name: str, rate: float) -> None:
    pytest.importorskip("sentence_transformers")
    checked = check(ROOT / "evaluations" / "fairft" / f"{name}.yaml")
    training = checked.file.training
    assert (training.documents, training.gamma, training.beta, training.batch) == (20, 0.1, 0.1, 20)
    assert (training.direction, training.rate) == ("p-q", rate)
    assert len(checked.held_out) == 100
    assert 850 < len(checked.training) <= 900
