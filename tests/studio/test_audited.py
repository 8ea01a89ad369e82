"""What the studio serves is counted in an account, and audited by it or by its replies, not by log lines."""

from __future__ import annotations

import json
import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from studio_server import desk_of, running
from typer.testing import CliRunner

from fairagent.cli import app
from fairagent.search.account import Account
from fairagent.storage.telemetry import JsonLines

SEARCHES = 12


def audit(*arguments: str) -> tuple[int, str]:
    found = CliRunner().invoke(app, ["audit", *arguments])
    return found.exit_code, " ".join((found.stdout if found.exit_code == 0 else found.stderr).split())


def test_what_is_served_is_counted_and_audited(folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    account, replies, lines = tmp_path / "account.sqlite", tmp_path / "replies.jsonl", tmp_path / "log.jsonl"
    paying = {
        "rerank": {"kind": "amortized", "file": str(account), "due": "target", "tolerance": 0.6},
        "loop": "none",
        "n": 4,
    }
    caplog.set_level(logging.INFO, "fairagent.studio.app")
    with running(desk_of(folder, cache="", **paying)) as studio, studio.client() as client:
        # Warming counts nobody.
        assert Account(account).requests == 0

        def searched(number: int) -> str:
            reply = client.post("/api/search", json={"query": "lawyer"})
            assert reply.status_code == 200, reply.text
            return json.dumps(reply.json())

        with ThreadPoolExecutor(3) as threads:
            replies.write_text("\n".join(threads.map(searched, range(SEARCHES))) + "\n", encoding="utf-8")
        client.post("/api/exposure", json={"query": "lawyer", "ids": ["d01"]})
    kept = Account(account)
    assert kept.requests == SEARCHES
    columns = [("gender", "female"), ("gender", "male")]
    received, due = kept.shares(columns)
    # The engine shows four men; half of the attention is due to women, and paid as far as the tolerance allows.
    assert received[0] > 0
    assert due == pytest.approx([0.5, 0.5])
    assert abs(received - due).max() < 0.1

    code, said = audit(str(account))
    assert code == 0, said
    assert f"{SEARCHES} requests" in said
    assert "female" in said
    collection = ("--collection", str(folder / "collection.yaml"), "--index", str(folder / "index"))
    code, said = audit(str(replies), *collection)
    assert code == 0, said
    assert f"{SEARCHES} requests" in said

    # A log line says that a request came, and nothing of what was asked or shown: there is nothing to audit in it.
    records = [one for one in caplog.records if one.name == "fairagent.studio.app"]
    assert len(records) >= SEARCHES
    lines.write_text("".join(JsonLines().format(one) + "\n" for one in records), encoding="utf-8")
    assert "lawyer" not in lines.read_text(encoding="utf-8")
    code, said = audit(str(lines), *collection)
    assert code == 4
    assert "log.jsonl:1" in said
    assert "query" in said
