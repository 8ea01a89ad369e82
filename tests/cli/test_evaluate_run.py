"""`fairagent evaluate-run`, on small made files and on those of the organizers' code."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest
from track_files import FILES_2021, TOPICS, write_track

from .conftest import Call, Small

RUN = "id\tpage_id\n101\t12\n101\t7\n102\t7\n"
RUN2 = "id\trep_number\tpage_id\n101\t1\t12\n101\t1\t7\n101\t2\t70000001\n102\t1\t7\n"


@pytest.fixture
def data(tmp_path: Path) -> str:
    return str(write_track(tmp_path / "track"))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    path = tmp_path / "mine.tsv"
    path.write_text(RUN, encoding="utf-8")
    return path


def test_the_whole_official_report(call: Call, data: str, run: Path) -> None:
    result = call("evaluate-run", str(run), "--data", data, "--task", "1")
    assert result.exit_code == 0, result.stderr
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


def test_task_2_and_every_topic(call: Call, data: str, run: Path) -> None:
    run.write_text(RUN2, encoding="utf-8")
    arguments = ("evaluate-run", str(run), "--data", data, "--task", "2", "--subset", "2021")
    result = call(*arguments, "--per-topic")
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[2].split() == ["dimensions", "EE-L", "EE-D", "EE-R"]
    mean = float(lines[3].split()[1])
    topics = [line.split() for line in lines if line.startswith(("101", "102"))]
    assert [topic for topic, *_ in topics] == ["101", "102"]
    assert sum(float(values[0]) for _, *values in topics) / 2 == pytest.approx(mean, abs=1e-4)


def test_json(call: Call, data: str, run: Path) -> None:
    arguments = ("evaluate-run", str(run), "--data", data, "--task", "1", "--json")
    one = json.loads(call(*arguments, "--dimension", "gender").stdout)
    assert (one["run"], one["track"], one["task"]) == ("mine.tsv", "TREC Fair 2022", 1)
    (found,) = one["evaluations"]
    assert (found["name"], found["dimensions"]) == ("gender", ["gender"])
    assert [row["topic"] for row in found["topics"]] == ["101", "102"]
    assert found["means"]["score"] == pytest.approx(sum(row["score"] for row in found["topics"]) / 2)
    both = json.loads(call(*arguments, "--dimensions", "sub-geo,gender").stdout)
    again = json.loads(call(*arguments, "--dimension", "sub-geo", "--dimension", "gender").stdout)
    subset = json.loads(call(*arguments, "--subset", "2021").stdout)
    assert both == again
    assert both["evaluations"][0]["means"] == subset["evaluations"][0]["means"]
    cut = json.loads(call(*arguments, "--dimension", "gender", "--n", "1").stdout)
    assert cut["evaluations"][0]["means"]["ndcg"] == 1


def test_several_runs_are_reported_one_after_another(call: Call, data: str, tmp_path: Path, run: Path) -> None:
    other = tmp_path / "other.tsv"
    other.write_text("102\t7\n", encoding="utf-8")
    options = ("--data", data, "--task", "1", "--subset", "2021")
    single = [call("evaluate-run", str(path), *options, "--json").stdout for path in (run, other)]
    both = call("evaluate-run", str(run), str(other), *options, "--json")
    assert both.exit_code == 0, both.stderr
    expected = [{name: value for name, value in json.loads(one).items() if name != "notes"} for one in single]
    assert json.loads(both.stdout)["runs"] == expected
    titles = [
        line for line in call("evaluate-run", str(run), str(other), *options).stdout.splitlines() if "Task" in line
    ]
    assert [title.split(":")[0] for title in titles] == ["mine.tsv", "other.tsv"]
    other.write_text("999\t7\n", encoding="utf-8")
    assert f"{other}:1: topic 999 is none" in call("evaluate-run", str(run), str(other), *options).stderr


def test_topics_without_a_target_are_named(call: Call, tmp_path: Path, run: Path) -> None:
    topics = [*TOPICS, {"id": 103, "title": "x", "rel_docs": []}, {"id": 104, "title": "x", "rel_docs": [98]}]
    data = str(write_track(tmp_path / "track", changed={"trec_2022_eval_reldocs.jsonl": topics}))
    text = call("evaluate-run", str(run), "--data", data, "--task", "1").stdout
    assert "left out, all: topic 103, no page is relevant" in text
    assert "left out, all: topic 104, none of its 1 relevant pages has metadata" in text
    run.write_text("103\t7\n", encoding="utf-8")
    result = call("evaluate-run", str(run), "--data", data, "--task", "1")
    assert result.exit_code == 4
    assert "none of its topics has a target" in result.stderr


def test_a_deep_run_is_refused_without_n_and_cut_with_it(call: Call, tmp_path: Path, run: Path) -> None:
    data = write_track(tmp_path / "track")
    run.write_text("101\t12\n101\t70000001\n" + "".join(f"101\t{page}\n" for page in range(100, 1100)), "utf-8")
    arguments = ("evaluate-run", str(run), "--data", str(data), "--task", "1", "--subset", "2021")
    (data / "trec_2022_articles_discrete_assessed.json.gz").rename(tmp_path / "away")
    (data / "trec_2022_articles_discrete_assessed.json").write_text("{")  # it is refused before metadata is read
    refused = call(*arguments)
    assert refused.exit_code == 4
    assert "run 'mine.tsv', topic 101: 1002 pages; Task 1 of 2022 takes at most 500" in refused.stderr
    assert "(--n 500)" in refused.stderr
    (data / "trec_2022_articles_discrete_assessed.json").unlink()
    (tmp_path / "away").rename(data / "trec_2022_articles_discrete_assessed.json.gz")
    # Three relevant pages, two of them first.
    ndcg = 2 / (2 + 0.6309297535714575)
    for n, expected in (("2", 1.0), ("500", ndcg), ("1000000000000", ndcg), ("1" + "0" * 30, ndcg)):
        cut = call(*arguments, "--n", n)
        assert cut.exit_code == 0, cut.stderr
        assert cut.stdout.splitlines()[3].split()[1] == f"{expected:.4f}"
    run.write_text("101\t1\t12\n", encoding="utf-8")
    other = call("evaluate-run", str(run), "--data", str(data), "--task", "2", "--n", "20")
    assert other.exit_code == 2
    assert "Task 2 has none" in other.stderr


def test_the_year_2021(call: Call, tmp_path: Path, run: Path) -> None:
    data = str(write_track(tmp_path / "track", FILES_2021))
    run.write_text("101\t12\n101\t7\n", encoding="utf-8")
    result = call("evaluate-run", str(run), "--data", data, "--task", "1", "--track", "trec-fair-2021")
    assert result.exit_code == 0, result.stderr
    assert [line.split()[0] for line in result.stdout.splitlines()[3:6]] == ["all", "geo", "gender"]


def test_other_commands_work_on_the_track_too(call: Call, tmp_path: Path) -> None:
    write_track(tmp_path / "track")
    (tmp_path / "c.yaml").write_text("name: mine\ntrack: {folder: track, dimensions: [gender]}\n", encoding="utf-8")
    indexed = call("index", "-c", "c.yaml", "--json")
    assert indexed.exit_code == 0, indexed.stderr
    record = json.loads(indexed.stdout)
    assert record["documents"] == 3
    assert any("repeat an id" in note and "12" in note for note in record["notes"])
    found = call("search", "wrote programs", "--topic", "101", "-c", "c.yaml", "--json")
    assert found.exit_code == 0, found.stderr
    assert {hit["id"] for hit in json.loads(found.stdout)["hits"]} == {"12", "70000001"}


@pytest.mark.parametrize(("task", "name"), [(1, "sysA"), (1, "sysB"), (2, "seqA"), (2, "seqB")])
def test_the_values_of_the_organizers_code(call: Call, golden: Path, tmp_path: Path, task: int, name: str) -> None:
    raw8 = golden / "trec_fair" / "raw8"
    data = tmp_path / "data"
    data.mkdir()
    shutil.copyfile(raw8 / "articles.jsonl", data / "trec_2022_articles_discrete_assessed.json")
    shutil.copyfile(raw8 / "reldocs.jsonl", data / "trec_2022_eval_reldocs.jsonl")
    run = raw8 / f"task{task}_{name}.tsv"
    result = call("evaluate-run", str(run), "--data", str(data), "--task", str(task), "--json")
    assert result.exit_code == 0, result.stderr
    found = {evaluation["name"]: evaluation for evaluation in json.loads(result.stdout)["evaluations"]}
    ours = {"all8": "all", "sub-geo*gender": "2021"}
    columns = {"nDCG": "ndcg", "AWRF": "awrf", "Score": "score", "EE-L": "ee_l", "EE-D": "ee_d", "EE-R": "ee_r"}
    checked = 0
    with (raw8 / f"expected_task{task}_f8.tsv").open() as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if row["run"] != name or row.get("cutoff", "500") != "500":
                continue
            evaluation = found[ours.get(row["config"], row["config"].removeprefix("1d:"))]
            (values,) = [values for values in evaluation["topics"] if values["topic"] == row["topic_id"]]
            for column, measure in columns.items():
                if row.get(column):
                    assert values[measure] == pytest.approx(float(row[column]), rel=1e-9), (row["config"], column)
                    checked += 1
    assert checked == 12 * 3 * 4


def test_runs_on_a_collection(call: Call, small: Small, tmp_path: Path) -> None:
    first, second = tmp_path / "first.txt", tmp_path / "second.tsv"
    first.write_text("T1 Q0 d00 1 2 me\nT1 Q0 d16 2 1 me\nT2 Q0 d24 1 1 me\n", encoding="utf-8")
    second.write_text("T1\td16\nT1\td00\n", encoding="utf-8")
    arguments = ("evaluate-run", str(first), str(second), "-c", str(small.file))
    shown = call(*arguments)
    assert shown.exit_code == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert lines[1].endswith("rankings of 20; baseline: first")
    head = next(number for number, line in enumerate(lines) if line.startswith("system "))
    assert [line.split()[0] for line in lines[head + 1 : head + 3]] == ["first", "second"]
    assert "page:" not in shown.stdout
    kept = call(*arguments, "--run", "out", "--baseline", "second", "--n", "1", "--dimension", "gender")
    assert kept.exit_code == 0, kept.stderr
    assert "rankings of 1; baseline: second" in kept.stdout
    for name in ("report.html", "topics.csv", "results.csv", "runs/first.txt"):
        assert (Path("out") / name).is_file()
    record = json.loads(call(*arguments, "--measure", "nDCG@1", "--measure", "nDCG@2", "--json").stdout)
    assert [row["measure"][-2:] for row in record["comparisons"]] == ["@1", "@1", "@2", "@2"]
