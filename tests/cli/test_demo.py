from __future__ import annotations

import json
from pathlib import Path

from fairagent.cli.systems import Fairness, Row, systems_table
from fairagent.report.text import plain
from .conftest import Call


def test_a_small_demo_from_nothing(call: Call) -> None:
    result = call("demo", "--people", "150", "--folder", "here")
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    text = result.stdout
    for system in ("BM25", "agent, original", "agent, fused", "agent, exposure"):
        assert system in text
    assert "1. query" in text
    assert "fairagent search -c here/collection.yaml --index here/index --topic T01" in text
    assert "nan" not in text

    again = call("search", "-c", "here/collection.yaml", "--index", "here/index", "--topic", "T01")
    assert again.exit_code == 0


def test_json_and_no_work_done_twice(call: Call) -> None:
    first = json.loads(call("demo", "--people", "150", "--json").stdout)
    built = Path("fairagent-demo/index/fairagent.json").stat().st_ino
    second = json.loads(call("demo", "--people", "150", "--json").stdout)
    assert Path("fairagent-demo/index/fairagent.json").stat().st_ino == built
    assert len(first["systems"]) == 4
    for row, same in zip(first["systems"], second["systems"], strict=True):
        assert 0 < row["ndcg"] <= 1
        assert set(row["fairness"]) == {"gender", "region"}
        assert row["calls"] == 0
        assert {**row, "seconds": 0} == {**same, "seconds": 0}


def test_a_folder_with_something_else_in_it_is_left_alone(call: Call) -> None:
    Path("mine").mkdir()
    Path("mine/note.txt").write_text("mine", encoding="utf-8")
    result = call("demo", "--folder", "mine", "--people", "50")
    assert result.exit_code == 2
    assert "mine" in result.stderr
    assert [path.name for path in Path("mine").iterdir()] == ["note.txt"]


def test_nobody_makes_no_demo(call: Call) -> None:
    result = call("demo", "--people", "0")
    assert result.exit_code == 2
    assert "at least one person" in result.stderr


def test_the_table_fits_80_columns() -> None:
    rows = [
        Row("BM25", 0.5, {"gender": Fairness(0.9, 0.45), "region": Fairness(0.8, 0.4)}, 0, 0.05),
        Row("agent, exposure", 0.6, {"gender": Fairness(0.95, 0.57), "region": Fairness(0.7, 0.42)}, 12, 3.5),
    ]
    text = plain(systems_table(rows, 20), 80)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 80
    assert text.split("BM25")[1].split()[:7] == ["0.500", "0.900", "0.450", "0.800", "0.400", "0", "0.05"]
