"""A data set of the package ir-datasets by its name: its documents, topics and judgments as files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fairagent.collection.records import shown
from fairagent.errors import BackendUnavailable, UsageError
from fairagent.storage.packages import installed

PREFIX = "irds:"
"""What a name begins with, as in `irds:vaswani`."""


def write_dataset(name: str, folder: Path) -> tuple[Path, Path | None, Path | None]:
    """Write documents.jsonl, topics.jsonl and qrels.txt of the data set to `folder`; None for what it does not have.

    The package fetches what it does not have. Raises BackendUnavailable without the package, or where it could not
    fetch; UsageError for a name that it does not know, and a data set without documents.
    """
    ir_datasets = installed("ir-datasets", f"a data set by its name ({PREFIX}{name})")
    try:
        dataset = ir_datasets.load(name)
    except KeyError:
        raise UsageError(
            f"{PREFIX}{name}: ir-datasets knows no data set of that name; its names are on https://ir-datasets.com"
        ) from None
    if not dataset.has_docs():
        raise UsageError(f"{PREFIX}{name} has no documents; name a data set that has, e.g. the part before the last /")
    try:
        documents = _write(folder / "documents.jsonl", map(_document, dataset.docs_iter()))
        topics = _write(folder / "topics.jsonl", map(_topic, dataset.queries_iter())) if dataset.has_queries() else None
        qrels = folder / "qrels.txt" if dataset.has_qrels() else None
        if qrels:
            with qrels.open("w", encoding="utf-8") as file:
                for one in dataset.qrels_iter():
                    file.write(f"{one.query_id} 0 {one.doc_id} {one.relevance}\n")
    except Exception as error:
        # What the package raises where it cannot fetch is any of its own, of requests or of the operating system.
        reason = shown(str(error) or type(error).__name__, 200)
        home = ir_datasets.util.home_path()
        raise BackendUnavailable(
            f"{PREFIX}{name}: ir-datasets could not fetch it ({reason}); without a network only those work whose files "
            f"are in {home} already"
        ) from error
    return documents, topics, qrels


def _write(path: Path, rows: Iterator[dict[str, Any]]) -> Path:
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return path


def _document(document: Any) -> dict[str, Any]:
    fields = {name: value for name, value in document._asdict().items() if isinstance(value, str | int | float)}
    del fields["doc_id"]
    return {"id": document.doc_id, **fields, "text": fields.get("text") or document.default_text()}


def _topic(topic: Any) -> dict[str, Any]:
    fields = {name: value for name, value in topic._asdict().items() if isinstance(value, str)}
    del fields["query_id"]
    return {"id": topic.query_id, **fields, "query": fields.get("title") or topic.default_text()}
