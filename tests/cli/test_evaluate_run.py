"""`fairagent evaluate-run`, on small made files and on those of the organizers' code."""

from __future__ import annotations

import csv
import gzip
import json
import shutil
from pathlib import Path

import pytest
from track_files import FILES_2021, PAGES, TOPICS, write_track

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


def test_missing_topics_are_named_and_left_out_of_the_means(call: Call, data: str, run: Path) -> None:
    run.write_text("102\t7\n", encoding="utf-8")
    result = call("evaluate-run", str(run), "--data", data, "--task", "1")
    assert result.exit_code == 0
    assert "topics in the means: 1" in result.stdout
    assert "topics that the run lacks, which no mean counts: 1 (101)" in result.stdout


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


def test_other_forms_of_a_run_file(call: Call, data: str, run: Path) -> None:
    plain = call("evaluate-run", str(run), "--data", data, "--task", "1").stdout
    for raw in (
        b"\xef\xbb\xbf" + RUN.encode(),
        RUN.replace("\n", "\r\n").encode(),
        gzip.compress(RUN.encode(), mtime=0),
    ):
        run.write_bytes(raw)
        assert call("evaluate-run", str(run), "--data", data, "--task", "1").stdout == plain


def test_trec_runs_and_other_separators(call: Call, data: str, run: Path) -> None:
    arguments = ("evaluate-run", str(run), "--data", data, "--task", "1")
    plain = call(*arguments).stdout
    six = "102 Q0 7 1 2 me\n101 Q0 7 2 0.5 me\n101 Q0 12 1 1e1 me\n"
    for text in (RUN.replace("\t", ","), RUN.replace("\t", " "), RUN.replace("id\tpage_id", "topic\tpage"), six):
        run.write_text(text, encoding="utf-8")
        assert call(*arguments).stdout == plain


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


def test_repeated_pages_count_on_demand(call: Call, data: str, run: Path) -> None:
    run.write_text("101\t12\n101\t7\n101\t12\n", encoding="utf-8")
    arguments = ("evaluate-run", str(run), "--data", data, "--task", "1", "--dimension", "gender")
    refused = call(*arguments)
    assert refused.exit_code == 4
    assert f"{run}:3: page 12 is in line 1 of the same ranking already; the track's own code would count both" in (
        refused.stderr
    )
    counted = call(*arguments, "--repeated", "count")
    third = 0.6309297535714575
    assert counted.stdout.splitlines()[3].split()[1] == f"{(1 + third) / (2 + third):.4f}"
    run.write_text("101\t12\n" * 4, encoding="utf-8")
    above = call(*arguments, "--repeated", "count")
    assert above.exit_code == 4
    assert "topic 101: relevant pages that are listed repeatedly bring nDCG to 1.1900" in above.stderr


def test_the_year_2021(call: Call, tmp_path: Path, run: Path) -> None:
    data = str(write_track(tmp_path / "track", FILES_2021))
    run.write_text("101\t12\n101\t7\n", encoding="utf-8")
    result = call("evaluate-run", str(run), "--data", data, "--task", "1", "--track", "trec-fair-2021")
    assert result.exit_code == 0, result.stderr
    assert [line.split()[0] for line in result.stdout.splitlines()[3:6]] == ["all", "geo", "gender"]


FAULTS = [
    ("101\t12\n101\t12\n", ":2: page 12 is in line 1 of the same ranking already"),
    ("101\t12\n999\t7\n", ":2: topic 999 is none of the 2 judged ones"),
    ("101\t12\n101\tnan\n", ":2: the page 'nan' is no whole number"),
    ("101\t12\n101\n", ":2: expected 2 columns"),
    (RUN2, "is this a run of Task 2"),
    ("101 Q0 12 1 nan\n", ":1: expected 2 columns"),
    ("101 Q0 12 1 nan mine\n", ":1: the score 'nan' is no finite number"),
    ("101\t12\n101\t1\t12\t3.5\tmine\tx\ty\n", ":2: expected 2 columns (topic, page) as above, got 7"),
    ("", "there are no lines"),
]


@pytest.mark.parametrize(("text", "message"), FAULTS)
def test_faults_of_the_run(call: Call, data: str, run: Path, text: str, message: str) -> None:
    run.write_text(text, encoding="utf-8")
    result = call("evaluate-run", str(run), "--data", data, "--task", "1")
    assert result.exit_code == 4
    assert str(run) in result.stderr
    assert message in result.stderr
    assert result.stdout == ""


USAGE = [
    (["--dimension", "geo"], "no dimension 'geo'; TREC Fair 2022 has: sub-geo, src-geo"),
    (["--dimension", "gender,gender"], "one is named twice"),
    (["--subset", "external"], "TREC Fair 2022 has: all, 2021, internal, demographic"),
    (["--subset", "2021", "--dimension", "gender"], "exclude each other"),
    (["--task", "3"], "--task"),
    (["--track", "trec-fair-2020"], "trec-fair-2020"),
    (["--measure", "AP"], "--measure does not go with --data"),
    (["--baseline", "a"], "--baseline does not go with --data"),
    (["--run", "out"], "--run does not go with --data"),
    (["--collection", "c.yaml"], "--data does not go with --collection"),
]


@pytest.mark.parametrize(("options", "message"), USAGE)
def test_wrong_options(call: Call, data: str, run: Path, options: list[str], message: str) -> None:
    result = call("evaluate-run", str(run), "--data", data, "--task", "1", *options)
    assert result.exit_code == 2
    assert message in result.stderr


def test_faults_of_the_data(call: Call, tmp_path: Path, run: Path) -> None:
    result = call("evaluate-run", str(run), "--data", str(tmp_path / "nowhere"), "--task", "1")
    assert result.exit_code == 4
    assert "trec_2022_eval_reldocs.jsonl" in result.stderr
    name = "trec_2022_articles_discrete_assessed.json.gz"
    data = write_track(tmp_path / "track", changed={name: [PAGES[0], {"page_id": None}]})
    result = call("evaluate-run", str(run), "--data", str(data), "--task", "1")
    assert result.exit_code == 4
    assert f"{data / name}:2: field 'page_id' is None" in result.stderr


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


def test_what_to_judge_by_has_to_be_named(call: Call, run: Path) -> None:
    for options in ((), ("--data", "x"), ("--task", "1")):
        result = call("evaluate-run", str(run), *options)
        assert result.exit_code == 2
        assert "name what to judge by" in result.stderr
    for options in (("--task", "1"), ("--subset", "all"), ("--per-topic",), ("--repeated", "count")):
        result = call("evaluate-run", str(run), "-c", "c.yaml", *options)
        assert result.exit_code == 2
        assert f"{options[0]} does not go with --collection" in result.stderr
