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
SCORED = FOLDER / "adaptive.yaml"
"""The one file whose systems are others': adaptive re-ranking with a scorer of its own."""
AIMS = sorted(file for file in FOLDER.glob("*.yaml") if not file.stem.startswith("smollm2") and file != SCORED)
FILES = [*AIMS, SCORED]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_files_are_right(file: Path) -> None:
    described, systems = read_file(file)
    assert systems.keys() == described.systems.keys()
    assert described.baseline in systems
    assert described.about
    assert (file.parent / described.collection).is_file()
    assert described.topics == "all"


@pytest.mark.parametrize("file", AIMS, ids=lambda file: file.stem)
def test_the_systems_are_what_they_are_called(file: Path) -> None:
    _, systems = read_file(file)
    chosen = {name: plan.settings for name, plan in systems.items()}
    assert (chosen["agent"].loop, chosen["agent"].rerank) == (Settings().loop, Settings().rerank)
    assert chosen["agent"].engine.kind in ("auto", "fused")
    for name in ("BM25", "RM3", "fused"):
        assert not chosen[name].sees_groups, name
    loops = {name: settings.loop.kind for name, settings in chosen.items() if settings.loops}
    assert {name for name, kind in loops.items() if kind == "fair-qr"} == {"FAIR-QR, depth 20", "FAIR-QR, all"}
    assert {name for name, kind in loops.items() if kind == "controller"} == {
        name for name in chosen if name.startswith("agent")
    }
    # No row asks a language model.
    assert not any(plan.asks for plan in systems.values())


def test_adaptive_re_ranking_has_a_scorer_that_the_engine_is_not() -> None:
    _, systems = read_file(SCORED)
    assert not any(plan.asks or plan.settings.loops for plan in systems.values())
    scorers = {name: getattr(plan.settings.rerank, "scorer", None) for name, plan in systems.items()}
    assert scorers.pop("BM25") is None
    assert set(scorers.values()) == {"similarity:minilm"}


def test_the_files_differ_in_collection_and_dimensions_alone() -> None:
    files = [read_yaml(file) for file in AIMS]
    assert len(files) == 8
    assert all(one["systems"] == files[0]["systems"] for one in files)
    assert len({(one["collection"], *one.get("dimensions", ())) for one in files}) == 8


@pytest.mark.parametrize("name", ["trec22_biographies", "allsides", "wikilead"])
def test_what_a_model_may_do_is_the_models_alone(name: str) -> None:
    described, systems = read_file(FOLDER / f"smollm2_{name}.yaml")
    chosen = {name: plan.settings for name, plan in systems.items()}
    assert chosen["feedback"].loop == Settings().loop
    assert not chosen["no refinement"].loop.steps
    asking = {name: plan.asks for name, plan in systems.items() if plan.asks}
    assert asking == {
        "words": ("group_keywords",),
        "grounded words": ("group_keywords",),
        "passage": ("group_passages",),
        "three passages": ("group_passages",),
        "three weighted": ("group_passages",),
        "sentences": ("group_sentences",),
        "feedback and passage": ("group_passages",),
        "feedback and three weighted": ("group_passages",),
        "feedback and sentences": ("group_sentences",),
        "judged feedback": ("judge_relevance",),
    }
    assert {chosen[name].loop.on_error for name in asking} == {"fail"}
    assert {name for name in asking if chosen[name].loop.weighting == "relevance"} == {
        name for name in asking if "weighted" in name
    }
    assert described.budget.calls
    assert described.topics.sample == 10


def test_the_files_of_the_model_differ_in_name_and_collection_alone() -> None:
    files = [read_yaml(file) for file in sorted(FOLDER.glob("smollm2_*.yaml")) if not file.stem.endswith("filter")]
    assert len(files) == 3
    for key in ("name", "collection"):
        assert len({one.pop(key) for one in files}) == 3
    assert all(one == files[0] for one in files)


def test_the_filter_is_measured_apart_on_the_same_topics() -> None:
    described, systems = read_file(FOLDER / "smollm2_filter.yaml")
    beside, _ = read_file(FOLDER / "smollm2_trec22_biographies.yaml")
    same = ("collection", "topics", "seed", "measures", "baseline")
    assert all(getattr(described, name) == getattr(beside, name) for name in same)
    assert systems["filter"].asks == ("fairness_filter", "utility_filter")
    assert systems["filter"].settings.filter.on_error == systems["filter"].settings.loop.on_error == "fail"


def test_the_calls_of_a_loop_that_filters_are_known_before(tmp_path: Path) -> None:
    system = "{profile: offline, engine: words, loop: {actions: [refine, filter]}, filter: fair, model: {name: tiny}}"
    file = words.write(tmp_path, f"{words.EXPERIMENT}  filter: {system}\n")
    rows = {row.system: row for row in estimate(check_experiment(file, environ={KEY_VARIABLE: "none"}))}
    # 19 topics, 20 documents of a ranking in three rounds, two questions each.
    assert rows["filter"].calls == 19 * 20 * 3 * 2
    assert rows["filter"].model == "tiny"
    assert rows["plain"].calls == 0
