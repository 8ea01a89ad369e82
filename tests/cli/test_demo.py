from __future__ import annotations

import json
import re
from pathlib import Path

from fairagent.cli.systems import Fairness, SystemMeans, systems_table
from fairagent.evaluate.comparison import ORIGINAL, Equal
from fairagent.evaluate.judging import FUSED, SYSTEMS
from fairagent.report.text import plain

from .conftest import Call


def test_a_small_demo_from_nothing_and_again(call: Call) -> None:
    result = call("demo", "--people", "60", "--folder", "here")
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    text = result.stdout
    lines = text.splitlines()
    for system in ("BM25", "labeled first", "exposure", "exposure+labeled", "no loop", "FAIR-QR =", "agent"):
        assert any(line.strip().startswith(f"{system} ") for line in lines)
    # The reason wraps at 80 columns.
    assert f"= FAIR-QR: the rankings of BM25 on all topics, since {ORIGINAL}" in " ".join(text.split())
    assert "1. query" in text
    assert not re.search(r"\bnan\b", text)
    assert re.search(r"^ +\[1\] .* yes *$", text, re.M)
    for command in ("search", "answer"):
        proposed = re.search(
            rf"^fairagent ({command} -c here/collection.yaml --index here/index --topic T\d+)$", text, re.M
        )
        assert proposed
        assert call(*proposed[1].split()).exit_code == 0

    built = Path("here/index/fairagent.json").stat().st_ino
    again = json.loads(call("demo", "--people", "60", "--folder", "here", "--json").stdout)
    assert Path("here/index/fairagent.json").stat().st_ino == built
    # Without the packaged encoder there is no row of vector search.
    names = [row["system"] for row in again["systems"]]
    assert names == [name for name in SYSTEMS if name != FUSED]
    equal = {row["system"]: row["equal"] for row in again["systems"] if row["equal"]}
    assert equal["FAIR-QR"] == {"system": "FAIR-QR", "other": "BM25", "why": ORIGINAL, "undone": 0}
    for row in again["systems"]:
        assert 0 < row["ndcg"] <= 1
        assert set(row["fairness"]) == {"gender", "region"}
        assert row["calls"] == 0
        values = [row["ndcg"], *(value for pair in row["fairness"].values() for value in pair.values())]
        shown = row["system"] + " =" * bool(row["equal"])
        line = next(line for line in lines if line.strip().startswith(f"{shown} "))
        assert line.strip().removeprefix(f"{shown} ").split()[: len(values)] == [f"{value:.3f}" for value in values]


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
    assert "people=0" in result.stderr


def test_the_table_fits_80_columns() -> None:
    equal = Equal("FAIR-QR", "BM25")
    rows = [
        SystemMeans("BM25", 0.5, {"gender": Fairness(0.9, 0.45), "region": Fairness(0.8, 0.4)}, 0, 0.05),
        SystemMeans("exposure+labeled", 0.6, {"gender": Fairness(0.95, 0.57), "region": Fairness(0.7, 0.42)}, 12, 30.5),
        SystemMeans("FAIR-QR", 0.5, {"gender": Fairness(0.9, 0.45), "region": Fairness(0.8, 0.4)}, 0, 0.1, equal),
    ]
    text = plain(systems_table(rows, 20), 80)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 80
    assert text.split("BM25")[1].split()[:7] == ["0.500", "0.900", "0.450", "0.800", "0.400", "0", "0.05"]
    assert text.split("FAIR-QR =")[1].split()[:2] == ["0.500", "0.900"]
