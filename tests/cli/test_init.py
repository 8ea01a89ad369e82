"""`fairagent init`: from one's own CSV file to a fair search in three commands."""

from __future__ import annotations

import gzip
import json
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fairagent.collection import load_collection

from .conftest import Call

ROWS = "".join(
    f'{place},"A judge, number {place}",The judge of court {place} judged.,{("male", "male", "female")[place % 3]}\n'
    for place in range(30)
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.csv"
    path.write_text("id,title,text,gender\n" + ROWS, encoding="utf-8")
    return path


def test_three_commands_from_a_csv_file_to_a_fair_search(call: Call, file: Path) -> None:
    """No file is ever overwritten."""
    Path("collection.yaml").write_text("mine\n", encoding="utf-8")
    assert "collection.yaml is there already and is never overwritten" in call.refused(2, "init", "mine.csv", "--yes")
    assert Path("collection.yaml").read_text(encoding="utf-8") == "mine\n"
    Path("collection.yaml").unlink()
    first = call.well("init", "mine.csv", "--yes", "--target", "uniform")
    assert "male 20, female 10" in first.stdout
    index, search = re.findall(r"^  fairagent (.+)$", first.stdout, re.MULTILINE)
    call.well(*index.split())
    found = call.well(*re.sub('"[^"]*"', "judge", search).split())
    assert "A judge, number" in found.stdout
    assert re.search(r"^exposure +before +after +target", found.stdout, re.MULTILINE)


def test_without_a_target_the_first_search_asks(call: Call, file: Path) -> None:
    call.well("init", "mine.csv", "--yes")
    text = Path("collection.yaml").read_text(encoding="utf-8")
    assert text.endswith("\n#target: uniform\n")
    call.well("index", "-c", "collection.yaml")
    assert "no target is set for gender" in call.refused(2, "search", "law", "-c", "collection.yaml")
    call.well("search", "law", "-c", "collection.yaml", "--target", "corpus")
    Path("collection.yaml").write_text(text.replace("#target:", "target:"), encoding="utf-8")
    call.well("search", "law", "-c", "collection.yaml")


Rows = list[dict[str, str]]
SECRET = "zyzzyva7"
PEOPLE: Rows = [
    {"id": f"p{n}", "title": f"Jurist {n} in Köln", "text": f"A judge, zyzzyva{n}.", "sex": ("F", "M", "Man")[n % 3]}
    for n in range(60)
]


def text_file(name: str, separator: str = ",", encoding: str = "utf-8") -> Callable[[Rows], Path]:
    def write(rows: Rows) -> Path:
        lines = [separator.join(f'"{cell}"' if separator == "," else cell for cell in row.values()) for row in rows]
        content = "".join(f"{line}\n" for line in [separator.join(rows[0]), *lines]).encode(encoding)
        Path(name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return Path(name)

    return write


def json_file(rows: Rows) -> Path:
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return Path("rows.jsonl")


def parquet_file(rows: Rows) -> Path:
    table = pytest.importorskip("pyarrow").Table.from_pylist(rows)
    pytest.importorskip("pyarrow.parquet").write_table(table, "rows.parquet")
    return Path("rows.parquet")


def dataset_folder(rows: Rows) -> Path:
    datasets = pytest.importorskip("datasets")
    datasets.disable_progress_bars()
    shutil.rmtree("rows", ignore_errors=True)
    datasets.Dataset.from_list(rows).save_to_disk("rows")
    return Path("rows")


def mixed_encodings(rows: Rows) -> Path:
    path = text_file("mixed.csv")(rows)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], lines[3].decode().encode("cp1252"), *lines[4:]]))
    return path


def bad_ids(rows: Rows) -> Path:
    odd = {"p3": "", "p5": "p4", "p11": " p11 ", "p12": "p 12", "p13": "p14 "}
    return text_file("bad.csv")([row | {"id": odd.get(row["id"], row["id"])} for row in rows])


def no_ids(rows: Rows) -> Path:
    return json_file([{name: row[name] for name in ("title", "text", "sex")} for row in rows])


SEVERAL = "encoding: [utf-8, cp1252, latin-1]\n"
SOURCES = {
    "csv": (text_file("rows.csv"), "id: id\n  title"),
    "gzip, utf-16": (text_file("rows.csv.gz", encoding="utf-16"), "encoding: utf-16\n  id: id\n  title"),
    "utf-16-le": (text_file("rows.csv", encoding="utf-16-le"), "encoding: utf-16-le\n"),
    "tsv, cp1252": (text_file("rows.tsv", "\t", "cp1252"), SEVERAL),
    "mixed encodings": (mixed_encodings, SEVERAL),
    "jsonl": (json_file, "id: id\n  title"),
    "parquet": (parquet_file, "id: id\n  title"),
    "dataset": (dataset_folder, "id: id\n  title"),
    "bad ids": (bad_ids, "id: id\n  ids: mend\n"),
    "no ids": (no_ids, "id: '@content'\n"),
}


@pytest.mark.parametrize(("write", "said"), SOURCES.values(), ids=SOURCES)
def test_what_is_deleted_in_the_source_is_in_no_index(
    call: Call, tmp_path: Path, write: Callable[[Rows], Path], said: str
) -> None:
    """Whatever had to be mended, the user's file is the source, and a row that goes takes nothing else with it."""

    def holds() -> bool:
        return any(SECRET.encode() in file.read_bytes() for file in Path("indexes").rglob("*") if file.is_file())

    def found(word: str) -> str:
        return call("search", word, "-c", "collection.yaml").stdout

    source = write(PEOPLE)
    call.well("init", str(source), "--yes", "--target", "uniform")
    collection = Path("collection.yaml").read_text(encoding="utf-8")
    assert collection.count(f"path: {source}\n") == 2
    assert said in collection
    call.well("index", "-c", "collection.yaml")
    assert holds()
    assert "Jurist 7 in Köln" in found(SECRET)
    write([row for row in PEOPLE if SECRET not in row["text"]])
    again = call("index", "-c", "collection.yaml")
    assert ": 59 documents of " in again.stdout
    assert not holds()
    assert "Jurist 7 in Köln" not in found(SECRET)
    assert "Jurist 8 in Köln" in found("zyzzyva8")
    written = {path.name.split(".")[0] for path in tmp_path.iterdir()}
    assert written == {source.name.split(".")[0], "collection", "indexes"}


def test_mended_ids_and_numbers_of_rows_are_told_by_init_and_index(call: Call, file: Path) -> None:
    bad_ids(PEOPLE)
    for told in (call("init", "bad.csv", "--yes").stdout, call("index", "-c", "collection.yaml").stdout):
        assert re.search(r"5 ids .*line 5: no id, now row-\w{12}, line 7: p4, now p4-\w{12}, line 13: p11,", told)
        assert re.search(r"line 14: p 12, now p_12, line 15: p14, now p14-\w{12}", told)
    rows = ["-c", "rows.yaml"]
    for shown in (call("init", "mine.csv", "--yes", "--id", "@row", "-o", "rows.yaml"), call("index", *rows)):
        assert "the ids are numbers of rows" in shown.stdout


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda file: file.unlink(), "mine.csv: no such file (documents)"),
        (lambda file: file.rename("yours.csv"), "yours.csv has the content that `fairagent init` saw"),
        (lambda file: file.write_text(file.read_text().replace("text,gender", "body,sex")), "no column text, gender;"),
    ],
    ids=["gone", "renamed", "another header"],
)
def test_a_source_that_is_not_as_it_was_is_one_error(
    call: Call, file: Path, change: Callable[[Path], object], message: str
) -> None:
    call.well("init", "mine.csv", "--yes", "--target", "uniform")
    change(file)
    said = call.refused(4, "index", "-c", "collection.yaml")
    assert ("1 error" in said, message in said) == (True, True)


TOPICS = "<top>\n<num> Number: 007\n<title> judge of court 3\n<desc> Description:\nx\n</top>\n"
SMART = ".I 007\n.W\njudge of\ncourt 3\n.I 8\n.W\na court\n"


@pytest.mark.parametrize(("topics", "zeros"), [(TOPICS, "007"), (TOPICS, "7"), (SMART, "7")])
def test_topics_and_judgments_make_an_experiment(call: Call, file: Path, topics: str, zeros: str) -> None:
    """Judged documents have zeros before them that the rows lack, and topics or not."""
    Path("topics.301-350").write_text(topics, encoding="utf-8")
    Path("qrels.txt").write_text(f"{zeros} 0 03 1\n{zeros} 0 04 0\n{zeros} 0 99 0\n", encoding="utf-8")
    result = call.well("init", "mine.csv", "--yes", "--topics", "topics.301-350", "--qrels", "qrels.txt")
    collection = load_collection(Path("collection.yaml"))
    assert collection.topics["007"].query == "judge of court 3"
    assert collection.qrels["007"] == {"3": 1, "4": 0, "99": 0}
    assert any("007 (there 7)" in note for note in collection.notes) == (zeros == "7")
    for said in ("`digits: 0`", "1 of 3 judged documents are not"):
        assert said in result.stdout
    commands = re.findall(r"^  fairagent (.+)$", result.stdout, re.MULTILINE)
    for command in commands:
        call.well(*shlex.split(command), *(["--target", "uniform"] if command.startswith("search") else []))
    assert [command.split()[0] for command in commands] == ["index", "evaluate", "search"]
    # A submission has the topics without judgments too, and the measures do not.
    ranked = {line.split()[0] for line in Path("runs/mine/runs/agent.txt").read_text(encoding="utf-8").splitlines()}
    assert ranked == set(collection.topics)


@pytest.mark.parametrize(
    ("option", "text", "form"),
    [
        ("--topics", "1: judges\n" * 99, "SMART's .I/.W"),
        ("--topics", "[\n" + '{"id": "1", "query": "x"},\n' * 99, "SMART's .I/.W"),
        ("--qrels", SMART * 99, "TREC's four columns"),
    ],
)
def test_a_file_in_no_form_has_one_error(call: Call, file: Path, option: str, text: str, form: str) -> None:
    Path("topics.txt").write_text(TOPICS, encoding="utf-8")
    Path("other.txt").write_text(text, encoding="utf-8")
    topics = [] if option == "--topics" else ["--topics", "topics.txt"]
    result = call("init", "mine.csv", "--yes", *topics, option, "other.txt")
    assert (result.exit_code != 0, result.stderr.count("other.txt:1:")) == (True, 1)
    assert form in " ".join(result.stderr.split())
