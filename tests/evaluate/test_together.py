"""The table of all runs names systems that rank as the fused engine does, and compares over all topics together."""

from __future__ import annotations

import csv
import importlib.util
from collections.abc import Mapping
from pathlib import Path

import pytest

from fairagent.storage.files import file_name

FILE = Path(__file__).resolve().parents[2] / "evaluations" / "light" / "together.py"
spec = importlib.util.spec_from_file_location("together", FILE)
assert spec
assert spec.loader
together = importlib.util.module_from_spec(spec)
spec.loader.exec_module(together)

ORDERS = {"fused": "ab", "labeled first": "ab", "exposure": "ba", "agent": "ba"}


def made_run(folder: Path, products: Mapping[str, list[float]]) -> Path:
    """A run of two topics with nDCG 1 and AWRF of the product; ranked as in ORDERS."""
    (folder / "runs").mkdir(parents=True)
    with (folder / "topics.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["topic", "system", "dimension", "measure", "value"])
        for system, values in products.items():
            for topic, value in enumerate(values):
                row = [(f"t{topic}", system, "", "nDCG@20", 1), (f"t{topic}", system, "d", "AWRF@20", value)]
                row += [
                    (f"t{topic}", system, "d", "nDCG@20*AWRF@20", value),
                    (f"t{topic}", system, "d", "unlabeled@20", 9),
                ]
                writer.writerows(row)
            # A topic that is not judged for the dimension has an nDCG alone.
            writer.writerow(["t9", system, "", "nDCG@20", 0])
            lines = [f"t0 Q0 {id} {rank} 1.0 {system.split()[0]}\n" for rank, id in enumerate(ORDERS[system], start=1)]
            (folder / "runs" / f"{file_name(system)}.txt").write_text("".join(lines), encoding="utf-8")
    return folder


def test_systems_that_rank_as_fused_are_named_by_rankings_not_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # `exposure` has the values of fused, but another order.
    values = {"fused": [0.25, 0.5], "labeled first": [0.25, 0.5], "exposure": [0.25, 0.5], "agent": [0.5, 0.75]}
    runs = [made_run(tmp_path / f"light_{name}", values) for name in ("one", "two")]
    monkeypatch.setattr("sys.argv", ["together.py", *map(str, runs)])
    together.main()
    lines = capsys.readouterr().out.splitlines()
    same = [line.split("  ")[1].strip() for line in lines if line.endswith("ranks as fused on every topic")]
    assert same == ["labeled first"] * 2
    assert "one, 2 topics: nDCG, AWRF, product with its 95 % interval" in lines
    over_all = lines.index("agent less others, product, 4 topics of 2 aims")
    assert lines[over_all + 1].split()[:2] == ["fused", "+0.250"]
    assert lines[over_all + 1].endswith("best dull baseline (0.375)")
