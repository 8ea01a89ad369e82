"""Loading a collection into an index: what is refused, taken up again, and counted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fairagent.collection import GroupTable
from fairagent.errors import DataError, IndexMismatch
from fairagent.guests.opensearch.bulk import LoadRecord, LoadSettings, load
from fairagent.guests.opensearch.index import LOADED, Fields, ServerIndex
from fairagent.guests.opensearch.search import OpenSearchRetriever
from fairagent.guests.opensearch.server import NotThere, Server
from fairagent.types import Document, Query

from .made import MADE, Made

PLAN = LoadSettings(shards=2, replicas=0, documents=5)


@pytest.fixture
def fresh(server: Server, name: str) -> ServerIndex:
    return ServerIndex(server, name, LOADED)


def test_every_document_is_there_once_and_progress_is_told(fresh: ServerIndex) -> None:
    told: list[int] = []
    origin, made = load(fresh, MADE, PLAN, progress=told.append)
    assert (made, origin) == (True, LoadRecord("made", "as made", len(MADE.made), True))
    assert told == [0, 5, 10, 15, 20, 22]
    assert fresh.count() == len(MADE.made)
    assert LoadRecord.read(fresh) == origin
    assert load(fresh, MADE, PLAN) == (origin, False)


def test_a_load_that_was_broken_off_goes_on(fresh: ServerIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    ask = Server.ask

    def counted(self: Server, method: str, path: str, body: Any = None, lines: Any = None, **more: Any) -> Any:
        if path.endswith("_bulk"):
            lines = list(lines)
            sent.extend(line["index"]["_id"] for line in lines if "index" in line)
        return ask(self, method, path, body, lines, **more)

    monkeypatch.setattr(Server, "ask", counted)

    def stop(done: int) -> None:
        if done == 15:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load(fresh, MADE, PLAN, progress=stop, commit_every=10)
    half = LoadRecord.read(fresh)
    assert half is not None
    assert (half.done, half.complete) == (10, False)
    sent.clear()
    assert load(fresh, MADE, PLAN)[0].complete
    assert sent == [one.id for one in MADE.made[10:]]
    assert fresh.count() == len(MADE.made)
    whole = OpenSearchRetriever(ServerIndex(fresh.server, fresh.name, LOADED))
    assert len(whole.documents([one.id for one in MADE.made])) == len(MADE.made)


def test_another_collection_is_refused_and_replaced_only_by_force(fresh: ServerIndex) -> None:
    load(fresh, MADE, PLAN)
    other = Made(MADE.made[:3], "other files")
    with pytest.raises(IndexMismatch, match=r"fingerprint: index as made, now other files.*--force"):
        load(fresh, other, PLAN)
    assert fresh.count() == len(MADE.made)
    load(fresh, other, PLAN, force=True)
    assert fresh.count() == 3


def test_an_index_of_somebody_else_is_never_touched(server: Server, fresh: ServerIndex) -> None:
    server.ask("PUT", f"/{fresh.name}/_doc/1", {"text": "mine"}, refresh="true")
    for force in (False, True):
        with pytest.raises(IndexMismatch, match="fairagent has not made; it is left alone"):
            load(fresh, MADE, PLAN, force=force)
    assert fresh.count() == 1


def test_documents_that_are_lost_afterwards_are_noticed(server: Server, fresh: ServerIndex) -> None:
    load(fresh, MADE, PLAN)
    server.ask("DELETE", f"/{fresh.name}/_doc/law1", refresh="true")
    with pytest.raises(DataError, match=r"holds 21 documents where 22 were loaded.*--force"):
        load(fresh, MADE, PLAN)


def test_ids_that_occur_twice_are_noticed_at_the_end(fresh: ServerIndex) -> None:
    twice = replace(MADE, made=(*MADE.made, Document("law1", "once more")))
    with pytest.raises(DataError, match=r"holds 22 documents where 23 were loaded"):
        load(fresh, twice, PLAN)
    there = LoadRecord.read(fresh)
    assert there is not None
    assert not there.complete


def test_a_dimension_with_the_name_of_another_field(fresh: ServerIndex) -> None:
    with pytest.raises(DataError, match="a dimension called 'title'"):
        load(fresh, MADE, PLAN, groups=GroupTable.from_rows([("law1", {"title": ("x",)})], ["title"]))
    with pytest.raises(NotThere, match=r"no index 'fairagent-test-.*fairagent index --engine opensearch"):
        OpenSearchRetriever(ServerIndex(fresh.server, fresh.name, Fields())).search(Query("law"), 1)


def test_large_documents_go_in_several_requests(fresh: ServerIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    from fairagent.guests.opensearch import bulk

    monkeypatch.setattr(bulk, "MOST_BYTES", 200)
    load(fresh, MADE, PLAN)
    assert fresh.count() == len(MADE.made)
