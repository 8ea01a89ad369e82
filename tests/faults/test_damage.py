"""Cases 66 to 71, 77, 109, 113 to 120, 141 and 196: damage is found, and what is remembered is never wrong.

Random damage, drawn by a seed: a few cases each in `make test`, as many as wanted with FAULT_TRIALS=150.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from collection.test_table import COLLECTION, folders, many, same, table_of
from evaluate import words
from guests.dense.test_splade import Words as SparseWords
from retrieve.conftest import MADE, Made
from retrieve.test_ann import DOCUMENTS, ENCODER
from retrieve.test_ann import QUERIES as NUMBERS
from retrieve.test_dense import Words
from typer.testing import CliRunner

from fairagent import Collection, load_collection
from fairagent.cli import app
from fairagent.collection import GroupTable
from fairagent.collection.look import look_at
from fairagent.errors import DataError, FairAgentError, IndexMismatch
from fairagent.evaluate.experiment import TopicRunner
from fairagent.evaluate.results import results_table, results_text
from fairagent.evaluate.run import load_run
from fairagent.guests.dense.splade import SpladeRetriever, build_splade_index
from fairagent.llm.cache import ReplyCache
from fairagent.llm.request import ModelReply
from fairagent.retrieve.ann import build_ann, open_ann
from fairagent.retrieve.bm25.build import build_index
from fairagent.retrieve.bm25.search import BM25Retriever
from fairagent.retrieve.catalog import mapped
from fairagent.retrieve.dense import DenseRetriever, build_dense_index
from fairagent.retrieve.graph import Graph, build_graph
from fairagent.retrieve.light import LightEncoder, build_light
from fairagent.storage import digests
from fairagent.storage.digests import RECORD, differences, expect_whole, file_digest, record_files
from fairagent.types import Query

from .harness import harm, trials
from .tiny import write

QUERIES = ("lawyer court", "harbor town", "ocean wave", "law she", "odd lawyer")
REPLIES = {f"key {n:02}": ModelReply(f'{{"keywords": ["word {n}"]}}', 400, 30, "tiny") for n in range(60)}
ROWS = [{"id": f"d{n}", "text": f"the law of town {n}, x", "gender": "female" if n % 3 else "male"} for n in range(9)]


def make_indexes(folder: Path) -> None:
    """Every index that there is, of the same documents: BM25, light vectors, embeddings, a graph, SPLADE weights."""
    build_index(MADE, folder / "index")
    build_light(BM25Retriever(folder / "index"), folder / "index/light")
    build_dense_index(MADE, folder / "index/dense", Words())
    build_splade_index(MADE, folder / "index/splade", SparseWords())
    build_graph(DenseRetriever(folder / "index/dense", Words()), folder / "index/graph")


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
    return [*said, *(bm25.document(id) for id in ids)]


def make_ann(folder: Path) -> None:
    build_dense_index(Made(DOCUMENTS.made[:4000]), folder / "dense", ENCODER)
    build_ann(DenseRetriever(folder / "dense", ENCODER), folder / "ann")


def lists(folder: Path) -> list[object]:
    pytest.importorskip("faiss")
    engine = DenseRetriever(folder / "dense", ENCODER, ann=open_ann(folder / "ann", folder / "dense"))
    return [engine.search(query, 20).ids for query in NUMBERS[:3]]


def tables(folder: Path) -> list[str]:
    """The tables of a run that does not say that it is partial."""
    run = load_run(folder / "run")
    if run.partial:
        raise DataError("partial")
    return [results_text(run), results_table(run).csv()]


def make_cache(folder: Path) -> None:
    cache = ReplyCache(folder / "cache")
    for key, reply in REPLIES.items():
        cache.put(key, reply)
    cache.close()
    with sqlite3.connect(folder / "cache" / "cache.db") as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()


def replies(folder: Path) -> None:
    """0 changed replies; what is lost is asked for again, and kept, and a database that is none is moved aside."""
    cache, lost = ReplyCache(folder / "cache"), False
    for key, reply in REPLIES.items():
        found = cache.get(key)
        assert found in (None, replace(reply, cached=True))
        if found is None:
            lost = True
            cache.put(key, reply)
            assert cache.get(key) == replace(reply, cached=True)
    cache.stats()
    cache.close()
    aside = list(folder.glob("cache.bad-*"))
    assert len(aside) <= 1
    if aside or lost:
        raise DataError("lost")


def make_rows(form: str) -> Callable[[Path], object]:
    def make(folder: Path) -> None:
        import pyarrow
        from datasets import Dataset, disable_progress_bars
        from pyarrow.parquet import write_table

        disable_progress_bars()
        if form == "parquet":
            write_table(pyarrow.Table.from_pylist(ROWS), folder / "rows.parquet")
        else:
            Dataset.from_list(ROWS).save_to_disk(str(folder / "rows.dataset"))

    return make


def read_rows(folder: Path) -> None:
    """Whether other rows come of it nobody can tell; Arrow believes offsets, and a wrong one ended the process."""
    source, faults = next(folder.glob("rows.*"), folder / "rows.csv"), []
    for read in (Collection.from_records, look_at):
        try:
            read(source)
        except FairAgentError as error:
            faults.append(error)
    if faults:
        raise faults[0]


class Damaged(NamedTuple):
    """What is made in a folder, what is read of it, the files that are damaged, and how often that must be noticed."""

    make: Callable[[Path], object]
    read: Callable[[Path], object]
    least: float
    trials: int
    files: tuple[str, ...] = ("**/*",)


DAMAGED = {
    # Only what stands for nothing may change without being noticed.
    "indexes": Damaged(make_indexes, answers, 0.8, 10),
    "ann": Damaged(make_ann, lists, 0.8, 10, ("ann/*",)),
    "run": Damaged(
        lambda folder: words.run(words.write(folder), folder / "run", limit=5),
        *(tables, 0.8, 20, ("run/journal.jsonl", "run/run.json")),
    ),
    "cache": Damaged(make_cache, replies, 0.1, 25, ("cache/cache.db",)),
    "parquet": Damaged(make_rows("parquet"), read_rows, 0.1, 20, ("rows.parquet",)),
    "dataset": Damaged(make_rows("dataset"), read_rows, 0.1, 20, ("rows.dataset/*.arrow",)),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of what that is, made once."""
    known: dict[str, Path] = {}

    def made(what: str) -> Path:
        if what not in known:
            folder = tmp_path_factory.mktemp(what)
            DAMAGED[what].make(folder)
            known[what] = folder
        return known[what]

    return made


Make = Callable[[str], Path]


@pytest.mark.parametrize("what", DAMAGED)
def test_66_and_69_and_71_and_109_and_141_damage_at_random(made: Make, tmp_path: Path, what: str) -> None:
    """0 tracebacks and 0 changed results, whatever happens to whichever file."""
    case = DAMAGED[what]
    expected = case.read(made(what))
    chance, refused, count = random.Random(69), 0, trials(case.trials)
    for number in range(count):
        copy = tmp_path / f"{number}"
        shutil.copytree(made(what), copy)
        files = [path.relative_to(copy).as_posix() for one in case.files for path in sorted(copy.glob(one))]
        how = harm(copy, chance, [name for name in files if (copy / name).is_file()])
        try:
            assert case.read(copy) == expected, how
        except FairAgentError:
            refused += 1
        shutil.rmtree(copy)
    assert refused >= case.least * count


@pytest.fixture
def indexes(made: Make, tmp_path: Path) -> Path:
    """A copy of them all."""
    shutil.copytree(made("indexes"), tmp_path / "copy")
    return tmp_path / "copy"


@pytest.fixture
def run(made: Make, tmp_path: Path) -> Path:
    """A copy of the run."""
    shutil.copytree(made("run") / "run", tmp_path / "run")
    return tmp_path / "run"


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
    indexes: Path, monkeypatch: pytest.MonkeyPatch, name: str, place: int | slice, value: float
) -> None:
    """In files as large as if a moment's look missed the damage."""
    monkeypatch.setattr(digests, "differences", lambda folder, whole: [])
    array = np.load(indexes / name, mmap_mode="r+")
    array[place] = value
    array.flush()
    del array
    with pytest.raises(IndexMismatch):
        answers(indexes)


def test_68_an_index_from_before_there_were_checksums_is_opened_with_a_note(
    indexes: Path, caplog: pytest.LogCaptureFixture
) -> None:
    expected = answers(indexes)
    assert not caplog.records
    for record in indexes.rglob(RECORD):
        record.unlink()
    for _ in range(2):
        assert answers(indexes) == expected
    notes = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert len(notes) == 5
    assert "wrote no checksums" in notes[0]
    assert "`fairagent index --force`" in notes[0]


def test_69_a_changed_digit_is_named_with_its_line(run: Path) -> None:
    lines = (run / "journal.jsonl").read_bytes().splitlines(keepends=True)
    values = json.loads(lines[6])["values"]["gender"]
    (name, value), *_ = [(name, value) for name, value in values.items() if value not in (0, 1)]
    digits = f'"{name}":{value!r}'.encode()
    changed = digits[:-1] + (b"1" if digits[-1:] != b"1" else b"2")
    assert digits in lines[6]
    broken = [*lines[:6], lines[6].replace(digits, changed), *lines[7:]]
    (run / "journal.jsonl").write_bytes(b"".join(broken))
    with pytest.raises(DataError, match=r"journal\.jsonl:7: .*checksum") as raised:
        load_run(run)
    assert len(raised.value.faults) == 1


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


def test_77_every_byte_of_an_index_and_of_a_run_is_compared(indexes: Path, run: Path) -> None:
    code, found = verified(indexes / "index")
    assert (code, {status for status, _ in found.values()}) == (0, {"ok"})
    assert found.keys() == {"index", "dense", "graph", "light", "splade"}
    vectors = indexes / "index" / "dense" / "vectors.npy"
    changed(vectors)
    code, found = verified(indexes / "index")
    assert code == 3
    assert found["dense"] == ("problem", f"{vectors}: is not what was written")
    assert [name for name, (status, _) in found.items() if status == "problem"] == ["dense"]
    assert verified(indexes.parent)[0] == 2
    assert (verified(run)[0], verified(run)[1]["run"][0]) == (0, "ok")
    for name, check in (("results.csv", "tables"), ("journal.jsonl", "run")):
        content = (run / name).read_bytes()
        (run / name).write_bytes(content.replace(b"0", b"1", 1))
        code, found = verified(run)
        assert (code, found[check][0], name in found[check][1]) == (3, "problem", True)
        (run / name).write_bytes(content)


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
    assert not [word for word in ("NaN", "Infinity") if word in text]


@pytest.fixture
def trusting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Notes of every file, also of small ones and of those written just now: what can go wrong does so here."""
    monkeypatch.setattr(digests, "notes_folder", lambda: tmp_path / "notes")
    monkeypatch.setattr(digests, "_known", {})
    monkeypatch.setattr(digests, "LEAST", 0)
    monkeypatch.setattr(digests, "QUIET", -(10**12))
    return tmp_path / "notes"


def test_116_a_damaged_table_is_read_anew(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    expected = table_of(file)
    (folder,) = folders(file)
    chance = random.Random(131)
    for _ in range(trials(8)):
        how = harm(folder, chance)
        caplog.clear()
        assert same(table_of(file), expected), how
        # Found, said, and mended: the next one has nothing to say.
        assert "damaged" in caplog.text or "fairagent-files.json" in how, how
        caplog.clear()
        assert same(table_of(file), expected), how
        assert caplog.text == "", how


def test_118_two_at_once(file: Path) -> None:
    expected = table_of(file)
    (folder,) = folders(file)
    shutil.rmtree(folder)
    with ThreadPoolExecutor(4) as threads:
        assert all(same(one, expected) for one in threads.map(table_of, [file] * 4))
    assert folders(file) == [folder]
    assert not list(file.parent.glob("*.lock"))


@pytest.fixture
def file(trusting: Path, tmp_path: Path) -> Path:
    (tmp_path / "collection.yaml").write_text(COLLECTION)
    (tmp_path / "docs.jsonl").write_text('{"id": "a", "text": "b"}\n')
    (tmp_path / "groups.tsv").write_text(many())
    return tmp_path / "collection.yaml"


def changed(path: Path) -> None:
    """Another last byte."""
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))


def test_117_folders_that_cannot_be_written(
    file: Path, trusting: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = table_of(file)
    for folder in (*folders(file), trusting):
        shutil.rmtree(folder)
    mkdir = os.mkdir

    def refused(path: object, *more: Any, **options: Any) -> None:
        if "partial" in str(path) or "notes" in str(path):
            raise OSError(errno.EROFS, "Read-only file system", str(path))
        mkdir(path, *more, **options)  # type: ignore[arg-type]

    with caplog.at_level(logging.WARNING), monkeypatch.context() as patch:
        patch.setattr(os, "mkdir", refused)
        assert same(table_of(file), expected)
    assert "read anew each time" in caplog.text
    assert not list(file.parent.glob("index*"))
    assert same(table_of(file), expected)
    assert len(folders(file)) == 1


def test_119_a_copied_folder_is_another_one(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    expected = table_of(file)
    table_of(file)
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
    table_of(file)
    (groups,) = [folder for folder in folders(file) if folder.name != "index"]
    whole = {path: file_digest(path) for path in groups.iterdir()}
    changed(groups / "ids.npy")
    # As if the disk had done it: nothing of the file's state has changed, and the notes still speak of the old bytes.
    monkeypatch.setattr("fairagent.storage.digests.file_digest", lambda path: whole[path])
    code, found = verified(file.parent / "index")
    assert code != 0
    assert any("ids.npy" in detail for _, detail in found.values())


def test_114_a_device_that_is_not_there_is_named_before_anything_is_embedded(tmp_path: Path) -> None:
    options = ["-c", str(write(tmp_path / "files")), "--index", str(tmp_path / "index"), "--device", "cuda:93"]
    result = CliRunner().invoke(app, ["index", *options, "--set", "engine={kind: dense, encoder: any}"])
    assert result.exit_code == 2
    assert "device 'cuda:93' cannot be used here" in " ".join(result.stderr.split())
    assert not list(tmp_path.glob("index-*"))
