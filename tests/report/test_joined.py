"""Several runs as one table: whose columns they are, which rows may stand together, and what is said of the rest."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from evaluate import words

from fairagent.errors import UsageError
from fairagent.evaluate.results import means_table
from fairagent.evaluate.run import load_run
from fairagent.report.joined import join_runs

RELEVANCE = words.EXPERIMENT.replace("small experiment", "relevance") + "measures: [nDCG@5]\n"
FAIRNESS = words.EXPERIMENT.replace("small experiment", "fairness") + "measures: [AWRF@5]\ntopics: 6\n"


def made(folder: Path, text: str, name: str) -> Path:
    """The run of an experiment on the small collection in `folder`."""
    file = words.write(folder, text)
    words.run(file, folder / name)
    return folder / name


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("joined")
    return made(folder, RELEVANCE, "one"), made(folder, FAIRNESS, "two")


def test_each_run_has_its_columns_and_each_system_a_row(runs: tuple[Path, Path]) -> None:
    joined = join_runs(runs)
    table, notes = joined.tables()[0], list(joined.notes())
    assert [(column.above, column.name) for column in table.columns[1:]] == [
        ("relevance", "nDCG@5"),
        ("gender", "AWRF@5"),
        ("era", "AWRF@5"),
    ]
    assert [row[0] for row in table.rows] == ["plain", "fair", "random"]
    for run, places in ((runs[0], slice(1, 2)), (runs[1], slice(2, 4))):
        assert [row[places] for row in table.rows] == [row[1:] for row in means_table(load_run(run)).rows]

    assert notes[0] == f"relevance ({runs[0]}): words, 19 topics, baseline plain"
    assert notes[-1] == "! relevance and fairness are over different topics: 6 of at most 19 topics in common"


def test_the_table_in_every_form(runs: tuple[Path, Path], tmp_path: Path) -> None:
    joined = join_runs(runs)
    joined.write(tmp_path)
    texts = {path.suffix: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    assert set(texts) == {".txt", ".md", ".tex", ".csv"}
    assert texts[".md"].startswith(
        "| system | relevance nDCG@5 | gender AWRF@5 | era AWRF@5 |\n|---|--:|--:|--:|\n| plain |"
    )
    assert r"system & nDCG@5 & AWRF@5 & AWRF@5 \\" in texts[".tex"]
    above = r" & \multicolumn{1}{c}{relevance} & \multicolumn{1}{c}{gender} & \multicolumn{1}{c}{era} \\"
    assert above in texts[".tex"]
    assert texts[".tex"].count(r"\textbf{") >= 3
    lines = list(csv.DictReader(texts[".csv"].splitlines()))
    assert len(lines) == 3 + 6
    assert {line["run"] for line in lines} == {"relevance", "fairness"}


# --- what is refused ------------------------------------------------------------------------------------------------


def test_rows_made_with_other_settings_are_refused(runs: tuple[Path, Path], tmp_path: Path) -> None:
    other = made(tmp_path, FAIRNESS.replace("fairness: 0.5", "fairness: 0.25"), "two")
    with pytest.raises(UsageError) as refused:
        join_runs([runs[0], other])
    text = str(refused.value)
    assert "systems.fair.settings.rerank.fairness: was 0.5, is 0.25" in text
    assert f"({runs[0]} was, {other} is)" in text
    assert "plain" not in text


def test_one_run_and_the_same_twice_are_refused(runs: tuple[Path, Path], tmp_path: Path) -> None:
    for folders in ([runs[0]], [runs[0], runs[0]]):
        with pytest.raises(UsageError, match="--join takes two or more runs, each once"):
            join_runs(folders)
    with pytest.raises(UsageError, match="holds no run"):
        join_runs([runs[0], tmp_path])
