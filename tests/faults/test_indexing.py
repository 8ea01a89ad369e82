"""Cases 122, 124, 177 to 184 and 205 to 208: indexes that are made anew, and what may happen meanwhile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fairagent import BackendUnavailable, Query, build_index, load_collection, open_agent
from fairagent.cli import app
from fairagent.errors import DataError, IndexMismatch, UsageError
from fairagent.retrieve import vectors
from fairagent.retrieve.bm25.search import BM25Retriever
from fairagent.retrieve.manifest import Manifest
from fairagent.search.live import LOOK
from fairagent.search.pipeline import build, open_live, open_site
from fairagent.storage.folders import workshop
from fairagent.types import SearchResult

from .tiny import write as write_tiny

COLLECTION = """\
name: staff
documents: {path: docs.jsonl, title: title}
groups: {path: docs.jsonl, dimensions: {gender: {}}}
target: uniform
"""
REMOVED = range(0, 200, 2)
"""A hundred of 210 people ask to be forgotten."""
PLAIN: dict[str, Any] = {"engine": "bm25", "expansion": {"documents": 0}, "n": 20}
FUSED: dict[str, Any] = {"engine": "fused", "n": 20}


def write(folder: Path, version: int = 0, without: range = range(0)) -> Path:
    """Documents that tell their version, all but every seventh, with a gender by it; the collection's settings file."""
    rows = [
        {
            "id": f"d{n:03d}",
            "title": f"{n} of {f'version {version}' if n % 7 else 'all'}",
            "text": f"a lawyer at the river, case{n:03d}secret" + " court" * (n % 7),
            "gender": ("female", "male")[(n + version * (n % 5 == 0)) % 2],
        }
        for n in range(210)
        if n not in without
    ]
    # At once, as whoever changes data should.
    new = folder / "docs.new"
    new.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    new.replace(folder / "docs.jsonl")
    (folder / "collection.yaml").write_text(COLLECTION, encoding="utf-8")
    return folder / "collection.yaml"


def seen(result: SearchResult) -> list[tuple[str, str]]:
    return [(hit.id, hit.title) for hit in result.hits]


def note(result: SearchResult) -> bool:
    return any("documents have changed" in one and "`fairagent index`" in one for one in result.trace.notes)


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path)


@pytest.fixture
def index(file: Path) -> Path:
    build_index(file, file.parent / "index", **PLAIN)
    return file.parent / "index"


SWAPPING = """
import sys
from fairagent import build_index
while True:
    build_index(sys.argv[1], sys.argv[2], engine="bm25")
    print("swapped", flush=True)
"""


def test_177_who_opens_and_searches_while_indexes_are_replaced_never_fails(file: Path, index: Path) -> None:
    opened = BM25Retriever(index)
    expected = [opened.search(Query("court river"), 30).ids, opened.document("d007").text]
    command = [sys.executable, "-c", SWAPPING, str(file), str(index)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            for swaps in range(6):
                assert process.stdout.readline(), swaps
                for _ in range(8):
                    agent = open_agent(file, index, **PLAIN)
                    assert len(agent.search("court river").hits) == 20
        finally:
            process.kill()
    # The one that was open all the time is whole, also now that its files are gone.
    assert [opened.search(Query("court river"), 30).ids, opened.document("d007").text] == expected


def test_178_of_two_at_once_the_second_is_told_so(file: Path, index: Path) -> None:
    before = files(index)
    with workshop(index, (Manifest.FILE,)):
        with pytest.raises(BackendUnavailable, match=rf"process {os.getpid()} on .* is working in"):
            build_index(file, index, **PLAIN)
        # Nor does whoever reads clear up what is in use.
        assert open_agent(file, index, **PLAIN).search("lawyer").hits
        assert (file.parent / "index.partial").is_dir()
    assert files(index) == before
    with ThreadPoolExecutor(4) as threads:
        done = [threads.submit(build_index, file, index, **PLAIN) for _ in range(4)]
    assert {type(one.exception()) for one in done} <= {type(None), BackendUnavailable}
    assert any(one.exception() is None for one in done)
    assert files(index) == before


def test_179_and_180_the_command_names_faults_and_refuses_the_index_of_something_else(tmp_path: Path) -> None:
    file, index = write_tiny(tmp_path / "files"), tmp_path / "index"
    options = ["-c", str(file), "--index", str(index), "--set", "engine=bm25"]
    assert CliRunner().invoke(app, ["index", *options]).exit_code == 0
    before, docs = files(index), tmp_path / "files" / "docs.jsonl"
    whole = docs.read_text(encoding="utf-8")
    for line in ('{"id": "f1", "text": "law"}\n', '{"id": "m9", "title": "no text"}\n', '{"id": "m9"\n'):
        docs.write_text(whole + line, encoding="utf-8")
        said = CliRunner().invoke(app, ["index", *options])
        assert (said.exit_code, "docs.jsonl:7: " in said.output) == (DataError.exit_code, True)
    docs.write_text(whole, encoding="utf-8")
    for more in (["--set", "analyzer=whitespace"], ["-c", str(write(tmp_path))]):
        assert CliRunner().invoke(app, ["index", *options, *more]).exit_code == IndexMismatch.exit_code
    assert files(index) == before
    assert not (tmp_path / "index.partial").exists()


def test_182_a_text_that_was_removed_is_in_no_file(file: Path) -> None:
    index = file.parent / "index"
    build_index(file, index, **FUSED)
    told = [f"case{n:03d}secret".encode() for n in REMOVED]
    assert all(any(text in content for content in files(index).values()) for text in told)
    write(file.parent, 0, REMOVED)
    options = ["-c", str(file), "--index", str(index), "--set", "engine=fused"]
    assert CliRunner().invoke(app, ["index", *options]).exit_code == 0
    left = b"\0".join(content for path, content in files(file.parent).items() if path.startswith("index"))
    assert not any(text in left for text in told)
    assert b"case001secret" in left
    assert not any(f'"d{n:03d}"'.encode() in left for n in REMOVED)


def test_205_what_was_indexed_serves_while_the_documents_have_changed(file: Path, index: Path) -> None:
    before = open_agent(file, index, **PLAIN).search("lawyer court")
    assert not note(before)
    write(file.parent, 1, REMOVED)
    agent = open_agent(file, index, **PLAIN)
    during = agent.search("lawyer court")
    assert not any("version 1" in title for _, title in seen(during))
    assert {f"d{n:03d}" for n in REMOVED} & {hit.id for hit in during.hits}

    assert note(during)
    # Whoever would index by it would give new documents the old ones' name, or needs one state of the data.
    with pytest.raises(UsageError, match="have changed since they were indexed"):
        agent.collection.documents()
    with pytest.raises(IndexMismatch, match="`fairagent index`"):
        build(open_site(file, index, **PLAIN))
    # So is who names another collection, and other passages.
    for change in (("staff", "others"), ("target", "chunks: {tokens: 200}\ntarget")):
        file.write_text(COLLECTION.replace(*change), encoding="utf-8")
        with pytest.raises(IndexMismatch):
            open_agent(file, index, **PLAIN)
    file.write_text(COLLECTION, encoding="utf-8")
    build_index(file, index, **PLAIN)
    after = open_agent(file, index, **PLAIN).search("lawyer court")
    assert not note(after)
    assert not any("version 0" in title for _, title in seen(after))
    assert seen(after) == seen(open_agent(load_collection(file), index, **PLAIN).search("lawyer court"))


def test_208_documents_that_change_while_they_are_indexed(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = file.parent / "index"
    build_index(file, index, **FUSED)
    before = files(index)
    write(file.parent, 1)
    prepared: Callable[..., None] = vectors.prepare_vectors

    def changing(*given: Any) -> None:
        prepared(*given)
        write(file.parent, 2, REMOVED)

    with monkeypatch.context() as patched:
        patched.setattr(vectors, "prepare_vectors", changing)
        with pytest.raises(IndexMismatch, match=r"have changed while they were indexed; repeat the command"):
            build_index(file, index, **FUSED)
    assert files(index) == before
    build_index(file, index, **FUSED)
    titles = [title for _, title in seen(open_agent(file, index, **FUSED).search("court"))]
    assert not any("version 0" in title or "version 1" in title for title in titles)


@pytest.mark.parametrize("harm", ["version", "bytes", "no longer readable"])
def test_124_and_122_another_version_and_damage_are_refused_and_made_anew(file: Path, index: Path, harm: str) -> None:
    manifest, whole = index / "fairagent.json", files(index)
    if harm == "version":
        manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"format": Manifest.FORMAT - 1}))
    elif harm == "bytes":
        (index / "rows.counts.npy").write_bytes(whole["rows.counts.npy"][:-1] + b"?")
    else:
        manifest.write_text("{")
    with pytest.raises(IndexMismatch, match="`fairagent index"):
        open_agent(file, index, **PLAIN)
    options = ["-c", str(file), "--index", str(index), "--set", "engine=bm25"]
    made = CliRunner().invoke(app, ["index", *options])
    # Of which collection it was is not known.
    unknown = harm == "no longer readable"
    assert made.exit_code == (IndexMismatch.exit_code if unknown else 0), made.output
    if unknown:
        assert CliRunner().invoke(app, ["index", *options, "--force"]).exit_code == 0
    assert files(index) == whole


def test_207_what_was_removed_is_not_served_a_second_later(
    file: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("fastapi", reason="the studio (extra: studio) is not installed")
    from fairagent.studio.desk import Desk, ListRequest

    now = [0.0]
    monkeypatch.setattr("fairagent.search.live.monotonic", lambda: now[0])
    agent = open_agent(file, index, **PLAIN)
    drawn = open_agent(file, index, sampling={"alpha": 2.0}, **PLAIN)
    removed = {f"d{n:03d}" for n in REMOVED}
    with closing(Desk(None, {"collection": str(file), "index": str(index), **PLAIN})) as desk:
        request = ListRequest(query="lawyer court")

        def answered() -> dict[str, set[str]]:
            """The documents of every door's answer."""
            return {
                "agent": set(agent.search("lawyer court").ranking.ids),
                "drawn": set(drawn.search("lawyer court").ranking.ids),
                "answer": {hit.id for hit in agent.answer("lawyer court").context},
                "studio": {hit["id"] for hit in desk.search(request)["hits"]},
                "its answer": {hit["id"] for hit in desk.answer(request)["search"]["hits"]},
            }

        assert all(ids & removed for ids in answered().values())
        assert desk.document("d000")["title"] == "0 of all"
        write(file.parent, 1, REMOVED)
        now[0] += 2 * LOOK
        # Until it is brought up to date, the index that is there, and it says so.
        assert note(agent.search("lawyer court"))
        assert "documents have changed" in desk.search(request)["notes"][0]
        build_index(file, index, **PLAIN)
        now[0] += 2 * LOOK
        assert not any(ids & removed for ids in answered().values())
        # A page that is open still names it.
        with pytest.raises(UsageError, match="d000"):
            desk.document("d000")
        assert desk.document("d001")["title"] == "1 of version 1"


def test_177_and_207_an_index_that_is_replaced_while_it_is_opened_or_used_is_no_mixture(
    file: Path, index: Path
) -> None:
    live, begun = open_live(file, index, **PLAIN), []
    opening = Manifest.opening(index)
    assert opening.__enter__().documents == 210

    def work(site: Any) -> int:
        begun.append(site)
        if len(begun) == 1:
            write(file.parent, 1, REMOVED)
            build_index(file, index, **PLAIN)
            raise IndexMismatch("files are missing")
        return Manifest.read(site.index).documents

    assert live.use(work) == 110
    assert len(begun) == 2
    with pytest.raises(IndexMismatch, match="replaced while it was opened"):
        opening.__exit__(None, None, None)
