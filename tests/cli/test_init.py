"""`fairagent init`: from one's own CSV file to a fair search in three commands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fairagent.cli import app
from fairagent.collection import load_collection
from fairagent.collection.targets import CorpusTarget, GivenTarget

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
    found = call(*search.replace('"your words"', "judge").split())
    assert found.exit_code == 0, found.stderr
    assert "A judge, number" in found.stdout
    assert re.search(r"^exposure +before +after +target", found.stdout, re.MULTILINE)


def test_spellings_are_joined_and_shown_before_it_asks(call: Call, file: Path) -> None:
    file.write_text(
        file.read_text(encoding="utf-8").replace(",female\n", ",F\n", 4) + "x,t,Text,N/A\n", encoding="utf-8"
    )
    call("config")  # sets the folder and the environment
    result = CliRunner().invoke(app, ["init", "mine.csv"], input="y\n")
    assert result.exit_code == 0
    assert "male 20, female 10, (unknown) 1" in result.stdout
    shown, asked = result.stdout.split("Write collection.yaml?")
    assert "to be confirmed: F -> female; N/A -> no label" in shown
    assert "F: female  # 4" in shown
    assert "F: female  # 4" in Path("collection.yaml").read_text(encoding="utf-8")
    index, search = re.findall(r"^  fairagent (.+)$", asked, re.MULTILINE)
    assert call(*index.split()).exit_code == 0
    found = call(*search.replace('"your words"', "judge").split(), "--target", "uniform")
    assert found.exit_code == 0, found.stderr


def test_without_groups_the_engine_searches(call: Call, file: Path) -> None:
    file.write_text(re.sub(r",[^,]*$", "", file.read_text(encoding="utf-8"), flags=re.MULTILINE), encoding="utf-8")
    first = call("init", "mine.csv", "--yes")
    assert "No column looks like groups; name one with --group" in first.stdout
    index, search = re.findall(r"^  fairagent (.+)$", first.stdout, re.MULTILINE)
    assert call(*index.split()).exit_code == 0
    found = call(*search.replace('"your words"', "judge").split())
    assert found.exit_code == 0, found.stderr
    assert "A judge, number" in found.stdout
    assert "exposure" not in found.stdout
    refused = call("search", "judge", "-c", "collection.yaml")
    assert refused.exit_code == 2
    assert "`profile: engine` searches without" in refused.stderr


@pytest.mark.parametrize(("answer", "written"), [("y\n", True), ("\n", True), ("n\n", False)])
def test_it_asks(call: Call, file: Path, answer: str, written: bool) -> None:
    call("config")  # sets the folder and the environment
    result = CliRunner().invoke(app, ["init", "mine.csv"], input=answer)
    assert result.exit_code == 0
    assert "name: mine" in result.stdout
    assert Path("collection.yaml").exists() == written
    assert ("Nothing was written." in result.stdout) != written


def test_nobody_answers(call: Call, file: Path) -> None:
    result = call("init", "mine.csv")
    assert result.exit_code == 2
    assert "nobody answered, so nothing was written; --yes writes without asking" in result.stderr
    assert not Path("collection.yaml").exists()


def test_a_file_is_never_overwritten(call: Call, file: Path) -> None:
    Path("collection.yaml").write_text("mine\n", encoding="utf-8")
    result = call("init", "mine.csv", "--yes")
    assert result.exit_code == 2
    assert "collection.yaml is there already and is never overwritten" in result.stderr
    assert Path("collection.yaml").read_text(encoding="utf-8") == "mine\n"
    assert call("init", "mine.csv", "--yes", "-o", "other.yaml").exit_code == 0


def test_columns_that_are_named(call: Call, file: Path) -> None:
    more = ["--id", "@row", "--text", "title", "--text", "text", "--group", "id"]
    result = call("init", "mine.csv", "--yes", *more)
    assert result.exit_code == 0, result.stderr
    said = Path("collection.yaml").read_text(encoding="utf-8")
    assert "'@row'" in said
    assert re.search(r"text:\n +- title\n +- text\n", said)
    assert "gender" not in said


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nowhere.csv"], 4, "nowhere.csv: no such file"),
        (["mine.csv", "--group", "sex"], 2, "no column 'sex'; there are: id, title, text, gender"),
        (["mine.csv", "-o", "no/folder.yaml"], 2, "cannot be written"),
    ],
)
def test_what_cannot_be_is_said(call: Call, file: Path, arguments: list[str], code: int, said: str) -> None:
    result = call("init", "--yes", *arguments)
    assert result.exit_code == code
    assert said in result.stderr
    assert not Path("collection.yaml").exists()


def test_ragged_rows_are_said_with_their_line(call: Call, file: Path) -> None:
    file.write_text(file.read_text(encoding="utf-8") + "31,too,many,cells,here\n", encoding="utf-8")
    result = call("init", "mine.csv", "--yes")
    assert result.exit_code == 4
    assert "mine.csv:32: expected 4 columns (id, title, text, gender), got 5" in result.stderr
    assert not Path("collection.yaml").exists()


def test_the_target_of_the_option_is_in_the_file(call: Call, file: Path) -> None:
    result = call("init", "mine.csv", "--yes", "--target", "{gender: {female: 0.5, male: 0.5}}")
    assert result.exit_code == 0, result.stderr
    loaded = load_collection(Path("collection.yaml"))
    assert loaded.target == {"gender": GivenTarget(shares={"female": 0.5, "male": 0.5})}


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


def test_on_a_terminal_it_asks_for_the_target(call: Call, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fairagent.cli import init

    monkeypatch.setattr(init, "_terminal", lambda: True)
    answers = iter(["corpus"])
    monkeypatch.setattr(init.typer, "prompt", lambda *said, **how: next(answers))
    monkeypatch.setattr(init.typer, "confirm", lambda *said, **how: True)
    assert call("init", "mine.csv").exit_code == 0
    assert load_collection(Path("collection.yaml")).target == CorpusTarget()


def test_what_is_no_target_is_refused_before_anything_is_written(call: Call, file: Path) -> None:
    result = call("init", "mine.csv", "--yes", "--target", "fair")
    assert result.exit_code == 2
    assert "no target of kind 'fair'" in result.stderr
    assert not Path("collection.yaml").exists()
