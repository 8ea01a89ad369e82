"""The files under evaluations/controller are right: the default agent beside what could explain its gain."""

from __future__ import annotations

from pathlib import Path

import pytest
from experiment_files import read_file

from fairagent.evaluate.check import check_experiment, estimate
from fairagent.llm.endpoint import KEY_VARIABLE
from fairagent.settings import Settings, read_yaml

from . import words

FOLDER = Path(__file__).resolve().parents[2] / "evaluations" / "controller"
FILES = sorted(file for file in FOLDER.glob("*.yaml") if not file.stem.startswith("smollm2"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_files_are_right(file: Path) -> None:
    described, systems = read_file(file)
    assert systems.keys() == described.systems.keys()
    assert described.baseline in systems
    assert described.about
    assert (file.parent / described.collection).is_file()
    assert described.topics == "all"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_systems_are_what_they_are_called(file: Path) -> None:
    _, systems = read_file(file)
    chosen = {name: plan.settings for name, plan in systems.items()}
    assert (chosen["agent"].loop, chosen["agent"].rerank) == (Settings().loop, Settings().rerank)
    assert chosen["agent"].engine.kind in ("auto", "fused")
    for name in ("BM25", "BM25+RM3", "dense", "fused"):
        assert not chosen[name].sees_groups, name
    loops = {name: settings.loop.kind for name, settings in chosen.items() if settings.loops}
    assert {name for name, kind in loops.items() if kind == "fair-qr"} == {"FAIR-QR by feedback", "FAIR-QR, depth 20"}
    assert {name for name, kind in loops.items() if kind == "controller"} == {
        name for name in chosen if "agent" in name or name == "controller alone"
    }
    # No row asks a language model.
    assert not any(plan.asks for plan in systems.values())


def test_the_files_differ_in_collection_and_dimensions_alone() -> None:
    files = [read_yaml(file) for file in FILES]
    assert len(files) == 9
    assert all(one["systems"] == files[0]["systems"] for one in files)
    assert len({(one["collection"], *one.get("dimensions", ())) for one in files}) == 9


@pytest.mark.parametrize("name", ["trec22_biographies", "wikilead"])
def test_what_a_model_may_do_is_the_models_alone(name: str) -> None:
    described, systems = read_file(FOLDER / f"smollm2_{name}.yaml")
    chosen = {name: plan.settings for name, plan in systems.items()}
    assert chosen["feedback"].loop == Settings().loop
    assert not chosen["no refinement"].loop.steps
    asking = {name: plan.asks for name, plan in systems.items() if plan.asks}
    assert asking == {
        "llm": ("group_keywords",),
        "grounded": ("group_keywords",),
        "passage": ("group_passages",),
        "judge": ("judge_relevance",),
        "filter": ("fairness_filter", "utility_filter"),
    }
    assert {chosen[name].loop.on_error for name in asking} == {"fail"}
    assert chosen["filter"].filter.on_error == "fail"
    assert described.budget.calls
    assert described.topics.sample == 20


def test_the_files_of_the_model_differ_in_name_and_collection_alone() -> None:
    first, second = (read_yaml(file) for file in sorted(FOLDER.glob("smollm2_*.yaml")))
    for key in ("name", "collection"):
        assert first.pop(key) != second.pop(key)
    assert first == second


def test_the_calls_of_a_loop_that_filters_are_known_before(tmp_path: Path) -> None:
    system = "{profile: offline, engine: words, loop: {actions: [refine, filter]}, filter: fair, model: {name: tiny}}"
    file = words.write(tmp_path, f"{words.EXPERIMENT}  filter: {system}\n")
    rows = {row.system: row for row in estimate(check_experiment(file, environ={KEY_VARIABLE: "none"}))}
    # 19 topics, 20 documents of a ranking in three rounds, two questions each.
    assert rows["filter"].calls == 19 * 20 * 3 * 2
    assert rows["filter"].model == "tiny"
    assert rows["plain"].calls == 0
