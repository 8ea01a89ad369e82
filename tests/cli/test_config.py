from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from fairagent.cli.config import leaves
from fairagent.settings import Settings, load_settings

from .conftest import Call


def test_every_layer_is_named_where_it_wins(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("fairagent.yaml").write_text("n: 5\ndepth: 300\nreranking: {kind: fused}\n", encoding="utf-8")
    monkeypatch.setenv("FAIRAGENT_DEPTH", "200")
    monkeypatch.setenv("FAIRAGENT_ITERATIONS", "3")
    result = call("config", "--set", "iterations=2")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert "n: 5  # fairagent.yaml" in lines
    assert "depth: 200  # FAIRAGENT_DEPTH" in lines
    assert "iterations: 2  # --set" in lines
    assert "  kind: fused  # fairagent.yaml" in lines
    assert "divergence: kl" in lines
    assert yaml.safe_load(result.stdout)["reranking"]["kind"] == "fused"


def test_the_printed_settings_are_a_settings_file(call: Call, tmp_path: Path) -> None:
    shares = "target={gender: {female: 0.5, male: 0.5}}"
    printed = call("config", "--set", "collection=a # b.yaml", "--set", shares, "--set", "dimensions=[gender]").stdout
    file = tmp_path / "again.yaml"
    file.write_text(printed, encoding="utf-8")
    again = load_settings(file, environ={})
    assert again.collection == "a"  # YAML's own comment, as in a file
    assert again.target == {"gender": {"female": 0.5, "male": 0.5}}
    assert again.dimensions == ("gender",)


def test_defaults_are_all_there_and_described(call: Call, tmp_path: Path) -> None:
    Path("fairagent.yaml").write_text("n: 5\n", encoding="utf-8")
    printed = call("config", "--defaults").stdout
    file = tmp_path / "defaults.yaml"
    file.write_text(printed, encoding="utf-8")
    assert load_settings(file, environ={}) == Settings()
    lines = printed.splitlines()
    settings = [line for line in lines if not line.strip().startswith("#")]
    assert len(settings) == len(list(leaves(Settings()))) + len([line for line in settings if line.endswith(":")])
    for above, line in pairwise(lines):
        if not line.strip().startswith("#"):
            assert above.strip().startswith("# "), line
            assert len(above.strip()) > 5


def test_json(call: Call) -> None:
    found = json.loads(call("config", "--set", "reranking.kind=original", "--json").stdout)
    assert found["settings"]["reranking"]["kind"] == "original"
    assert found["sources"] == {"reranking.kind": "--set"}


def test_passwords_in_addresses_are_not_shown(call: Call) -> None:
    address = "model.base_url=https://me:canary@models.example.org/v1"
    for more in ([], ["--json"]):
        printed = call("config", "--set", address, *more).stdout
        assert "canary" not in printed
        assert "models.example.org" in printed
