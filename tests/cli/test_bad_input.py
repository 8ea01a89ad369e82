"""Whatever a user can get wrong: one message that says what, where and what to do, and the exit code of its kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import COLLECTION, Call, Small, write_collection

SEARCH = [
    (["--set", "rerankin.kind=fused"], 2, "rerankin: unknown key; did you mean 'rerank'?"),
    (
        ["--set", "rerank.farness=1"],
        2,
        "rerank.parts[1].farness: unknown key of re-ranker 'exposure'; did you mean 'fairness'?",
    ),
    (["--set", "rerank.kind=fusd"], 2, "rerank: no re-ranker of kind 'fusd'; did you mean 'fused'?"),
    (["--set", "rerank.batch=1"], 2, "rerank.parts[1].batch: unknown key of re-ranker 'exposure'"),
    (
        ["--set", "rerank=mmr", "--set", "rerank.alpha=1"],
        2,
        "rerank.alpha: unknown key of re-ranker 'mmr'; plackett-luce, ",
    ),
    (["--set", "refine.kind=lmm"], 2, "refine: no refiner of kind 'lmm'; did you mean 'llm'?"),
    (["--set", "refine={kind: llm, documents: 3}"], 2, "refine.documents: unknown key of refiner 'llm'; feedback, "),
    (["--set", "filter=fiar"], 2, "filter: no filter of kind 'fiar'; did you mean 'fair'?"),
    (["--set", "engine=dens"], 2, "engine: no engine of kind 'dens'; did you mean 'dense'?"),
    (["--set", "engine=okapi"], 2, "a collection is searched with bm25"),
    (["--set", "rerank=[mmr, {kind: exposur}]"], 2, "rerank.parts[1]: no re-ranker of kind 'exposur'; did you mean"),
    (["--set", "rerank=[{kind: mmr, fairness: 1}]"], 2, "rerank.parts[0].fairness: unknown key of re-ranker 'mmr'"),
    (["--set", "rerank.kind=[mmr]"], 2, "rerank: `kind` is a name; there are: original, "),
    (["--set", "rerank=3"], 2, "rerank: expected a kind of re-ranker"),
    (["--set", "rerank={kind: fa-star-ir, group: {gender: femal}}"], 2, "group: 'femal' is no group of 'gender'"),
    (["--set", "profile=fair-q"], 2, "no profile 'fair-q'; did you mean 'fair-qr'?"),
    (["--set", "profile=xyzzy"], 2, "no profile 'xyzzy'; there are: agent, debias-rag, engine, "),
    (["--set", "debias.library=x"], 2, "debias.library: unknown key of debiasing 'none'; debias-rag, "),
    (["--set", "depth"], 2, "--set depth: expected KEY=VALUE"),
    (["--set", "=3"], 2, "expected KEY=VALUE"),
    (["--set", "n=[1"], 2, "not valid YAML"),
    (["--set", "n=0", "--set", "depth=-1"], 2, "2 errors"),
    (["--n", "0"], 2, "greater than or equal to 1"),
    (["--n", "few"], 2, "--n"),
    (["--dimension", "gendr"], 2, "no dimension 'gendr'; there are: gender, era"),
    (["--set", "target=populaton"], 2, "target: no target of kind 'populaton'; did you mean 'population'?"),
    (["--set", "target=population"], 4, "no population for 'era'"),
    (["--set", "target={gender: {female: 0.5, male: 0.4}, era: corpus}"], 4, "add up to 0.9, expected 1"),
    (["--set", "target={gender: {female: 0.5, nonbinary: 0.5}, era: corpus}"], 4, "nonbinary is no group"),
    (["--target", "uniformly"], 2, "no target of kind 'uniformly'"),
    (["--set", "discount=log3"], 2, "log3"),
    (["--set", "analyzer=german"], 4, "fairagent index --force"),
    (["--settings", "nowhere.yaml"], 2, "nowhere.yaml: no such file"),
    (["--topic", "T11"], 2, "no topic 'T11' in collection 'small'; did you mean 'T1'?"),
]


@pytest.mark.parametrize(("arguments", "code", "message"), SEARCH)
def test_search(call: Call, small: Small, arguments: list[str], code: int, message: str) -> None:
    result = call("search", "lawyer", *small.options, *arguments)
    assert result.exit_code == code
    assert message in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "nothing to search for: give a query, or --topic ID"),
        (["  "], 2, "the query is empty"),
        (["law\udcffyer"], 4, "not valid Unicode"),
    ],
)
def test_queries(call: Call, small: Small, arguments: list[str], code: int, message: str) -> None:
    result = call("search", *arguments, *small.options)
    assert result.exit_code == code
    assert message in result.stderr


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


def test_a_changed_collection_is_refused_by_searches(call: Call, small: Small, tmp_path: Path) -> None:
    file = write_collection(tmp_path / "changed")
    with (file.parent / "docs.jsonl").open("a", encoding="utf-8") as pages:
        pages.write('{"id": "new", "title": "New", "text": "a lawyer"}\n')
    result = call("search", "lawyer", "-c", str(file), "--index", str(small.index))
    assert result.exit_code == 4
    assert "fingerprint" in result.stderr
    assert "`fairagent index` brings it up to date" in result.stderr
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


def test_a_collection_without_groups(call: Call, tmp_path: Path) -> None:
    file = write_collection(tmp_path / "plain")
    file.write_text(COLLECTION[: COLLECTION.index("groups:")], encoding="utf-8")
    assert call("index", "-c", str(file), "--index", "index").exit_code == 0
    result = call("search", "lawyer", "-c", str(file), "--index", "index")
    assert result.exit_code == 2
    assert "the loop looks at groups, and collection 'small' has none" in result.stderr
    assert "`profile: engine` searches without" in result.stderr
    for rerank, message in (
        ("exposure", "rerank: exposure looks at groups, and collection 'small' has none"),
        ("fa-star-ir", "rerank: fa-star-ir looks at groups, and collection 'small' has none"),
        ("[mmr, {kind: mmr, by: groups}]", "rerank: mmr, mmr looks at groups, and collection 'small' has none"),
    ):
        chosen = ["--set", "profile=engine", "--set", f"rerank={rerank}"]
        for command in ("search", "answer"):
            result = call(command, "lawyer", "-c", str(file), "--index", "index", *chosen)
            assert (result.exit_code, result.stdout) == (2, "")
            assert message in result.stderr
            assert result.stderr.count("fairagent:") == 1


def test_a_folder_that_is_no_index_is_never_replaced(call: Call, small: Small, tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear.txt").write_text("Dear ...", encoding="utf-8")
    for force in ([], ["--force"]):
        result = call("index", "-c", str(small.file), "--index", "letters", *force)
        assert result.exit_code == 2
        assert "was not made by fairagent" in " ".join(result.stderr.split())
    assert (tmp_path / "letters" / "dear.txt").read_text(encoding="utf-8") == "Dear ..."


def test_no_key_for_a_model(call: Call, small: Small) -> None:
    result = call("search", "lawyer", *small.options, "--set", "loop=fair-qr", "--set", "refine=llm")
    assert result.exit_code == 3
    assert "OPENAI_API_KEY" in result.stderr
    assert "`profile: offline` works without a model" in result.stderr
