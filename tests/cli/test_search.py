from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest

from .conftest import FAIR_QR, Call, Small


def record(call: Call, *arguments: str) -> Any:
    result = call("search", *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    assert result.stdout.isascii()

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(result.stdout, parse_constant=refuse)


def test_the_ranking_the_bars_and_the_story(call: Call, small: Small) -> None:
    result = call("search", "lawyer", "--n", "6", "--dimension", "gender", *FAIR_QR, *small.options)
    assert result.exit_code == 0
    table, _, rest = result.stdout.partition("exposure ")
    verdict, head = table.splitlines()[0], table.splitlines()[2]
    assert re.fullmatch("gender: female gets [0-9]+% of the attention instead of 0%; it should have [0-9]+%", verdict)
    assert head.split() == ["rank", "was", "title", "gender", "score"]
    assert len([line for line in table.splitlines() if "Page" in line]) == 6
    assert "female" in table
    bars, _, story = rest.partition("1. query")
    assert "100%" in bars
    assert "█" in bars
    assert "target: " in bars
    assert "lawyer (24 documents)" in story
    assert "stopped" in story
    assert "no model calls" in story
    assert "\x1b" not in result.stdout


def test_the_agent_shows_women_where_the_engine_shows_none(call: Call, small: Small) -> None:
    found = record(call, "lawyer", "--n", "6", "--dimension", "gender", *FAIR_QR, *small.options)
    before = {group["label"]: group for group in found["exposure"]["before"][0]["groups"]}
    after = {group["label"]: group for group in found["exposure"]["after"][0]["groups"]}
    assert before["female"]["share"] == 0
    assert after["female"]["share"] > 0
    assert found["gap"]["after"] < found["gap"]["before"]
    assert [hit["rank"] for hit in found["hits"]] == [1, 2, 3, 4, 5, 6]
    assert {"gender": {"female": 1.0}} in [hit["groups"] for hit in found["hits"]]
    assert found["steps"][0]["source"] == "query"
    assert found["collection"] == "small"
    assert found["oracle"] is False


def test_a_ranking_that_is_drawn(call: Call, small: Small) -> None:
    plain = record(call, "lawyer", *small.options)
    found = record(call, "lawyer", "--stochastic", "0", *small.options)
    assert plain["draw"] is None
    assert found["draw"] == {"alpha": 0.0, "pool": 24, "seed": 0, "request": 0}
    assert found["hits"] != plain["hits"]
    assert record(call, "lawyer", "--stochastic", "0", *small.options)["hits"] == found["hits"]
    other = record(call, "lawyer", "--stochastic", "0", "--set", "sampling.seed=1", *small.options)
    assert other["hits"] != found["hits"]
    story = call("search", "lawyer", "--stochastic", "0", *small.options).stdout
    assert "drawn" in story
    result = call("search", "lawyer", "--stochastic", "-1", *small.options)
    assert result.exit_code == 2
    assert "sampling.alpha" in result.stderr


@pytest.mark.parametrize("query", ["the of and", "弁護士", '"( AND * ~ ['])
def test_what_finds_nothing_says_so_and_is_no_error(call: Call, small: Small, query: str) -> None:
    result = call("search", query, *small.options)
    assert result.exit_code == 0
    assert result.stdout == "No hits: no word of the query occurs in the index.\n"
    found = record(call, query, *small.options)
    assert found["hits"] == []
    assert found["gap"] == dict.fromkeys(("before", "after"), pytest.approx(2 * math.log(2)))  # labels, and none


def test_settings_come_from_the_file_in_the_folder(call: Call, small: Small) -> None:
    from pathlib import Path

    Path("fairagent.yaml").write_text(f"collection: {small.file}\nindex: {small.index}\nn: 3\n", encoding="utf-8")
    assert len(record(call, "lawyer")["hits"]) == 3
    assert len(record(call, "lawyer", "--n", "4")["hits"]) == 4
    Path("other.yaml").write_text("n: 2\n", encoding="utf-8")
    assert len(record(call, "lawyer", "--settings", "other.yaml", *small.options)["hits"]) == 2
