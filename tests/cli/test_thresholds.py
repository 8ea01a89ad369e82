"""`assert:` in an experiment, as continuous integration sees it: exit codes, and what is printed where."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairagent.errors import DataError
from fairagent.retrieve.base import as_query
from fairagent.search.agent import FairAgent

from .conftest import Call, Small
from .test_evaluate import RESULTS, write

MET = "assert: {nDCG@10: '>= 0', FA*IR: {nDCG@10: '>= baseline - 1', gender: {male: '> .1'}}}\n"
MISSED = "assert: {FA*IR: {nDCG@10: '>= 0'}, agent: {nDCG@10: '> 1', gender: {female: '> baseline + 1'}}}\n"
AWAY = "runs/small_try"


@pytest.fixture
def trouble(monkeypatch: pytest.MonkeyPatch) -> Callable[[Exception], None]:
    """Topic T2 raises this."""
    search = FairAgent.search

    def set(error: Exception) -> None:
        def failing(self: FairAgent, query: Any) -> Any:
            if as_query(query).id == "T2":
                raise error
            return search(self, query)

        monkeypatch.setattr(FairAgent, "search", failing)

    return set


def test_all_met(call: Call, small: Small) -> None:
    result = call("evaluate", write(small, MET))
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    assert result.stdout.endswith("4 of 4 thresholds are met\n")


def test_missed(call: Call, small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    result = call("evaluate", write(small, MISSED), "--details")
    assert result.exit_code == 8
    folder = Path(AWAY)
    text = (folder / "results.txt").read_text(encoding="utf-8")
    assert "MISSED" in result.stdout
    assert all((folder / name).stat().st_size for name in (*RESULTS, "report.html"))
    head, columns, *missed = result.stderr.splitlines()
    assert head == "1 of 3 thresholds are met"
    assert columns.split() == ["system", "dimension", "measure", "or", "group", "value", "bound", "limit", "result"]
    assert [line.split()[:3] for line in missed] == [["agent", "relevance", "nDCG@10"], ["agent", "gender", "female"]]
    assert missed[0].split()[4:] == [">", "1", "1.000000", "MISSED"]
    # In the files the one that is met stands too.
    table = text.partition(head)[2].partition("\n\nnDCG")[0]
    assert re.findall("(?m) (met|MISSED)$", table) == ["met", "MISSED", "MISSED"]
    # Again, with nothing left to run: the same.
    assert call("evaluate", "try.yaml").exit_code == 8
    # A report shows what was missed, and fails nothing.
    shown = call("report", AWAY)
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert head in shown.stdout


def test_a_miss_counts_more_than_a_failed_topic(call: Call, small: Small, trouble: Callable[[Exception], None]) -> None:
    trouble(DataError("a stored text is damaged"))
    assert call("evaluate", write(small, MISSED), "--run", "missed").exit_code == 8
    result = call("evaluate", write(small, MET), "--run", "met")
    assert result.exit_code == 7
    assert "4 of 4 thresholds are met" in result.stdout
