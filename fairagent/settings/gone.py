"""What earlier versions had and this one has no more: a name that is asked for is refused with what to use instead."""

from __future__ import annotations

GONE: dict[str, str] = {
    "load": "load documents with opensearch-py's bulk helper, as examples/opensearch/load.py does",
}
"""The name as a user wrote it (a kind, a key, a measure, a command such as `prompts optimize`, an index's engine) ->
what to use instead, a sentence without a full stop, as in CHANGELOG."""


def gone(name: str) -> str:
    """`NAME is gone: what to use instead`, of a name that earlier versions had; "" of any other."""
    return f"{name} is gone: {GONE[name]}" if name in GONE else ""
