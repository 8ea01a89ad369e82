"""The code blocks of the README are run as they stand, one after the other, in an empty folder."""

from __future__ import annotations

import re
import shlex
import textwrap
import tomllib
from itertools import chain
from pathlib import Path

import pytest
from running import python

from fairagent import UsageError, build_index, load_collection, write_demo, write_people
from fairagent.guests.testing import LoopbackServer, completion
from fairagent.storage.packages import EXTRAS

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, flags=re.DOTALL | re.MULTILINE)


def run(folder: Path, *command: str, **more: str) -> str:
    """What a command prints in a terminal of 100 columns; it must not fail."""
    printed = python(*command, folder=folder, COLUMNS="100", **more).stdout
    assert printed
    # numpy's own way to show a number is for programmers.
    assert "np." not in printed
    return printed


def test_its_first_lines_run_in_an_empty_folder_as_often_as_one_likes(tmp_path):
    """They write what they read, and nothing over what is there."""
    (lines,) = re.findall(r"^    from fairagent import FairAgent.*\n(?:    .*\n|\n)+", README, re.MULTILINE)
    code = textwrap.dedent(lines)
    printed = run(tmp_path, "-c", code)
    assert re.match(r"1 D\d{5} \{'gender': \{'(fe)?male': 1.0\}\}\n", printed)
    assert run(tmp_path, "-c", code) == printed
    (tmp_path / "people.csv").write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match="holds something else"):
        write_people(tmp_path / "people.csv")
    assert write_people(tmp_path / "more.csv", people=2).read_text(encoding="utf-8").count("\n") == 3


SAID = (
    '{"groups":[{"number":1,"keywords":["jazz musicians","Asia","jazz musicians","jazz musicians","jazz musicians"]}]}'
)
"""What SmolLM2-135M-Instruct answered, in 55 tokens to 357: `make demo-llm`."""


@pytest.mark.slow
@pytest.mark.vectors
def test_with_a_model_it_prints_what_the_readme_shows(tmp_path):
    """On a change that is wanted, paste what `make demo-llm` prints."""
    collection = load_collection(write_demo(tmp_path / "fairagent-demo"))
    build_index(collection, tmp_path / "fairagent-demo" / "index")
    (command,) = re.findall(r"^    fairagent (search .*)$", README, re.MULTILINE)
    (block,) = [text for language, text in BLOCKS if language == "text"]
    name = block.split()[2]
    with LoopbackServer([completion(SAID, usage=(357, 55))]) as server:
        words = shlex.split(command.replace("NAME", name))
        printed = run(tmp_path, "-m", "fairagent", *words, OPENAI_BASE_URL=server.url)
        assert len(server.requests) == 1
    seconds = re.compile(r"\d+\.\d\d(?= s|, |\))")

    def lines(text):
        return [seconds.sub("1.00", line).rstrip() for line in text.splitlines()]

    below = iter(lines(printed))
    # The first line goes to standard error; between the others some are left out.
    assert [line for line in lines(block)[1:] if line not in below] == []


@pytest.mark.slow
@pytest.mark.vectors
def test_the_picture_is_what_the_demo_comes_to():
    """Its numbers are those of the demo, and it can be read on white and on black."""
    python(str(ROOT / "docs" / "before_after.py"), "--check")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_all_of_it_works_in_the_order_in_which_it_stands_in_an_empty_folder(tmp_path):
    """One test, since each block needs what those before it made."""
    assert {language for language, _ in BLOCKS} == {"python", "console", "yaml", "text"}
    for language, block in BLOCKS:
        if language == "console":
            for line in block.splitlines():
                program, *arguments = shlex.split(line.removeprefix("$ "))
                assert program == "fairagent"
                run(tmp_path, "-m", "fairagent", *arguments)
        elif language == "yaml":
            (tmp_path / "first.yaml").write_text(block, encoding="utf-8")
        elif language == "python":
            made = tmp_path / "fairagent-demo" / "made.json"
            before = made.stat().st_mtime_ns
            ranking = run(tmp_path, "-c", block)
            assert ranking.startswith("1 ")
            assert ranking.count("\n") >= 12
            assert "<Exposure gender: female " in ranking
            assert made.stat().st_mtime_ns == before, "the demo collection was made again"


def test_the_make_targets_it_names_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^    make (\w+)", README, flags=re.MULTILINE)
    assert targets == ["demo", "test"]
    assert all(re.search(rf"^{target}:", makefile, flags=re.MULTILINE) for target in targets)


def test_every_dependency_and_extra_for_users_is_named() -> None:
    described = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = described["optional-dependencies"]
    names = {re.split(r"[<>=\[]", one)[0] for one in (*described["dependencies"], *chain(*map(extras.get, EXTRAS)))}
    said = (
        (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Dependencies\n")[2].partition("Before")[0]
    )
    # The pieces of llama-index go by its name.
    assert {name for name in names if not name.startswith("llama-index-") and name not in said} == set()
    assert set(re.findall(r"`([\w-]+)`", said)) == extras.keys() - {"dev", "docs", "test"}
