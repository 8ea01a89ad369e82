"""`fairagent avoid`: libraries by a model's diagnosis."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from fairagent.guests.testing import LoopbackServer, ServerReply, completion
from fairagent.papers.debias_rag.avoid import AvoidPassage, read_avoid, write_avoid

from .conftest import Call


def says(request: dict[str, Any]) -> ServerReply:
    """Whatever speaks of all nurses is biased against a gender."""
    told = request["messages"][-1]["content"]
    found = re.findall(r'"id": "(\w+)".*?"text": "(.*?)"', told, flags=re.DOTALL)
    diagnoses = [{"id": id, "biased": "All" in text, "kind": "gender" if "All" in text else ""} for id, text in found]
    return completion(json.dumps({"diagnoses": diagnoses}))


def test_diagnose(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, out = tmp_path / "passages.jsonl", tmp_path / "avoid.jsonl"
    write_avoid(data, [AvoidPassage("a", "All nurses are women."), AvoidPassage("b", "A nurse works in a hospital.")])
    arguments = ("avoid", "diagnose", "--data", str(data), "--out", str(out), "--set", "model.name=tiny")
    with LoopbackServer(says) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        done = call(*arguments)
        assert done.exit_code == 0, done.output
        assert read_avoid(out) == (AvoidPassage("a", "All nurses are women.", "gender"),)
        assert "1 of 2 passages, in 1 calls" in done.stdout
        write_avoid(data, [AvoidPassage("b", "A nurse works in a hospital.")])
        none = call(*arguments)
    assert none.exit_code == 2
    assert "none of 1 passages biased" in none.output
    assert len(read_avoid(out)) == 1
