"""What the studio serves is counted in an account, and audited by it or by its replies."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from studio_server import desk_of, running
from typer.testing import CliRunner

from fairagent.cli import app
from fairagent.search.account import Account

SEARCHES = 12


def audit(*arguments: str) -> str:
    found = CliRunner().invoke(app, ["audit", *arguments])
    assert found.exit_code == 0, found.output
    return " ".join(found.stdout.split())


def test_what_is_served_is_counted_and_audited(folder: Path, tmp_path: Path) -> None:
    account, replies = tmp_path / "account.sqlite", tmp_path / "replies.jsonl"
    paying = {"kind": "amortized", "file": str(account), "due": "target", "tolerance": 0.6}
    with running(desk_of(folder, cache="", rerank=paying, loop="none", n=4)) as studio, studio.client() as client:
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

    assert re.search(f"{SEARCHES} requests.*female", audit(str(account)))
    collection = ("--collection", str(folder / "collection.yaml"), "--index", str(folder / "index"))
    assert f"{SEARCHES} requests" in audit(str(replies), *collection)
