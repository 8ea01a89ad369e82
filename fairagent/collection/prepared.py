"""What `init` looks at: the documents' file as it is, and topics and judgments beside it.

Of documents there is one file, the user's own, but of a data set of ir-datasets. Topics may get a copy that fairagent
can read, made in a folder that passes, and kept where the user agrees.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from fairagent.collection.config import RecordsFile
from fairagent.collection.encodings import decoded, is_utf8
from fairagent.collection.forms import form_of, records
from fairagent.collection.look import ID
from fairagent.collection.named_datasets import PREFIX, write_dataset
from fairagent.collection.records import UTF8, Faults, lines, listed
from fairagent.collection.topic_texts import are_topics, read_topics, topics_text
from fairagent.errors import UsageError
from fairagent.settings import validate
from fairagent.storage.files import file_name, whole_file

QUERIES = ("query", "title", "question", "text", "topic")
"""What the field that is searched is called in files of topics, the likeliest first."""


@dataclass(slots=True)
class Prepared:
    """What is looked at (`documents`), and the rest of a collection; `copies` are by the name that they will have.

    `notes` say what is not as it was.
    """

    passing: Path
    documents: Path
    encoding: tuple[str, ...] = ()
    copies: dict[str, Path] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    more: dict[str, Any] = field(default_factory=dict)
    example: str = ""

    def copy(self, name: str) -> Path:
        """The place of a new copy; raises UsageError for a name that is one already."""
        path = self.passing / name
        self.copies[name] = path
        return path

    def check_free(self, folder: Path) -> None:
        """Raise UsageError where a copy would take the place of a file."""
        for name in self.copies:
            if (folder / name).exists():
                raise UsageError(
                    f"{folder / name} is there already and is never overwritten; move it, or name --output"
                )

    def keep(self, folder: Path) -> None:
        """Put the copies into the folder."""
        self.check_free(folder)
        for name, path in self.copies.items():
            with path.open("rb") as old, whole_file(folder / name) as new:
                shutil.copyfileobj(old, new)


def prepare(
    source: str, format: str | None, encoding: str, topics: Path | None, qrels: Path | None, passing: Path, output: Path
) -> Prepared:
    """Documents from a file, with its encoding, or a name of ir-datasets, with topics and judgments.

    Raises what reading these raises.
    """
    if source.startswith(PREFIX):
        if topics or qrels:
            raise UsageError(f"{source} brings its own topics and judgments: leave out --topics and --qrels")
        return _dataset(source.removeprefix(PREFIX), passing)
    path = Path(source)
    ready = Prepared(passing, path)
    if path.is_file() and form_of(path, format) in ("jsonl", "tsv", "csv"):
        if encoding or not is_utf8(path):
            read = decoded(path, encoding)
            ready.encoding = read.encodings
            if ready.encoding:
                ready.notes.append(f"{path.name}: {read}; it is read so each time (`encoding`)")
        if are_topics("\n".join(_first(path, ready.encoding))):
            raise UsageError(f"{path} holds topics, no documents: fairagent init DOCUMENTS --topics {path}")
    if topics:
        ready.more["topics"] = _topics(ready, topics, encoding, qrels, output)
    if qrels:
        if not topics:
            raise UsageError("--qrels needs --topics: judgments are of topics")
        if not qrels.is_file():
            raise UsageError(f"--qrels {qrels}: no such file")
        ready.more["qrels"] = {"path": os.path.relpath(qrels, output.parent)}
    return ready


def _dataset(name: str, passing: Path) -> Prepared:
    files = write_dataset(name, passing)
    ready, stem = Prepared(passing, files.documents), file_name(name)
    for path in (files.documents, files.topics, files.qrels):
        if path:
            ready.copies[f"{stem}.{path.name}"] = path
    if files.topics:
        ready.more["topics"] = {"path": f"{stem}.{files.topics.name}", "query": "query"}
        ready.example = next((str(record["query"]) for record in _records(files.topics, {})), "")
    if files.topics and files.qrels:
        ready.more["qrels"] = {"path": f"{stem}.{files.qrels.name}"}
    ready.notes.append(
        f"{PREFIX}{name}: documents, topics and judgments are copied from ir-datasets; from now on "
        f"{stem}.{files.documents.name} is the source: what is deleted there, `fairagent index` takes out of the index"
    )
    return ready


def _topics(ready: Prepared, path: Path, encoding: str, qrels: Path | None, output: Path) -> dict[str, Any]:
    """The `topics` of the collection file; those of TREC are copied as JSON lines."""
    text = topics_text(path, encoding) if form_of(path) == "jsonl" else ""
    if not are_topics(text):
        return _plain_topics(ready, path, output)
    topics = read_topics(path, text)
    judged = _judged(qrels) if qrels else set()
    ids = {topic["id"] for topic in topics}
    if judged and not judged & ids and judged & {id.lstrip("0") for id in ids}:
        topics = [{**topic, "id": topic["id"].lstrip("0") or "0"} for topic in topics]
        ready.notes.append(f"topics are numbered as in {qrels}: without zeros at the beginning")
    name = f"{path.name.split('.')[0]}.topics.jsonl"
    made = "".join(json.dumps(topic, ensure_ascii=False) + "\n" for topic in topics)
    ready.copy(name).write_text(made, encoding="utf-8")
    ready.example = topics[0]["query"]
    ready.notes.append(f"{path.name}: {len(topics):,} topics; {name} is a copy as JSON lines, titles are searched")
    return {"path": name, "query": "query"}


def _plain_topics(ready: Prepared, path: Path, output: Path) -> dict[str, Any]:
    """Topics in lines or columns: which column is the id, and which is searched."""
    head = next(iter(_first(path)), "")
    keys: dict[str, Any] = {"path": os.path.relpath(path, output.parent)}
    cells = head.split("\t")
    if form_of(path) == "tsv" and len(cells) == 2 and not ID.fullmatch(cells[0].strip()):
        keys["columns"] = ["id", "query"]
    first = next(_records(path, keys), None)
    if first is None:
        raise UsageError(f"--topics {path}: there are no topics in it")
    id = next((name for name in first if ID.fullmatch(name)), None)
    query = next((name for name in QUERIES if name in first), None)
    if id is None or query is None:
        raise UsageError(
            f"--topics {path}: {'no column with ids' if id is None else 'none of ' + ', '.join(QUERIES)} in it; there "
            f"are: {listed(list(first))}"
        )
    ready.example = str(first[query])
    return {**keys, **({} if id == "id" else {"id": id}), **({} if query == "query" else {"query": query})}


def _records(path: Path, keys: dict[str, Any]) -> Iterator[Any]:
    faults = Faults()
    fields = validate(RecordsFile, {"columns": keys.get("columns", [])}, "init")
    yield from (record for _, record in records(path, fields, faults))
    faults.check(str(path))


def _first(path: Path, encodings: tuple[str, ...] = ()) -> list[str]:
    """The first lines of a text, whatever is wrong with them."""
    return [text for _, text in islice(lines(path, Faults(), encodings=encodings or UTF8), 50)]


def _judged(path: Path) -> set[str]:
    return {text.split()[0] for _, text in lines(path, Faults()) if text.split()}
