"""What `fairagent doctor` says of an index on a server; each line is a request, and a cheap one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairagent.extend import Check, FairAgentError, GroupTable, Site
from fairagent.guests.opensearch.bulk import LoadRecord
from fairagent.guests.opensearch.groups import ServerGroups
from fairagent.guests.opensearch.index import ServerIndex, named
from fairagent.guests.opensearch.server import Forbidden, NotThere
from fairagent.guests.opensearch.vectors import likeness

if TYPE_CHECKING:
    from fairagent.guests.opensearch.config import OpenSearchConfig

CHECKED_IDS = 200_000
"""Ids of a group table that are looked for in the index."""


def check_server(part: OpenSearchConfig, site: Site) -> Iterator[Check]:
    """The server, its health, the index, fields, groups, and what the account may do; up to the first problem."""
    name = "search server"
    try:
        index = part.opened(site)
        yield _server(part, index)
        for name, check in CHECKS.items():  # noqa: B007  # it names what fails
            yield check(part, index, site)
    except NotThere as error:
        yield Check(name, "problem", str(error), "see engine.index; `fairagent index --engine opensearch` makes it")
    except FairAgentError as error:
        yield Check(name, "problem", str(error), "mend this first; nothing else of the server was checked")


def _server(part: OpenSearchConfig, index: ServerIndex) -> Check:
    detail = f"{index.version} at {index.server.host}"
    if index.server.address.is_plain:
        return Check("search server", "note", detail, "user and key are sent unencrypted: use https")
    if not part.verify:
        return Check("search server", "note", detail, "its certificate is not checked: set engine.ca")
    return Check("search server", "ok", detail)


def _index(part: OpenSearchConfig, index: ServerIndex, site: Site) -> Check:
    documents = index.count()
    try:
        record = LoadRecord.read(index)
    except Forbidden:
        record = None
    if record and not record.complete:
        detail = f"{index.name}: {record.done:,} documents of {record.collection} are loaded, not all"
        return Check("search index", "problem", detail, "go on with `fairagent index --engine opensearch`")
    if not documents:
        return Check("search index", "problem", f"{index.name} is empty", "load documents into it")
    source = f"loaded from {record.collection}" if record else "not made by fairagent"
    return Check("search index", "ok", f"{index.name}: {documents:,} documents, {source}")


def _cluster(part: OpenSearchConfig, index: ServerIndex, site: Site) -> Check:
    try:
        health = index.server.ask("GET", f"/_cluster/health/{index.name}")
        status, shards = str(health["status"]), int(health["active_primary_shards"])
        detail = f"{status}, {shards} primary shards on {health['number_of_data_nodes']} nodes"
    except Forbidden:
        return Check("cluster", "note", "its health may not be read", "searches show whether every shard answers")
    except (KeyError, TypeError, ValueError):
        return Check("cluster", "note", "it does not say its health in a known form")
    if status == "red":
        fix = "some shards are missing, so every search fails: see _cluster/allocation/explain on the server"
        return Check("cluster", "problem", detail, fix)
    return Check("cluster", "ok", detail, "copies of shards are missing" if status == "yellow" else "")


def _fields(part: OpenSearchConfig, index: ServerIndex, site: Site) -> Check:
    fields = index.fields
    index.check_fields((fields.id, fields.title, fields.text, *fields.searched))
    searched = []
    for name in fields.searched:
        about = index.mapping[name]
        terms = "terms stored" if about.get("term_vector", "no") != "no" else "terms made from the text at each request"
        searched.append(f"{name} ({about.get('analyzer', 'standard')}, {about.get('similarity', 'BM25')}; {terms})")
    if part.by == "embeddings":
        searched.append(f"{fields.vector} ({', '.join(map(str, likeness(index)))})")
    detail = f"searched: {', '.join(searched)}"
    if fields.id == "_id":
        return Check("fields", "note", detail, "ids are the server's _id, by which it cannot order ties over 10,000")
    type_of_id = index.mapping[fields.id].get("type")
    if type_of_id != "keyword":
        detail = f"the id {fields.id!r} is of type {type_of_id}"
        return Check("fields", "problem", detail, "name a keyword field, or `_id`")
    return Check("fields", "ok", detail)


def _groups(part: OpenSearchConfig, index: ServerIndex, site: Site) -> Check:
    name, groups = "groups on the server", site.collection.groups
    if part.groups:
        own = ServerGroups(index, part.groups, {})
        dimensions = [
            f"{one}: {len(own.labels(one))} labels, {own.counts(one)['']:,} without" for one in own.dimensions
        ]
        return Check(name, "ok", "; ".join(dimensions))
    if not isinstance(groups, GroupTable):
        return Check(name, "ok", "none; the collection's are used")
    checked, missing, first = 0, 0, list[str]()
    for _, ids in groups.batches(index.window):
        absent, some = index.absent(iter([ids]))
        checked, missing, first = checked + len(ids), missing + absent, first or some
        if checked >= CHECKED_IDS:
            break
    if missing:
        detail = f"{missing:,} of {checked:,} ids of the group table are not in the index"
        fix = f"the first: {named(first)}; if all are missing, engine.fields.id is another field's"
        return Check(name, "problem" if missing == checked else "note", detail, fix)
    return Check(name, "ok", f"the collection's; the index has all {checked:,} ids checked, of {len(groups):,}")


def _permissions(part: OpenSearchConfig, index: ServerIndex, site: Site) -> Check:
    """Searching and term vectors are tried; writing is not."""
    index.search({"size": 0, "query": {"match_none": {}}})
    try:
        index.server.ask("POST", "/_mtermvectors", {"docs": [{"_index": index.one, "_id": "-"}]})
    except Forbidden:
        fix = "feedback and topic words need the privilege to read (`_mtermvectors`)"
        return Check("permissions", "note", "term vectors are not allowed", fix)
    try:
        blocks = dict(index.settings.get("blocks", {}))
    except Forbidden:
        blocks = {}
    only = "; the index is read-only" if any(str(on) == "true" for on in blocks.values()) else ""
    return Check("permissions", "ok", f"search and term vectors are allowed; nothing is ever written{only}")


CHECKS = {
    "search index": _index,
    "cluster": _cluster,
    "fields": _fields,
    "groups on the server": _groups,
    "permissions": _permissions,
}
