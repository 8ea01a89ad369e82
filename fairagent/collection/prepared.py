"""What `init` looks at: the documents' file as it is, and topics and judgments beside it.

All are the user's own files, but of a data set of ir-datasets: this is copied, in a folder that passes, and kept where
the user agrees, as is an experiment.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairagent.collection.config import QrelsFile, RecordsFile, TopicsFile
from fairagent.collection.encodings import decoded, is_utf8
from fairagent.collection.forms import form_of, records
from fairagent.collection.look import ID, Look
from fairagent.collection.named_datasets import PREFIX, write_dataset
from fairagent.collection.qrels import read_qrels, read_topics
from fairagent.collection.records import UTF8, Faults, lines, listed, plain_number
from fairagent.collection.row_ids import ROW
from fairagent.collection.topic_texts import has_topics
from fairagent.errors import UsageError
from fairagent.settings import validate
from fairagent.storage.files import file_name, whole_file
from fairagent.storage.readers import parse_json
from fairagent.types import Topic

QUERIES = ("query", "title", "question", "text", "topic")
"""What the field that is searched is called in files of topics, the likeliest first."""
MOST_DIGITS = 13
"""Fewer digits are tried of ids of documents."""


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
    topics: Mapping[str, Topic] = field(default_factory=dict)
    judged: tuple[str, ...] = ()

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
    ready.encoding = _encodings(ready, path, encoding, format)
    if has_topics(path, ready.encoding or UTF8):
        raise UsageError(f"{path} is in a form of topics, and not of documents: init DOCUMENTS --topics {path}")
    if topics:
        ready.more["topics"] = _topics(ready, topics, encoding, output)
    if qrels:
        if not topics:
            raise UsageError("--qrels needs --topics: judgments are of topics")
        ready.more["qrels"] = _qrels(ready, qrels, output)
    return ready


def _encodings(ready: Prepared, path: Path, encoding: str, format: str | None = None) -> tuple[str, ...]:
    """What a text file is in, named or guessed, which is noted; () for UTF-8 and what is no text."""
    if (
        not path.is_file()
        or form_of(path, format) not in ("jsonl", "tsv", "csv")
        or not (encoding or not is_utf8(path))
    ):
        return ()
    read = decoded(path, encoding)
    if read.encodings:
        ready.notes.append(f"{path.name}: {read}; it is read so each time (`encoding`)")
    return read.encodings


def _dataset(name: str, passing: Path) -> Prepared:
    documents, topics, qrels = write_dataset(name, passing)
    ready, stem = Prepared(passing, documents), file_name(name)
    ready.copies = {f"{stem}.{path.name}": path for path in (documents, topics, qrels) if path}
    if topics:
        ready.more["topics"] = {"path": f"{stem}.{topics.name}", "query": "query"}
        ready.example = next((parse_json(text)["query"] for _, text in lines(topics, Faults())), "")
        if qrels:
            ready.more["qrels"] = {"path": f"{stem}.{qrels.name}"}
    ready.notes.append(
        f"{PREFIX}{name}: documents, topics and judgments are copied from ir-datasets; from now on "
        f"{stem}.{documents.name} is the source: what is deleted there, `fairagent index` takes out of the index"
    )
    return ready


def _topics(ready: Prepared, path: Path, encoding: str, output: Path) -> dict[str, Any]:
    """The `topics` of the collection file: which column is the id, and which is searched."""
    keys: dict[str, Any] = {"path": os.path.relpath(path, output.parent)}
    if encodings := _encodings(ready, path, encoding):
        keys["encoding"] = encodings[0] if len(encodings) == 1 else list(encodings)
    if not has_topics(path, encodings or UTF8):
        keys |= _columns(path, keys, encodings or UTF8)
    faults = Faults()
    ready.topics = read_topics(path, validate(TopicsFile, keys, "--topics"), faults)
    faults.check(f"--topics {path}")
    ready.example = next(iter(ready.topics.values())).query
    ready.notes.append(f"{len(ready.topics):,} topics; the first one: {ready.example}")
    return keys


def _columns(path: Path, keys: dict[str, Any], encodings: Sequence[str]) -> dict[str, Any]:
    """The keys of topics in lines or columns."""
    head = next((text for _, text in lines(path, Faults(), encodings=encodings)), "")
    cells = head.split("\t")
    if form_of(path) == "jsonl" and len(cells) > 1 and not head.startswith("{"):
        keys = {**keys, "format": "tsv"}
    if (keys.get("format") or form_of(path)) == "tsv" and len(cells) == 2 and not ID.fullmatch(cells[0].strip()):
        keys = {**keys, "columns": ["id", "query"]}
    faults = Faults()
    fields = validate(RecordsFile, {name: value for name, value in keys.items() if name != "path"}, "init")
    first = next((record for _, record in records(path, fields, faults)), None)
    faults.check(f"--topics {path}")
    if first is None:
        return keys
    id = next((name for name in first if ID.fullmatch(name)), None)
    query = next((name for name in QUERIES if name in first), None)
    if id is None or query is None:
        lacking = "no column with ids" if id is None else f"none of {', '.join(QUERIES)}"
        raise UsageError(f"--topics {path}: {lacking} in it; there are: {listed(list(first))}")
    return {**keys, **({} if id == "id" else {"id": id}), **({} if query == "query" else {"query": query})}


def _qrels(ready: Prepared, path: Path, output: Path) -> dict[str, Any]:
    """The `qrels` of the collection file, once they can be read."""
    faults = Faults()
    read = read_qrels(path, QrelsFile(path=str(path)), ready.topics, faults)
    faults.check(f"--qrels {path}")
    ready.judged = tuple(dict.fromkeys(id for grades in read.grades.values() for id in grades))
    ready.notes += read.notes
    return {"path": os.path.relpath(path, output.parent)}


def match_judged(ready: Prepared, look: Look) -> None:
    """Note which judged documents the rows of the look lack, and where zeros before ids are why, set `digits`."""
    column, numbers = look.columns.get(look.id), range(1, look.rows + 1 if look.id == ROW else 1)
    ids = column.ids if column else {hash(str(row)) for row in numbers}
    if not ready.judged or not ids or not look.whole:
        return

    def found(digits: int | None) -> int:
        return sum(hash(id if digits is None else plain_number(id, digits)) in ids for id in ready.judged)

    there, many = found(None), len(ready.judged)
    best = max(range(MOST_DIGITS), key=found)
    if (mended := found(best)) > there:
        ready.more["qrels"]["digits"] = best
        zeros = f"with zeros to {best} digits" if best else "without zeros before them"
        ready.notes.append(
            f"{there:,} of {many:,} judged documents are among the documents, and {mended:,} {zeros}: the qrels have "
            f"`digits: {best}`"
        )
        there = mended
    if there < many:
        ready.notes.append(f"{many - there:,} of {many:,} judged documents are not among the documents")


def add_experiment(ready: Prepared, look: Look, output: Path, target: Any) -> str:
    """Add a copy: an experiment file that compares the engine and the agent on the topics; "" where nothing can be.

    Without a `target` it has one of its own, until the collection names one.
    """
    if "topics" not in ready.more or not (look.groups or "qrels" in ready.more):
        return ""
    name = "experiment.yaml" if output.stem == "collection" else f"{output.stem}.experiment.yaml"
    lines = [
        f"# Compares systems on the topics of {output.name}; `fairagent evaluate --template ranking` has all keys.",
        f"name: {json.dumps(look.name)}",
        f"collection: {json.dumps(output.name)}",
    ]
    if look.groups:
        if target is None:
            lines += ["# Until the collection names a target; then take it away.", "target: uniform"]
        lines += ["systems:", "  engine: {profile: engine}", "  agent: {}"]
    else:
        lines += ["measures: [nDCG@20]", "systems:", "  engine: {profile: engine}"]
    ready.copies[name] = ready.passing / name
    ready.copies[name].write_text("\n".join([*lines, ""]), encoding="utf-8")
    return str(output.parent / name)
