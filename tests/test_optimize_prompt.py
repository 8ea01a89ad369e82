"""examples/optimize_prompt.py runs as it is, and finds the wording that brings the groups' words."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from fairagent.guests.testing import LoopbackServer

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "optimize_prompt.py"
GOOD = "Name pronouns."


def scripted(request: dict[str, Any]) -> str:
    """A model that adds the good words when it rewords, and whose keywords are good with them alone."""
    *first, last = (message["content"] for message in request["messages"])
    if not first:
        return f"```\n{last.split('```')[1].strip().replace('[user]', f'{GOOD}{chr(10)}[user]', 1)}\n```"
    words = ["Japan", "India", "China"] if '"Asia"' in last else ["she", "her"]
    return json.dumps({"keywords": words if GOOD in first[0] else ["guild"]})


@pytest.mark.slow
def test_a_better_wording_is_found_and_told_apart_on_other_topics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("gepa")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOPICS", "40")
    monkeypatch.setenv("SEARCHES", "25")
    monkeypatch.setenv("OPENAI_API_KEY", "made-up")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with LoopbackServer(scripted) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        runpy.run_path(str(EXAMPLE), run_name="__main__")
    said = capsys.readouterr().out
    assert f"\n+{GOOD}\n" in said
    before, after = (float(line.split(": ")[1].split()[0]) for line in said.splitlines()[-2:])
    assert after > before
    asked = [request["messages"][-1]["content"] for request in server.requests if len(request["messages"]) == 1]
    assert "before, " in asked[0]
    assert "keywords for " in asked[0]
