"""`fairagent init`: from one's own CSV file to a fair search in three commands."""

from __future__ import annotations

import re
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


@pytest.mark.parametrize("zeros", ["007", "7"])
def test_topics_of_trec_and_their_judgments(call: Call, file: Path, zeros: str) -> None:
    Path("topics.301-350").write_text(TOPICS, encoding="utf-8")
    Path("qrels.txt").write_text(f"{zeros} 0 3 1\n{zeros} 0 4 0\n", encoding="utf-8")
    result = call(
        "init", "mine.csv", "--yes", "--topics", "topics.301-350", "--qrels", "qrels.txt", "--target", "uniform"
    )
    assert result.exit_code == 0, result.stderr
    collection = load_collection(Path("collection.yaml"))
    assert {id: topic.query for id, topic in collection.topics.items()} == {zeros: "judge of court 3"}
    assert collection.topics[zeros].extra["description"] == "x"
    assert 'fairagent search "judge of court 3"' in result.stdout.replace("'", '"')
    assert ("without zeros" in result.stdout) == (zeros == "7")
