"""What `init` finds out about files besides their columns: the encoding, topics and judgments, and an experiment."""

from __future__ import annotations

import codecs
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairagent.collection.config import ROW, QrelsFile, RecordsFile, TopicsFile
from fairagent.collection.look import ID, Look
from fairagent.collection.qrels import has_topics, read_qrels, read_topics
from fairagent.collection.records import UTF8, Faults, form_of, lines, listed, plain_number, records
from fairagent.errors import UsageError
from fairagent.settings import validate
from fairagent.settings.gone import gone
from fairagent.storage.files import PIPES, open_to_read
from fairagent.storage.readers import unpacked
from fairagent.types import Topic

LARGEST = 1 << 26
"""Bytes of a file that are looked at for its encoding."""
MIXED = ("utf-8", "cp1252", "latin-1")
"""What each line of a file is in that is mostly UTF-8; Latin-1 where it has bytes that Windows-1252 lacks."""
WIDE = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
QUERIES = ("query", "title", "question", "text", "topic")
"""What the field that is searched is called in files of topics, the likeliest first."""


@dataclass(slots=True)
class Prepared:
    """The documents' `encoding`, and `more` keys of the collection file; `notes` say what is not as it was."""

    encoding: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)
    more: dict[str, Any] = field(default_factory=dict)
    topics: Mapping[str, Topic] = field(default_factory=dict)
    judged: tuple[str, ...] = ()


def prepare(
    path: Path, format: str | None, encoding: str, topics: Path | None, qrels: Path | None, output: Path
) -> Prepared:
    """The documents' encoding, and what the collection file `output` says of topics and judgments.

    Raises what reading these raises.
    """
    if str(path).startswith("irds:"):
        raise UsageError(gone("irds"))
    ready = Prepared()
    ready.encoding = _encoding(ready, path, encoding, format)
    if has_topics(path, ready.encoding or UTF8):
        raise UsageError(f"{path} is in a form of topics, and not of documents: init DOCUMENTS --topics {path}")
    if qrels and not topics:
        raise UsageError("--qrels needs --topics: judgments are of topics")
    if topics:
        faults, keys = Faults(), _topic_keys(ready, topics, encoding, output)
        ready.topics = read_topics(topics, validate(TopicsFile, keys | {"path": str(topics)}, "--topics"), faults)
        faults.check(f"--topics {topics}")
        ready.more["topics"] = keys
        first = next(iter(ready.topics.values())).query
        ready.notes.append(f"{len(ready.topics):,} topics; the first one: {first}")
    if qrels:
        faults = Faults()
        read = read_qrels(qrels, QrelsFile(path=str(qrels)), ready.topics, faults)
        faults.check(f"--qrels {qrels}")
        ready.judged = tuple(dict.fromkeys(id for grades in read.grades.values() for id in grades))
        ready.notes += read.notes
        ready.more["qrels"] = {"path": os.path.relpath(qrels, output.parent)}
    return ready


def _encoding(ready: Prepared, path: Path, encoding: str, format: str | None = None) -> tuple[str, ...]:
    """What a text file is in, named or guessed, which is noted; () for UTF-8 and what is no text."""
    if path.parent in PIPES or not path.is_file() or form_of(path, format) not in ("jsonl", "tsv", "csv"):
        return ()
    encodings = (encoding,) if encoding else guessed_encoding(path)
    if encodings in ((), UTF8):
        return ()
    ready.notes.append(
        f"{path.name}: it is in {' or '.join(encodings)} "
        f"({'as you say' if encoding else 'guessed'}), not in UTF-8; it is read so each time (`encoding`)"
    )
    return encodings


def guessed_encoding(path: Path) -> tuple[str, ...]:
    """The encodings of a text file, packed or not, of which each line is in the first that it fits; () for UTF-8.

    A byte order mark, or zeros in every other byte, tell UTF-16. A file of which most lines are UTF-8 is UTF-8, the
    other lines Windows-1252; any other file is Windows-1252. UsageError where letters beyond ASCII are too many for it.
    """
    try:
        with open_to_read(path) as file:
            content = unpacked(file).read(LARGEST)
    except (OSError, ValueError):
        return ()  # whoever reads it says so
    if len(content) == LARGEST:
        content = content[: content.rfind(b"\n") + 1]
    if name := next((name for mark, name in WIDE.items() if content.startswith(mark)), ""):
        return (name,)
    # In UTF-16 without a mark Western text is ASCII and bytes of zero, and so is valid UTF-8.
    for name, half in {"utf-16-le": content[1:4096:2], "utf-16-be": content[:4096:2]}.items():
        if half.count(0) > len(half) / 2:
            return (name,)
    lines = content.split(b"\n")
    wrong = [line for line in lines if not _fits(line, "utf-8")]
    if not wrong:
        return ()
    if 2 * len(wrong) <= sum(not line.isascii() for line in lines):
        return MIXED
    if sum(byte >= 0x80 for byte in content) > 0.2 * len(re.findall(rb"[A-Za-z\x80-\xff]", content)):
        raise UsageError(
            f"{path}: not UTF-8, and its encoding cannot be guessed: it has many letters beyond ASCII; name it with "
            "--encoding, e.g. cp1251, koi8-r, shift_jis, gb18030"
        )
    return ("cp1252",) if _fits(content, "cp1252") else ("latin-1",)


def _fits(content: bytes, encoding: str) -> bool:
    try:
        content.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _topic_keys(ready: Prepared, path: Path, encoding: str, output: Path) -> dict[str, Any]:
    """The `topics` of the collection file: which column is the id, and which is searched."""
    keys: dict[str, Any] = {"path": os.path.relpath(path, output.parent)}
    if encodings := _encoding(ready, path, encoding):
        keys["encoding"] = encodings[0] if len(encodings) == 1 else list(encodings)
    encodings = encodings or UTF8
    if has_topics(path, encodings):
        return keys
    cells = next((text for _, text in lines(path, Faults(), encodings=encodings)), "").split("\t")
    if form_of(path) == "jsonl" and len(cells) > 1 and not cells[0].startswith("{"):
        keys["format"] = "tsv"
    if (keys.get("format") or form_of(path)) == "tsv" and len(cells) == 2 and not ID.fullmatch(cells[0].strip()):
        keys["columns"] = ["id", "query"]
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
    return keys | ({} if id == "id" else {"id": id}) | ({} if query == "query" else {"query": query})


def match_judged(ready: Prepared, look: Look) -> None:
    """Note which judged documents the rows of the look lack, and where zeros before ids are why, set `digits`."""
    column, numbers = look.columns.get(look.id), range(1, look.rows + 1 if look.id == ROW else 1)
    ids = column.ids if column else {hash(str(row)) for row in numbers}
    if not ready.judged or not ids or not look.whole:
        return
    many = len(ready.judged)
    plain = sum(hash(id) in ids for id in ready.judged)
    counts = [sum(hash(plain_number(id, digits)) in ids for id in ready.judged) for digits in range(13)]
    there = max(plain, *counts)
    if there > plain:
        best = counts.index(there)
        ready.more["qrels"]["digits"] = best
        ready.notes.append(
            f"{plain:,} of {many:,} judged documents are among the documents, and {there:,} with `digits: {best}`, "
            "which the qrels have now"
        )
    if there < many:
        ready.notes.append(f"{many - there:,} of {many:,} judged documents are not among the documents")


def experiment_text(ready: Prepared, look: Look, output: Path, target: Any) -> str:
    """An experiment file that compares the engine and the agent on the topics; "" where nothing can be compared.

    Without a `target` it has one of its own, until the collection names one.
    """
    if "topics" not in ready.more or not (look.groups or "qrels" in ready.more):
        return ""
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
    return "\n".join([*lines, ""])


def experiment_file(output: Path) -> Path:
    """Where the experiment of the collection file `output` is written."""
    name = "experiment.yaml" if output.stem == "collection" else f"{output.stem}.experiment.yaml"
    return output.parent / name
