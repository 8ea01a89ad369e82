"""Cases 66 to 71, 77, 115 to 120 and 196: damage is found, and what is remembered is never wrong.

Random damage, drawn by a seed: a few cases each in `make test`, as many as wanted with FAULT_TRIALS=150.
"""

from __future__ import annotations

import errno
import json
import logging
import multiprocessing
import os
import random
import shutil
import sqlite3
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from collection.test_cached_table import COLLECTION, folders, rows, same, table
from evaluate import words
from guests.dense.test_splade import Words as SparseWords
from retrieve.conftest import MADE
from retrieve.test_dense import Words
from typer.testing import CliRunner

from fairagent import load_collection
from fairagent.cli import app
from fairagent.collection import GroupTable
from fairagent.errors import BackendUnavailable, DataError, FairAgentError, IndexMismatch
from fairagent.evaluate.experiment import TopicRunner
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
from fairagent.storage.digests import RECORD, differences, expect_whole, file_digest, record_files
from fairagent.types import Query

from .damage import harm, trials
from .tiny import write

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


# Case 71

REPLIES = {f"key {n:02}": ModelReply(f'{{"keywords": ["word {n}"]}}', 400, 30, "tiny") for n in range(60)}


@pytest.fixture(scope="module")
def whole_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cache") / "cache"
    cache = ReplyCache(folder)
    for key, reply in REPLIES.items():
        cache.put(key, reply)
    cache.close()
    with sqlite3.connect(folder / "cache.db") as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    return folder


def test_71_a_damaged_cache_tells_nothing_else_and_is_moved_aside(whole_cache: Path, tmp_path: Path) -> None:
    """0 tracebacks and 0 changed replies; what is lost is asked for again, and kept."""
    chance, tried = random.Random(74), Counter[str]()
    for number in range(trials(25)):
        folder = tmp_path / f"{number}" / "cache"
        shutil.copytree(whole_cache, folder)
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
    cache = ReplyCache(tmp_path / "cache")
    reply = REPLIES["key 07"]
    # Versions before there were checksums wrote such rows; so does whoever wants another reply to count.
    cache._rows.set("old", json.dumps(asdict(reply)))
    assert cache.get("old") is None
    cache.put("new", reply)
    assert cache.get("new") == replace(reply, cached=True)
    cache._rows.set("new", cache._rows.get("new").replace("word 7", "word 8"))
    assert cache.get("new") is None
    cache.put("new", reply)
    cache._rows.set("moved", cache._rows.get("new"))
    assert cache.get("moved") is None
    cache.close()


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


def test_67_of_a_large_file_a_sample_is_compared_at_once_and_every_byte_on_demand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digests, "WHOLE", 1000)
    monkeypatch.setattr(digests, "SAMPLE", 16)
    content = bytes(range(256)) * 40
    (tmp_path / "large").write_bytes(content)
    record_files(tmp_path)
    assert differences(tmp_path, whole=False) == differences(tmp_path, whole=True) == []
    noticed = []
    for place in (0, *range(30, 10_200, 101), len(content) - 1):
        (tmp_path / "large").write_bytes(content[:place] + b"?" + content[place + 1 :])
        if content[place] != ord("?"):
            assert differences(tmp_path, whole=True)
            noticed.append(bool(differences(tmp_path, whole=False)))
    # The first and the last bytes always, of the rest 14 places of 16 bytes.
    assert noticed[0]
    assert noticed[-1]
    assert sum(noticed) < 0.1 * len(noticed)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_70_a_number_that_is_not_finite_is_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: float
) -> None:
    outcome = TopicRunner.outcome

    def odd(self: TopicRunner, system: str, id: str) -> object:
        found = outcome(self, system, id)
        return replace(found, values={"": {"nDCG@20": value}}) if (system, id) == ("fair", "T03") else found

    monkeypatch.setattr(TopicRunner, "outcome", odd)
    run = words.run(words.write(tmp_path), tmp_path / "run", limit=3)
    assert "not finite" in run.excluded["T03"]
    text = (tmp_path / "run" / "journal.jsonl").read_text(encoding="utf-8")
    assert "NaN" not in text
    assert "Infinity" not in text


def test_77_every_line_of_a_run_and_every_table_is_compared(run_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(run_folder, folder)
    code, found = verified(folder)
    assert (code, found["run"][0]) == (0, "ok")
    for name, check in (("results.csv", "tables"), ("journal.jsonl", "run")):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content.replace(b"0", b"1", 1))
        code, found = verified(folder)
        assert (code, found[check][0]) == (3, "problem")
        assert name in found[check][1]
        (folder / name).write_bytes(content)


@pytest.fixture
def trusting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Notes of every file, also of small ones and of those written just now: what can go wrong does so here."""
    monkeypatch.setattr(digests, "notes_folder", lambda: tmp_path / "notes")
    monkeypatch.setattr(digests, "_known", {})
    monkeypatch.setattr(digests, "LEAST", 0)
    monkeypatch.setattr(digests, "QUIET", -(10**12))
    return tmp_path / "notes"


@pytest.mark.usefixtures("trusting")
def test_115_an_index_of_documents_that_were_changed_under_their_old_time(tmp_path: Path) -> None:
    collection = write(tmp_path / "files")
    build_index(load_collection(collection), tmp_path / "index")
    BM25Retriever(tmp_path / "index", load_collection(collection))
    documents = tmp_path / "files" / "docs.jsonl"
    before = documents.stat()
    documents.write_bytes(documents.read_bytes().replace(b"law she", b"law her"))
    os.utime(documents, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (documents.stat().st_size, documents.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    with pytest.raises(IndexMismatch, match="does not belong to collection 'tiny' as it is now"):
        BM25Retriever(tmp_path / "index", load_collection(collection))


def test_116_a_damaged_table_is_read_anew(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    expected = table(file)
    (folder,) = folders(file)
    chance = random.Random(131)
    for _ in range(trials(8)):
        how = harm(folder, chance)
        caplog.clear()
        assert same(table(file), expected), how
        # Found, said, and mended: the next one has nothing to say.
        assert "damaged" in caplog.text or "fairagent-files.json" in how, how
        caplog.clear()
        assert same(table(file), expected), how
        assert caplog.text == "", how


def test_118_two_processes_at_once(file: Path) -> None:
    expected = table(file)
    (folder,) = folders(file)
    shutil.rmtree(folder)
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        told = pool.map(shares, [file] * 2, chunksize=1)
    assert told == [[expected.shares(name).tolist() for name in ("gender", "region")]] * 2
    assert folders(file) == [folder]
    assert not list(file.parent.glob("*.lock"))


def shares(file: Path) -> list[list[float]]:
    groups = table(file)
    return [groups.shares(name).tolist() for name in ("gender", "region")]


@pytest.fixture
def file(trusting: Path, tmp_path: Path) -> Path:
    (tmp_path / "collection.yaml").write_text(COLLECTION)
    (tmp_path / "docs.jsonl").write_text('{"id": "a", "text": "b"}\n')
    (tmp_path / "groups.tsv").write_text(rows())
    return tmp_path / "collection.yaml"


def changed(path: Path) -> None:
    """Another last byte."""
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))


def test_117_folders_that_cannot_be_written(
    file: Path, trusting: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = table(file)
    for folder in (*folders(file), trusting):
        shutil.rmtree(folder)
    mkdir = os.mkdir

    def refused(path: object, *more: Any, **options: Any) -> None:
        if "partial" in str(path) or "notes" in str(path):
            raise OSError(errno.EROFS, "Read-only file system", str(path))
        mkdir(path, *more, **options)  # type: ignore[arg-type]

    with caplog.at_level(logging.WARNING), monkeypatch.context() as patch:
        patch.setattr(os, "mkdir", refused)
        assert same(table(file), expected)
    assert "read anew each time" in caplog.text
    assert not list(file.parent.glob("index*"))
    assert same(table(file), expected)
    assert len(folders(file)) == 1


def test_119_a_copied_folder_is_another_one(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    expected = table(file)
    table(file)
    (folder,) = folders(file)
    copy = folder.with_name(folder.name.replace("index", "other"))
    shutil.copytree(folder, copy)
    changed(copy / "ids.npy")
    shutil.copystat(folder / "ids.npy", copy / "ids.npy")
    groups = load_collection(file, file.parent / "other").groups
    assert isinstance(groups, GroupTable)
    assert same(groups, expected)
    assert "ids.npy" in caplog.text


def test_120_verify_trusts_no_note(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_index(load_collection(file, file.parent / "index"), file.parent / "index")
    table(file)
    (groups,) = [folder for folder in folders(file) if folder.name != "index"]
    whole = {path: file_digest(path) for path in groups.iterdir()}
    changed(groups / "ids.npy")
    # As if the disk had done it: nothing of the file's state has changed, and the notes still speak of the old bytes.
    monkeypatch.setattr("fairagent.storage.digests.file_digest", lambda path: whole[path])
    code, found = verified(file.parent / "index")
    assert code != 0
    assert any("ids.npy" in detail for _, detail in found.values())
