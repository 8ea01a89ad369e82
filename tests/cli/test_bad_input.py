"""Whatever a user can get wrong: one message that says what, where and what to do, and the exit code of its kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Call, Small, write_collection

SEARCH = [
    (["--set", "rerankin.kind=fused"], 2, "rerankin: unknown key; did you mean 'rerank'?"),
    (
        ["--set", "rerank.farness=1"],
        2,
        "rerank.parts[1].farness: unknown key of re-ranker 'exposure'; did you mean 'fairness'?",
    ),
    (["--set", "rerank.kind=fusd"], 2, "rerank: no re-ranker of kind 'fusd'; did you mean 'fused'?"),
    (["--set", "engine=dens"], 2, "engine: no engine of kind 'dens'; did you mean 'dense'?"),
    (["--set", "rerank=[mmr, {kind: exposur}]"], 2, "rerank.parts[1]: no re-ranker of kind 'exposur'; did you mean"),
    (
        ["--set", "rerank={kind: fa-star-ir, group: {gender: femal}}"],
        2,
        "did you mean 'female'?",
    ),
    (["--set", "n=[1"], 2, "not valid YAML"),
    (["--set", "n=0", "--set", "depth=-1"], 2, "2 errors"),
    (["--dimension", "gendr"], 2, "no dimension 'gendr'; did you mean 'gender'?"),
    (["--set", "target=populaton"], 2, "target: no target of kind 'populaton'; did you mean 'population'?"),
    (["--set", "target={gender: {female: 0.5, male: 0.4}, era: corpus}"], 4, "add up to 0.9, expected 1"),
    (["--target", "uniformly"], 2, "no target of kind 'uniformly'"),
    (["--set", "analyzer=german"], 4, "fairagent index --force"),
    (["--settings", "nowhere.yaml"], 2, "nowhere.yaml: no such file"),
]


@pytest.mark.parametrize(("arguments", "code", "message"), SEARCH)
def test_search(call: Call, small: Small, arguments: list[str], code: int, message: str) -> None:
    result = call("search", "lawyer", *small.options, *arguments)
    assert result.exit_code == code
    assert message in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("name", ["search", "index"])
def test_no_collection(call: Call, name: str) -> None:
    arguments = ["lawyer"] if name == "search" else []
    result = call(name, *arguments)
    assert result.exit_code == 2
    assert "--collection FILE" in result.stderr
    assert "fairagent demo" in result.stderr
    result = call(name, *arguments, "-c", "nowhere.yaml")
    assert result.exit_code == 2
    assert "nowhere.yaml: no such file" in result.stderr


def test_no_index(call: Call, small: Small) -> None:
    result = call("search", "lawyer", "-c", str(small.file))
    assert result.exit_code == 3
    assert "indexes/small; build it with `fairagent index`" in result.stderr


def test_an_index_by_another_analyzer_is_refused_by_searches(call: Call, small: Small) -> None:
    result = call(
        "search", "lawyer", "-c", str(small.file), "--index", str(small.index), "--set", "analyzer=whitespace"
    )
    assert result.exit_code == 4
    assert "analyzer: index english, now whitespace" in result.stderr
    assert "--force" in result.stderr


def test_every_fault_of_the_collection_is_named_with_its_line(call: Call, tmp_path: Path) -> None:
    file = write_collection(tmp_path / "faulty")
    (file.parent / "qrels.tsv").write_text("T1 0 d00 1\nT1 0 d01\nT9 0 d02 yes\n", encoding="utf-8")
    (file.parent / "groups.tsv").write_text("id\tgender\tera\nd00\tmal\told\n", encoding="utf-8")
    result = call("index", "-c", str(file))
    assert result.exit_code == 4
    for place in ("qrels.tsv:2", "qrels.tsv:3", "groups.tsv:2"):
        assert place in result.stderr
    assert not Path("indexes").exists()


def test_a_folder_that_is_no_index_is_never_replaced(call: Call, small: Small, tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear.txt").write_text("Dear ...", encoding="utf-8")
    for force in ([], ["--force"]):
        result = call("index", "-c", str(small.file), "--index", "letters", *force)
        assert result.exit_code == 2
        assert "was not made by fairagent" in " ".join(result.stderr.split())
    assert (tmp_path / "letters" / "dear.txt").read_text(encoding="utf-8") == "Dear ..."
