"""The tables of evaluations/ that can run here, on a few topics, beside what they were: no number moves unnoticed.

`python tests/evaluate/test_snapshots.py [NAME ...]` writes them anew; a change of a number belongs into the changelog.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fairagent import write_demo
from fairagent.cli import app

# The default engine as it is, not the BM25 that the fixtures of all tests make of it.
pytestmark = pytest.mark.vectors

HERE = Path(__file__).resolve().parent
EVALUATIONS = HERE.parents[1] / "evaluations"
SNAPSHOTS = HERE / "snapshots"
TOPICS = {
    "fair_qr/demo": 8,
    "fair_qr/wikilead": 4,
    "fair_qr/reuters21578": 4,
    "fair_qr/ablations": 2,
    "fair_rag/wikilead": 2,
    "fair_rag/grepbiasir": 4,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where experiments run, so that they share their indexes."""
    return tmp_path_factory.mktemp("snapshots")


def table(name: str, folder: Path) -> str:
    """results.csv of an experiment on its first topics, with light vectors; the made-up collection is made there."""
    text = (EVALUATIONS / f"{name}.yaml").read_text(encoding="utf-8")
    if name.endswith("demo"):
        text = text.replace("../../fairagent-demo/collection.yaml", str(write_demo(folder / "demo")))
    # Those of the default's vectors, which take seconds.
    text = text.replace("encoder: minilm", "encoder: light").replace("../collections", f"{EVALUATIONS}/collections")
    file = folder / f"{name.replace('/', '_')}.yaml"
    file.write_text(text, encoding="utf-8")
    run = folder / "runs" / name
    told = ["evaluate", str(file), "--limit-topics", str(TOPICS[name]), "--run", str(run), "--workers", "2"]
    done = CliRunner().invoke(app, told)
    assert done.exit_code == 0, done.output
    return (run / "results.csv").read_text(encoding="utf-8")


def numbers(text: str) -> list[list[str | float]]:
    """The cells, those that are numbers as such: the last digits may differ from machine to machine."""

    def cell(value: str) -> str | float:
        try:
            return float(value)
        except ValueError:
            return value

    return [[cell(value) for value in row] for row in csv.reader(text.splitlines())]


def test_the_demo(folder: Path, monkeypatch: pytest.MonkeyPatch, no_variables: None) -> None:
    check("fair_qr/demo", folder, monkeypatch)


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.parametrize("name", [name for name in TOPICS if not name.endswith("demo")])
def test_real_collections(
    shared: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, no_variables: None, name: str
) -> None:
    check(name, folder, monkeypatch)


def check(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    before = numbers((SNAPSHOTS / f"{name.replace('/', '_')}.csv").read_text(encoding="utf-8"))
    now = numbers(table(name, folder))
    assert now[0] == before[0]
    for old, new in zip(before[1:], now[1:], strict=True):
        assert new[:3] == old[:3]
        for was, found in zip(old[3:], new[3:], strict=True):
            assert found == (pytest.approx(was, rel=1e-9, abs=1e-12) if isinstance(was, float) else was), new[:3]


if __name__ == "__main__":
    import os
    import sys
    import tempfile

    with tempfile.TemporaryDirectory() as made:
        os.chdir(made)
        SNAPSHOTS.mkdir(exist_ok=True)
        for one in sys.argv[1:] or TOPICS:
            (SNAPSHOTS / f"{one.replace('/', '_')}.csv").write_text(table(one, Path(made)), encoding="utf-8")
