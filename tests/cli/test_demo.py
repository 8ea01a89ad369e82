from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fairagent import load_collection, write_demo
from fairagent.cli.systems import Fairness, SystemMeans, better_rows, systems_table, verdicts
from fairagent.evaluate.comparison import Equal
from fairagent.evaluate.judging import FUSED, SYSTEMS
from fairagent.types import ExposureRow

from .conftest import Call


@pytest.mark.slow
def test_a_small_demo_from_nothing_and_again(call: Call) -> None:
    result = call("demo", "--people", "60", "--folder", "here")
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    text = result.stdout
    lines = text.splitlines()
    for system in ("BM25", "labeled first", "exposure", "exposure+labeled", "no loop", "FAIR-QR =", "agent"):
        assert any(line.strip().startswith(f"{system} ") for line in lines)
    # The reason wraps at 80 columns.
    assert "= FAIR-QR: the rankings of BM25 on all topics" in " ".join(text.split())
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
    assert equal["FAIR-QR"] == {"system": "FAIR-QR", "other": "BM25"}
    for row in again["systems"]:
        assert 0 < row["ndcg"] <= 1
        assert set(row["fairness"]) == {"gender", "region"}
        assert row["calls"] == 0
        judged = row["fairness"].values()
        values = [row["ndcg"], *(one[measure] for one in judged for measure in ("awrf", "product"))]
        for one in judged:
            assert sum(share for _, share, _ in one["groups"][:-1]) <= 1 + 1e-9
        shown = row["system"] + " =" * bool(row["equal"])
        line = next(line for line in lines if line.strip().startswith(f"{shown} "))
        assert line.strip().removeprefix(f"{shown} ").replace("*", "").split()[: len(values)] == [
            f"{value:.3f}" for value in values
        ]


def test_a_folder_with_something_else_in_it_is_left_alone(call: Call) -> None:
    Path("mine").mkdir()
    Path("mine/note.txt").write_text("mine", encoding="utf-8")
    result = call("demo", "--folder", "mine", "--people", "50")
    assert result.exit_code == 2
    assert "mine" in result.stderr
    assert [path.name for path in Path("mine").iterdir()] == ["note.txt"]


EQUAL = Equal("FAIR-QR", "BM25")
LOW, HIGH = Fairness(0.9, 0.45), Fairness(0.95, 0.57)
ROWS = [
    SystemMeans("BM25", 0.5, {"gender": LOW, "region": Fairness(0.8, 0.4)}, 0, 0.05),
    SystemMeans("exposure+labeled", 0.6, {"gender": HIGH, "region": Fairness(0.7, 0.42)}, 12, 30.5),
    SystemMeans("FAIR-QR", 0.5, {"gender": LOW, "region": Fairness(0.8, 0.4)}, 0, 0.1, EQUAL),
]


def test_the_table_fits_80_columns_and_marks_the_best() -> None:
    text = systems_table(ROWS, 20).text(80)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 80
    assert text.split("BM25")[1].split()[:7] == ["0.500", "0.900", "0.450", "0.800*", "0.400", "0", "0.05"]
    assert text.split("exposure+labeled")[1].split()[:5] == ["0.600*", "0.950*", "0.570*", "0.700", "0.420*"]
    assert text.split("FAIR-QR =")[1].split()[:2] == ["0.500", "0.900"]


def test_many_dimensions_are_a_block_each_and_none_is_none() -> None:
    many = [replace(row, fairness={f"dimension {n}": row.fairness["gender"] for n in range(9)}) for row in ROWS]
    lines = systems_table(many, 20).text(80).splitlines()
    assert max(map(len, lines)) <= 80
    assert len([line for line in lines if line.startswith("system ")]) > 2
    alone = [replace(row, fairness={}) for row in ROWS]
    assert "AWRF" not in systems_table(alone, 20).text(80)
    assert verdicts(alone) == ("BM25", [])


def row(system: str, awrf: float, women: float, ndcg: float = 0.5, none: float = 0.1) -> SystemMeans:
    groups = (ExposureRow("women", women, 0.5), ExposureRow("men", 1 - women, 0.5), ExposureRow("none", none, None))
    topics = tuple(awrf + (system == "agent" and 0.001 * n) for n in range(-4, 5))
    return SystemMeans(system, ndcg, {"gender": Fairness(awrf, 0.4, groups, topics)}, 0, 0.1)


def test_where_the_agent_is_not_the_best_and_why(tmp_path: Path) -> None:
    rows = [row("labeled", 0.8, 0.2, 0.7, none=0), row("exposure", 0.97, 0.3, 0.4), row("agent", 0.9, 0.3)]
    collection = load_collection(write_demo(tmp_path / "demo", people=60))
    labeled, exposure = better_rows(rows, collection)
    groups, ids = collection.groups, [one.id for one in collection.documents()]
    bare = {id for id in ids if not groups.memberships("gender", [id])[0, 1:].any()}
    among = np.mean([id in bare for grades in collection.qrels.values() for id, grade in grades.items() if grade])
    persons = np.mean(np.asarray(groups.of_type("gender", list(bare)), float))
    assert labeled.startswith("labeled is best in nDCG: ")
    assert re.findall(r"\d+%", labeled) == ["0%", "10%", f"{1 - persons:.0%}", f"{among:.0%}"]
    assert (exposure.split(":")[0], "0.100" in exposure) == ("exposure is best in AWRF of gender", True)
    assert list(better_rows([*rows, row("agent", 0.97, 0.3, 0.7)], collection)) == []


def test_the_verdict_is_the_agents_against_its_engine_by_the_paired_test() -> None:
    rows = [row("BM25", 0.8, 0), row(FUSED, 0.9, 0.1), row("agent", 0.95, 0.3)]
    engine, (change,) = verdicts(rows)
    assert (engine, change.verdict, change.label) == (FUSED, "fairer", "women")
    assert "AWRF +0.0500, 95 % interval +0.04" in str(change)
    assert verdicts([*rows[:1], *rows[2:]])[0] == "BM25"
    assert verdicts([*rows[:2], row("agent", 0.85, 0.05)])[1][0].worse
    assert verdicts([*rows[:2], row("agent", 0.8995, 0.05)])[1][0].verdict == "no measurable difference"
