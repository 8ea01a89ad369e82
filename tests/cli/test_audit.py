"""`fairagent audit`, from a log to the table."""

from __future__ import annotations

import json
from pathlib import Path

from .conftest import Call, Small


def test_a_log_of_another_engine(call: Call, small: Small, tmp_path: Path) -> None:
    shown = "".join(f"q,{id}\n" for id in ("d00", "d16", "d01", "nobody"))
    (tmp_path / "log.csv").write_text(f"query,document\n{shown}")
    result = call("audit", "log.csv", *small.options, "--set", "target=uniform", "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["requests"] == 1
    assert any("1 of 4" in note for note in found["notes"])
    table = call("audit", "log.csv", *small.options, "--set", "target=uniform").stdout
    for group in found["dimensions"][0]["groups"]:
        (line,) = (line for line in table.splitlines() if line.split()[:1] == [group["label"]])
        assert f"{group['share']:.3f}" in line
        assert f"{group['low']:.3f} to {group['high']:.3f}" in line


def test_ids_of_another_collection_are_an_error(call: Call, small: Small, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("query,document\nq,nobody\n")
    result = call("audit", str(tmp_path / "log.csv"), *small.options)
    assert result.exit_code == 4
    assert "none of the 1 documents" in result.stderr


def test_a_log_needs_a_collection_and_a_file(call: Call, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("query,document\nq,d\n")
    assert call("audit", "log.csv").exit_code == 2
    missing = call("audit", "absent.csv")
    assert missing.exit_code == 4
    assert "absent.csv" in missing.stderr
