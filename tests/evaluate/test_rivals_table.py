"""The table of the agent and its rivals: means and marks by hand, pooled differences, oracles apart."""

from __future__ import annotations

import csv
import importlib.util
from collections.abc import Mapping
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "evaluations" / "controller"
spec = importlib.util.spec_from_file_location("rivals", FOLDER / "rivals.py")
assert spec
assert spec.loader
rivals = importlib.util.module_from_spec(spec)
spec.loader.exec_module(rivals)


def made_run(folder: Path, products: Mapping[str, list[float]]) -> Path:
    """A run with nDCG 1 and AWRF of the product, and a topic that is not judged for the dimension."""
    folder.mkdir(parents=True)
    with (folder / "topics.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["topic", "system", "dimension", "measure", "value"])
        for system, values in products.items():
            for topic, value in enumerate(values):
                writer.writerow([f"t{topic:02}", system, "", "nDCG@20", 1])
                writer.writerow([f"t{topic:02}", system, "d", "AWRF(unknown=ignore)@20", value])
                writer.writerow([f"t{topic:02}", system, "d", "nDCG@20*AWRF(unknown=ignore)@20", value])
                writer.writerow([f"t{topic:02}", system, "d", "unlabeled@20", 9])
            writer.writerow(["t99", system, "", "nDCG@20", 0])
    return folder


def test_means_marks_and_differences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Twelve topics: a is .25 lower on each, which chance gives once in 2^11; b differs by turns.
    agent = [0.5] * 12
    low, turns = [0.25] * 12, [0.25, 0.75] * 6
    made_run(tmp_path / "controller_trec22_biographies", {"a": low, "b": turns, "agent": agent})
    made_run(tmp_path / "controller_allsides", {"a": agent, "b": agent, "agent": agent})
    made_run(tmp_path / "controller_args_sigir19", {"b": [0.75] * 12, "agent": agent})
    aims = ["trec22_biographies", "allsides", "args_sigir19"]
    rivals.main(["--print", "--runs", str(tmp_path), "--only", *aims])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "| nDCG@20 · AWRF@20 | trec22 (12) | allsides (12) | mean | args (12) |"
    # The oracle is in no mean, and marks stand where the difference from the agent is no chance.
    assert lines[2:5] == [
        "| a | 0.250- | 0.500 | 0.375 | not run |",
        "| b | 0.500 | 0.500 | 0.500 | 0.750+ |",
        "| agent | 0.500 | 0.500 | 0.500 | 0.500 |",
    ]
    pooled = lines.index("| agent less, all: 24 topics | product | p | won/tied/lost | nDCG | p | AWRF | p |")
    assert lines[pooled + 2].startswith("| a | +0.125 (")
    assert "12/12/0 | +0.000 (+0.000 to +0.000) | 1.000 | +0.125" in lines[pooled + 2]
    assert "6/12/6" in lines[pooled + 3]
    oracles = next(place for place, line in enumerate(lines) if line.startswith("| agent less, oracles: 12 topics"))
    assert [line.split(" | ")[0] for line in lines[oracles + 2 :]] == ["| b"]
