"""Cases 88 to 107 of docs/reliability.md: a search server that fails; a list is whole, or there is an error."""

from __future__ import annotations

import random
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairagent import open_agent
from fairagent.collection import load_collection
from fairagent.errors import BackendUnavailable, DataError, FairAgentError, IndexMismatch, UsageError
from fairagent.guests.opensearch.bulk import LoadRecord, LoadSettings, load
from fairagent.guests.opensearch.checks import check_server
from fairagent.guests.opensearch.config import OpenSearchConfig
from fairagent.guests.opensearch.groups import ServerGroups
from fairagent.guests.opensearch.index import LOADED, ServerIndex
from fairagent.guests.opensearch.search import OpenSearchRetriever
from fairagent.guests.opensearch.server import Address, Credentials, Forbidden, NotThere, Server
from fairagent.guests.opensearch.vectors import OpenSearchVectors
from fairagent.llm.models import Models
from fairagent.retrieve.fused import FusedRetriever
from fairagent.retrieve.site import Site
from fairagent.settings import load_settings
from fairagent.types import Document, Query, Term
from fairagent.types.common import Check

from .search_server import FIELDS, SHARDS, Answer, SearchServer, found, refused

LAW = Query("law")
KEY = "not-a-real-key-0123456789"


@dataclass(frozen=True)
class Made:
    """Five documents."""

    name: str = "made"
    made: tuple[Document, ...] = field(default=tuple(Document(f"d{n}", f"text {n}") for n in range(5)))
    state: str = "as made"

    def documents(self) -> Any:
        return iter(self.made)

    def fingerprint(self) -> str:
        return self.state


PLAN = LoadSettings(documents=2)


@pytest.fixture(autouse=True)
def direct(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def doctor(server: SearchServer, collection: Path, **engine: Any) -> dict[str, Check]:
    described = {"kind": "opensearch", "url": server.url, "index": "i", "attempts": 1, **engine}
    settings = load_settings(overrides={"engine": described}, environ={})
    part = settings.engine
    assert isinstance(part, OpenSearchConfig)
    site = Site(load_collection(collection), settings, Path(), Models.of(settings))
    return {check.name: check for check in check_server(part, site)}


def test_88_a_server_that_is_not_there(tiny: tuple[Path, Path]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    waited: list[float] = []
    server = Server(Address.find(f"http://127.0.0.1:{port}", Credentials(), {}), 5, 4, sleep=waited.append)
    with pytest.raises(BackendUnavailable, match=f"no connection to 127.0.0.1:{port}.*engine.url"):
        OpenSearchRetriever(ServerIndex(server, "i", LOADED))
    assert len(waited) == 3
    overrides = {"kind": "opensearch", "url": f"http://127.0.0.1:{port}", "index": "i", "attempts": 1}
    with pytest.raises(BackendUnavailable) as caught:
        open_agent(*tiny, engine=overrides)
    assert caught.value.exit_code == 3


def test_89_a_busy_server_is_asked_again() -> None:
    def busy(number: int, body: Any) -> Any:
        statuses = {1: (429, {"retry-after": "7"}), 2: (503, {})}
        return Answer({}, *statuses[number]) if number in statuses else found("a", "b")

    with SearchServer(search=busy) as server:
        assert OpenSearchRetriever(server.index()).search(LAW, 5).ids == ("a", "b")
        assert len(server.bodies["search"]) == 3
        assert server.waited[0] >= 7
    with SearchServer(search=Answer({}, 429)) as server:
        with pytest.raises(BackendUnavailable, match="answered 429"):
            OpenSearchRetriever(server.index(attempts=4)).search(LAW, 5)
        assert len(server.bodies["search"]) == 4
    with SearchServer(search=Answer({}, 429, {"retry-after": "3600"})) as server:
        with pytest.raises(BackendUnavailable, match="answered 429"):
            OpenSearchRetriever(server.index()).search(LAW, 5)
        assert server.waited == []


FAILED = {"total": 3, "successful": 2, "failed": 1, "failures": [{"reason": {"type": "io", "reason": "disk on fire"}}]}


@pytest.mark.parametrize("shards", [FAILED, {**SHARDS, "successful": 2}])
def test_90_a_shard_that_fails_fails_the_search(shards: Any) -> None:
    with SearchServer(search=found("a", "b", _shards=shards)) as server:
        engine = OpenSearchRetriever(server.index())
        for ask in (lambda: engine.search(LAW, 5), lambda: engine.score(LAW, ["a"]), lambda: engine.document("a")):
            with pytest.raises(BackendUnavailable, match=r"1 of 3 shards on .* would be incomplete"):
                ask()
        searches = [path for _, path, _ in server.requests if "_search" in path]
        assert all("allow_partial_search_results=false" in path for path in searches)
        # The list and the pool; texts have no scores.
        assert ["search_type=dfs_query_then_fetch" in path for path in searches] == [True, True, False]
    with (
        SearchServer(count={"count": 3, "_shards": shards}) as server,
        pytest.raises(BackendUnavailable, match="1 of 3"),
    ):
        server.index().count()
    one = {"responses": [found("a"), {**found("b"), "_shards": shards}]}
    with SearchServer(msearch=one) as server, pytest.raises(BackendUnavailable, match="1 of 3 shards"):
        server.index().best_of_each([{"match_all": {}}] * 2, ())
    with SearchServer(msearch={"responses": [found("a")]}) as server, pytest.raises(BackendUnavailable, match="1 of 2"):
        server.index().best_of_each([{"match_all": {}}] * 2, ())


@pytest.mark.parametrize("mark", ["timed_out", "terminated_early"])
def test_91_a_search_that_was_broken_off_is_no_list(mark: str) -> None:
    with SearchServer(search=found("a", "b", **{mark: True})) as server:
        with pytest.raises(BackendUnavailable, match="broke a search off"):
            OpenSearchRetriever(server.index()).search(LAW, 5)
        fused = FusedRetriever((OpenSearchRetriever(server.index()), Fixed()), ("server", "fixed"))
        # Where others serve, it is said that this one did not.
        assert fused.search(LAW, 2).ids == ("x",)
        assert "broke a search off" in fused.failures(LAW)["server"]


class Fixed:
    def search(self, query: Query, n: int) -> Any:
        from fairagent.types import Ranking

        return Ranking(("x",), np.ones(1))

    def score(self, query: Query, ids: Any) -> Any:
        return np.ones(len(ids))


def item(id: str, status: int, kind: str = "") -> Any:
    error = {"error": {"type": kind, "reason": "said so"}} if kind else {}
    return {"index": {"_id": id, "status": status, **error}}


def test_92_a_bulk_request_that_is_done_in_part() -> None:
    def partly(number: int, body: Any) -> Any:
        ids = SearchServer.ids(body)
        if number == 1:
            return {"errors": True, "items": [item(ids[0], 429, "rejected"), *(item(id, 201) for id in ids[1:])]}
        return None

    with SearchServer(bulk=partly, count={"count": 5, "_shards": SHARDS}) as server:
        server.there = False
        assert load(server.index(), Made(), PLAN)[0].complete
        assert [SearchServer.ids(body) for body in server.bodies["bulk"]] == [
            ["d0", "d1"],
            ["d0"],
            ["d2", "d3"],
            ["d4"],
        ]

    def never(number: int, body: Any) -> Any:
        return {"errors": True, "items": [item(id, 429, "es_rejected") for id in SearchServer.ids(body)]}

    with SearchServer(bulk=never) as server:
        server.there = False
        with pytest.raises(BackendUnavailable, match=r"turned 2 documents away 5 times.*429: es_rejected"):
            load(server.index(), Made(), PLAN)

    def refuses(number: int, body: Any) -> Any:
        return {"errors": True, "items": [item(SearchServer.ids(body)[0], 201), item("d1", 400, "parsing")]}

    with SearchServer(bulk=refuses) as server:
        server.there = False
        with pytest.raises(DataError, match=r"document 'd1' is refused by index i on .*400: parsing: said so"):
            load(server.index(), Made(), PLAN)
    with SearchServer(bulk={"errors": False, "items": [item("d0", 201)]}) as server:
        server.there = False
        with pytest.raises(BackendUnavailable, match="in a form"):
            load(server.index(), Made(), PLAN)


def test_93_a_version_conflict_is_another_writer() -> None:
    conflict = {"errors": True, "items": [item("d0", 409, "version_conflict_engine_exception"), item("d1", 201)]}
    with SearchServer(bulk=conflict) as server:
        server.there = False
        with pytest.raises(BackendUnavailable, match=r"somebody else writes document 'd0'.*one process at a time"):
            load(server.index(), Made(), PLAN)


def test_94_a_red_index(tiny: tuple[Path, Path]) -> None:
    health = {"status": "red", "active_primary_shards": 2, "number_of_data_nodes": 3}
    with SearchServer(health=health, count={"count": 5, "_shards": SHARDS}) as server:
        checks = doctor(server, tiny[0])
        assert (checks["cluster"].status, checks["cluster"].detail) == ("problem", "red, 2 primary shards on 3 nodes")
        assert "every search fails" in checks["cluster"].fix
    said = refused("search_phase_execution_exception", "all shards failed", 503)
    with SearchServer(search=said) as server, pytest.raises(BackendUnavailable, match="all shards failed"):
        OpenSearchRetriever(server.index()).search(LAW, 5)


def test_95_an_index_that_may_not_be_written_to() -> None:
    blocked = {"errors": True, "items": [item(f"d{n}", 403, "cluster_block_exception") for n in range(2)]}
    with SearchServer(bulk=lambda number, body: blocked if number == 2 else None) as server:
        server.there = False
        with pytest.raises(Forbidden, match=r"may not be written to.*read_only_allow_delete"):
            load(server.index(), Made(), PLAN)
        assert len(server.bodies["bulk"]) == 2
        # What is done stays, and the same command goes on.
        server.script = {}
        assert load(server.index(), Made(), PLAN)[0].complete
        assert len(server.documents) == 5
    with SearchServer(i=refused("security_exception", "no permission for create", 403)) as server:
        server.there = False
        with pytest.raises(Forbidden, match=r"does not allow this.*no permission for create"):
            load(server.index(), Made(), PLAN)


@pytest.mark.parametrize(
    "version",
    [{"number": "6.8.0"}, {"number": "10.0.0"}, {"number": "two"}, {"distribution": "other", "number": "1.0"}],
)
def test_96_a_server_of_an_unknown_version(tiny: tuple[Path, Path], version: Any) -> None:
    with SearchServer(root={"version": version}) as server:
        with pytest.raises(
            BackendUnavailable, match=r"not known whether.*Elasticsearch 7\.10 to 9 and OpenSearch 1 to 3"
        ):
            _ = server.index().version
        assert doctor(server, tiny[0])["search server"].status == "problem"
        with pytest.raises(BackendUnavailable, match="not known whether"):
            open_agent(*tiny, engine={"kind": "opensearch", "url": server.url, "index": "i"})
    # Who may read the index need not be allowed to ask the server itself.
    with SearchServer(root=refused("security_exception", "no", 403)) as server:
        open_agent(*tiny, engine={"kind": "opensearch", "url": server.url, "index": "i"})


def test_97_an_index_without_the_fields(tiny: tuple[Path, Path]) -> None:
    with SearchServer(mapping={"i": {"mappings": {"properties": {"body": {"type": "text"}}}}}) as server:
        with pytest.raises(
            DataError, match=r"no field 'contents', 'text', 'title', 'id' \(engine\.fields.*it has: body"
        ):
            OpenSearchRetriever(server.index())
        with pytest.raises(DataError, match="no field 'sex'"):
            ServerGroups(server.index(), {"gender": "sex"}, {}).labels("gender")
    with SearchServer() as server, pytest.raises(DataError, match="no field 'vector'"):
        OpenSearchVectors(OpenSearchRetriever(server.index()), None)  # type: ignore[arg-type]


def test_98_an_index_that_is_not_there(tiny: tuple[Path, Path]) -> None:
    with SearchServer() as server:
        server.there = False
        with pytest.raises(NotThere, match=r"no index 'i' on 127\.0\.0\.1.*fairagent index --engine opensearch"):
            OpenSearchRetriever(server.index())
        checks = doctor(server, tiny[0])
        assert list(checks) == ["search server", "search index"]
        assert checks["search index"].status == "problem"


def test_99_ids_of_groups_that_the_index_lacks_are_counted_and_named(tiny: tuple[Path, Path]) -> None:
    table = load_collection(tiny[0]).groups
    (_, ids), *_ = table.batches()  # type: ignore[attr-defined]
    lacking = sorted(ids)[:2]

    def counted(number: int, body: Any) -> Any:
        wanted = body["query"]["terms"]["id"] if body and "query" in body else ids
        return {"count": len(set(wanted) - set(lacking)), "_shards": SHARDS}

    there = found(*(id for id in ids if id not in lacking))
    with SearchServer(count=counted, search=there) as server:
        check = doctor(server, tiny[0])["groups on the server"]
        assert check.detail == f"2 of {len(ids)} ids of the group table are not in the index"
        assert f"the first: {lacking[0]!r}, {lacking[1]!r}" in check.fix
        with pytest.raises(DataError, match=rf"2 document id\(s\) are not in index .*{lacking[0]!r}, {lacking[1]!r}"):
            OpenSearchRetriever(server.index()).score(LAW, ids)


@pytest.mark.parametrize(
    "body", [b"<html>Welcome</html>", b"", b"{", b'{"hits": NaN}', b"\xff\xfe", b"[" * 100_000, b'{"hits": 1e999}']
)
def test_100_an_answer_that_is_no_json(body: bytes) -> None:
    with SearchServer(search=Answer(body)) as server, pytest.raises(BackendUnavailable, match="no JSON"):
        OpenSearchRetriever(server.index()).search(LAW, 5)


def test_101_an_answer_without_an_end() -> None:
    with SearchServer(search=Answer(b" " * (17 << 20))) as server:
        with pytest.raises(BackendUnavailable, match="more than 16 MB"):
            OpenSearchRetriever(server.index()).search(LAW, 5)
        assert len(server.bodies["search"]) == 1
    many = Answer(b"[" + b"0," * 600_000 + b"0]")
    with SearchServer(search=many) as server, pytest.raises(BackendUnavailable, match="more than 500,000 values"):
        OpenSearchRetriever(server.index()).search(LAW, 5)
    # Fewer bytes than the head promises.
    with SearchServer(search=Answer(b"{}", head={"content-length": "10"})) as server:
        with pytest.raises(BackendUnavailable, match=r"did not answer in 0\.3 s"):
            OpenSearchRetriever(server.index(timeout=0.3, attempts=2)).search(LAW, 5)
        assert len(server.bodies["search"]) == 2


def test_102_a_redirect_is_not_followed() -> None:
    with (
        SearchServer() as other,
        SearchServer(search=Answer({}, 307, {"location": f"{other.url}/i/_search"})) as server,
    ):
        with pytest.raises(BackendUnavailable, match=r"answered 307: it sends requests on .* nothing was sent"):
            OpenSearchRetriever(server.index(environ={"KEY": KEY})).search(LAW, 5)
        assert other.requests == []


@pytest.mark.parametrize("status", [401, 403])
def test_103_a_key_that_is_refused_and_shown_nowhere(status: int) -> None:
    said = refused("security_exception", f"the key {KEY} is none", status)
    with SearchServer(search=said) as server:
        index = server.index(environ={"KEY": KEY})
        with pytest.raises(Forbidden, match=r"the key \*\*\* is none; check what the environment") as caught:
            OpenSearchRetriever(index).search(LAW, 5)
        assert len(server.bodies["search"]) == 1
        assert {key for _, _, key in server.requests} == {f"ApiKey {KEY}"}
        error: BaseException | None = caught.value
        while error:
            assert KEY not in f"{error!s}{error!r}{index!r}{vars(index)!r}"
            error = error.__cause__ or error.__context__


def test_104_a_list_that_is_longer_than_the_server_gives() -> None:
    with SearchServer(settings={"i": {"settings": {"index": {"max_result_window": "50"}}}}) as server:
        with pytest.raises(UsageError, match=r"51 documents .* gives 50 at a time; lower `depth`.*max_result_window"):
            OpenSearchRetriever(server.index()).search(LAW, 51)
        assert "search" not in server.bodies
    with SearchServer(settings=refused("security_exception", "not yours", 403)) as server:
        assert server.index().window == 10_000


def test_105_an_index_of_something_else_is_not_loaded_into() -> None:
    with SearchServer() as server:
        for force in (False, True):
            with pytest.raises(IndexMismatch, match="fairagent has not made; it is left alone"):
                load(server.index(), Made(), PLAN, force=force)
        assert {method for method, _, _ in server.requests} == {"GET"}
        server.meta = {"fairagent": {"collection": "made", "fingerprint": "other", "done": 5, "complete": True}}
        with pytest.raises(IndexMismatch, match="fingerprint: index other, now as made"):
            load(server.index(), Made(), PLAN)
        assert {method for method, _, _ in server.requests} == {"GET"}


def test_106_a_load_that_is_killed_goes_on_and_is_counted(tiny: tuple[Path, Path]) -> None:
    with SearchServer(bulk=lambda number, body: Answer({}, 500) if number == 3 else None) as server:
        server.there = False
        with pytest.raises(BackendUnavailable, match="answered 500"):
            load(server.index(), Made(), PLAN, commit_every=2)
        half = LoadRecord.read(server.index())
        assert half is not None
        assert (half.done, half.complete) == (4, False)
        check = doctor(server, tiny[0])["search index"]
        assert (check.status, check.detail) == ("problem", "i: 4 documents of made are loaded, not all")
        load(server.index(), Made(), PLAN)
        assert SearchServer.ids(server.bodies["bulk"][-1]) == ["d4"]
        assert sorted(server.documents) == [f"d{n}" for n in range(5)]
        server.documents.pop("d0")
        with pytest.raises(DataError, match="holds 4 documents where 5 were loaded"):
            load(server.index(), Made(), PLAN)


def test_107_a_query_that_the_server_calls_wrong() -> None:
    said = refused("too_many_nested_clauses", "Query contains too many nested clauses", 400)
    with SearchServer(search=said) as server:
        with pytest.raises(
            DataError, match=r"calls the request wrong: too_many_nested_clauses: Query contains too many"
        ):
            OpenSearchRetriever(server.index()).search(Query("law", terms=(Term("court", 0.5),)), 5)
        assert len(server.bodies["search"]) == 1
        assert FIELDS["contents"]["type"] == "text"


def healthy_terms(number: int, body: Any) -> Any:
    vectors = {"contents": {"terms": {"law": {"term_freq": 2}, "court": {"term_freq": 1}}}}
    return {"docs": [{"_id": doc["_id"], "found": True, "term_vectors": vectors} for doc in body["docs"]]}


def healthy_search(number: int, body: Any) -> Any:
    if "aggs" not in body:
        return found("a", "b")
    if "terms" in body["aggs"]:
        filters = body["aggs"]["terms"]["filters"]["filters"]
        return {**found(), "aggregations": {"terms": {"buckets": [{"doc_count": 1} for _ in filters]}}}
    labels = {"buckets": [{"key": "female", "doc_count": 1}], "sum_other_doc_count": 0}
    return {**found(), "aggregations": {"labels0": labels, "none0": {"doc_count": 1}}}


def healthy_words(number: int, body: Any) -> Any:
    tokens = [{"position": 0, "start_offset": 0, "end_offset": 3}]
    return {"found": True, "term_vectors": {"contents": {"terms": {"law": {"term_freq": 1, "tokens": tokens}}}}}


HEALTHY: dict[str, Any] = {
    "search": healthy_search,
    "mtermvectors": healthy_terms,
    "termvectors": healthy_words,
    "msearch": lambda number, body: {"responses": [found("a") for _ in body[::2]]},
    "count": {"count": 2, "_shards": SHARDS},
    "mapping": {"i": {"mappings": {"properties": FIELDS}}},
    "settings": {"i": {"settings": {"index": {"max_result_window": "100"}}}},
    "root": {"version": {"number": "8.15.3"}},
}
STRANGE: tuple[Any, ...] = (None, True, -1, 1e300, "", "x", [], {}, [[]], {"a": {}}, "\ud800", 2**62)


def damaged(value: Any, draw: random.Random) -> Any:
    """The value with one thing in it replaced, left out or put twice."""
    if not isinstance(value, dict | list) or not value or draw.random() < 0.2:
        return draw.choice(STRANGE)
    if isinstance(value, list):
        place = draw.randrange(len(value))
        inner = draw.choice([[], [value[place]] * 2, [damaged(value[place], draw)]])
        return [*value[:place], *inner, *value[place + 1 :]]
    key = draw.choice(list(value))
    rest = {name: one for name, one in value.items() if name != key}
    return draw.choice([rest, {**rest, key: damaged(value[key], draw)}, {**rest, key: damaged(value[key], draw)}])


def asked(server: SearchServer) -> Any:
    """Everything that is ever asked of an index, but for loading."""
    index = server.index(timeout=2.0, attempts=1)
    _ = index.version
    groups = ServerGroups(index, {"gender": "gender"}, {})
    engine = OpenSearchRetriever(index, groups)
    ranking = engine.search(LAW, 2)
    rows = groups.memberships("gender", ranking.ids), groups.shares("gender")
    postings = engine.postings(ranking.ids)
    told = engine.words(postings.vocabulary), engine.analyze("law"), engine.document_frequency("law")
    texts = [(one.title, one.text) for one in engine.documents(ranking.ids)]
    counted = engine.group_counts(LAW)
    scores = engine.score(LAW, ranking.ids).tolist()
    return ranking.ids, scores, [row.tolist() for row in rows], told, texts, counted, len(engine)


def test_100_damaged_answers_are_errors_of_ours_or_harmless() -> None:
    with SearchServer(**HEALTHY) as server:
        whole = asked(server)
        assert whole[0] == ("a", "b")
        draw, refused_answers = random.Random(7), 0
        for name in list(HEALTHY) * 25:
            healthy = HEALTHY[name]

            def broken(number: int, body: Any, healthy: Any = healthy) -> Any:
                return Answer(damaged(healthy(number, body) if callable(healthy) else healthy, draw))

            server.script = {**HEALTHY, name: broken}
            try:
                asked(server)
            except FairAgentError:
                refused_answers += 1
        assert refused_answers > 100
