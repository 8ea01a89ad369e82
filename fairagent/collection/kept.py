"""Group tables that take long to read, kept on disk: mapped from there as long as what they are read from is the same.

A kept table is at `<place>-<key>`, where the key is a hash of all that it depends on: another file has another place,
and what is replaced is only what was damaged. So a table may be read while others are written, by whomever.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from glob import escape
from pathlib import Path

from fairagent.clean import logger
from fairagent.collection.table import HEAD, GroupTable
from fairagent.digests import RECORD, differences
from fairagent.errors import FairAgentError
from fairagent.files import one_at_a_time, write_whole
from fairagent.folders import is_there, workshop
from fairagent.intake.json_text import parse_json
from fairagent.intake.text import file_text
from fairagent.remembered import file_digest

FORMAT = 1
"""To be raised whenever the reading of group files changes."""
NOTES = "notes.json"
LARGEST_NOTES = 1 << 20
"""Bytes."""
LATEST = 8
"""So many tables of one place are kept: several collections may share an index."""
WAIT = 600.0
"""Seconds that a process waits for another one that reads the same groups."""

Made = tuple[GroupTable, tuple[str, ...]]
"""A table, and notes on what is odd in it."""

log = logger(__name__)


def kept_table(place: Path, origin: Callable[[], Mapping[str, object]], make: Callable[[], Made]) -> Made:
    """The table and notes that `make` reads, from where they are kept; else read now, and kept where that works.

    `origin` says, in terms of JSON, what they depend on. What changes while it is read is not kept. A damaged table is
    found, by all of its bytes (`fairagent.remembered`), and made anew.
    """
    said = origin()
    key = hashlib.sha256(json.dumps({"format": FORMAT, **said}, sort_keys=True).encode()).hexdigest()[:16]
    folder = place.with_name(f"{place.name}-{key}")
    if found := _load(folder):
        return found
    with one_at_a_time(folder.with_name(f"{folder.name}.lock"), WAIT):
        if found := _load(folder):
            return found
        made = make()
        if origin() == said:
            _keep(made, folder)
            _tidy(place)
    return made


def _load(folder: Path) -> Made | None:
    """What is kept in `folder`; None where nothing is, or not all of it."""
    try:
        if not is_there(folder, RECORD):
            return None
        if faults := differences(folder, whole=True, digest=file_digest):
            log.warning("the groups at %s are damaged (%s), and read anew", folder, faults[0])
            return None
        return GroupTable.load(folder, compared=True), tuple(parse_json(file_text(folder / NOTES, LARGEST_NOTES)))
    except (OSError, ValueError, TypeError, FairAgentError) as error:
        log.debug("no usable groups at %s (%s)", folder, error)
        return None


def _keep(made: Made, folder: Path) -> None:
    table, notes = made
    try:
        with workshop(folder, (RECORD, HEAD, NOTES)) as shop:
            shop.begin()
            table.save(shop.new)
            write_whole(shop.new / NOTES, json.dumps(notes) + "\n")
            shop.put()
    except (OSError, FairAgentError) as error:
        log.warning("the groups are read anew each time, since they cannot be kept at %s (%s)", folder, error)


def _tidy(place: Path) -> None:
    """Remove all but the latest tables of a place; whoever has one of the others mapped keeps what he has."""
    tables = [path.parent for path in place.parent.glob(f"{escape(place.name)}-*/{HEAD}")]
    for old in sorted(tables, key=lambda path: path.stat().st_mtime)[:-LATEST]:
        shutil.rmtree(old, ignore_errors=True)
