"""The files under evaluations/fair_qr are right, and the small one gives the table of its README."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fairagent.collection.demo import write_demo
from fairagent.evaluate.check import check_experiment
from fairagent.evaluate.check_systems import read_systems
from fairagent.evaluate.crew import threads
from fairagent.evaluate.experiment import build_indexes, run_experiment
from fairagent.evaluate.experiment_file import ExperimentFile
from fairagent.evaluate.problems import Problems
from fairagent.evaluate.text_table import results_text
from fairagent.settings import read_yaml, validate

FOLDER = Path(__file__).resolve().parents[2] / "evaluations" / "fair_qr"
FILES = sorted(FOLDER.glob("*.yaml"))
README = (FOLDER / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_files_are_right(file: Path) -> None:
    described = validate(ExperimentFile, read_yaml(file), str(file))
    problems = Problems()
    systems = read_systems(described, described.dimensions, 20, problems, {})
    problems.check(file)
    assert described.baseline in systems
    assert described.about
    assert f"({file.name})" in README
    if file.name != "demo.yaml":
        assert (file.parent / described.collection).is_file()


@pytest.mark.shared
@pytest.mark.parametrize("name", ["wikilead", "ablations", "reuters21578", "perspectrum"])
def test_the_real_collections_have_what_the_files_name(shared: Path, name: str) -> None:
    plan = check_experiment(FOLDER / f"{name}.yaml", environ={}).plan
    assert len(plan.topics) == {"reuters21578": 41, "perspectrum": 368}.get(name, 60)


@pytest.mark.slow
def test_the_table_of_the_demo(tmp_path: Path) -> None:
    collection = write_demo(tmp_path / "demo")
    file = tmp_path / "demo.yaml"
    text = (FOLDER / "demo.yaml").read_text(encoding="utf-8")
    file.write_text(
        text.replace("../../fairagent-demo/collection.yaml", str(collection))
        + f"settings: {{index: '{tmp_path / 'index'}'}}\n",
        encoding="utf-8",
    )
    checked = check_experiment(file, environ={})
    build_indexes(checked)
    with threads(2) as crew:
        run = run_experiment(checked, tmp_path / "run", crew, environ={})
    table = results_text(run).split("\n\n")[1]
    printed = re.search(r"^### demo\n\n((?:    .*\n)+)", README, re.MULTILINE)
    assert printed
    assert [line.removeprefix("    ") for line in printed[1].splitlines()] == table.splitlines()
