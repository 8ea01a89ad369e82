"""The kind `ranking`: how deep runs are, what they are judged by, with or without judgments and groups."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

from fairagent.evaluate.check import check_experiment
from fairagent.evaluate.findings import mark
from fairagent.evaluate.ranking import AgainstBaseline, deepened
from fairagent.evaluate.results import results_text
from fairagent.report.page import page
from fairagent.retrieve.base import Retriever
from fairagent.types import Query, Ranking

from . import words


class Engine:
    """Finds a to f, scored 6 to 1."""

    def search(self, query: Query, k: int) -> Ranking:
        """See `Retriever`."""
        return Ranking(tuple("abcdef"[:k]), np.arange(6.0, 0.0, -1.0)[:k])


ENGINE: Retriever = Engine()


def unjudged(folder: Path, more: str = "") -> Path:
    """The experiment, over a collection in which no document is judged."""
    file = words.write(folder, words.EXPERIMENT + more)
    without = words.COLLECTION.replace("qrels: {path: qrels.tsv}\n", "")
    (folder / "collection.yaml").write_text(without, encoding="utf-8")
    return file


def test_below_a_ranking_stands_what_else_the_engine_finds() -> None:
    found = ENGINE.search(Query("words"), 5)
    ranking = Ranking(("c", "x"), np.array([0.9, 4.5e-1]))
    deep = deepened(ranking, found, 5)
    assert deep.ids == ("c", "x", "a", "b", "d")
    # Scores of another scale never rise.
    assert deep.scores.tolist() == [0.9, 0.45, 0.45, 0.45, 0.45]
    own = Ranking(("a", "b"), np.array([6.0, 5.0]))
    assert deepened(own, found, 4).scores.tolist() == [6, 5, 4, 3]
    assert deepened(own, found, 2) is own
    assert deepened(Ranking((), np.zeros(0)), found, 2).ids == ("a", "b")


def test_runs_are_deep_and_exposure_is_measured_at_n(tmp_path: Path) -> None:
    pytest.importorskip("ir_measures")
    more = "measures: [nDCG@5, AWRF(unknown=ignore)@5, AP, R@30]\nrun_depth: 30\n"
    file = words.write(tmp_path, words.EXPERIMENT + more)
    assert check_experiment(file, environ={}).plan.n == 5
    run = words.run(file, tmp_path / "run", limit=3)
    lines = (tmp_path / "run" / "runs" / "plain.txt").read_text(encoding="utf-8").splitlines()
    of_first = [line.split() for line in lines if line.startswith(f"{run.outcomes[0].topic} ")]
    assert [line[3] for line in of_first] == [str(rank) for rank in range(1, len(of_first) + 1)]
    assert 5 < len(of_first) <= 30
    assert len({line[2] for line in of_first}) == len(of_first)
    outcome = run.outcomes[0]
    assert (len(outcome.hits), len(outcome.tail)) == (5, len(of_first) - 5)
    # All three relevant texts are among the first thirty, though not among the first five of every topic.
    assert {o.values[""]["R@30"] for o in run.outcomes if o.system == "plain"} == {1}
    shallow = words.run(
        words.write(tmp_path, words.EXPERIMENT + more.replace("run_depth: 30", "run_depth: 5")),
        tmp_path / "shallow",
        limit=3,
    )
    assert all(o.tail == () for o in shallow.outcomes)
    for deep, flat in zip(run.outcomes, shallow.outcomes, strict=True):
        assert deep.exposures == flat.exposures
        assert deep.values[""]["nDCG(discount=log2-max2)@5"] == flat.values[""]["nDCG(discount=log2-max2)@5"]


def test_how_long_rankings_are(tmp_path: Path) -> None:
    pytest.importorskip("ir_measures")
    for measures, n in (
        ("[nDCG@20, AWRF@10, R@100]", 10),
        ("[P@5, nDCG@7]", 7),
        ("[AP]", 20),
        ("[NDKL@8, unlabeled@6]", 8),
    ):
        file = words.write(tmp_path, f"{words.EXPERIMENT}measures: {measures}\n")
        assert check_experiment(file, environ={}).plan.n == n


def test_what_has_no_label_is_shown_beside_fairness(tmp_path: Path) -> None:
    run = words.run(words.write(tmp_path), tmp_path / "run")
    text = results_text(run)
    assert "unlabeled is the share of exposure that goes to documents without a label" in text
    rows = {(row.system, row.dimension): row for row in run.comparisons if row.measure.startswith("unlabeled")}
    # Every fifth text says no gender; the era is known of all. The re-ranker puts labeled texts first.
    assert rows["plain", "gender"].mean > rows["fair", "gender"].mean >= 0
    assert rows["plain", "era"].mean == 0
    for (_, dimension), row in rows.items():
        outcomes = [one for one in run.outcomes if one.system == row.system]
        shares = [shown.unknown for one in outcomes for shown in one.exposures if shown.dimension == dimension]
        assert row.mean == pytest.approx(np.mean(shares))
        # It describes, and is neither better nor worse.
        assert mark(run, row) == ""
    assert "gender, unlabeled" not in text


def test_what_the_baseline_showed_and_scored() -> None:
    baseline = [("a", 4.0), ("b", 3.0), ("c", 2.0), ("d", 0.0)]
    assert AgainstBaseline("changed", 2).value([("a", 9.0), ("d", 8.0)], baseline) == 0.5
    # a and d in place of a and b: 1 + 0 of 1 + 3/4, both at full weight.
    assert AgainstBaseline("kept", 2).value([("a", 9.0), ("d", 8.0)], baseline) == pytest.approx(1 / 1.75)
    third = 1 / math.log2(3)
    own = AgainstBaseline("kept", 3).value([("b", 9.0), ("x", 8.0), ("a", 7.0)], baseline)
    assert own == pytest.approx((0.75 + third) / (1.75 + 0.5 * third))
    for name in ("changed", "kept"):
        assert AgainstBaseline(name, 3).value([], baseline) == 0
    assert AgainstBaseline("kept", 3).value([("a", 1.0)], []) == 0
    assert AgainstBaseline.parse("changed@20") == AgainstBaseline("changed", 20)
    assert AgainstBaseline.parse("changed") is None
    assert AgainstBaseline.parse("kept@0") is None


def test_topics_and_groups_are_enough(tmp_path: Path) -> None:
    file = unjudged(tmp_path, "about: Nothing is judged.\n")
    checked = check_experiment(file, environ={})
    assert len(checked.plan.topics) == 20
    assert checked.excluded == {}
    run = words.run(file, tmp_path / "run")
    labels = [row.measure.split("(")[0] for row in run.comparisons if row.system == "plain"]
    assert labels == ["changed@20", "kept@20", *("AWRF", "unlabeled") * 2]
    text = results_text(run)
    assert "relevance" not in text.replace("relevance scores", "")
    assert "nDCG" not in text
    assert any(line.startswith("     ") and "ranking" in line for line in text.splitlines())
    for outcome in run.outcomes:
        targets = {shown.dimension: shown.target for shown in outcome.exposures}
        # The world's shares; of the era, which has none, those of the documents: 13 of 40 are old.
        assert targets["gender"] == (0.5, 0.5)
        assert targets["era"] == pytest.approx((14 / 40, 26 / 40))
        assert {name for name, values in outcome.values.items() if values} == {"", "gender", "era"}


def test_what_cannot_be_judged_by_is_said(tmp_path: Path) -> None:
    pytest.importorskip("ir_measures")
    for more, message in (
        ("measures: [AQ@5]\n", "did you mean 'AP'?"),
        ("measures: [EE-L@5]\n", "EE-L is measured by `fairagent evaluate-run --task 2`"),
        ("measures: [P@0]\n", "'P@0': ir-measures does not take it: the cut-off is 0"),
        ("measures: [nDCG@20*AP]\n", "the factors of a product have the same cut-off"),
        ("target: estimated\n", "target: the target 'estimated' needs the ranking"),
        ("target: {gener: {female: 1}}\n", "target: no dimension 'gener'; did you mean 'gender'?"),
        ("target: {gender: {robots: 1}, era: {old: 1}}\n", "no group 'robots'"),
    ):
        assert message in words.refused(words.write(tmp_path, words.EXPERIMENT + more))


def test_relevance_needs_judgments(tmp_path: Path) -> None:
    pytest.importorskip("ir_measures")
    said = words.refused(unjudged(tmp_path, "measures: [nDCG@20, AP, AWRF@20]\n"))
    assert "measures: nDCG(discount=log2-max2)@20 needs judgments, and the collection has none" in said
    assert "measures: AP needs judgments" in said
    assert "AWRF" not in said


@pytest.mark.usefixtures("no_variables")
def test_it_needs_no_groups_where_no_measure_looks_at_them(tmp_path: Path) -> None:
    pytest.importorskip("ir_measures")
    systems = words.EXPERIMENT.partition("  fair:")[0]
    file = words.write(tmp_path, systems + "measures: [nDCG@5, P@5]\n")
    plain = re.sub(r"^groups:\n(  .*\n)+population: .*\ntarget: .*\n", "", words.COLLECTION, flags=re.MULTILINE)
    assert "gender" not in plain
    (tmp_path / "collection.yaml").write_text(plain, encoding="utf-8")
    run = words.run(file, tmp_path / "run")
    (first,) = (one for one in run.outcomes if (one.system, one.topic) == ("plain", "T00"))
    assert [hit.id for hit in first.hits][:4] == ["d00", "d01", "d02", "d03"]
    # Of the four texts about judges three are relevant.
    assert first.values[""]["P@5"] == pytest.approx(0.6)
    assert {row.dimension for row in run.comparisons} == {""}
    assert run.dimensions == ()
    assert "plain" in page(run)
    for measures in ("measures: [nDCG@5, AWRF@5]\n", ""):
        file.write_text(systems + measures, encoding="utf-8")
        assert "collection 'words' has no groups, so there is nothing to be fair to" in words.refused(file)
