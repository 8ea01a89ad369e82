"""The files of a run: that others read from them what is in them."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from fairagent.collection import load_collection
from fairagent.evaluate.outcome import from_line, to_line
from fairagent.evaluate.results import details_latex, falling, results_latex, results_text, write_results
from fairagent.evaluate.run import Run, load_run

from . import words

MEASURES = "measures: ['nDCG(discount=log2-plus1)@10', 'AWRF(unknown=ignore)@10', 'AWRF(log=2)@10']\n"
ORACLE = (
    "  oracle, of a kind: {profile: engine, engine: {kind: words, order: exposure}, rerank: exposure, target: trec}\n"
)
EXPECTED = "expected: {plain: {'nDCG(discount=log2-plus1)@10': 0.5}}\nabout: What it should show.\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    words.run(words.write(folder, words.EXPERIMENT + ORACLE + MEASURES + EXPECTED), folder / "run")
    return folder


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    return load_run(folder / "run")


def test_trec_runs_are_read_by_others_as_they_were_meant(folder: Path, run: Run) -> None:
    """Ties: whoever sorts the run by its scores gets our order, and so our value."""
    ir_measures = pytest.importorskip("ir_measures", reason="the package ir_measures is not installed")
    grades = load_collection(folder / "collection.yaml").qrels
    qrels = {topic: dict(of_topic) for topic, of_topic in grades.items() if of_topic}
    ours = {
        (outcome.system, outcome.topic): outcome.values[""]["nDCG(discount=log2-plus1)@10"] for outcome in run.outcomes
    }
    tied = 0
    for system in run.systems:
        path = folder / "run" / "runs" / f"{system.replace(', ', '_').replace(' ', '_')}.txt"
        ranking = list(ir_measures.read_trec_run(str(path)))
        measured = {
            value.query_id: value.value for value in ir_measures.iter_calc([ir_measures.nDCG @ 10], qrels, ranking)
        }
        assert len(measured) == 19
        for topic, value in measured.items():
            assert value == pytest.approx(ours[system, topic], abs=1e-9)
    for outcome in run.outcomes:
        scores = [hit.score for hit in outcome.hits]
        tied += len(set(scores)) < len(scores)
    assert tied > 10


def test_scores_fall_strictly_even_as_32_bit_floats() -> None:
    scores = [1e9, 1e9, 5.0, 5.0 - 1e-12, 5.0, 0.0, 0.0, -1.0]
    written = [np.float32(score) for score in falling(scores)]
    assert all(below < above for above, below in pairwise(written))
    assert written[0] == 1e9
    assert written[2] == 5
    assert list(falling([])) == []


def test_csv(folder: Path, run: Run) -> None:
    with (folder / "run" / "results.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4 * (1 + 2 * 2) == len(run.comparisons)
    for row, comparison in zip(rows, run.comparisons, strict=True):
        assert (row["system"], row["dimension"], row["measure"]) == (
            comparison.system,
            comparison.dimension,
            comparison.measure,
        )
        assert float(row["mean"]) == comparison.mean
        assert (row["difference"] == "") == (comparison.system == "plain")
    assert rows[0]["expected"] == "0.5"
    assert {row["oracle"] for row in rows if row["system"] == "oracle, of a kind"} == {"1"}
    with (folder / "run" / "topics.csv").open(encoding="utf-8", newline="") as file:
        values = [
            float(row["value"])
            for row in csv.DictReader(file)
            if (row["system"], row["dimension"], row["measure"]) == ("fair", "gender", run.measures[1])
        ]
    fair = next(row for row in run.comparisons if (row.system, row.dimension) == ("fair", "gender"))
    assert len(values) == fair.topics
    assert np.mean(values) == pytest.approx(fair.mean, rel=1e-12)


def test_text(run: Run) -> None:
    text = results_text(run)
    lines = text.splitlines()
    assert lines[:3] == [
        "small experiment",
        "What it should show.",
        "words, 19 topics, rankings of 10; baseline: plain",
    ]
    assert "oracle, of a kind †" in text
    assert "† looked at the judgments" in text
    assert "no system asked a language model" in text
    # Headers carry the variant, and leave out what is the default.
    assert [word for word in lines[5].split() if "@" in word] == [
        "nDCG(discount=log2-plus1)@10",
        *("AWRF(unknown=ignore)@10", "AWRF(log=2)@10") * 2,
    ]
    assert "expected" in next(line for line in lines if line.startswith("system") and "mean" in line)
    assert not re.search(r"\bnan\b|\binf\b|None", text)


def test_latex(run: Run) -> None:
    table = results_latex(run)
    assert table.count(r" \\") == 1 + 4
    assert r"oracle, of a kind$^\dagger$ & " in table
    assert r"\begin{tabular}{lrrrrrr}" in table


def test_latex_in_full(run: Run) -> None:
    """What the text says of each measure, number for number."""
    tables = details_latex(run).split("\n\n")
    assert len(tables) == 8
    assert tables[0].startswith("% nDCG(discount=log2-plus1)@10 (19 topics)\n\\begin{tabular}{lrrrrrrrrr}\n")
    plain = re.sub(r"\$([<-])\$", r"\1", tables[0].replace("{[}", "[").replace(r"$^\dagger$", "†").replace("\\%", "%"))
    rows = [line.removesuffix(r" \\").split(" & ") for line in plain.splitlines() if "&" in line]
    text = next(part for part in results_text(run).split("\n\n") if part.startswith("nDCG")).splitlines()[1:]
    assert [row[0] for row in rows] == ["system", "plain", "fair", "random", "oracle, of a kind †"]
    assert [" ".join(filter(None, row)).split() for row in rows] == [line.split() for line in text]
    assert not re.search(r"(?<!\\)%", tables[0].partition("\n")[2])


def test_latex_of_what_models_were_asked(run: Run) -> None:
    outcomes = (run.outcomes[0], replace(run.outcomes[1], calls=2, input_tokens=30, cost=None), *run.outcomes[2:])
    last = details_latex(replace(run, outcomes=outcomes)).split("\n\n")[-1]
    assert last.startswith("% language model, all topics together\n")
    assert f"{run.outcomes[1].system} & 2 & 0 & 30 & 0 & price unknown" in last
    assert r" & 0 & 0 & 0 & \$0.0000 \\" in last


def test_a_missing_p_value(tmp_path: Path) -> None:
    run = words.run(words.write(tmp_path), tmp_path / "run", limit=1)
    assert {row.randomization_p for row in run.comparisons} == {None}
    assert re.search(r"^fair .* -  +-  +- +- +\d/\d/\d$", results_text(run), re.MULTILINE)


def test_another_baseline(folder: Path, run: Run) -> None:
    other = load_run(folder / "run", baseline="fair")
    assert other.systems == ("fair", "plain", "random", "oracle, of a kind")
    differences = {row.system: row.difference for row in run.comparisons if row.dimension == "gender"}
    reversed_ones = {row.system: row.difference for row in other.comparisons if row.dimension == "gender"}
    assert reversed_ones["plain"] == pytest.approx(-differences["fair"])


def test_the_journal_survives_json(run: Run) -> None:
    for outcome in run.outcomes:
        assert from_line(to_line(outcome)) == outcome
    assert any(outcome.steps for outcome in run.outcomes)


def test_outcomes_hold_what_pages_show(run: Run) -> None:
    outcome = next(outcome for outcome in run.outcomes if (outcome.topic, outcome.system) == ("T00", "fair"))
    assert outcome.hits[0].title.startswith("judge")
    assert {hit.id for hit in outcome.hits if hit.relevant} == {"d00", "d01", "d03"}
    assert set(outcome.hits[0].groups) == {"gender", "era"}
    gender = outcome.exposures[0]
    assert (gender.dimension, gender.labels) == ("gender", ("female", "male"))
    # Two of the three relevant texts are of men, one of a woman; and half and half in the world.
    assert gender.target == pytest.approx((5 / 12, 7 / 12))
    assert sum(gender.shares) == pytest.approx(1)
    assert set(outcome.values) == {"", "gender", "era"}


def test_results_are_made_from_the_journal_alone(folder: Path, run: Run, tmp_path: Path) -> None:
    write_results(run, tmp_path)
    for name in ("results.csv", "results.txt", "results.tex", "details.tex", "topics.csv", "timings.csv"):
        assert (tmp_path / name).read_bytes() == (folder / "run" / name).read_bytes()


def test_no_secret_reaches_the_folder(tmp_path: Path) -> None:
    secret = "http://me:canary-secret@localhost:1/v1"
    file = words.write(tmp_path, words.EXPERIMENT + f"settings: {{model: {{base_url: '{secret}'}}}}\n")
    words.run(file, tmp_path / "run", limit=1)
    assert json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))["fingerprint"]["seed"] == 7
    for path in (tmp_path / "run").rglob("*"):
        assert path.is_dir() or b"canary-secret" not in path.read_bytes()
