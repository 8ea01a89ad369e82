"""`fairagent evaluate --check-only`: what runs here, what the rest lacks, what it costs; nothing is made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Call, Small

EXPERIMENT = """\
name: some lack
about: A try.
collection: {collection}
measures: [nDCG@10]
settings: {{index: '{index}', target: estimated}}
systems:
  BM25: {{profile: engine}}
  asks: {{profile: fair-qr, model: {{name: gpt-x}}}}
  asks too: {{profile: fair-qr, model: {{name: gpt-x}}, iterations: 2}}
  sees: {{profile: engine, engine: {{kind: dense, encoder: nowhere/no-such-model}}}}
prices: {{gpt-x: {{input: 1.5, output: 10}}}}
"""
KEY = "no key for the language model at api.openai.com: set OPENAI_API_KEY"
WEIGHTS = "no embedding model 'nowhere/no-such-model' on this machine"


@pytest.fixture
def file(small: Small, no_variables: None) -> Path:
    path = Path("try.yaml")
    path.write_text(EXPERIMENT.format(collection=small.file, index=small.index), encoding="utf-8")
    return path


def lacks_of(text: str) -> dict[str, str]:
    """System -> what the table says of it."""
    table = text.partition("lacks\n")[2].partition("\n\n")[0]
    return {line[:8].strip(): line[8:].strip() for line in table.splitlines()}


def test_what_each_system_lacks(call: Call, file: Path) -> None:
    pytest.importorskip("sentence_transformers")
    before = sorted(Path().rglob("*"))
    result = call("evaluate", str(file), "--check-only")
    assert result.exit_code == 3
    assert result.stderr == ""
    assert "some lack\nA try.\n" in result.stdout
    assert "1 of 4 systems can run here; nothing was run" in result.stdout
    found = lacks_of(result.stdout)
    assert found["BM25"] == "nothing"
    assert found["asks"] == found["asks too"] != found["sees"]
    for system, said in (("asks", KEY), ("sees", WEIGHTS)):
        assert f"\n{found[system]} {said}" in result.stdout
    # Said once, whoever lacks it.
    assert result.stdout.count(KEY) == result.stdout.count(WEIGHTS) == 1
    assert "what language models would be called:" in result.stdout
    assert "Corrections of invalid replies" in result.stdout
    assert sorted(Path().rglob("*")) == before


def test_json_and_the_cost(call: Call, file: Path) -> None:
    pytest.importorskip("sentence_transformers")
    result = call("evaluate", str(file), "--check-only", "--json")
    record = json.loads(result.stdout)
    assert result.exit_code == 3
    assert [one["ready"] for one in record["systems"]] == [True, False, False, False]
    assert record["systems"][1]["lacks"] == record["systems"][2]["lacks"]
    assert [record["lacks"][number - 1][: len(WEIGHTS)] for number in record["systems"][3]["lacks"]] == [WEIGHTS]
    # Two topics, five iterations and two.
    assert [row["calls"] for row in record["costs"]] == [0, 10, 4, 0]
    estimated = json.loads(call("estimate", str(only(file, "sees")), "--json").stdout)
    assert record["dollars"] == pytest.approx(estimated["dollars"])
    assert record["dollars"] > 0


def only(file: Path, without: str) -> Path:
    """The file without a system."""
    kept = [line for line in file.read_text(encoding="utf-8").splitlines() if not line.startswith(f"  {without}:")]
    file.write_text("\n".join(kept) + "\n", encoding="utf-8")
    return file


def test_a_wrong_setting_is_its_systems_own(call: Call, file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("iterations: 2", "iteration: 2"), encoding="utf-8")
    result = call("evaluate", str(file), "--check-only")
    assert result.exit_code == 2
    found = lacks_of(result.stdout)
    assert found["BM25"] == "nothing"
    assert "iteration: unknown key" in result.stdout
    assert found["asks too"] not in ("nothing", found["asks"])


def test_shared_settings_that_a_profile_overrides_are_shown(call: Call, file: Path) -> None:
    text = only(only(only(file, "sees"), "asks"), "asks too").read_text(encoding="utf-8").partition("prices:")[0]
    shared = "target: estimated, iterations: 2, filter: none, context: {documents: 9, tokens: 900}"
    text = text.replace("target: estimated", shared)
    text += "  filtered: {profile: fair-filter, target: estimated}\n"
    text += "  own: {profile: fair-filter, filter: none, context: {documents: 7}}\n"
    file.write_text(text, encoding="utf-8")
    result = call("evaluate", str(file), "--check-only")
    said = result.stdout.partition("shared settings that a system's profile overrides:\n\n")[2].splitlines()
    # `own` says both itself, and BM25's profile sets what the shared settings say.
    assert said[:2] == ["filtered: filter: fair, not none; context.documents: 3, not 9", ""]
    record = json.loads(call("evaluate", str(file), "--check-only", "--json").stdout)
    assert record["overridden"] == {"filtered": ["filter: fair, not none", "context.documents: 3, not 9"]}
