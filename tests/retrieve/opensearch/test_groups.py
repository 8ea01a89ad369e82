"""Groups that documents on a server carry: labels, memberships, whole result sets."""

from __future__ import annotations

import numpy as np
import pytest

from fairagent.errors import DataError, UsageError
from fairagent.guests.opensearch.groups import ServerGroups
from fairagent.guests.opensearch.index import LOADED, Fields, ServerIndex
from fairagent.guests.opensearch.search import OpenSearchRetriever
from fairagent.guests.opensearch.server import Server
from fairagent.types import Query

from .made import GROUPS, MADE


@pytest.fixture
def groups(index: ServerIndex) -> ServerGroups:
    return ServerGroups(index, {"sex": "gender"}, {"sex": {"female": 0.4, "male": 0.5, "nonbinary": 0.1}})


def test_labels_are_those_of_the_index_and_of_the_population(groups: ServerGroups) -> None:
    assert groups.dimensions == ("sex",)
    assert groups.labels("sex") == ("female", "male", "nonbinary")
    with pytest.raises(UsageError, match="no dimension 'gender'; there are: sex"):
        groups.labels("gender")


def test_memberships_and_shares(groups: ServerGroups) -> None:
    ids = [one.id for one in MADE.made]
    column = {(): 0, ("female",): 1, ("male",): 2}
    expected = np.eye(4)[[column[GROUPS[id]["gender"]] for id in ids]]
    assert groups.memberships("sex", ids).tolist() == expected.tolist()
    assert groups.shares("sex") == pytest.approx(expected.mean(axis=0))
    with pytest.raises(DataError, match=r"1 document id\(s\) are not in index .*'nobody'"):
        groups.memberships("sex", ["law1", "nobody"])


def test_documents_of_lists_bring_their_labels(
    index: ServerIndex, groups: ServerGroups, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = OpenSearchRetriever(index, groups).search(Query("lawyer"), 5)
    groups.labels("sex")
    monkeypatch.setattr(Server, "ask", lambda *given, **more: pytest.fail("labels were asked for"))
    assert groups.memberships("sex", found.ids).shape == (5, 4)


def test_a_whole_result_set_is_counted_on_the_server(index: ServerIndex, groups: ServerGroups) -> None:
    engine = OpenSearchRetriever(index, groups)
    of = [GROUPS[id]["gender"] for id in engine.search(Query("lawyer"), 100).ids]
    counts = {"": of.count(()), "female": of.count(("female",)), "male": of.count(("male",))}
    assert engine.group_counts(Query("lawyer")) == {"sex": counts}
    assert engine.group_counts(Query("xyzzy")) == {"sex": {"": 0}}
    with pytest.raises(UsageError, match=r"engine\.groups"):
        OpenSearchRetriever(index).group_counts(Query("lawyer"))


def test_several_labels_share_a_document(server: Server, name: str) -> None:
    properties = {"of": {"type": "keyword"}, "year": {"type": "integer"}, "text": {"type": "text"}}
    server.ask("PUT", f"/{name}", {"mappings": {"properties": properties}})
    for id, of in {"1": ["a", "b"], "2": "b", "3": [], "4": ["b", "b", ""]}.items():
        server.ask("PUT", f"/{name}/_doc/{id}", {"of": of, "year": 1900, "text": "x"}, refresh="true")
    index = ServerIndex(server, name, Fields())
    groups = ServerGroups(index, {"of": "of", "year": "year"}, {})
    rows = [[0, 0.5, 0.5], [0, 0, 1], [1, 0, 0], [0, 0, 1]]
    assert groups.memberships("of", ["1", "2", "3", "4"]).tolist() == rows
    assert groups.labels("year") == ("1900",)
    assert groups.shares("year").tolist() == [0, 1]
    with pytest.raises(UsageError, match="some have several"):
        groups.shares("of")
    server.ask("PUT", f"/{name}/_doc/5", {"of": "c"}, refresh="true")
    with pytest.raises(DataError, match=r"document '5' .* has of 'c', which no document had"):
        groups.memberships("of", ["5"])


def test_a_field_that_cannot_be_counted(server: Server, name: str) -> None:
    keyword = {"type": "text", "fields": {"keyword": {"type": "keyword"}}}
    server.ask("PUT", f"/{name}", {"mappings": {"properties": {"of": keyword, "text": {"type": "text"}}}})
    index = ServerIndex(server, name, Fields())
    with pytest.raises(DataError, match=r"'of' .* is of type text.*name of\.keyword"):
        ServerGroups(index, {"of": "of"}, {}).labels("of")
    with pytest.raises(DataError, match=r"no field 'sex' .*it has: of, of\.keyword, text"):
        ServerGroups(index, {"sex": "sex"}, {}).labels("sex")
    server.ask("PUT", f"/{name}/_doc/1", {"of": "a"}, refresh="true")
    assert ServerGroups(index, {"of": "of.keyword"}, {}).memberships("of", ["1"]).tolist() == [[0, 1]]


def test_all_labels_as_a_table(index: ServerIndex, groups: ServerGroups, server: Server) -> None:
    narrow = ServerIndex(server, index.name, LOADED)
    narrow.__dict__["window"] = 4
    table = ServerGroups(narrow, {"sex": "gender"}, {}).table()
    ids = [one.id for one in MADE.made]
    assert len(table) == len(ids)
    assert table.memberships("sex", ids).tolist() == groups.memberships("sex", ids)[:, :3].tolist()
    with pytest.raises(UsageError, match="keyword field with the id"):
        ServerGroups(ServerIndex(server, index.name, Fields()), {"sex": "gender"}, {}).table()
