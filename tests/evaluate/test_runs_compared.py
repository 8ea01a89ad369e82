"""Run files compared on a collection: the same values as the systems that wrote them have."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairagent.errors import DataError, FairAgentError, SettingsError, UsageError
from fairagent.evaluate.check import CheckedExperiment, check_runs
from fairagent.evaluate.results import results_text
from fairagent.evaluate.run import Results
from fairagent.report.page import page

from . import words

MEASURES = ["nDCG(discount=geometric(0.8))@10", "AWRF(discount=step(3), log=2, unknown=ignore)@10"]
MEASURES += ["AWRF@10", "nDCG@10", "nDCG@10*AWRF@10", "AP", "RR", "R@15", "Bpref"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Results]:
    """The folder of an experiment with its run files, and what they were judged as."""
    folder = tmp_path_factory.mktemp("whole")
    file = words.write(folder, f"{words.EXPERIMENT}measures: {MEASURES}\n")
    return folder, words.run(file, folder / "run")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    words.write(tmp_path)
    return tmp_path


def checked(folder: Path, *runs: Path, **options: object) -> CheckedExperiment:
    return check_runs(runs, folder / "collection.yaml", environ={}, **options)  # type: ignore[arg-type]


def means(run: Results) -> dict[tuple[str, str, str], float]:
    return {(row.system, row.dimension, row.measure): row.mean for row in run.comparisons}


def test_measures_dimensions_cut_off_and_baseline(folder: Path) -> None:
    for name in ("a", "b"):
        (folder / f"{name}.tsv").write_text("T00\td00\nT00\td01\nT01\td04\n", encoding="utf-8")
    files = folder / "a.tsv", folder / "b.tsv"
    plan = checked(folder, *files, n=1, dimensions=["era"], baseline="b").plan
    assert (list(plan.systems), plan.dimensions, plan.n) == (["b", "a"], ("era",), 1)
    assert all(measure.endswith("@1") for measure in plan.measures)
    assert checked(folder, *files, measures=["nDCG(discount=log2-plus1)@7"]).plan.n == 7
    huge = words.run_checked(checked(folder, *files, n=10**12), folder / "huge")
    small = words.run_checked(checked(folder, *files, n=20), folder / "small")
    assert [row.mean for row in huge.comparisons] == [row.mean for row in small.comparisons]


def test_a_topic_that_a_run_lacks_counts_0_and_is_named(folder: Path) -> None:
    """19 topics count; the run has the best document of two of them, of three that are relevant."""
    (folder / "a.tsv").write_text("T00\td00\nT01\td04\n", encoding="utf-8")
    (folder / "b.tsv").write_text("".join(f"T{n:02d}\td00\n" for n in range(19)), encoding="utf-8")
    run = words.run_checked(checked(folder, folder / "a.tsv", folder / "b.tsv", measures=["nDCG@1"]), folder / "run")
    assert means(run)["a", "", "nDCG(discount=log2-max2)@1"] == pytest.approx(2 / 19)
    (remark,) = run.of_kind.remarks
    assert remark.startswith("a has an empty ranking for 17 topics, which count with the lowest values: T02, T03, T04")
    assert remark in results_text(run)
    assert remark in page(run)
    # Every document has an era, so that there is nothing to say of missing labels either.
    whole = words.run_checked(
        checked(folder, folder / "b.tsv", dimensions=["era"], measures=["nDCG@1"]), folder / "whole"
    )
    assert whole.of_kind.page is None


def test_runs_are_judged_as_the_systems_that_wrote_them(whole: tuple[Path, Results]) -> None:
    """An experiment's own run files, compared, have its values, tests and order of systems, by any measure."""
    folder, run = whole
    files = [folder / "run" / "runs" / f"{name}.txt" for name in run.systems]
    again = words.run_checked(checked(folder, *files, measures=MEASURES), folder / "again")
    assert (again.systems, again.baseline) == (run.systems, "plain")
    assert means(again) == pytest.approx(means(run), rel=1e-12, abs=1e-12)
    # All but what is drawn at random, with the seed of the experiment: intervals and the randomization test.
    theirs, ours = (
        [-1.0 if x is None else x for r in one.comparisons for x in (r.difference, r.t_p, r.wins, r.ties, r.losses)]
        for one in (run, again)
    )
    assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-12)
    deep = "".join(f"T00 Q0 x{rank} {rank} {5000 - rank} me\n" for rank in range(4000)) + "T00 Q0 d00 4000 1 me\n"
    (folder / "deep.txt").write_text(deep, encoding="utf-8")
    deeper = words.run_checked(checked(folder, folder / "deep.txt", measures=["RR"]), folder / "deep")
    assert means(deeper)["deep", "", "RR"] == pytest.approx(1 / 4001 / 19)


def test_runs_on_a_collection_without_judgments(folder: Path) -> None:
    file = folder / "collection.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("qrels: {path: qrels.tsv}\n", ""), encoding="utf-8")
    (folder / "six.txt").write_text("T00 Q0 d00 1 2 me\nT00 Q0 d01 2 1 me\n", encoding="utf-8")
    (folder / "two.tsv").write_text("T00\td01\nT00\td03\n", encoding="utf-8")
    six, two = folder / "six.txt", folder / "two.tsv"
    run = words.run_checked(checked(folder, six, two, n=2), folder / "run")
    assert {"changed@2", "kept@2"} <= {row.measure for row in run.comparisons}
    assert not any("nDCG" in row.measure for row in run.comparisons)
    # The one document of two that the baseline does not show, in one of 20 topics; the others are empty in both.
    assert means(run)["two", "", "changed@2"] == pytest.approx(0.5 / 20)
    # Without scores in the baseline nothing can be said of how many are kept: that is left out, or refused.
    plan = checked(folder, two, six).plan
    assert not any("kept" in measure for measure in plan.measures)
    with pytest.raises(DataError, match=r"two\.tsv:1: there are no scores, and `kept@5` needs them"):
        checked(folder, two, six, measures=["kept@5"])
    assert checked(folder, two, six, measures=["kept@5"], baseline="six").plan.measures == ("kept@5",)


def test_a_changed_run_is_another_run(folder: Path) -> None:
    (folder / "a.tsv").write_text("T00\td00\n", encoding="utf-8")
    words.run_checked(checked(folder, folder / "a.tsv"), folder / "run")
    (folder / "a.tsv").write_text("T00\td01\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"systems\.a\.files\.engine\.path: was"):
        words.run_checked(checked(folder, folder / "a.tsv"), folder / "run")


FAULTS: list[tuple[dict[str, object], bytes, type[FairAgentError], str]] = [
    ({}, b"X\td00\n", DataError, r"a\.tsv: ranks documents for none of the 20 topics"),
    ({"baseline": "c"}, b"T00\td00\n", SettingsError, "no system 'c'; there are: a"),
    ({"measures": ["nDCG@5"], "n": 5}, b"T00\td00\n", UsageError, "leave out n"),
]


@pytest.mark.parametrize(("options", "raw", "kind", "message"), FAULTS)
def test_faults(folder: Path, options: dict[str, object], raw: bytes, kind: type[FairAgentError], message: str) -> None:
    (folder / "a.tsv").write_bytes(raw)
    with pytest.raises(kind, match=message):
        checked(folder, folder / "a.tsv", **options)
