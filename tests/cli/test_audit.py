"""`fairagent audit`, from a log to the page."""

from __future__ import annotations

import json
import stat
from pathlib import Path

from .conftest import Call, Small


def test_a_log_of_another_engine(call: Call, small: Small, tmp_path: Path) -> None:
    shown = "".join(f"q,{id}\n" for id in ("d00", "d16", "d01", "nobody"))
    (tmp_path / "log.csv").write_text(f"query,document\n{shown}")
    result = call("audit", "log.csv", *small.options, "--set", "target=uniform", "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["requests"] == 1
    assert "1 of 4" in found["unknown_ids"]
    assert any("Target of" in paragraph for paragraph in found["method"])
    page = tmp_path / "audit.html"
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert "Audit of" in page.read_text(encoding="utf-8")


def test_ids_of_another_collection_are_an_error(call: Call, small: Small, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("query,document\nq,nobody\n")
    result = call("audit", str(tmp_path / "log.csv"), *small.options, "--to", str(tmp_path / "a.html"))
    assert result.exit_code == 4
    assert "none of the 1 documents" in result.stderr
    assert not (tmp_path / "a.html").exists()


def test_a_log_needs_a_collection_and_a_file(call: Call, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("query,document\nq,d\n")
    assert call("audit", "log.csv").exit_code == 2
    missing = call("audit", "absent.csv")
    assert missing.exit_code == 4
    assert "absent.csv" in missing.stderr
