from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny_models import save_masked

from .conftest import Call, documents, write_collection


def test_builds_then_leaves_alone_then_replaces(call: Call, tmp_path: Path) -> None:
    file = write_collection(tmp_path / "small")
    result = call.well("index", "-c", str(file))
    assert result.stderr == ""
    assert result.stdout.startswith("Built indexes/small in ")
    assert "30 documents of small, analyzer english" in result.stdout
    manifest = tmp_path / "indexes" / "small" / "fairagent.json"
    built = manifest.stat().st_ino

    result = call.well("index", "-c", str(file))
    assert result.stdout.startswith("indexes/small is up to date: 30 documents")
    assert manifest.stat().st_ino == built

    result = call.well("index", "-c", str(file), "--set", "analyzer=english-nostem", "--force")
    assert "analyzer english-nostem" in result.stdout
    assert json.loads(manifest.read_text(encoding="utf-8"))["analyzer"] == "english-nostem"


def add_a_page(file: Path) -> None:
    """One document more, one changed, one less."""
    pages = (file.parent / "docs.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    pages[3] = pages[3].replace("he won", "he lost at the court")
    pages[7] = '{"id": "new", "title": "New", "text": "a lawyer"}\n'
    (file.parent / "docs.jsonl").write_text("".join(pages), encoding="utf-8")


def test_an_index_is_made_anew_with_all_in_it(call: Call, tmp_path: Path) -> None:
    """With the default loop: BM25 with terms, embeddings, their graph."""
    file = write_collection(tmp_path / "small")
    options = ("-c", str(file), "--set", "engine=fused")
    call.well("index", *options)
    add_a_page(file)
    earlier = call.record("search", "lawyer", *options)
    assert "`fairagent index` brings the index up to date" in earlier["notes"][0]
    result = call.well("index", *options)
    first, *more = result.stdout.splitlines()
    assert first.startswith("Built indexes/small in ")
    assert more == ["built besides: light vectors of small, neighbors in small"]
    again = call("index", *options).stdout
    assert again.startswith("indexes/small is up to date: 30 documents")
    assert "besides" not in again
    # As if it had been built of these documents in the first place.
    call.well("index", *options, "--index", "anew")
    for query in ("lawyer", "roses", "court", "a lawyer who won before judges"):
        found, expected = (
            call.record("search", query, *options, "--index", index) for index in ("indexes/small", "anew")
        )
        # With every step of the loop: exposure, gap, keywords added and dropped.
        assert found.pop("seconds")
        assert expected.pop("seconds")
        assert found == expected


@pytest.mark.slow
def test_an_ann_index_and_splade_weights_are_made_anew(call: Call, tmp_path: Path) -> None:
    file = write_collection(tmp_path / "small")
    words = {word for page in documents() for word in page["text"].lower().replace(",", "").split()}
    save_masked(tmp_path / "model", sorted(words))
    ann = "engine={kind: dense, encoder: minilm, ann: always}"
    splade = f"engine={{kind: splade, model: {tmp_path / 'model'}}}"
    for engine in (ann, splade):
        call.well("index", "-c", str(file), "--set", engine)
    add_a_page(file)
    first = call("index", "-c", str(file), "--set", ann).stdout
    assert "built besides: embedding small, ANN index of small" in first
    # What was there besides is named, and made again by whoever needs it.
    assert "do not need it: splade-" in first
    second = call("index", "-c", str(file), "--set", splade).stdout
    # The index itself is as it is wanted by now.
    assert second.startswith("indexes/small is up to date: 30 documents")
    assert "built besides: weighing small" in second
    for engine in (ann, splade):
        plain = ("-c", str(file), "--set", "profile=engine", "--set", engine, "--set", "n=30", "--index")
        call.well("index", *plain, "anew")
        found, expected = (
            {hit["id"]: hit["score"] for hit in call.record("search", "lawyer", *plain, index)["hits"]}
            for index in ("indexes/small", "anew")
        )
        # Models round differently in another batch.
        assert found == pytest.approx(expected, rel=2e-3)
        assert ("new" in found, "d07" in found) == (True, False)


def test_the_report_of_an_ann_index_is_printed_and_shown_by_doctor(call: Call, tmp_path: Path) -> None:
    pytest.importorskip("faiss")
    file = write_collection(tmp_path / "small")
    ann = ("-c", str(file), "--set", "engine={kind: dense, encoder: minilm, ann: always}")
    result = call.well("index", *ann, "--device", "cpu")
    assert "built besides: embedding small, ANN index of small" in result.stdout
    said = "recall@500 1.000 of exact search (32 queries)"
    assert f"ANN index of minilm: {said}" in result.stdout
    (found,) = call.record("index", *ann)["ann"]
    assert (found["documents"], found["recall"]) == (30, 1.0)
    checks = {check["name"]: check for check in call.record("doctor", *ann)["checks"]}
    assert (checks["ANN index"]["status"], said in checks["ANN index"]["detail"]) == ("ok", True)
    call.well("search", "lawyer", *ann)
    # Of other embeddings it is a problem.
    (manifest,) = Path("indexes").glob("small/*-ann/fairagent-ann.json")
    manifest.write_text(manifest.read_text(encoding="utf-8").replace('"vectors": "', '"vectors": "0'), encoding="utf-8")
    checks = {check["name"]: check for check in json.loads(call("doctor", "--json", *ann).stdout)["checks"]}
    assert checks["ANN index"]["status"] == "problem"
    assert "was not made from the embeddings at" in checks["ANN index"]["detail"]
    assert "ANN index" not in {check["name"] for check in call.record("doctor", "-c", str(file))["checks"]}
