from __future__ import annotations

import re
from pathlib import Path

import pytest

from fairagent.evaluate.judging import FUSED, SYSTEMS
from fairagent.types.change import SHOWN_CHANGE

from .conftest import Call


@pytest.mark.slow
def test_a_small_demo_from_nothing_and_again(call: Call) -> None:
    result = call.well("demo", "--people", "60", "--folder", "here")
    text = result.stdout
    lines = [line.strip() for line in text.splitlines()]
    assert any(line.startswith("FAIR-QR =") for line in lines)
    assert "1. query" in text
    assert not re.search(r"\bnan\b", text)
    assert re.search(r"^ +\[1\] .* yes *$", text, re.M)
    for command in ("search", "answer"):
        (proposed,) = re.findall(rf"^fairagent ({command} -c here/collection.yaml --index here/index .+)$", text, re.M)
        call.well(*proposed.split())
    built = Path("here/index/fairagent.json").stat().st_ino
    again = call.record("demo", "--people", "60", "--folder", "here")
    assert Path("here/index/fairagent.json").stat().st_ino == built
    assert Path("here/run/report.html").is_file()
    # Without vectors there is no row of vector search.
    assert again["systems"] == [name for name in SYSTEMS if name != FUSED]
    assert {(one["system"], one["other"]) for one in again["equal"]} >= {("FAIR-QR", "BM25")}
    # The agent's own row first, and who is better at what, as the numbers have it.
    head = " ".join(text.partition("\ndemo\n")[0].split())
    assert head.startswith("Means over the topics, agent instead of BM25 gender ")
    best = {name for names in re.findall(r" is best in ([^:.]+)[:.]", head) for name in names.split(", ")}
    for name, measure, dimension in (("nDCG", "nDCG", ""), ("AWRF of gender", "AWRF", "gender")):
        rows = [one for one in again["comparisons"] if one["dimension"] == dimension]
        means = {one["system"]: one["mean"] for one in rows if re.fullmatch(rf"{measure}[^*]*", one["measure"])}
        assert (max(means.values()) - means["agent"] > SHOWN_CHANGE) == (name in best)
    assert "AWRF of region" in best
    for dimension in ("gender", "region"):
        rows = [one for one in again["exposures"] if one["dimension"] == dimension and one["target"] is not None]
        assert 0 < sum(one["exposure"] for one in rows) / len(again["systems"]) <= 1 + 1e-9
    # It is an experiment like any other.
    call.well("evaluate", "here/experiment.yaml", "--run", "here/run")
    uniform = call.record("demo", "--people", "60", "--folder", "here", "--target", "uniform")
    targets = [one["target"] for one in uniform["exposures"] if one["group"] in ("female", "male")]
    assert targets == pytest.approx([1 / 3] * len(targets))


def test_a_folder_with_something_else_in_it_is_left_alone(call: Call) -> None:
    Path("mine").mkdir()
    Path("mine/note.txt").write_text("mine", encoding="utf-8")
    assert "mine" in call.refused(2, "demo", "--folder", "mine", "--people", "50")
    assert [path.name for path in Path("mine").iterdir()] == ["note.txt"]
