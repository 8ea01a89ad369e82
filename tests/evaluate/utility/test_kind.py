"""Utility experiments end to end: numbers by hand, what is left out and refused, and that nothing changes twice."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from fairagent.evaluate.check import check_experiment, estimate
from fairagent.evaluate.findings import cloud
from fairagent.evaluate.run import Results
from fairagent.evaluate.tables import PlotPoint
from fairagent.guests.testing import ServerReply, completion
from fairagent.papers.utility.kind import RowSummary, by_topic, summary
from fairagent.report.page import page

from ..conftest import Loopback
from . import library

pytestmark = pytest.mark.usefixtures("no_variables")


@pytest.fixture
def run(same_words: None, tmp_path: Path) -> Results:
    return library.run(library.write(tmp_path), tmp_path / "run")


def lines(run: Results) -> dict[tuple[str, int], RowSummary]:
    return {(line.system, line.k): line for line in summary(run, run.kind.utility)}


def test_by_hand(run: Results) -> None:
    found = library.means(run)
    mark = "[not comparable]"
    # Questions: 2/3 and 4/7 of the words that are shared, and none.
    for system in run.systems:
        assert found[system, f"P{mark}@0"] == pytest.approx((2 / 3 + 4 / 7 + 0) / 3)
    # Two relevant passages for the first: together they are less alike to either than each to itself.
    assert found["Rel", f"P{mark}@1"] == pytest.approx((1 + 1 + 0) / 3)
    assert found["Rel", f"U{mark}@1"] == pytest.approx((1 / 2 + 3 / 4) / 2)
    assert found["Rel", f"U{mark}@2"] == pytest.approx((1 / 4 + 3 / 4) / 2)
    assert found["words", f"U{mark}@2"] == pytest.approx((1 / 4 + 3 / 4) / 2)
    assert found["run", f"U{mark}@1"] == pytest.approx((-5 / 11 + 0) / 2)
    assert found["run", f"U{mark}@2"] == pytest.approx((-1 / 13 + 3 / 4) / 2)
    assert found["NRel", f"U{mark}@1"] == 0
    # Grades 1, 3 of 3, 2; 0, 3 of 3; 0, 2 of 2.
    first = (1 + 3 / math.log2(3)) / (3 + 2 / math.log2(3))
    assert found["run", "nDCG@2"] == pytest.approx((first + 2 / math.log2(3)) / 3)


def test_where_no_documents_are_worth_nothing_utility_is_not_defined(run: Results) -> None:
    assert by_topic(run, run.kind.utility)[1:] == (("q1", "q2"), ("q4",))
    assert run.excluded == {"q3": "no passage has a grade of 2 or more"}
    assert {row.topics for row in run.comparisons if row.measure.startswith("U")} == {2}
    assert {row.topics for row in run.comparisons if row.measure.startswith("P")} == {3}
    assert "left out of U, since P_0 is 0: 1 topic: q4" in (run_folder(run) / "results.txt").read_text()


def run_folder(run: Results) -> Path:
    return Path(str(run.provenance["collection"]["file"])).parent / "run"  # type: ignore[index]


def test_fewer_than_k_relevant_are_all_of_them(run: Results) -> None:
    hits = {(o.topic, o.system): [hit.id for hit in o.hits] for o in run.outcomes}
    assert hits["q2", "Rel"] == ["p5"]
    assert sorted(hits["q1", "Rel"]) == ["p1", "p2"]
    # All that was judged, the worst first: it goes on with relevant ones.
    assert hits["q2", "NRel"] == ["p4", "p5"]
    assert hits["q4", "words"] == []


def test_tests_against_the_baseline_and_the_rank_order(run: Results) -> None:
    found = lines(run)
    assert found["Rel", 1].to_baseline is None
    assert found["words", 1].to_order is None
    test = found["run", 1].to_baseline
    assert test
    assert test.difference == pytest.approx((-5 / 11 - 3 / 4 - 1 / 2) / 2)
    alike = found["words reversed", 1].to_order
    assert alike
    assert (alike.difference, alike.p) == (0, 1)
    # Two topics are too few for a correlation.
    assert all(line.r is None for line in summary(run, run.kind.utility))


def test_not_comparable_stands_wherever_a_number_is_printed(run: Results) -> None:
    folder = run_folder(run)
    for name in ("results.txt", "results.csv", "results.tex", "topics.csv", "utility.csv"):
        text = (folder / name).read_text(encoding="utf-8")
        assert "not comparable" in text, name
    for name in ("results.csv", "topics.csv"):
        for row in library.words.rows(folder / name):
            assert row["measure"].startswith("nDCG") or "[not comparable]" in row["measure"]
    told = page(run)
    assert told.count("not comparable") > 10
    assert "the numbers are not comparable with those of papers" in told


def test_missing_texts_are_named(same_words: None, tmp_path: Path) -> None:
    file = library.write(tmp_path)
    passages = tmp_path / "passages.tsv"
    passages.write_text(passages.read_text().replace("p2\ta judge reads law books\n", ""))
    message = library.words.refused(file)
    assert "the judgments: 1 of 7 passages are not among the documents of 'library': p2" in message
    with (tmp_path / "run.txt").open("a") as run:
        run.write("q2 Q0 zz 1 9 mine\n")
    assert "systems.run: 1 of " in library.words.refused(file)
    assert "passages are not among the documents of 'library': zz" in library.words.refused(file)


def test_a_relevant_passage_without_a_text_is_no_reference(same_words: None, tmp_path: Path) -> None:
    file = library.write(tmp_path)
    passages = tmp_path / "passages.tsv"
    passages.write_text(passages.read_text().replace("p5\tthe singer sang a song", "p5\t"))
    checked = check_experiment(file, environ={})
    assert checked.excluded["q2"] == "no relevant passage has a text"
    assert checked.plan.topics == ("q1", "q4")


def test_grades_that_run_the_other_way(same_words: None, tmp_path: Path) -> None:
    turned = library.EXPERIMENT.replace("relevant: 2", "relevant: 2, grades: {1: 3, 3: 1}")
    without_run = "".join(line for line in turned.splitlines(True) if not line.startswith("  run:"))
    # p4 of q3 has become as good as any, p5 of q2 no better than others.
    assert check_experiment(library.write(tmp_path, without_run), environ={}).plan.topics == ("q1", "q3", "q4")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("ks: [0, 1, 2]", "ks: [0]", "expected numbers of documents, at least one of them above 0 and none below"),
        ("ks: [0, 1, 2]", "ks: [0, 1, 2], scatter: [1, 7]", "utility.scatter: 7 is none of the ks, which are: 1, 2"),
        ("relevant: 2", "relevant: 9", "none of 4 topics has a passage with a grade of 9 or more"),
        ("relevant: 2", "relevant: 2, compat: authors", "utility.compat: names a prompt, and no language model"),
        ("engine: words}", "engine: words, filter: fair}", "filter: cannot be set"),
        (
            "{profile: engine, engine: words}",
            "{profile: engine, engine: words, generate: {sentences: 2}}",
            "are one for all in a utility experiment",
        ),
        ("  NRel:", "  words reversed: {profile: engine, engine: words}\n  NRel:", "a name is that of another's row"),
    ],
)
def test_refused(same_words: None, tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in library.EXPERIMENT
    assert message in library.words.refused(library.write(tmp_path, library.EXPERIMENT.replace(old, new)))


RUNS = 2
MODEL = library.EXPERIMENT.replace("relevant: 2}", f"relevant: 2, runs: {RUNS}, temperature: 0.3}}").replace(
    "seed: 5", "seed: 5\nsettings: {generate: llm, model: {name: tiny}}\nprices: {tiny: {input: 1, output: 2}}"
)


def says(request: dict[str, Any]) -> ServerReply:
    """Without passages "the judge" or, in the second run, "a law"; with passages the first one's text."""
    user = request["messages"][-1]["content"]
    passages = next((line for line in user.splitlines() if line.startswith("[{")), "")
    if passages:
        return completion(json.loads(passages)[0]["text"])
    return completion("the judge" if request["seed"] == 5 else "a law")


def test_a_model_answers(same_words: None, tmp_path: Path, loopback: Loopback) -> None:
    server = loopback(says)
    checked = check_experiment(library.write(tmp_path, MODEL))
    before = {line.system: line for line in estimate(checked)}
    run = library.words.run_checked(checked, tmp_path / "run")
    # Each topic's answers from no documents are asked for once, by whichever row comes first.
    alone = [request for request in server.requests if "passages, as a JSON" not in str(request)]
    assert len(alone) == RUNS * 3
    assert {request["seed"] for request in server.requests} == {5, 6}
    assert {request["temperature"] for request in server.requests} == {0.3}
    assert {request["max_tokens"] for request in server.requests} == {300}
    found = library.means(run)
    # Performance is averaged over the runs: q1 (2 x 2/6, 2 x 2/7), then utility.
    q1 = (2 * 2 / 6 + 2 * 2 / 7) / 2
    q2 = (2 * 1 / 7 + 2 * 1 / 7) / 2
    assert found["Rel", "P[not comparable]@0"] == pytest.approx((q1 + q2 + 0) / 3)
    assert found["words", "U[not comparable]@1"] == pytest.approx(((1 - q1) / q1 + (1 - q2) / q2) / 2)
    # The first passage is all that counts for this model, and in this run the last ones are better.
    assert found["run", "P[not comparable]@2"] < found["run reversed", "P[not comparable]@2"]
    assert sum(line.calls for line in before.values()) >= len(server.requests)
    assert sum(line.input_tokens for line in before.values()) > 0
    spent = run.costs
    assert spent["Rel"].calls == 3 * RUNS * 1 + RUNS * (2 + 1 + 1)
    assert spent["Rel"].cost


def test_both_prompts_are_rows_each_against_its_own_answer_without_documents(
    same_words: None, tmp_path: Path, loopback: Loopback
) -> None:
    file = library.write(tmp_path, MODEL.replace("relevant: 2,", "relevant: 2, compat: [authors, ours],"))

    def says_both(request: dict[str, Any]) -> ServerReply:
        user = request["messages"][-1]["content"]
        if "STOP" not in user:
            return says(request)
        first = next((line for line in user.splitlines() if line.startswith("Context 1: ")), "")
        text = json.loads(first.removeprefix("Context 1: ").removesuffix(";")) if first else "the judge wrote"
        return completion(f"{text} STOP and more of it")

    server = loopback(says_both)
    checked = check_experiment(file)
    before = estimate(checked)
    run = library.words.run_checked(checked, tmp_path / "run")
    assert [name for name in run.systems if name.startswith("words")] == [
        *("words", "words reversed", "words, our prompt", "words reversed, our prompt")
    ]
    assert run.systems[0] == "Rel"
    found = library.means(run)
    # q1 shares 3 of 3 + 4 words with its closest passage, q2 1 of 3 + 5, q4 none; and by our prompt as above.
    assert found["Rel", "P[not comparable]@0"] == pytest.approx((2 * 3 / 7 + 2 * 1 / 8 + 0) / 3)
    q1, q2 = (2 * 2 / 6 + 2 * 2 / 7) / 2, (2 * 1 / 7 + 2 * 1 / 7) / 2
    assert found["words, our prompt", "P[not comparable]@0"] == pytest.approx((q1 + q2 + 0) / 3)
    # The word STOP and what comes after it are no part of the answer.
    assert found["words", "P[not comparable]@1"] == found["words, our prompt", "P[not comparable]@1"]
    rows = lines(run)
    assert rows["Rel, our prompt", 1].to_baseline is None
    test = rows["words, our prompt", 2].to_baseline
    assert test
    assert test.difference == pytest.approx(
        found["words, our prompt", "U[not comparable]@2"] - found["Rel, our prompt", "U[not comparable]@2"]
    )
    assert sum(line.calls for line in before) >= len(server.requests)


def test_drawn_contexts_of_a_smaller_k_begin_those_of_a_larger_one(same_words: None, tmp_path: Path) -> None:
    """Another seed draws others."""
    found = set()
    for seed in range(4):
        file = library.write(tmp_path, library.EXPERIMENT.replace("seed: 5", f"seed: {seed}\ntopics: [q1]"))
        run = library.run(file, tmp_path / f"seed{seed}")
        found |= {tuple(hit.id for hit in o.hits) for o in run.outcomes if (o.topic, o.system) == ("q1", "Rel")}
    assert found == {("p1", "p2"), ("p2", "p1")}


def scattered(folder: Path, ks: str) -> Path:
    file = library.write(folder)
    text = file.read_text(encoding="utf-8")
    assert "utility: {" in text
    file.write_text(text.replace("utility: {", f"utility: {{scatter: {ks}, "), encoding="utf-8")
    return file


def test_the_line_by_hand(same_words: None, tmp_path: Path) -> None:
    """Of `run` at k = 1 the first question has nDCG 1/3 and U -5/11, the second 0 and 0."""
    run = library.run(scattered(tmp_path, "[1]"), tmp_path / "run")
    fits = {f"{one.system} k={one.k}": one.fit for one in summary(run, run.kind.utility)}
    fit = fits["run k=1"]
    assert fit is not None
    assert (fit.slope, fit.intercept) == (pytest.approx(-15 / 11), pytest.approx(0))
    # All of the oracle's lists are as good as can be.
    assert fits["Rel k=1"] is None
    found = {(row["system"], row["k"]): row for row in library.words.rows(tmp_path / "run" / "utility.csv")}
    assert float(found["run", "1"]["fit_slope"]) == pytest.approx(-15 / 11)
    assert found["Rel", "1"]["fit_slope"] == ""
    html = page(run)
    plot = html.partition("topic by topic")[2].partition("</figure>")[0]
    assert "against nDCG@1, topic by topic" in html
    assert "against nDCG@2, topic by topic" not in html
    assert "<title>run q1" in plot
    assert "run: fit 0.000 0.000, fit 0.333 -0.455" in html


def test_a_cloud_without_spread_has_no_line() -> None:
    points = [PlotPoint("a", 0.5, 1.0), PlotPoint("b", 0.5, 2.0)]
    line = cloud("name", 3, points)
    assert (line.points, line.alone, line.color) == ((), tuple(points), 3)
    assert cloud("name", 3, []).points == ()
