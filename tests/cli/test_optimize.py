"""`fairagent prompts optimize`: what it says before it asks, what it shows, and when it saves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from trades import GOOD, SETTINGS, improved, is_reflection, keywords, write_trades

from fairagent.guests.testing import LoopbackServer
from fairagent.llm.prompts import Prompts
from fairagent.search.pipeline import build_index, resolve

from .conftest import Call

pytest.importorskip("gepa")

SET = [part for name, value in SETTINGS.items() for part in ("--set", f"{name}={json.dumps(value)}")]
RUN = ["prompts", "optimize", "refine_query", "--candidates", "1", "--run", "run"]


@pytest.fixture(scope="module")
def trades(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = write_trades(tmp_path_factory.mktemp("trades"))
    build_index(file, settings=resolve(None, SETTINGS))
    return file


@pytest.fixture
def server(call: Call, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    def script(request: dict[str, Any]) -> str:
        return improved(request) if is_reflection(request) else keywords(request)

    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with LoopbackServer(script) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


def options(trades: Path) -> list[str]:
    return ["--collection", str(trades), *SET]


def test_it_says_what_it_will_ask_and_asks_nobody_who_has_not_agreed(call: Call, trades: Path, server: LoopbackServer):
    result = call(*RUN, "--check-only", *options(trades))
    assert result.exit_code == 0, result.stderr
    assert "refine_query: at most 1 wording, scored by nDCG@6*AWRF(unknown=ignore)@6 on 4 topics" in result.stdout
    # Five calls a search: 2 x 4 topics to tune, 2 x 4 to test; and three for a wording with its corrections.
    assert "may ask tiny 83 times (price unknown)" in result.stderr
    found = json.loads(call(*RUN, "--check-only", "--json", *options(trades)).stdout)
    assert (len(found["tune"]), len(found["test"])) == (4, 4)
    assert sum(one["calls"] for one in found["models"]) == 83
    result = call(*RUN, *options(trades))
    assert result.exit_code == 2
    assert "nothing was asked; --yes asks without a question" in result.stderr
    assert server.requests == []
    assert not Path("run").exists()


def test_the_winner_is_shown_and_saved_when_that_is_wanted(call: Call, trades: Path, server: LoopbackServer):
    result = call(*RUN, "--yes", *options(trades))
    assert result.exit_code == 0, result.stderr
    assert f"\n+{GOOD}\n" in result.stdout
    assert "other half, nDCG@6*AWRF(unknown=ignore)@6: 0.8528 -> 0.9994" in result.stdout
    assert "randomization test p = 0.125; 4 better, 0 the same, 0 worse" in result.stdout
    assert "so much may be chance" in result.stdout
    assert "Not saved" in result.stdout
    assert not Path("my-prompts").exists()
    calls = len(server.requests)
    result = call(*RUN, "--yes", "--save", "--json", *options(trades))
    assert len(server.requests) == calls
    found = json.loads(result.stdout)
    assert found["saved"] == str(Path("my-prompts/refine_query.j2"))
    assert found["better"]
    saved = Prompts("my-prompts")["refine_query"]
    assert saved.head.version == Prompts()["refine_query"].head.version + 1
    assert saved.path.read_text(encoding="utf-8") == found["winner"]
    assert call("prompts", "check", "--prompts", "my-prompts").exit_code == 0
    # What is there is not what was optimized: nothing is overwritten.
    result = call(*RUN, "--yes", "--save", *options(trades))
    assert result.exit_code == 2
    assert "is there and is not what is optimized" in result.stderr


def test_no_better_wording_is_said_and_saves_nothing(call: Call, trades: Path, monkeypatch: pytest.MonkeyPatch):
    def script(request: dict[str, Any]) -> str:
        return improved(request).replace(GOOD, "Be kind.") if is_reflection(request) else keywords(request)

    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with LoopbackServer(script) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        result = call(*RUN, "--yes", "--save", *options(trades))
    assert result.exit_code == 0, result.stderr
    assert "No wording is better than the start, which scores 0.8528 on the tuning half. Nothing is saved." in " ".join(
        result.stdout.split()
    )
    assert not Path("my-prompts").exists()


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        (["--set", "model.name="], "asks a language model: name one", 2),
        (["--set", "budget.calls=0"], "budget.calls is 0", 2),
        (["--limit-topics", "3"], "and 4 are needed", 2),
        (["--candidates", "0"], "--candidates", 2),
        (["--collection", "nowhere.yaml"], "nowhere.yaml", 2),
    ],
    ids=["no model", "no budget", "three topics", "no candidate", "no collection"],
)
def test_bad_input_is_said_before_anything_is_asked(
    call: Call, trades: Path, server: LoopbackServer, arguments: list[str], words: str, code: int
):
    result = call(*RUN, "--yes", *options(trades), *arguments)
    assert result.exit_code == code, result.stderr
    assert words in result.stderr
    assert server.requests == []
    assert not Path("run").exists()


def test_a_template_that_no_search_asks_with(call: Call, trades: Path, server: LoopbackServer):
    result = call("prompts", "optimize", "attribute", "--yes", *options(trades))
    assert result.exit_code == 2
    assert "no part of a search asks with attribute" in result.stderr
    result = call("prompts", "optimize", "atribute", "--yes", *options(trades))
    assert "did you mean 'attribute'?" in result.stderr
