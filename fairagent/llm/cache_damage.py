"""How damage to the cache of replies shows: errors of the database, and rows that are not what was written."""

import json
import sqlite3
from dataclasses import asdict, fields

from pydantic import TypeAdapter

from fairagent.digests import is_sealed, sealed, unsealed
from fairagent.intake.json_text import parse_json
from fairagent.llm.request import ModelReply

SURROUNDINGS = {
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_AUTH,
}
"""What SQLite says where the disk, the rights or another process is at fault; whatever else it says is damage."""
CUT = sqlite3.SQLITE_IOERR_SHORT_READ
"""The file ends before it should."""
ODD = (TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError)
"""What diskcache raises where the tables hold what it never wrote there."""
NAMES = {field.name for field in fields(ModelReply)}

_ROW = TypeAdapter(ModelReply)


def damaged(error: Exception) -> bool:
    """Whether the file is at fault, and not the disk, the rights or another process."""
    if not isinstance(error, sqlite3.Error):
        return isinstance(error, ODD)
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return code == CUT or code & 0xFF not in SURROUNDINGS


def row_of(key: str, reply: ModelReply) -> str:
    """A reply as it is kept under `key`, with a checksum of both."""
    return sealed(json.dumps(asdict(reply)), key)


def reply_in(key: str, row: str) -> ModelReply:
    """The reply in a row; ValueError where it is not what was kept under `key`.

    Rows from before there were checksums have none; they hold nothing but a reply.
    """
    if is_sealed(row):
        return _ROW.validate_json(unsealed(row.encode(), key))
    said = parse_json(row)
    if not isinstance(said, dict) or not said.keys() <= NAMES:
        raise ValueError("no reply")
    return _ROW.validate_python(said)
