"""Systems whose rankings equal another's: marked in every table, with the reason where the settings tell it."""

from __future__ import annotations

import pytest

from fairagent import write_demo
from fairagent.evaluate.check import check_experiment
from fairagent.evaluate.comparison import ORIGINAL, SAME_SETTINGS, Equal, equal_systems
from fairagent.evaluate.experiment import build_indexes
from fairagent.evaluate.results import results_text
from fairagent.evaluate.run import Run
from fairagent.report.page import page
from fairagent.settings import Settings, load_settings

from . import words

SYSTEMS = """\
systems:
  exposure: {profile: engine, rerank: exposure}
  BM25: {profile: engine, engine: bm25}
  FAIR-QR: {profile: fair-qr-deep, refine: {kind: feedback, weight: 1}}
  FAIR-QR, not re-ranked: {profile: fair-qr-deep, refine: {kind: feedback, weight: 1}, rerank: none}
  BM25 again: {profile: engine}
"""
MEASURES = "measures: ['nDCG@10', 'AWRF(unknown=ignore)@10']\n"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("equal")
    file = folder / "experiment.yaml"
    shared = f"collection: {write_demo(folder / 'demo', people=300)}\nsettings: {{index: {folder}/index}}\n"
    file.write_text(f"name: equal\ntopics: 8\n{shared}{SYSTEMS}{MEASURES}", encoding="utf-8")
    checked = check_experiment(file, environ={})
    build_indexes(checked, lambda what, done: None)
    return words.run_checked(checked, folder / "run")


def settings(**values: object) -> Settings:
    return load_settings(overrides=values, environ={})


def test_fair_qr_at_full_depth_is_its_engine(run: Run) -> None:
    """DESIGN's trap: the list that is re-ranked by the user's query holds the engine's own first documents."""
    accepted = [
        any(step.accepted and step.aim for step in one.steps) for one in run.outcomes if one.system == "FAIR-QR"
    ]
    assert sum(accepted) > 0
    assert run.equal == (
        Equal("FAIR-QR", "BM25", ORIGINAL, undone=sum(accepted)),
        Equal("BM25 again", "BM25", SAME_SETTINGS),
    )


def test_refinements_that_change_nothing_are_a_warning(run: Run) -> None:
    warning = f"refinements accepted on {run.equal[0].undone} topics change nothing against BM25"
    warned = [line for line in results_text(run).splitlines() if line.startswith("! ") and "change nothing" in line]
    assert len(warned) == 1
    assert warned[0].startswith("! FAIR-QR: ")
    assert warned[0].endswith(warning)
    assert warning in page(run)
    assert run.equal[1].warning == ""


def test_what_another_loop_did_as_well_is_not_undone() -> None:
    ranked = {"BM25": [["a"]], "loop": [["b"]], "again": [["b"]], "undone": [["a"]], "idle": [["a"]]}
    refined = {"loop": 1, "again": 1, "undone": 1}
    found = [(one.system, one.other, one.undone) for one in equal_systems(ranked, {}, refined)]
    assert found == [("again", "loop", 0), ("undone", "BM25", 1), ("idle", "BM25", 0)]


def test_the_first_that_ranks_so_is_named_and_one_other_topic_is_enough_to_differ() -> None:
    ranked = {"A": [["a"], ["b"]], "B": [["a"], ["c"]], "C": [["a"], ["b"]], "D": [["a"], ["b"]]}
    assert [(one.system, one.other, one.why) for one in equal_systems(ranked, {})] == [("C", "A", ""), ("D", "A", "")]
    assert equal_systems({"A": [], "B": []}, {}) == ()


@pytest.mark.parametrize(
    ("own", "why"),
    [
        ({"profile": "fair-qr-deep"}, ORIGINAL),
        ({"profile": "fair-qr"}, ""),
        ({"profile": "fair-qr-deep", "loop": {"rerank_depth": 20}}, ""),
        ({"profile": "fair-qr-deep", "engine": "rm3"}, ""),
        ({"profile": "engine", "rerank": "original"}, ORIGINAL),
        ({"profile": "engine"}, SAME_SETTINGS),
        ({"profile": "engine", "rerank": "exposure"}, ""),
    ],
)
def test_why(own: dict[str, object], why: str) -> None:
    ranked = {"BM25": [["a"]], "other": [["a"]]}
    both = {"BM25": settings(profile="engine"), "other": settings(**own)}
    assert [one.why for one in equal_systems(ranked, both)] == [why]
