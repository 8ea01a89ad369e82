"""Load a collection into an index that is made anew.

Usage: python examples/opensearch/load.py collection.yaml http://localhost:9200 documents
"""

import sys
from collections.abc import Iterator
from typing import Any

from opensearchpy import OpenSearch, helpers

from fairagent import load_collection

path, url, index = sys.argv[1:]
collection, client = load_collection(path), OpenSearch([url], timeout=60)
groups = collection.groups
# What depends on a topic is no property of a document.
dimensions = [name for name in groups.dimensions if name not in groups.oracle]
text = {"type": "text", "analyzer": "english"}
fields = {"id": {"type": "keyword"}, "title": text, "text": text, **{name: {"type": "keyword"} for name in dimensions}}
client.indices.create(index=index, body={"mappings": {"properties": fields}})


def records() -> Iterator[dict[str, Any]]:
    """The documents with the labels of their groups."""
    for one in collection.source:
        record = {"_index": index, "_id": one.id, "id": one.id, "title": one.title, "text": one.text}
        for name in dimensions:
            shares = groups.memberships(name, [one.id])[0, 1:]
            record[name] = [label for label, share in zip(groups.labels(name), shares, strict=True) if share > 0]
        yield record


print(helpers.bulk(client, records(), refresh=True)[0], "documents")
