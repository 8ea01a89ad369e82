"""`fairagent evaluate-run` and `fairagent audit`; the values of the organizers' code are in tests/golden."""

from __future__ import annotations

from pathlib import Path

import pytest
from track_files import write_track

from .conftest import Call, Small

RUN = "id\tpage_id\n101\t12\n101\t7\n102\t7\n"


@pytest.fixture
def data(tmp_path: Path) -> str:
    return str(write_track(tmp_path / "track"))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    path = tmp_path / "mine.tsv"
    path.write_text(RUN, encoding="utf-8")
    return path


def test_the_whole_official_report(call: Call, data: str, run: Path) -> None:
    result = call.well("evaluate-run", str(run), "--data", data, "--task", "1")
    lines = result.stdout.splitlines()
    assert lines[0] == "mine.tsv: TREC Fair 2022, Task 1, eval; topics in the means: 2"
    assert lines[2].split() == ["dimensions", "nDCG", "AWRF", "Score"]
    names = [line.split()[0] for line in lines[3:15]]
    single = ["sub-geo", "src-geo", "gender", "occ", "alpha", "age", "pop", "langs"]
    assert names == ["all", "2021", "internal", "demographic", *single]
    # Topic 101: the first of 3 relevant pages, all of discount 1, 1 and 1 / log2 3; topic 102 is perfect.
    ndcg = (1 / (2 + 0.6309297535714575) + 1) / 2
    assert {line.split()[1] for line in lines[3:15]} == {f"{ndcg:.4f}"}
    assert "(topic 101: 1)" in result.stdout
    assert "Atlantis" in result.stdout


def test_json(call: Call, data: str, run: Path) -> None:
    arguments = ("evaluate-run", str(run), "--data", data, "--task", "1")
    one = call.record(*arguments, "--dimension", "gender")
    assert (one["run"], one["track"], one["task"]) == ("mine.tsv", "TREC Fair 2022", 1)
    (found,) = one["evaluations"]
    assert (found["name"], found["dimensions"]) == ("gender", ["gender"])
    assert [row["topic"] for row in found["topics"]] == ["101", "102"]
    assert found["means"]["score"] == pytest.approx(sum(row["score"] for row in found["topics"]) / 2)
    both = call.record(*arguments, "--dimensions", "sub-geo,gender")
    assert both == call.record(*arguments, "--dimension", "sub-geo", "--dimension", "gender")
    subset = call.record(*arguments, "--subset", "2021")
    assert both["evaluations"][0]["means"] == subset["evaluations"][0]["means"]
    cut = call.record(*arguments, "--dimension", "gender", "--n", "1")
    assert cut["evaluations"][0]["means"]["ndcg"] == 1


def test_runs_on_a_collection(call: Call, small: Small, tmp_path: Path) -> None:
    first, second = tmp_path / "first.txt", tmp_path / "second.tsv"
    first.write_text("T1 Q0 d00 1 2 me\nT1 Q0 d16 2 1 me\nT2 Q0 d24 1 1 me\n", encoding="utf-8")
    second.write_text("T1\td16\nT1\td00\n", encoding="utf-8")
    arguments = ("evaluate-run", str(first), str(second), "-c", str(small.file))
    shown = call.well(*arguments)
    lines = shown.stdout.splitlines()
    assert lines[1].endswith("rankings of 20; baseline: first")
    head = next(number for number, line in enumerate(lines) if line.startswith("system "))
    assert [line.split()[0] for line in lines[head + 1 : head + 3]] == ["first", "second"]
    assert "page:" not in shown.stdout
    kept = call.well(*arguments, "--run", "out", "--baseline", "second", "--n", "1", "--dimension", "gender")
    assert "rankings of 1; baseline: second" in kept.stdout
    for name in ("report.html", "topics.csv", "results.csv", "runs/first.txt"):
        assert (Path("out") / name).is_file()
    record = call.record(*arguments, "--measure", "nDCG@1", "--measure", "nDCG@2")
    assert [row["measure"][-2:] for row in record["comparisons"]] == ["@1", "@1", "@2", "@2"]


def test_a_single_run_shows_what_each_group_gets(
    call: Call, small: Small, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """PyTerrier's columns, and scores that rise with the ranks: ordered by score, with a note."""
    run = tmp_path / "mine.csv"
    run.write_text('qid,docno,rank,score,query\nT1,d00,0,1,"x, y"\nT1,d16,1,2,"x, y"\n', encoding="utf-8")
    arguments = ("evaluate-run", str(run), "-c", str(small.file))
    shown, record = call(*arguments), call.record(*arguments)
    assert shown.exit_code == 0, shown.stderr
    assert "as trec_eval orders them" in caplog.text
    gets = {(one["dimension"], one["group"]): (one["exposure"], one["target"]) for one in record["exposures"]}
    exposure, target = gets["gender", "female"]
    line = next(line for line in shown.stdout.splitlines() if line.split()[:2] == ["mine", "female"])
    assert line.split()[2:] == [f"{exposure:.4f}", f"{target:.4f}"]
    assert exposure + gets["gender", "male"][0] == pytest.approx(1)


def test_a_log_of_another_engine(call: Call, small: Small, tmp_path: Path) -> None:
    shown = "".join(f"q,{id}\n" for id in ("d00", "d16", "d01", "nobody"))
    (tmp_path / "log.csv").write_text(f"query,document\n{shown}")
    arguments = ("audit", "log.csv", *small.options, "--set", "target=uniform")
    found, table = call.record(*arguments), call(*arguments).stdout
    assert (found["requests"], any("1 of 4" in note for note in found["notes"])) == (1, True)
    for group in found["dimensions"][0]["groups"]:
        (line,) = (line for line in table.splitlines() if line.split()[:1] == [group["label"]])
        assert f"{group['share']:.3f}" in line
        assert f"{group['low']:.3f} to {group['high']:.3f}" in line


def test_a_log_that_cannot_be_audited(call: Call, small: Small) -> None:
    Path("log.csv").write_text("query,document\nq,nobody\n")
    assert "none of the 1 documents" in call.refused(4, "audit", "log.csv", *small.options)
    assert "--collection FILE" in call.refused(2, "audit", "log.csv")
    assert "absent.csv" in call.refused(4, "audit", "absent.csv")
