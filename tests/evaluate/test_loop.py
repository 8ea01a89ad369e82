"""What loops add: beside the very system without them, in no table and no test, and resampled by topic."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairagent import write_demo
from fairagent.evaluate.check import CheckedExperiment, check_experiment
from fairagent.evaluate.comparison import Equal
from fairagent.evaluate.experiment import build_indexes
from fairagent.evaluate.findings import verdict_lines
from fairagent.evaluate.ranking import mean_recalls
from fairagent.evaluate.results import measure_tables
from fairagent.evaluate.run import LoopGain, Results, load_run, loop_gains

from . import words
from .made_runs import run_of
from .test_comparison import outcome

FAIR_QR = "{profile: fair-qr-deep, refine: {kind: feedback, weight: 1}}"
SYSTEMS = f"""\
systems:
  BM25: {{profile: engine}}
  no loop: {{loop: none}}
  agent: {{}}
  FAIR-QR: {FAIR_QR}
  FAIR-QR again: {FAIR_QR}
"""
PRODUCT = "nDCG(discount=log2-max2)@20*AWRF(discount=log2-max2, log=e, unknown=ignore)@20"


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> CheckedExperiment:
    folder = tmp_path_factory.mktemp("loops")
    file = folder / "experiment.yaml"
    shared = f"collection: {write_demo(folder / 'demo', people=300)}\nsettings: {{index: {folder}/index}}\n"
    file.write_text(f"name: loops\ntopics: 6\nrun_depth: 24\n{shared}{SYSTEMS}", encoding="utf-8")
    return check_experiment(file, environ={})


@pytest.fixture(scope="module")
def folder(checked: CheckedExperiment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    build_indexes(checked, lambda what, done: None)
    words.run_checked(checked, folder := tmp_path_factory.mktemp("run") / "run")
    return folder


@pytest.fixture(scope="module")
def run(folder: Path) -> Results:
    return load_run(folder)


def test_a_loop_that_changes_nothing_says_so(checked: CheckedExperiment, folder: Path, run: Results) -> None:
    assert list(checked.plan.without_loops) == ["FAIR-QR, no loop"], "one for both, and none that the file has"
    assert run.systems == ("BM25", "no loop", "agent", "FAIR-QR", "FAIR-QR again")
    assert {row.system for row in run.comparisons} == {one.system for one in run.outcomes} == set(run.systems)
    assert len(list((folder / "runs").iterdir())) == 5
    agent, idle = run.loops[0], run.loops[1:]
    # DESIGN's trap: the list that is re-ranked by the user's query holds the engine's own first documents.
    assert any(step.accepted and step.aim for one in run.outcomes if one.system == "FAIR-QR" for step in one.steps)
    assert {Equal("FAIR-QR", "BM25"), Equal("FAIR-QR again", "BM25")} <= set(run.equal)
    assert (agent.system, agent.other, agent.topics, agent.pairs) == ("agent", "no loop", 6, 12)
    assert idle == tuple(LoopGain(name, "", "nDCG*AWRF", 0, 0, 0, 6, 12) for name in ("FAIR-QR", "FAIR-QR again"))
    said = "FAIR-QR: the loop adds nothing measurable here (nDCG*AWRF +0.000, 95 % interval"
    assert any(line.startswith(said) for line in verdict_lines(run))


def gain(checked: CheckedExperiment, differences: list[dict[str, float]]) -> LoopGain | None:
    """What the agent's loop adds where its products differ by so much, a topic each, dimension by dimension."""
    topics = list(map(str, range(len(differences))))
    answers = {}
    for topic, own in zip(topics, differences, strict=True):
        for name in checked.plan.all_systems:
            values = {key: {PRODUCT: 0.5 + more * (name == "agent")} for key, more in own.items()}
            answers[topic, name] = outcome(topic, name, **values)
    return next((one for one in loop_gains(checked.plan, answers, topics) if one.system == "agent"), None)


def test_a_loop_that_adds_or_costs(checked: CheckedExperiment) -> None:
    scripted = [{"gender": 0.125, "region": 0.125}] * 3 + [{"gender": 0.25}] * 2
    found = gain(checked, scripted)
    assert found
    assert found.gain == pytest.approx(0.15625)
    assert (found.topics, found.pairs) == (5, 8)
    assert found.low > 0
    assert str(found).startswith("agent: the loop adds +0.156 (nDCG*AWRF, 95 % interval +0.")
    assert "; 5 topics, 8 pairs of topic and dimension; against no loop)" in str(found)
    worse = gain(checked, [{name: -more for name, more in one.items()} for one in scripted])
    assert str(worse).startswith("agent: the loop costs 0.156 (nDCG*AWRF, 95 % interval -0.")


def test_a_topic_in_two_dimensions_is_one_witness(checked: CheckedExperiment) -> None:
    once = [{"gender": 0.25}, {"gender": -0.125}, {"gender": 0.0625}, {"gender": 0.125}]
    twice = [{**one, "region": one["gender"]} for one in once]
    one, two = gain(checked, once), gain(checked, twice)
    assert one
    assert two
    assert (one.low, one.high, one.pairs, two.pairs) == (two.low, two.high, 4, 8)
    assert gain(checked, once[:1]) is None


def test_a_p_value_that_a_test_cannot_undercut_is_a_bound() -> None:
    made = [
        outcome(f"T{topic}", name, gender={PRODUCT: value + topic / 100})
        for topic in range(40)
        for name, value in {"plain": 0.25, "better": 0.5, "same": 0.25}.items()
    ]
    run = run_of(made)
    assert "p <= .0004 after Holm)" in " ".join(verdict_lines(run))
    assert measure_tables(run)[0].rows[1][5:7] == ("<=.0002", "<=.0004")


def test_an_engine_has_the_recall_of_its_run_file(checked: CheckedExperiment, run: Results) -> None:
    """The ranking of the engine alone, 24 deep, is what it retrieved: recall by hand from its ids and the judgments."""
    collection = checked.collection
    for one in (one for one in run.outcomes if one.system == "BM25"):
        shown = {id for id, _ in one.scored}
        relevant = [id for id, grade in collection.qrels[one.topic].items() if grade > 0]
        rows = dict(zip(relevant, collection.groups.memberships("gender", relevant), strict=True))
        (gender,) = (recall for recall in one.recall if recall.dimension == "gender")
        for place in range(len(gender.labels)):
            assert gender.relevant[place] == pytest.approx(sum(row[place] for row in rows.values()))
            assert gender.retrieved[place] == pytest.approx(sum(row[place] for id, row in rows.items() if id in shown))
        assert one.entered == 0


def test_a_loop_is_measured_by_its_candidates(run: Results) -> None:
    """FAIR-QR ranks as BM25 does, and yet its refined lists hold other documents."""
    fair = [row for row in mean_recalls(run) if row.system == "FAIR-QR"]
    assert all(row.entered > 0 for row in fair)
    plain = {(row.dimension, row.group): row.recall for row in mean_recalls(run) if row.system == "BM25"}
    assert any(plain[row.dimension, row.group] != row.recall for row in fair)
