from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from fairagent.cli.config import leaves
from fairagent.settings import Settings, load_settings
from fairagent.settings.tree import profiles

from .conftest import Call


def test_every_layer_is_named_where_it_wins(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("fairagent.yaml").write_text("n: 5\ndepth: 300\nrerank: {kind: fused}\n", encoding="utf-8")
    monkeypatch.setenv("FAIRAGENT_DEPTH", "200")
    monkeypatch.setenv("FAIRAGENT_ITERATIONS", "3")
    result = call.well("config", "--set", "iterations=2")
    expected = {"n: 5  # fairagent.yaml", "depth: 200  # FAIRAGENT_DEPTH", "iterations: 2  # --set", "divergence: js"}
    assert {*expected, "  kind: fused  # fairagent.yaml"} <= set(result.stdout.splitlines())
    assert yaml.safe_load(result.stdout)["rerank"]["kind"] == "fused"


def test_defaults_are_all_there_and_described(call: Call, tmp_path: Path) -> None:
    Path("fairagent.yaml").write_text("n: 5\n", encoding="utf-8")
    printed = call("config", "--defaults").stdout
    file = tmp_path / "defaults.yaml"
    file.write_text(printed, encoding="utf-8")
    assert load_settings(file, environ={}) == Settings(profile="offline")
    lines = printed.splitlines()
    settings = [line for line in lines if not line.strip().startswith("#")]
    assert len(settings) == len(list(leaves(Settings()))) + len([line for line in settings if line.endswith(":")])
    for above, line in pairwise(lines):
        if not line.strip().startswith("#"):
            assert above.strip().startswith("# "), line
            assert len(above.strip()) > 5


def test_passwords_in_addresses_are_not_shown(call: Call) -> None:
    address = "model.base_url=https://me:canary@models.example.org/v1"
    for more in ([], ["--json"]):
        printed = call("config", "--set", address, *more).stdout
        assert "canary" not in printed
        assert "models.example.org" in printed


def sources(call: Call, *arguments: str) -> dict[str, str]:
    found: dict[str, str] = call.record("config", *arguments)["sources"]
    return found


@pytest.mark.parametrize("name", profiles())
def test_what_is_printed_of_a_profile_is_the_profile(call: Call, tmp_path: Path, name: str) -> None:
    file = tmp_path / "again.yaml"
    for more in ([], ["--defaults"]):
        file.write_text(call("config", "--profile", name, *more).stdout, encoding="utf-8")
        assert load_settings(file, environ={}) == load_settings(overrides={"profile": name}, environ={})
    assert set(sources(call, "--profile", name).values()) == {"--profile", f"profile {name}"}


def test_a_chain_and_an_engine_in_an_engine_are_printed_and_read_again(call: Call, tmp_path: Path) -> None:
    chain = "rerank=[{kind: mmr, relevance: 0.3}, exposure]"
    chosen = ("--set", "engine={kind: rm3, engine: {kind: bm25, k1: 1.2}}", "--set", chain)
    found = sources(call, *chosen)
    assert (found["engine.engine.k1"], "engine.engine.b" in found) == ("--set", False)
    printed = call("config", *chosen).stdout
    assert "parts: [{kind: mmr, by: text, " in printed
    file = tmp_path / "again.yaml"
    file.write_text(printed, encoding="utf-8")
    again = load_settings(file, environ={})
    assert str(again.rerank) == "mmr, exposure"
    assert (again.rerank.parts[0].relevance, again.engine.engine.k1) == (0.3, 1.2)
