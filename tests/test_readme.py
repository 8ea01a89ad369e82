"""The code blocks of the README are run as they stand, on a small demo collection."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from fairagent.collection.demo import write_demo

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder in which the README has been followed down to its Python example."""
    folder = tmp_path_factory.mktemp("newcomer")
    (example,) = blocks("python")
    done = run([sys.executable, "-c", example], folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1 ")
    (experiment,) = blocks("yaml")
    (folder / "first.yaml").write_text(experiment, encoding="utf-8")
    return folder


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_every_block_is_run():
    assert set(re.findall(r"^```(\w+)", README, flags=re.MULTILINE)) == {"python", "console", "yaml", "text"}


def test_python_example_prints_a_ranking_and_its_exposure(folder):
    (example,) = blocks("python")
    printed = run([sys.executable, "-c", example], folder).stdout
    assert printed.count("\n") >= 13
    assert "gender {'female'" in printed


@pytest.mark.parametrize("block", blocks("console"))
def test_command_line(block, folder):
    """A block at a time: a line may need what those before it made, and tests may run in several processes."""
    for line in block.splitlines():
        program, *arguments = shlex.split(line.removeprefix("$ "))
        assert program == "fairagent"
        done = run([sys.executable, "-c", "from fairagent.cli import main; main()", *arguments], folder)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout


def test_the_film_is_what_its_command_prints(folder):
    """The block is this test's output: on a change that is wanted, paste what the command prints in 100 columns."""
    (film,) = blocks("text")
    (line,) = [line for block in blocks("console") for line in block.splitlines() if "--beside" in line]
    command = [sys.executable, "-c", "from fairagent.cli import main; main()", *shlex.split(line)[2:]]
    printed = subprocess.run(
        command, cwd=folder, env={**os.environ, "COLUMNS": "100"}, capture_output=True, encoding="utf-8", check=True
    ).stdout
    assert "".join(f"{line.rstrip()}\n" for line in printed.splitlines()) == film


def test_the_make_targets_it_names_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^    make (\w+)", README, flags=re.MULTILINE)
    assert targets == ["demo", "test"]
    assert all(re.search(rf"^{target}:", makefile, flags=re.MULTILINE) for target in targets)


def test_demo_collection_is_reused(folder):
    before = (folder / "fairagent-demo" / "made.json").stat().st_mtime_ns
    write_demo(folder / "fairagent-demo")
    assert (folder / "fairagent-demo" / "made.json").stat().st_mtime_ns == before


def test_every_dependency_and_extra_for_users_is_named() -> None:
    described = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = {re.split(r"[<>=]", one)[0] for one in described["dependencies"]}
    said = README[README.index("Dependencies, and what each is for") :]
    # The pieces of llama-index go by its name.
    assert {name for name in names if not name.startswith("llama-index-") and name not in said} == set()
    assert set(re.findall(r"`(\w+)`", said)) == described["optional-dependencies"].keys() - {"dev", "docs"}
