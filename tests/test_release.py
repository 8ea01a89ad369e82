"""What publishes: the workflows as files, and the check that a tag is what it says."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = {path.stem: path for path in (ROOT / ".github" / "workflows").glob("*.yml")}
faults: Any = runpy.run_path(str(ROOT / ".ci" / "release.py"))["faults"]
PROJECT = """\
[project]
name = "x"
version = "1.2.0"
[project.urls]
Documentation = "https://x.example/docs"
Source = "https://x.example"
Changelog = "https://x.example/changes"
"""
FILES = {
    "pyproject.toml": PROJECT,
    "CHANGELOG.md": "# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2026-11-01\n\n* New.\n\n## [1.1.0]\n\n* Old.\n",
    "CITATION.cff": "cff-version: 1.2.0\nversion: 1.2.0\n",
}


def test_the_workflows_run_what_a_user_runs() -> None:
    assert WORKFLOWS.keys() == {"ci", "release"}
    for path in WORKFLOWS.values():
        # YAML 1.1 reads the key `on` as true.
        jobs = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]
        steps = [step for job in jobs.values() for step in job["steps"]]
        assert ".ci/run" in [step.get("run") for step in steps]
        actions = [step["uses"] for step in steps if "uses" in step]
        assert all(re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v\d+)", action) for action in actions)


def test_only_the_job_that_publishes_may_ask_for_a_token_and_it_runs_last() -> None:
    release = yaml.safe_load(WORKFLOWS["release"].read_text(encoding="utf-8"))
    assert release[True] == {"push": {"tags": ["v*"]}}
    assert release["permissions"] == {"contents": "read"}
    assert [name for name, job in release["jobs"].items() if "permissions" in job] == ["publish"]
    assert release["jobs"]["publish"]["needs"] == "build"
    first = [step["run"] for step in release["jobs"]["build"]["steps"] if "run" in step]
    assert first == ['python .ci/release.py "$GITHUB_REF_NAME"', ".ci/run", "make dist"]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_a_tag_that_is_what_it_says(checkout: Path) -> None:
    assert faults(checkout, "v1.2.0") == []


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("CHANGELOG.md", "[1.2.0]", "[1.2.1]", "CHANGELOG.md has no section [1.2.0], or an empty one"),
        ("CHANGELOG.md", "* New.", "", "CHANGELOG.md has no section [1.2.0], or an empty one"),
        ("CITATION.cff", "\nversion: 1.2.0", "\nversion: 1.1.0", "CITATION.cff has another version than 1.2.0"),
        (
            "pyproject.toml",
            'Source = "https://x.example"\n',
            "",
            "[project.urls] in pyproject.toml lacks Source (https://...)",
        ),
    ],
)
def test_what_is_forgotten_is_said(checkout: Path, file: str, old: str, new: str, said: str) -> None:
    (checkout / file).write_text(FILES[file].replace(old, new), encoding="utf-8")
    assert faults(checkout, "v1.2.0") == [said]


def test_the_citation_has_the_version_of_the_package() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert not [fault for fault in faults(ROOT, f"v{version}") if "CITATION" in fault or "tag" in fault]
