"""Cases 205 to 208 of docs/reliability.md: documents and groups that change, and who searches meanwhile."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fairagent.retrieve.earlier import renewing

from fairagent import BackendUnavailable, build_index, load_collection, open_agent, update_index
from fairagent.errors import DataError, IndexMismatch
from fairagent.retrieve import earlier, vectors
from fairagent.retrieve.manifest import Manifest
from fairagent.search.live import LOOK, TRIES
from fairagent.search.pipeline import build, open_live, open_site
from fairagent.types import SearchResult

COLLECTION = """\
name: staff
documents: {path: docs.jsonl, title: title}
groups: {path: docs.jsonl, dimensions: {gender: {}}}
target: uniform
"""
REMOVED = range(0, 200, 2)
"""A hundred of 210 people ask to be forgotten."""
PLAIN: dict[str, Any] = {"engine": "bm25", "expansion": {"documents": 0}, "n": 20}


def write(folder: Path, version: int = 0, without: range = range(0)) -> Path:
    """Documents that tell their version, all but every seventh, with a gender by it; the collection's settings file."""
    rows = [
        {
            "id": f"d{n:03d}",
            "title": f"{n} of {f'version {version}' if n % 7 else 'all'}",
            "text": f"a lawyer at the river, case {n}" + " court" * (n % 7),
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


def seen(result: SearchResult) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(hit.id, hit.title, tuple(hit.groups["gender"])) for hit in result.hits]


def note(result: SearchResult) -> bool:
    return any("documents have changed" in one and "`fairagent index`" in one for one in result.trace.notes)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path)


@pytest.fixture
def index(file: Path) -> Path:
    build_index(file, file.parent / "index", **PLAIN)
    return file.parent / "index"


# Case 205


def test_205_what_was_indexed_serves_while_the_documents_have_changed(file: Path, index: Path) -> None:
    before = open_agent(file, index, **PLAIN).search("lawyer court")
    assert not note(before)
    write(file.parent, 1, REMOVED)
    during = open_agent(file, index, **PLAIN).search("lawyer court")
    # Texts and groups of the index, and not of the file: another gender for every fifth, and half of them gone.
    assert seen(during) == seen(before)
    assert during.trace.gap == before.trace.gap
    assert during.trace.targets == before.trace.targets
    assert note(during)
    update_index(file, index, **PLAIN)
    after = open_agent(file, index, **PLAIN).search("lawyer court")
    assert not note(after)
    assert not any("version 0" in title for _, title, _ in seen(after))
    assert seen(after) == seen(open_agent(load_collection(file), index, **PLAIN).search("lawyer court"))


def test_205_whoever_needs_one_state_of_the_data_is_refused(file: Path, index: Path) -> None:
    write(file.parent, 1)
    with pytest.raises(IndexMismatch, match="`fairagent index` brings it up to date"):
        build(open_site(file, index, **PLAIN))
    # So is who names another collection, and where nothing was kept beside the index.
    file.write_text(COLLECTION.replace("staff", "others"), encoding="utf-8")
    with pytest.raises(IndexMismatch):
        open_agent(file, index, **PLAIN)
    write(file.parent, 1)
    shutil.rmtree(file.parent / "index-collection")
    with pytest.raises(IndexMismatch):
        open_agent(file, index, **PLAIN)


# Case 206


STEPS = ("build_light", "keep_groups", "_remove")
"""What an update of an index with light vectors does after one another, once BM25's index is new."""


@pytest.mark.parametrize("step", STEPS)
def test_206_an_update_that_ends_between_index_and_vectors(
    file: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    index, chosen = file.parent / "index", {"engine": "fused", "n": 20}
    build_index(file, index, **chosen)
    before = seen(open_agent(file, index, **chosen).search("lawyer court"))
    write(file.parent, 1, REMOVED)

    def ended(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    from fairagent.retrieve.light import build as light
    from fairagent.search import pipeline

    place: Any = {"build_light": light, "keep_groups": pipeline, "_remove": earlier}[step]
    with monkeypatch.context() as patched:
        patched.setattr(place, step, ended)
        with pytest.raises(KeyboardInterrupt):
            update_index(file, index, **chosen)
    assert Manifest.read(index).documents == 110
    again = open_agent(file, index, **chosen).search("lawyer court")
    assert seen(again) == before
    assert note(again)
    # Another change, and then the same command.
    write(file.parent, 2, REMOVED)
    update_index(file, index, **chosen)
    assert not list(file.parent.glob("index.*"))
    after = seen(open_agent(file, index, **chosen).search("lawyer court"))
    build_index(file, file.parent / "anew", **chosen)
    assert after == seen(open_agent(file, file.parent / "anew", **chosen).search("lawyer court"))


@pytest.mark.parametrize("links", [True, False])
def test_206_and_176_and_178_of_two_updates_the_second_is_told_so_and_ends_nothing(
    file: Path, index: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    """Also where there are no links, and files are copied."""
    if not links:
        monkeypatch.setattr(os, "link", refused)
    write(file.parent, 1)
    with renewing(index, replacing=True):
        with pytest.raises(BackendUnavailable, match=rf"process {os.getpid()} on .* is working in"):
            update_index(file, index, **PLAIN)
        assert (file.parent / "index.earlier" / "fairagent.json").is_file()
        # Nor does whoever reads clear up what is in use.
        assert note(open_agent(file, index, **PLAIN).search("lawyer"))
        assert (file.parent / "index.earlier.partial").is_dir()
    update_index(file, index, **PLAIN)
    assert not note(open_agent(file, index, **PLAIN).search("lawyer"))


def refused(*given: Any, **options: Any) -> None:
    raise OSError(1, "Operation not permitted")


# Case 207


Later = Callable[[], None]


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Later:
    """Lets so much time pass that whoever serves looks again."""
    now = [0.0]
    monkeypatch.setattr("fairagent.search.live.monotonic", lambda: now[0])

    def later() -> None:
        now[0] += 2 * LOOK

    return later


def test_207_what_an_update_has_removed_is_not_served_a_second_later(file: Path, index: Path, later: Later) -> None:
    pytest.importorskip("fastapi", reason="the studio (extra: studio) is not installed")
    from fairagent.studio.calls import Choices, ExposureRequest, ListRequest
    from fairagent.studio.desk import Desk, StartSettings

    agent = open_agent(file, index, **PLAIN)
    drawn = open_agent(file, index, sampling={"alpha": 2.0}, **PLAIN)
    told = {f"d{n:03d}" for n in REMOVED}
    start = StartSettings(None, {"collection": str(file), "index": str(index), **PLAIN})
    with closing(Desk(start)) as desk:
        request = ListRequest(query="lawyer court")
        other = ListRequest(query="lawyer court", settings=Choices(n=50))

        def answered() -> dict[str, set[str]]:
            """The documents of every door's answer."""
            return {
                "agent": set(agent.search("lawyer court").ranking.ids),
                "drawn": set(drawn.search("lawyer court").ranking.ids),
                "answer": {hit.id for hit in agent.answer("lawyer court").context},
                "studio": {hit["id"] for hit in desk.search(request)["hits"]},
                "its engine": {hit["id"] for hit in desk.search(other)["engine_hits"]},
                "its answer": {hit["id"] for hit in desk.answer(request)["search"]["hits"]},
            }

        assert all(ids & told for ids in answered().values())
        assert desk.document("d000")["title"] == "0 of all"
        write(file.parent, 1, REMOVED)
        later()
        # Until it is brought up to date, the index that is there, and it says so.
        assert note(agent.search("lawyer court"))
        assert "documents have changed" in desk.search(request)["notes"][0]
        assert "documents have changed" in desk.exposure(ExposureRequest(ids=("d000",)))["notes"][0]
        update_index(file, index, **PLAIN)
        later()
        assert not any(ids & told for ids in answered().values())
        # A page that is open still names it.
        with pytest.raises(DataError, match="d000"):
            desk.document("d000")
        assert desk.document("d001")["title"] == "1 of version 1"
        assert desk.exposure(ExposureRequest(ids=("d000", "d001")))["unlabeled"] == ["d000"]
        assert not desk.search(request)["notes"] or "have changed" not in desk.search(request)["notes"][0]
        # The parts of the latest agent are those of the moment.
        for made in (agent, drawn):
            with pytest.raises(DataError, match="d000"):
                made.latest().retriever.document("d000")  # type: ignore[attr-defined]


def test_207_work_whose_index_is_replaced_under_it_is_begun_again(file: Path, index: Path, later: Later) -> None:
    live, begun = open_live(file, index, **PLAIN), []

    def work(site: Any) -> int:
        begun.append(site)
        if len(begun) == 1:
            write(file.parent, 1, REMOVED)
            update_index(file, index, **PLAIN)
            raise IndexMismatch("files are missing")
        return Manifest.read(site.index).documents

    assert live.use(work) == 110
    assert len(begun) == 2
    # What fails of itself fails at once.
    begun.append(None)
    with pytest.raises(BackendUnavailable):
        live.use(lambda site: (begun.append(site), (_ for _ in ()).throw(BackendUnavailable("no")))[1])
    assert len(begun) == 4
    assert TRIES > 1


# Case 208


def test_208_documents_that_change_while_they_are_indexed(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index, chosen = file.parent / "index", {"engine": "fused", "n": 20}
    build_index(file, index, **chosen)
    before = seen(open_agent(file, index, **chosen).search("lawyer court"))
    write(file.parent, 1)
    prepared: Callable[..., None] = vectors.prepare_vectors

    def changing(*given: Any) -> None:
        prepared(*given)
        write(file.parent, 2, REMOVED)

    with monkeypatch.context() as patched:
        patched.setattr(vectors, "prepare_vectors", changing)
        with pytest.raises(IndexMismatch, match=r"have changed while they were indexed; repeat the command"):
            update_index(file, index, **chosen)
    assert seen(open_agent(file, index, **chosen).search("lawyer court")) == before
    update_index(file, index, **chosen)
    titles = [title for _, title, _ in seen(open_agent(file, index, **chosen).search("lawyer court"))]
    assert not any("version 0" in title or "version 1" in title for title in titles)
