"""What `fairagent doctor` finds out about an index on a server: each line is a question of its own, and a cheap one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from fairagent.cli.checks import Check
from fairagent.collection.table import GroupTable
from fairagent.errors import FairAgentError
from fairagent.guests.opensearch.bulk import LoadRecord
from fairagent.guests.opensearch.config import OpenSearchConfig
from fairagent.guests.opensearch.groups import ServerGroups
from fairagent.guests.opensearch.index import ServerIndex, named
from fairagent.guests.opensearch.server import Forbidden, NotThere
from fairagent.guests.opensearch.vectors import likeness
from fairagent.retrieve.site import Site

CHECKED_IDS = 200_000
"""Ids of a group table that are looked for in the index."""


def check_own_index(part: Any, site: Site) -> Iterator[Check]:
    """An index that others made and the engine `part` searches: on a server, or one of Anserini's."""
    if part.kind == "opensearch":
        yield from check_server(part, site)
    else:
        part.check(site)
        yield Check("index", "ok", part.told(site))


def check_server(part: OpenSearchConfig, site: Site) -> Iterator[Check]:
    """The server, its health, the index, fields, groups, and what the account may do; up to the first problem."""
    steps: tuple[tuple[str, Callable[[ServerIndex], Check]], ...] = (
        ("search server", lambda index: _server(part, index)),
        ("search index", _index),
        ("cluster", _cluster),
        ("fields", lambda index: _fields(part, index)),
        ("groups on the server", lambda index: _groups(part, index, site)),
        ("permissions", _permissions),
    )
    try:
        index = part.opened(site)
    except FairAgentError as error:
        yield Check("search server", "problem", str(error).splitlines()[0], "mend the settings of the engine")
        return
    for name, step in steps:
        try:
            yield step(index)
        except NotThere as error:
            yield Check(name, "problem", str(error), "see engine.index; `fairagent index --engine opensearch` makes it")
            return
        except FairAgentError as error:
            yield Check(name, "problem", str(error), "mend what is said above; nothing else of the server was checked")
            return


def _server(part: OpenSearchConfig, index: ServerIndex) -> Check:
    found = f"{index.version} at {index.server.host}"
    if index.server.address.is_plain:
        return Check("search server", "note", found, "user and key are sent unencrypted: use https")
    if not part.verify:
        return Check("search server", "note", found, "its certificate is not checked: set engine.ca, not verify: false")
    return Check("search server", "ok", found)


def _index(index: ServerIndex) -> Check:
    documents = index.count()
    try:
        origin = LoadRecord.read(index)
    except Forbidden:
        origin = None
    if origin and not origin.complete:
        found = f"{index.name}: {origin.done:,} documents of {origin.collection} are loaded, not all"
        return Check("search index", "problem", found, "go on with `fairagent index --engine opensearch`")
    if not documents:
        return Check("search index", "problem", f"{index.name} is empty", "load documents into it")
    whose = f"loaded from {origin.collection}" if origin else "not made by fairagent"
    return Check("search index", "ok", f"{index.name}: {documents:,} documents, {whose}")


def _cluster(index: ServerIndex) -> Check:
    try:
        health = index.server.ask("GET", f"/_cluster/health/{index.name}")
        status = str(health["status"])
        found = f"{status}, {int(health['active_primary_shards'])} primary shards on {health['number_of_data_nodes']}"
    except Forbidden:
        return Check("cluster", "note", "its health may not be read", "searches find out whether every shard answers")
    except (KeyError, TypeError, ValueError):
        return Check("cluster", "note", "it does not say its health in a known form")
    fix = "some shards are missing, so every search fails: see _cluster/allocation/explain on the server"
    if status == "red":
        return Check("cluster", "problem", f"{found} nodes", fix)
    return Check("cluster", "ok", f"{found} nodes", "copies of shards are missing" if status == "yellow" else "")


def _fields(part: OpenSearchConfig, index: ServerIndex) -> Check:
    fields = index.fields
    index.check_fields((fields.id, fields.title, fields.text, *fields.searched))
    said = []
    for name in fields.searched:
        about = index.mapping[name]
        terms = "terms stored" if about.get("term_vector", "no") != "no" else "terms made from the text at each request"
        said.append(f"{name} ({about.get('analyzer', 'standard')}, {about.get('similarity', 'BM25')}; {terms})")
    if part.by == "embeddings":
        said.append(f"{fields.vector} ({', '.join(map(str, likeness(index)))})")
    found = f"searched: {', '.join(said)}"
    if fields.id == "_id":
        return Check("fields", "note", found, "ids are the server's _id, by which it cannot order ties over 10,000")
    kind = index.mapping[fields.id].get("type")
    if kind != "keyword":
        return Check("fields", "problem", f"the id {fields.id!r} is of type {kind}", "name a keyword field, or `_id`")
    return Check("fields", "ok", found)


def _groups(part: OpenSearchConfig, index: ServerIndex, site: Site) -> Check:
    name = "groups on the server"
    groups = site.collection.groups
    if part.groups:
        of = ServerGroups(index, part.groups, {})
        said = [
            f"{dimension}: {len(of.labels(dimension))} labels, {of.counts(dimension)['']:,} documents without"
            for dimension in of.dimensions
        ]
        return Check(name, "ok", "; ".join(said))
    if not isinstance(groups, GroupTable):
        return Check(name, "ok", "none; the collection's are used")
    looked, missing, first = 0, 0, list[str]()
    for _, ids in groups.batches(index.window):
        absent, some = index.absent(iter([ids]))
        looked, missing, first = looked + len(ids), missing + absent, first or some
        if looked >= CHECKED_IDS:
            break
    found = f"{missing:,} of {looked:,} ids of the group table are not in the index"
    if missing:
        fix = f"the first: {named(first)}; if all are missing, engine.fields.id is another field's"
        return Check(name, "problem" if missing == looked else "note", found, fix)
    return Check(name, "ok", f"the collection's; {looked:,} of its {len(groups):,} ids were looked for and are there")


def _permissions(index: ServerIndex) -> Check:
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
