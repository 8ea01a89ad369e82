"""Cases 66 to 71 and 77: damaged indexes, journals and caches are found; no ranking and no table changes silently.

Random damage, drawn by a seed: a few cases each in `make test`, as many as wanted with FAULT_TRIALS=150.
"""

from __future__ import annotations

import json
import logging
import random
import shutil
import sqlite3
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from evaluate import words
from guests.dense.test_splade import Words as SparseWords
from retrieve.conftest import MADE
from retrieve.test_dense import Words
from typer.testing import CliRunner

from fairagent.cli import app
from fairagent.errors import BackendUnavailable, DataError, FairAgentError, IndexMismatch
from fairagent.evaluate.results import results_table, results_text
from fairagent.evaluate.run import load_run
from fairagent.guests.dense.splade import SpladeRetriever, build_splade_index
from fairagent.llm.cache import ReplyCache
from fairagent.llm.request import ModelReply
from fairagent.retrieve.bm25.build import build_index
from fairagent.retrieve.bm25.search import BM25Retriever
from fairagent.retrieve.catalog import mapped
from fairagent.retrieve.dense import DenseRetriever, build_dense_index
from fairagent.retrieve.graph import Graph, build_graph
from fairagent.retrieve.light import LightEncoder, build_light
from fairagent.storage import digests
from fairagent.storage.digests import RECORD, differences, expect_whole, record_files
from fairagent.types import Query

from .damage import harm, trials

QUERIES = ("lawyer court", "harbor town", "ocean wave", "law she", "odd lawyer")


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every index that there is, of the same documents: BM25, light vectors, embeddings, a graph, SPLADE weights."""
    folder = tmp_path_factory.mktemp("indexes")
    build_index(MADE, folder / "index")
    build_light(BM25Retriever(folder / "index"), folder / "index/light")
    build_dense_index(MADE, folder / "index/dense", Words())
    build_splade_index(MADE, folder / "index/splade", SparseWords())
    build_graph(DenseRetriever(folder / "index/dense", Words()), folder / "index/graph")
    return folder


def answers(folder: Path) -> list[object]:
    """All that is ranked by, and told of, these indexes."""
    bm25 = BM25Retriever(folder / "index", MADE)
    light = DenseRetriever(folder / "index/light", LightEncoder.open(bm25, folder / "index/light"), MADE)
    dense = DenseRetriever(folder / "index/dense", Words(), MADE)
    splade = SpladeRetriever(folder / "index/splade", SparseWords(), MADE)
    expect_whole(folder / "index/graph", "the corpus graph", "make it again")
    graph = Graph(dense.ids, mapped(folder / "index/graph" / "neighbours.npy"))
    said: list[object] = []
    ids = [document.id for document in MADE.made]
    for text in QUERIES:
        for engine in (bm25, light, dense, splade):
            found = engine.search(Query(text), 20)
            said += [found.ids, found.scores.tolist(), engine.score(Query(text), ids[:30]).tolist()]
    postings = bm25.postings(ids)
    said += [getattr(postings, name).tolist() for name in ("row", "term", "count", "length", "document_share")]
    said += [bm25.words(postings.vocabulary), bm25.document_frequency("lawyer"), graph.neighbors(ids)]
    said += [bm25.document(id) for id in ids]
    return said


# Case 66


def test_66_a_damaged_index_is_refused(indexes: Path, tmp_path: Path) -> None:
    """0 tracebacks and 0 changed rankings, whatever happens to whichever file."""
    expected = answers(indexes)
    chance, tried = random.Random(69), Counter[str]()
    for number in range(trials(10)):
        copy = tmp_path / f"{number}"
        shutil.copytree(indexes, copy)
        how = harm(copy, chance)
        try:
            assert answers(copy) == expected, how
            tried["no difference"] += 1
        except (IndexMismatch, BackendUnavailable):
            tried["refused"] += 1
        shutil.rmtree(copy)
    # Only what stands for nothing may change without being noticed.
    assert tried["refused"] >= 0.8 * sum(tried.values())


# Case 67


ALL, INNER = slice(None), slice(1, -1)


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("index/rows.starts.npy", 5, 2**40),
        ("index/rows.numbers.npy", 5, -1),
        ("index/rows.counts.npy", 5, 0),
        ("index/columns.starts.npy", INNER, 3),
        ("index/columns.starts.npy", INNER, -7),
        ("index/columns.numbers.npy", ALL, -1),
        ("index/columns.counts.npy", ALL, 0),
        ("index/lengths.npy", 5, -7),
        ("index/terms.starts.npy", INNER, 2**40),
        ("index/terms.bytes.npy", ALL, 255),
        ("index/words.starts.npy", 5, 2**40),
        ("index/words.bytes.npy", ALL, 255),
        ("index/texts.starts.npy", 5, 2**40),
        ("index/texts.bytes.npy", 5, 255),
        ("index/light/light.terms.npy", ALL, -1),
        ("index/light/light.terms.npy", ALL, 7),
        ("index/light/light.table.npy", ALL, np.nan),
        ("index/light/vectors.npy", 3, np.nan),
        ("index/light/probe.npy", ALL, np.nan),
        ("index/ids.order.npy", 3, 0),
        ("index/dense/vectors.npy", 3, np.nan),
        ("index/splade/documents.npy", ALL, -1),
        ("index/splade/weights.npy", ALL, np.nan),
        ("index/splade/starts.npy", 3, 10_000_000),
        ("index/graph/neighbours.npy", 3, 10_000),
    ],
)
def test_67_what_cannot_be_is_found_when_it_is_used(
    indexes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, place: int | slice, value: float
) -> None:
    """In files as large as if a moment's look missed the damage."""
    monkeypatch.setattr(digests, "differences", lambda folder, whole: [])
    shutil.copytree(indexes, tmp_path / "copy")
    array = np.load(tmp_path / "copy" / name, mmap_mode="r+")
    array[place] = value
    array.flush()
    del array
    with pytest.raises(IndexMismatch):
        answers(tmp_path / "copy")


def test_67_of_a_large_file_a_sample_is_compared_at_once_and_every_byte_on_demand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digests, "WHOLE", 1000)
    monkeypatch.setattr(digests, "SAMPLE", 16)
    (tmp_path / "large").write_bytes(bytes(range(256)) * 40)
    record_files(tmp_path)
    assert differences(tmp_path, whole=False) == differences(tmp_path, whole=True) == []
    whole = (tmp_path / "large").read_bytes()
    seen = []
    for place in (*range(0, len(whole), 29), len(whole) - 1):
        (tmp_path / "large").write_bytes(whole[:place] + b"?" + whole[place + 1 :])
        if whole[place] != ord("?"):
            assert differences(tmp_path, whole=True)
            seen.append(bool(differences(tmp_path, whole=False)))
    # The first and the last bytes always, of the rest 14 places of 16 bytes.
    assert seen[0]
    assert seen[-1]
    assert 0.01 < np.mean(seen) < 0.04


# Case 68


def test_68_an_index_from_before_there_were_checksums_is_opened_with_a_note(
    indexes: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.copytree(indexes, tmp_path / "old")
    for record in (tmp_path / "old").rglob(RECORD):
        record.unlink()
    expected = answers(indexes)
    assert not caplog.records
    for _ in range(2):
        assert answers(tmp_path / "old") == expected
    notes = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert len(notes) == 5
    assert "wrote no checksums" in notes[0]
    assert "`fairagent index --force`" in notes[0]


# Case 69


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    words.run(words.write(folder), folder / "run", limit=5)
    return folder / "run"


def tables(folder: Path) -> tuple[bool, list[str]]:
    """Whether the run says that it is partial, and its tables."""
    run = load_run(folder)
    return run.partial, [results_text(run), results_table(run).csv()]


def test_69_a_damaged_journal_is_refused_or_shorter_and_says_so(run_folder: Path, tmp_path: Path) -> None:
    expected = tables(run_folder)
    assert expected[0] is False
    chance, tried = random.Random(72), Counter[str]()
    for number in range(trials(20)):
        copy = tmp_path / f"{number}"
        shutil.copytree(run_folder, copy)
        how = harm(copy, chance, ["journal.jsonl", "journal.jsonl", "run.json"])
        try:
            partial, found = tables(copy)
            tried["partial" if partial else "no difference"] += 1
            assert partial or (partial, found) == expected, how
        except FairAgentError:
            tried["refused"] += 1
        shutil.rmtree(copy)
    assert tried["refused"] >= 0.7 * sum(tried.values())


def test_69_a_changed_digit_is_named_with_its_line(run_folder: Path, tmp_path: Path) -> None:
    lines = (run_folder / "journal.jsonl").read_bytes().splitlines(keepends=True)
    shutil.copytree(run_folder, tmp_path / "run")
    values = json.loads(lines[6])["values"]["gender"]
    (name, value), *_ = [(name, value) for name, value in values.items() if value not in (0, 1)]
    digits = f'"{name}":{value!r}'.encode()
    changed = digits[:-1] + (b"1" if digits[-1:] != b"1" else b"2")
    assert digits in lines[6]
    broken = [*lines[:6], lines[6].replace(digits, changed), *lines[7:]]
    (tmp_path / "run" / "journal.jsonl").write_bytes(b"".join(broken))
    with pytest.raises(DataError, match=r"journal\.jsonl:7: .*checksum") as raised:
        load_run(tmp_path / "run")
    assert len(raised.value.faults) == 1


# Case 70


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_70_a_number_that_is_not_finite_is_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: float
) -> None:
    from fairagent.evaluate.experiment import TopicRunner

    outcome = TopicRunner.outcome

    def odd(self: TopicRunner, system: str, id: str) -> object:
        found = outcome(self, system, id)
        return replace(found, values={"": {"nDCG@20": value}}) if (system, id) == ("fair", "T03") else found

    monkeypatch.setattr(TopicRunner, "outcome", odd)
    run = words.run(words.write(tmp_path), tmp_path / "run", limit=3)
    assert run.excluded["T03"] == "fair failed: a number in its outcome is not finite"
    text = (tmp_path / "run" / "journal.jsonl").read_text(encoding="utf-8")
    assert "NaN" not in text
    assert "Infinity" not in text


# Case 71

REPLIES = {f"key {n:02}": ModelReply(f'{{"keywords": ["word {n}"]}}', 400, 30, "tiny") for n in range(60)}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cache") / "cache"
    cache = ReplyCache(folder)
    for key, reply in REPLIES.items():
        cache.put(key, reply)
    cache.close()
    with sqlite3.connect(folder / "cache.db") as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    return folder


def test_71_a_damaged_cache_tells_nothing_else_and_is_moved_aside(kept: Path, tmp_path: Path) -> None:
    """0 tracebacks and 0 changed replies; what is lost is asked for again, and kept."""
    chance, tried = random.Random(74), Counter[str]()
    for number in range(trials(25)):
        folder = tmp_path / f"{number}" / "cache"
        shutil.copytree(kept, folder)
        how = harm(folder, chance, ["cache.db"])
        cache = ReplyCache(folder)
        lost = 0
        for key, reply in REPLIES.items():
            found = cache.get(key)
            assert found in (None, replace(reply, cached=True)), how
            lost += found is None
            if found is None:
                cache.put(key, reply)
                assert cache.get(key) == replace(reply, cached=True), how
        cache.stats()
        cache.close()
        aside = list(folder.parent.glob("cache.bad-*"))
        assert len(aside) <= 1, how
        tried["moved aside" if aside else "rows lost" if lost else "no difference"] += 1
        shutil.rmtree(folder.parent)
    assert tried["moved aside"]


def test_71_and_196_a_reply_without_its_checksum_or_with_another_is_asked_for_again(tmp_path: Path) -> None:
    import dataclasses

    cache = ReplyCache(tmp_path / "cache")
    reply = REPLIES["key 07"]
    # Versions before there were checksums wrote such rows; so does whoever wants another reply to count.
    cache._rows.set("old", json.dumps(dataclasses.asdict(reply)))
    assert cache.get("old") is None
    cache.put("new", reply)
    assert cache.get("new") == replace(reply, cached=True)
    cache._rows.set("new", cache._rows.get("new").replace("word 7", "word 8"))
    assert cache.get("new") is None
    cache.put("new", reply)
    cache._rows.set("moved", cache._rows.get("new"))
    assert cache.get("moved") is None
    cache.close()


# Case 77


def verified(place: Path) -> tuple[int, dict[str, tuple[str, str]]]:
    """The exit code of `doctor --verify`, and what it says of each part."""
    result = CliRunner().invoke(app, ["doctor", "--verify", str(place), "--json"])
    checks = json.loads(result.stdout)["checks"] if result.stdout else []
    return result.exit_code, {check["name"]: (check["status"], check["detail"]) for check in checks}


def test_77_every_byte_of_an_index_and_of_all_beside_it_is_compared(indexes: Path, tmp_path: Path) -> None:
    shutil.copytree(indexes, tmp_path / "copy")
    code, found = verified(tmp_path / "copy" / "index")
    assert code == 0
    assert {name: status for name, (status, _) in found.items()} == dict.fromkeys(
        ("index", "dense", "graph", "light", "splade"), "ok"
    )
    vectors = tmp_path / "copy" / "index/dense" / "vectors.npy"
    whole = bytearray(vectors.read_bytes())
    whole[len(whole) // 2] ^= 1
    vectors.write_bytes(whole)
    code, found = verified(tmp_path / "copy" / "index")
    assert code == 3
    assert found["dense"] == ("problem", f"{vectors}: is not what was written")
    assert [name for name, (status, _) in found.items() if status == "problem"] == ["dense"]
    assert verified(tmp_path)[0] == 2


def test_77_every_line_of_a_run_and_every_table_is_compared(run_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(run_folder, folder)
    code, found = verified(folder)
    assert code == 0
    assert found["run"] == ("ok", f"{folder}: run.json and 15 lines of the journal as written")
    table = folder / "results.csv"
    before = table.read_text(encoding="utf-8")
    table.write_text(before.replace("0", "1", 1), encoding="utf-8")
    code, found = verified(folder)
    assert (code, found["tables"]) == (3, ("problem", "not what the journal says: results.csv"))
    table.write_text(before, encoding="utf-8")
    assert verified(folder)[0] == 0
    journal = folder / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b"1", b"2", 1))
    code, found = verified(folder)
    assert code == 3
    assert f"{journal}:1: " in found["run"][1]
