"""The page docs/your_data.md, from top to bottom, in an empty folder, as somebody would follow it."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from running import python

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "your_data.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    (folder / "people.csv").write_text(blocks("text")[0], encoding="utf-8")
    return folder


def run(folder: Path, *arguments: str) -> str:
    done = python(*arguments, folder=folder)
    assert not re.search("warning", done.stderr, re.IGNORECASE), done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def printed(folder: Path) -> str:
    """What the last of the page's first commands prints; they leave a file and an index in the folder."""
    printed = ""
    for line in blocks("console")[0].splitlines():
        program, *arguments = shlex.split(line.removeprefix("$ "))
        assert program == "fairagent"
        printed = run(folder, "-m", "fairagent", *arguments)
    return printed


def test_the_command_line(folder: Path, printed: str) -> None:
    assert re.search(r"^ +1 +([0-9]+ +)?[A-Z].* (female|male) ", printed, re.MULTILINE)
    assert (folder / "collection.yaml").read_text(encoding="utf-8") == blocks("yaml")[0]


def test_spellings(folder: Path) -> None:
    counts = {"male": 60, "M": 20, "Male": 10, "female": 50, "F": 10, "N/A": 7, "prefer not to say": 3}
    labels = [label for label, count in counts.items() for _ in range(count)]
    rows = "".join(f"Words about person {place}.,{label}\n" for place, label in enumerate(labels))
    (folder / "dirty.csv").write_text(f"text,gender\n{rows}", encoding="utf-8")
    init = ("init", "dirty.csv", "--yes", "--output", "dirty.yaml")
    run(folder, "-m", "fairagent", *init)
    assert blocks("yaml")[1] in (folder / "dirty.yaml").read_text(encoding="utf-8")


def test_rows(folder: Path) -> None:
    rows, kept, _ = blocks("python")
    assert len(rows.splitlines()) < 6
    printed = run(folder, "-c", rows)
    assert [line.split()[0] for line in printed.splitlines()] == ["1", "2", "3", "4", "5"]
    assert "'gender': {'female': 1.0}" in printed
    run(folder, "-c", kept + "assert len(agent.search('jazz').hits) == 5\n")


@pytest.mark.usefixtures("printed")
def test_documents_that_come_and_go(folder: Path) -> None:
    """After the commands above."""
    changed = Path(shutil.copytree(folder, folder.with_name("changed")))
    lines = (changed / "people.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    lines[2] = lines[2].replace("drummer", "singer")
    lines[4:6] = ['p9,Ida Roth,"She writes jazz.",female,Europe\n']
    (changed / "people.csv").write_text("".join(lines), encoding="utf-8")
    program, *arguments = shlex.split(blocks("console")[1].removeprefix("$ "))
    printed = run(changed, "-m", "fairagent", *arguments)
    assert program == "fairagent"

    def without_sizes(text: str) -> str:
        return re.sub(r"in [\d.]+ s|[\d.]+ kB", "", text)

    assert without_sizes(printed) == without_sizes(blocks("text")[2])
    code = blocks("python")[1] + "print([hit.id for hit in agent.search('jazz').hits])\n"
    assert "p9" in run(changed, "-c", code)


def test_hits_of_another_engine(folder: Path) -> None:
    assert run(folder, "-c", blocks("python")[2]) == blocks("text")[1]
    more = "print([hit['id'] for hit in fair_rerank(found, 'gender', 'uniform', n=4, fairness=10).hits])\n"
    assert run(folder, "-c", blocks("python")[2] + more).endswith("['p3', 'p1', 'p8', 'p5']\n")
