"""The files under evaluations/fair_qr are right, and the small one gives the table of its README."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from experiment_files import read_file

from fairagent.collection.demo import write_demo
from fairagent.evaluate.check import check_experiment, estimate
from fairagent.evaluate.experiment import build_indexes, run_experiment
from fairagent.evaluate.results import means_table
from fairagent.evaluate.workers import threads
from fairagent.llm.endpoint import KEY_VARIABLE
from fairagent.settings import read_yaml

FOLDER = Path(__file__).resolve().parents[2] / "evaluations" / "fair_qr"
FILES = sorted(FOLDER.glob("*.yaml"))
README = (FOLDER / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_files_are_right(file: Path) -> None:
    described, systems = read_file(file)
    assert described.baseline in systems
    assert described.about
    assert f"({file.name})" in README
    if file.name != "demo.yaml":
        assert (file.parent / described.collection).is_file()


def printed(name: str) -> list[str]:
    """The table of an experiment in the README."""
    table = re.search(rf"^### {name}\b.*\n\n(?:    fairagent.*\n\n)?((?:    .*\n)+)", README, re.MULTILINE)
    assert table, name
    return [line.removeprefix("    ") for line in table[1].splitlines()]


@pytest.mark.parametrize("name", [file.stem for file in FILES if f"\n### {file.stem}" in README])
def test_the_tables_have_the_systems_of_the_files(name: str) -> None:
    described = read_yaml(FOLDER / f"{name}.yaml")
    systems = [re.split(r"  | [†=]", line)[0] for line in printed(name)[2:] if not line.startswith("= ")]
    # The first is what the others are tested against.
    assert systems == sorted(described["systems"], key=lambda system: system != systems[0])


@pytest.mark.shared
@pytest.mark.parametrize("name", ["wikilead", "ablations", "cost", "reuters21578", "perspectrum"])
def test_the_real_collections_have_what_the_files_name(shared: Path, name: str) -> None:
    plan = check_experiment(FOLDER / f"{name}.yaml", environ={}).plan
    assert len(plan.topics) == {"reuters21578": 41, "perspectrum": 368}.get(name, 60)


@pytest.mark.shared
def test_the_cost_of_a_model_is_known_before(shared: Path) -> None:
    """Each refinement is one call, priced, and all of them stay within the file's budget."""
    checked = check_experiment(FOLDER / "cost_llm.yaml", environ={KEY_VARIABLE: "none"})
    rows = estimate(checked)
    refinements = {"1 refinement": 1, "3 refinements": 3, "5 refinements": 5, "10 refinements": 10}
    for row in rows:
        asks = row.system.startswith(("llm", "loop"))
        assert row.calls == (60 * refinements[row.system.split(", ")[1]] if asks else 0), row.system
        assert (row.dollars or 0) > 0 if asks else row.dollars == 0
    assert sum(row.dollars or 0 for row in rows) < checked.plan.budget.dollars


def run_anew(name: str, collection: Path, folder: Path) -> list[str]:
    """The table that the command gives now, on an index of its own."""
    file = folder / f"{name}.yaml"
    described = read_yaml(FOLDER / f"{name}.yaml")
    described["collection"] = str(collection)
    described["settings"] = {**described.get("settings", {}), "index": str(folder / "index")}
    file.write_text(yaml.safe_dump(described, sort_keys=False), encoding="utf-8")
    checked = check_experiment(file, environ={})
    build_indexes(checked)
    with threads(2) as workers:
        run = run_experiment(checked, folder / "run", workers, environ={})
    return means_table(run).text().splitlines()


@pytest.mark.slow
def test_the_table_of_the_demo(tmp_path: Path) -> None:
    assert printed("demo") == run_anew("demo", write_demo(tmp_path / "demo"), tmp_path)


@pytest.mark.slow
@pytest.mark.shared
def test_the_table_of_the_cost(shared: Path, tmp_path: Path) -> None:
    """All but its last column, which is time."""
    table = run_anew("cost", FOLDER.parent / "collections" / "wikilead.yaml", tmp_path)
    width = max(map(len, table))
    assert [line[:width].rstrip() for line in printed("cost")] == table
    assert all(re.fullmatch(r"|ms|\d+\.\d", line[width:].strip()) for line in printed("cost"))
