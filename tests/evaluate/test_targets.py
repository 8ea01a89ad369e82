"""What rankings are judged by, at every door: the call, the experiment, the collection, else `trec`; and its name."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scripted import by_letter, collection, ranking
from typer.testing import CliRunner

from fairagent.cli import app
from fairagent.collection.targets import judged_by
from fairagent.evaluate.findings import verdict_lines
from fairagent.evaluate.judging import evaluate_topic, judged_topics, judged_value, standard_measures
from fairagent.evaluate.results import results_latex, results_text
from fairagent.report.page import page
from fairagent.settings import Settings
from fairagent.types import Topic

from . import words

WORLD = {"gender": {"female": 0.5, "male": 0.5}}
GIVEN = {"gender": {"female": 0.25, "male": 0.75}}
QRELS = {"t1": {"m1": 1, "m2": 1}, "t2": {"x": 1}}


@pytest.mark.parametrize(
    ("chosen", "own", "track", "judged", "expected"),
    [
        (None, None, "", True, "trec"),
        (None, "uniform", "", True, "uniform"),
        (None, {"gender": "corpus"}, "", True, "corpus"),
        (None, {"region": "corpus"}, "", True, "trec"),
        # What is estimated from a ranking is judged by what it estimates.
        (None, "trec-estimated", "", True, "trec"),
        (None, "estimated", "", True, "qrels"),
        (None, "uniform", "trec", True, "trec"),
        ("population", "uniform", "trec", True, "population"),
        ({"region": "corpus"}, "uniform", "", True, "uniform"),
        (GIVEN, "uniform", "", True, "given (male 0.75, female 0.25)"),
        (None, None, "", False, "population"),
        (None, "estimated", "", False, "population"),
        (None, "uniform", "", False, "uniform"),
    ],
)
def test_one_function_decides(chosen: Any, own: Any, track: str, judged: bool, expected: str) -> None:
    made = collection(by_letter(["f1"]), WORLD, target=Settings(target=own).target)
    made = replace(made, judged=track, qrels=QRELS if judged else {})
    assert judged_by("gender", made, Settings(target=chosen).target).name == expected


def test_python_judges_by_the_collections_target() -> None:
    """Shown are two men where half should be women: the divergence of (0, 1) and (1/2, 1/2)."""
    made = collection(by_letter(["f1", "m1", "m2"]), target=Settings(target="uniform").target)
    made = replace(made, qrels=QRELS, topics={id: Topic(id, "q") for id in QRELS})
    fairness, shown = standard_measures(2)[1], ranking(["m1", "m2"])
    even = 1 - (math.log(4 / 3) + math.log(2) / 2 + math.log(2 / 3) / 2) / 2
    assert evaluate_topic(made, "t1", "gender", shown, [fairness])[0] == pytest.approx(even)
    assert judged_value(fairness, made, "t1", shown.ids, "gender", "trec") == pytest.approx(1)
    # No relevant document of t2 has a label: it counts for a target that is not counted from judgments.
    assert judged_topics(made, "gender").counted == ("t1", "t2")
    for target in ("trec", "qrels"):
        assert judged_topics(made, "gender", target=target).counted == ("t1",)
        assert judged_value(fairness, made, "t2", shown.ids, "gender", target) is None


def write(folder: Path, own: str = "", more: str = "") -> Path:
    """The experiment on a collection with this `target`, or none and no population."""
    file = words.write(folder, words.EXPERIMENT + more)
    text = re.sub(r"^(population|target): .*\n", "", words.COLLECTION, flags=re.MULTILINE)
    (folder / "collection.yaml").write_text(text + (own and f"target: {own}\n"), encoding="utf-8")
    return file


def test_its_name_stands_wherever_a_number_depends_on_it(tmp_path: Path) -> None:
    file = write(
        tmp_path, "{gender: uniform, era: {old: 0.75, new: 0.25}}", "  other: {engine: words, target: {era: uniform}}\n"
    )
    run = words.run(file, tmp_path / "run", limit=3)
    given = "given (old 0.75, new 0.25)"
    assert run.targets == {"gender": "uniform", "era": given}
    told, text = f"era: other steered by uniform, judged by {given}", f"uniform in gender; {given} in era"
    assert run.steered_otherwise == (told,)
    assert results_text(run).splitlines()[2:4] == [f"target: {text}", told]
    assert f"Target: {text}." in results_latex(run)
    assert f"The target is {text}." in page(run)
    assert "(uniform)" in "".join(verdict_lines(run))
    for name in ("results.csv", "topics.csv"):
        of = {(row["dimension"], row["target"]) for row in words.rows(tmp_path / "run" / name)}
        assert of == {("", ""), ("gender", "uniform"), ("era", given)}
    for outcome in run.outcomes:
        assert [one.target for one in outcome.exposures] == [(0.5, 0.5), (0.25, 0.75)]


def test_the_command_line_beats_the_collection_and_no_run_mixes_two_targets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path, "corpus")
    monkeypatch.chdir(tmp_path)

    def told(*command: str) -> Any:
        result = CliRunner().invoke(app, [*command, "--json"])
        return result.output if result.exit_code else json.loads(result.stdout)

    def fairness(record: Any) -> list[float]:
        return [
            one["mean"]
            for one in record["comparisons"]
            if one["measure"].startswith("AWRF") and one["system"] != "random"
        ]

    evaluate = ("evaluate", str(file), "--run", "run", "--workers", "1")
    first = told(*evaluate, "--target", "uniform")
    assert first["targets"] == {"gender": "uniform", "era": "uniform"}
    assert first["steered_otherwise"][0] == "gender: fair steered by corpus, judged by uniform"
    assert 'target.gender.kind: was "uniform", is "corpus"' in told(*evaluate)
    compare = ("evaluate-run", "run/runs/plain.txt", "run/runs/fair.txt", "--collection", "collection.yaml")
    assert fairness(told(*compare, "--target", "uniform")) == pytest.approx(fairness(first))
    own = told(*compare)
    assert own["targets"] == {"gender": "corpus", "era": "corpus"}
    assert fairness(own) != pytest.approx(fairness(first))


def test_a_missing_target_is_told_once_for_all_systems(tmp_path: Path) -> None:
    lines = words.refused(write(tmp_path)).splitlines()
    shares = [line.split()[:2] for line in lines if line.strip().startswith(("uniform ", "corpus "))]
    assert shares == [[kind, f"{name}:"] for kind in ("uniform", "corpus") for name in ("gender", "era")]
    # The target of the experiment is then what systems steer by, too, but for one that looks at the judgments.
    run = words.run(write(tmp_path, more="target: uniform\n"), tmp_path / "run", limit=1)
    assert (run.steered_otherwise, run.steers["fair"]) == ((), {"gender": "uniform", "era": "uniform"})
    for target, lacking in (("trec", "gender, era"), ("{gender: uniform}", "era")):
        assert f"no target is set for {lacking}:" in words.refused(write(tmp_path, more=f"target: {target}\n"))
    several = "settings: {target: {gender: corpus}}\ntarget: uniform\n"
    run = words.run(write(tmp_path, more=several), tmp_path / "several", limit=1)
    assert run.steers["fair"] == {"gender": "corpus", "era": "uniform"}
