"""The files under evaluations/: all of them are experiments, and those that belong together ask the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from experiment_files import read_file

from fairagent.collection.demo import write_demo
from fairagent.errors import FairAgentError
from fairagent.evaluate.check import check_experiment, estimate
from fairagent.evaluate.experiment import build_indexes
from fairagent.evaluate.results import means_table
from fairagent.llm.server import KEY_VARIABLE
from fairagent.measures.parse import label_of
from fairagent.papers.utility import kind as utility
from fairagent.settings import read_yaml

from . import words

FOLDER = Path(__file__).resolve().parents[2] / "evaluations"
OTHERS = {"labels/words_gender", "labels/words_region", "trec_fair/systems"}
"""Files that are no experiments."""
TRAINED = FOLDER / "papers" / "fairft" / "train"
FILES = sorted(
    file
    for file in FOLDER.rglob("*.yaml")
    if file.relative_to(FOLDER).parts[0] != "collections"
    and "collections" not in file.parts[-2:-1]
    and file.parent != TRAINED
    and str(file.relative_to(FOLDER).with_suffix("")) not in OTHERS
)
CONTROLLER = FOLDER / "controller"
AIMS = sorted(file for file in CONTROLLER.glob("*.yaml") if file.stem != "adaptive")
NOWHERE = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}


@pytest.mark.slow
def test_they_are_experiments_whose_expected_numbers_are_measured() -> None:
    faults = []
    for file in FILES:
        try:
            kind, systems = read_file(file)
        except FairAgentError as error:
            faults.append(str(error))
            continue
        # StereoSet's and TrustLLM's classes are known once their questions are read; a ranking's measures are its own.
        measures = {one.name for one in kind.measured(("gender",))} | set(kind.measured_together)
        known = {label_of(name) for name in measures} | measures
        for system, values in kind.expected.items():
            if system not in (*kind.rows(systems), *kind.other_names):
                faults.append(f"{file}: {system} is expected and no row")
            for name, value in values.items():
                if not (set(value) if isinstance(value, dict) else {name}) <= known:
                    faults.append(f"{file}: {name} is expected of {system} and not measured")
        if not kind.about or not all(block.why for block in kind.published):
            faults.append(f"{file}: does not say what it is about")
        if kind.collection and not (file.parent / kind.collection).is_file() and file.stem != "demo":
            faults.append(f"{file}: there is no {kind.collection}")
    assert len(FILES) > 100
    assert faults == []


def test_files_that_belong_together_ask_the_same() -> None:
    answers, stereotypes = (
        [read_yaml(FOLDER / folder / f"{name}.yaml") for name in names]
        for folder, names in (
            ("answers", ("agreement", "accuracy")),
            ("stereotypes", ("stereoset", "crows_pairs", "bold")),
        )
    )
    aims = [read_yaml(file) for file in AIMS]
    for group in (answers, stereotypes, aims):
        assert all(one["systems"] == group[0]["systems"] for one in group)
        assert all(one.get("settings") == group[0].get("settings") for one in group[:2])
    assert len({(one["collection"], *one.get("dimensions", ())) for one in aims}) == len(aims) == 8


def test_the_calls_of_a_loop_that_filters_are_known_before(tmp_path: Path) -> None:
    system = "{profile: offline, engine: words, loop: {actions: [group, filter]}, filter: fair, model: {name: tiny}}"
    file = words.write(tmp_path, f"{words.EXPERIMENT}  filter: {system}\n")
    rows = {row.system: row for row in estimate(check_experiment(file, environ={KEY_VARIABLE: "none"}))}
    # 20 topics (one without judgments), 20 of the longest documents in 4 batches, in three rounds, two questions each.
    assert rows["filter"].calls == 20 * 4 * 3 * 2
    assert rows["plain"].calls == 0


@pytest.mark.shared
def test_the_cost_of_a_model_is_known_before(shared: Path) -> None:
    """Each refinement is one call, priced, and all of them stay within the file's budget."""
    checked = check_experiment(FOLDER / "fair_qr" / "cost_llm.yaml", environ={KEY_VARIABLE: "none"})
    rows = estimate(checked)
    refinements = {"1 refinement": 1, "3 refinements": 3, "5 refinements": 5, "10 refinements": 10}
    for row in rows:
        asks = row.system.startswith(("llm", "loop"))
        assert row.calls == (60 * refinements[row.system.split(", ")[1]] if asks else 0), row.system
        assert (row.dollars or 0) > 0 if asks else row.dollars == 0
    assert sum(row.dollars or 0 for row in rows) < checked.plan.budget.dollars


# --- on their data --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.shared
def test_they_have_the_topics_that_they_say(shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sentence_transformers")
    monkeypatch.setattr(utility, "check_similarity", lambda section: None)
    environ = {**NOWHERE, "FAIRAGENT_INDEX": str(tmp_path)}
    counts = {
        **{"answers/agreement": 1000, "answers/accuracy": 2706, "stereotypes/stereoset": 4229, "stereotypes/bold": 12},
        **{"stereotypes/crows_pairs": 1508, "stereotypes/seat": 6, "fair_qr/wikilead": 60, "fair_qr/perspectrum": 368},
        **{"fair_qr/reuters21578": 41, "fair_qr/ablations": 60, "papers/small/fairft_table_3_agreement": 40},
        **{"papers/small/utility_table_1_dev_small": 25},
    }
    found = {name: len(check_experiment(FOLDER / f"{name}.yaml", environ=environ).plan.topics) for name in counts}
    assert found == counts


@pytest.mark.slow
def test_the_table_of_the_demo_is_that_of_its_page(tmp_path: Path) -> None:
    page = (FOLDER / "fair_qr" / "README.md").read_text(encoding="utf-8")
    (printed,) = re.findall(r"^### demo\b.*\n\n(?:    fairagent.*\n\n)?((?:    .*\n)+)", page, re.MULTILINE)
    described = read_yaml(FOLDER / "fair_qr" / "demo.yaml")
    described["collection"] = str(write_demo(tmp_path / "demo"))
    described["settings"] = {**described.get("settings", {}), "index": str(tmp_path / "index")}
    file = tmp_path / "demo.yaml"
    file.write_text(yaml.safe_dump(described, sort_keys=False), encoding="utf-8")
    checked = check_experiment(file, environ={})
    build_indexes(checked)
    table = means_table(words.run_checked(checked, tmp_path / "run")).text().splitlines()
    assert [line.removeprefix("    ") for line in printed.splitlines()] == table
