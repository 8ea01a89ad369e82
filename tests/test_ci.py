"""docs/experiments.md, on continuous integration: both files are run as they stand, and print what the page says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml
from running import python

from fairagent.cli import evaluate
from fairagent.collection import load_collection
from fairagent.collection.demo import write_demo
from fairagent.guests.testing import searches
from fairagent.retrieve.bm25.build import build_index

GUIDE = (Path(__file__).resolve().parents[1] / "docs" / "experiments.md").read_text(encoding="utf-8")
EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "ci"
PAGE = GUIDE.partition("## In continuous integration\n")[2]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ci")
    collection = load_collection(write_demo(folder / "fairagent-demo"))
    build_index(collection, folder / "indexes" / "demo")
    return folder


@pytest.mark.slow
def test_the_experiment_misses_what_the_page_says(folder: Path) -> None:
    experiment, printed = blocks("yaml")[0], blocks("text")[0]
    (folder / "exposure.yaml").write_text(experiment, encoding="utf-8")
    done = python("-m", "fairagent", "evaluate", "exposure.yaml", folder=folder, code=evaluate.MISSED)
    assert done.stderr.endswith(printed), "how far it is may stand above"
    assert printed.splitlines()[0] in done.stdout


@pytest.mark.slow
def test_the_tests_of_the_page_pass_and_show_the_table_and_their_own_line_where_they_fail(folder: Path) -> None:
    text = blocks("python")[1]
    (folder / "test_exposure.py").write_text(text, encoding="utf-8")
    (folder / "test_strict.py").write_text(text.replace("gap=0.05", "gap=0").replace("0.2}", "0.9}"), encoding="utf-8")
    files = ("test_exposure.py", "test_strict.py")
    done = python("-m", "pytest", "-q", "-p", "no:cacheprovider", *files, folder=folder, code=1)
    assert "2 failed, 2 passed" in done.stdout
    assert "FAILED test_exposure" not in done.stdout
    assert "90.0%  MISSED" in done.stdout
    assert Path(searches.__file__).name not in done.stdout


@pytest.mark.slow
def test_the_workflow_is_whole_and_pinned_and_what_it_runs_passes(folder: Path) -> None:
    """All of its commands but two: what installs, and what makes the collection that the folder has already."""
    (job,) = yaml.safe_load((EXAMPLE / "fairness.yml").read_text(encoding="utf-8"))["jobs"].values()
    used = [step["uses"] for step in job["steps"] if "uses" in step]
    assert used
    assert [one for one in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", one)] == []
    commands = [line.partition("  #")[0] for step in job["steps"] for line in step.get("run", "").splitlines()]
    assert commands[0] == "python -m pip install fairagent pytest"
    assert commands[2] == "fairagent demo"
    for name in ("test_search.py", "exposure.yaml"):
        (folder / name).write_text((EXAMPLE / name).read_text(encoding="utf-8"), encoding="utf-8")
    (report,) = (step["with"]["path"] for step in job["steps"] if "upload-artifact" in step.get("uses", ""))
    for command in (commands[1], commands[3]):
        program, *arguments = shlex.split(command)
        python(*(["-m", "fairagent"] if program == "fairagent" else []), *arguments, folder=folder)
    assert (folder / report).is_file()
