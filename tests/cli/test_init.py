"""`fairagent init`: from one's own CSV file to a fair search in three commands."""

from __future__ import annotations

import re
import shlex
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
    first = call("init", "mine.csv", "--yes", "--target", "uniform")
    assert first.exit_code == 0, first.stderr
    assert "male 20, female 10" in first.stdout
    index, search = re.findall(r"^  fairagent (.+)$", first.stdout, re.MULTILINE)
    assert call(*index.split()).exit_code == 0
    found = call(*re.sub('"[^"]*"', "judge", search).split())
    assert found.exit_code == 0, found.stderr
    assert "A judge, number" in found.stdout
    assert re.search(r"^exposure +before +after +target", found.stdout, re.MULTILINE)


def test_a_file_is_never_overwritten(call: Call, file: Path) -> None:
    Path("collection.yaml").write_text("mine\n", encoding="utf-8")
    result = call("init", "mine.csv", "--yes")
    assert result.exit_code == 2
    assert "collection.yaml is there already and is never overwritten" in result.stderr
    assert Path("collection.yaml").read_text(encoding="utf-8") == "mine\n"
    assert call("init", "mine.csv", "--yes", "-o", "other.yaml").exit_code == 0


def test_without_a_target_the_first_search_asks(call: Call, file: Path) -> None:
    assert call("init", "mine.csv", "--yes").exit_code == 0
    text = Path("collection.yaml").read_text(encoding="utf-8")
    assert text.endswith("\n#target: uniform\n")
    assert call("index", "-c", "collection.yaml").exit_code == 0
    refused = call("search", "law", "-c", "collection.yaml")
    assert refused.exit_code == 2
    assert "no target is set for gender" in refused.stderr
    assert call("search", "law", "-c", "collection.yaml", "--target", "corpus").exit_code == 0
    Path("collection.yaml").write_text(text.replace("#target:", "target:"), encoding="utf-8")
    assert call("search", "law", "-c", "collection.yaml").exit_code == 0


# --- what fairagent cannot read as it is ----------------------------------------------------------------------------


def searched(call: Call, stdout: str, words: str = "judge") -> str:
    """What the commands that `init` names last come to."""
    index, search = re.findall(r"^  fairagent (.+)$", stdout, re.MULTILINE)
    assert call(*index.split()).exit_code == 0
    found = call(*re.sub("(\"[^\"]*\"|'[^']*')", words, search).split(), "--target", "uniform")
    assert found.exit_code == 0, found.stderr
    return found.stdout


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-16-le"])
def test_another_encoding_is_said_and_copied(call: Call, file: Path, encoding: str) -> None:
    text = file.read_text(encoding="utf-8").replace("A judge", "Ein Richter in Köln")
    file.write_bytes(text.encode(encoding))
    result = call("init", "mine.csv", "--yes")
    assert result.exit_code == 0, result.stderr
    assert f"note: mine.csv: it is in {encoding} (" in result.stdout
    assert Path("mine.utf8.csv").read_text(encoding="utf-8") == text
    assert "path: mine.utf8.csv" in Path("collection.yaml").read_text(encoding="utf-8")
    assert file.read_bytes() == text.encode(encoding)
    assert "Köln" in searched(call, result.stdout)
    # A copy is never overwritten either.
    again = call("init", "mine.csv", "--yes", "-o", "other.yaml")
    assert again.exit_code == 2
    assert "mine.utf8.csv is there already" in again.stderr
    assert not Path("other.yaml").exists()


TOPICS = "<top>\n<num> Number: 007\n<title> judge of court 3\n<desc> Description:\nx\n</top>\n"
SMART = ".I 007\n.W\njudge of\ncourt 3\n.I 8\n.W\na court\n"


@pytest.mark.parametrize(("topics", "zeros"), [(TOPICS, "007"), (TOPICS, "7"), (SMART, "7")])
def test_topics_and_judgments_make_an_experiment(call: Call, file: Path, topics: str, zeros: str) -> None:
    """Judged documents have zeros before them that the rows lack, and topics or not."""
    Path("topics.301-350").write_text(topics, encoding="utf-8")
    Path("qrels.txt").write_text(f"{zeros} 0 03 1\n{zeros} 0 04 0\n{zeros} 0 99 0\n", encoding="utf-8")
    result = call("init", "mine.csv", "--yes", "--topics", "topics.301-350", "--qrels", "qrels.txt")
    assert result.exit_code == 0, result.stderr
    collection = load_collection(Path("collection.yaml"))
    assert collection.topics["007"].query == "judge of court 3"
    assert collection.qrels["007"] == {"3": 1, "4": 0, "99": 0}
    assert any("007 (there 7)" in note for note in collection.notes) == (zeros == "7")
    for said in ("`digits: 0`", "1 of 3 judged documents are not"):
        assert said in result.stdout
    commands = re.findall(r"^  fairagent (.+)$", result.stdout, re.MULTILINE)
    for command in commands:
        found = call(*shlex.split(command), *(["--target", "uniform"] if command.startswith("search") else []))
        assert found.exit_code == 0, found.stderr
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
    assert result.exit_code != 0
    assert (result.stderr.count("other.txt:1:"), form in " ".join(result.stderr.split())) == (1, True)
    assert len(result.stderr.splitlines()) < 9
