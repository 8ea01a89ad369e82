"""A table of PostgreSQL as an engine, through psycopg: its embeddings (pgvector)."""

from __future__ import annotations

import os
import socket
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any, Literal, LiteralString

from pydantic import Field

from fairagent.errors import BackendUnavailable, DataError, SettingsError
from fairagent.guests.stores.store import Columns, Row, Store, StoreConfig, secret
from fairagent.retrieve.encoders import Embeddings
from fairagent.storage.packages import installed
from fairagent.storage.readers import parse_json

MOST_VISITED = 1_000
"""The longest list of candidates that pgvector's HNSW index keeps (`hnsw.ef_search`)."""
GRACE = 5.0
"""Seconds that a server has, beyond the time of an answer, to say that there is none."""
VECTORS = ("vector", "halfvec")
KEY = "fairagent key"
"""What the id is called in answers; no column of a table."""


class PostgresConfig(StoreConfig):
    """A table of PostgreSQL, searched by its embeddings (pgvector)."""

    kind: Literal["pgvector"] = "pgvector"
    url: str = Field("postgresql://localhost/postgres", min_length=1)
    """Where the database is, as libpq has it, without a password: `postgresql://USER@HOST:5432/DATABASE?sslmode=...`."""
    table: str = Field(min_length=1)
    """The table or view, also `SCHEMA.TABLE`."""
    columns: Columns = Columns()
    """Which columns hold what."""
    user_env: str = ""
    """The environment variable with the user's name; empty: the one in `url`."""
    password_env: str = ""
    """The environment variable with the password; empty: none is needed, or libpq finds it (~/.pgpass)."""

    def connect(self, environ: Mapping[str, str] | None = None) -> PostgresTable:
        """The table; BackendUnavailable without psycopg, SettingsError for an address that is none."""
        psycopg = installed("psycopg", "engine: pgvector")
        try:
            signing_in: dict[str, Any] = psycopg.conninfo.conninfo_to_dict(self.url)
        except psycopg.Error:
            # Not with the client's words, which hold the address.
            signing_in = {}
        host = f"{signing_in.get('host', 'localhost')}:{signing_in.get('port', 5432)}"
        if not signing_in:
            raise SettingsError("engine.url is no address of a database; expected e.g. postgresql://me@host:5432/data")
        if "password" in signing_in or "sslpassword" in signing_in:
            raise SettingsError(
                f"engine.url of {host} has a password in it, which settings and runs would keep; name the environment "
                "variable that holds it: engine.password_env"
            )
        signed = {"user": secret(self.user_env, environ, host), "password": secret(self.password_env, environ, host)}
        signing_in |= {name: value for name, value in signed.items() if value}
        return PostgresTable(signing_in, host, self)


class PostgresTable(Store):
    """A table on a server, over one connection, which is used by one thread at a time and opened again if it breaks.

    Every statement runs in a transaction that the server keeps from writing.
    """

    most = 10_000

    def __init__(self, address: Mapping[str, Any], host: str, part: PostgresConfig) -> None:
        """Take where it is and how it is signed in to, and what the settings say of it."""
        self._client = installed("psycopg", "engine: pgvector")
        self._sql = sql = self._client.sql
        self._address, self._host, self._timeout = dict(address), host, part.timeout
        self.name = f"table {part.table} on {host}"
        self._id, self._vector = part.columns.id, part.columns.vector
        conditions = [
            sql.SQL("{} = ANY({})").format(sql.Identifier(column), sql.Literal(values))
            for column, values in part.allowed.items()
        ]
        id = sql.Identifier(self._id)
        self._parts = {
            "table": sql.Identifier(*part.table.split(".")),
            "id": id,
            "key": sql.Identifier(KEY),
            "where": sql.SQL(" AND ").join([sql.SQL("{} IS NOT NULL").format(id), *conditions]),
        }
        self._connection: Any = None
        self._lock = threading.Lock()

    def ask(
        self, statement: LiteralString, values: Mapping[str, Any] | None = None, *settings: str, **parts: Any
    ) -> Any:
        """The rows of a statement, each a dict; `parts` are names in it, `settings` go before it. Nothing is written.

        Raises BackendUnavailable where the server cannot be reached or refuses, DataError for values it cannot read.
        """
        composed = self._sql.SQL(statement).format(**(self._parts | parts))
        before = (f"SET LOCAL statement_timeout = {int(1000 * self._timeout)}", *settings)
        with self._lock:
            for attempt in (1, 2):
                late = threading.Event()
                try:
                    connection = self._open()
                    with self._cut_when_late(connection, late), connection.transaction():
                        for line in before:
                            connection.execute(line)
                        return connection.execute(composed, values).fetchall()
                except self._client.Error as error:
                    fault = self._fault(error, late.is_set())
                    broken = self._connection is not None and self._connection.closed
                    if not broken or attempt == 2 or late.is_set():
                        break
        # Out of the handler, so that the client's error, which knows the address, is not its context.
        raise fault

    @contextmanager
    def _cut_when_late(self, connection: Any, late: threading.Event) -> Iterator[None]:
        """Cut the connection if what is inside lasts longer than a server that is there would let it; sets `late`."""

        def cut() -> None:
            late.set()
            # A copy of the descriptor, so that the client's own stays open and only finds the end.
            with socket.socket(fileno=os.dup(connection.fileno())) as copied, suppress(OSError):
                copied.shutdown(socket.SHUT_RDWR)

        timer = threading.Timer(self._timeout + GRACE, cut)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _open(self) -> Any:
        if self._connection is None or self._connection.closed:
            options = {"connect_timeout": max(2, int(self._timeout)), "application_name": "fairagent"}
            connection = self._client.connect(**(options | self._address), autocommit=True, prepare_threshold=None)
            connection.read_only = True
            connection.row_factory = self._client.rows.dict_row
            weakref.finalize(self, connection.close)
            self._connection = connection
        return self._connection

    def _fault(self, error: Any, late: bool) -> Exception:
        state, message = error.sqlstate or "", str(error.diag.message_primary or "")[:200]
        if late or state == "57014":
            return BackendUnavailable(f"{self._host} did not answer in {self._timeout:g} s (engine.timeout)")
        if not state and ("authentication failed" in str(error) or "no password supplied" in str(error)):
            return BackendUnavailable(
                f"{self._host} does not let this user in; check what the environment variables of engine.user_env and "
                "engine.password_env hold"
            )
        if not state:
            return BackendUnavailable(
                f"no connection to {self._host} ({type(error).__name__}); is PostgreSQL running there, and has it the "
                "database of engine.url?"
            )
        if state == "42501":
            return BackendUnavailable(f"who signed in at {self._host} may not read {self.name}: {message}")
        if state.startswith("22") or state == "42883":
            # Values of another type than the column's.
            return DataError(f"{self._host} cannot read the values of a query ({state}): {message}")
        return BackendUnavailable(f"{self._host} refused a query ({type(error).__name__}, {state}): {message}")

    @cached_property
    def types(self) -> dict[str, str]:
        """Column -> its type; DataError where there is no such table."""
        rows = self.ask(
            "SELECT attname, format_type(atttypid, atttypmod) AS type FROM pg_attribute "
            "WHERE attrelid = to_regclass(%(table)s) AND attnum > 0 AND NOT attisdropped",
            {"table": self._parts["table"].as_string(None)},
        )
        if not rows:
            raise DataError(f"there is no {self.name} (engine.table), or it may not be seen")
        return {row["attname"]: row["type"] for row in rows}

    def check(self, columns: Sequence[str]) -> None:
        """Raise DataError naming columns that the table has not."""
        if missing := [name for name in columns if name not in self.types]:
            raise self.lacking(missing, list(self.types))

    def count(self) -> int:
        """The number of rows."""
        return int(self.ask("SELECT count(*) AS n FROM {table} WHERE {where}")[0]["n"])

    def rows(self, ids: Sequence[str], columns: Sequence[str]) -> list[tuple[str, Row]]:
        """The rows that there are of these ids."""
        self.check((self._id,))
        type_ = self.types[self._id]
        if type_ in ("smallint", "integer", "bigint"):
            ids = [id for id in ids if id.lstrip("-").isdecimal() and id.isascii() and len(id) < 19]
        return self._rows("{id} = ANY(CAST(%(ids)s AS {type}[]))", columns, {"ids": list(ids)}, self._sql.SQL(type_))

    def every(self, columns: Sequence[str]) -> Iterator[tuple[str, Row]]:
        """All rows."""
        yield from self._rows("{where}", columns)

    def _rows(
        self, which: LiteralString, columns: Sequence[str], values: Mapping[str, Any] | None = None, type_: Any = None
    ) -> list[tuple[str, Row]]:
        names = list(dict.fromkeys(columns))
        self.check(names)
        vectors = {name for name in names if self.types[name].startswith(VECTORS)}
        # Embeddings as text, which needs no adapter.
        each = [
            self._sql.SQL(", {name}::text AS {name}" if name in vectors else ", {name}").format(
                name=self._sql.Identifier(name)
            )
            for name in names
        ]
        statement: LiteralString = "SELECT {id}::text AS {key}{more} FROM {table} WHERE "
        rows = self.ask(statement + which, values, more=self._sql.SQL("").join(each), type=type_)
        for row in rows:
            row.update({name: parse_json(row[name]) for name in vectors if row[name] is not None})
        return [(row.pop(KEY), row) for row in rows]

    @cached_property
    def compared(self) -> tuple[str, int]:
        """By cosine, unless the only index is one of inner products; the length as the column's type has it."""
        column = self._vector
        self.check((column,))
        name, _, length = self.types[column].rstrip(")").partition("(")
        if name not in VECTORS:
            raise DataError(f"column {column!r} of {self.name} is of type {self.types[column]}; expected a vector")
        rows = self.ask(
            "SELECT o.opcname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = "
            "i.indkey[0] JOIN pg_opclass o ON o.oid = i.indclass[0] WHERE i.indrelid = to_regclass(%(table)s) AND "
            "a.attname = %(column)s",
            {"table": self._parts["table"].as_string(None), "column": column},
        )
        metrics = {row["opcname"].partition("_")[2] for row in rows}
        metric = "ip_ops" if "ip_ops" in metrics and "cosine_ops" not in metrics else "cosine_ops"
        return metric, int(length or 0)

    def near(self, vector: Embeddings, n: int) -> Sequence[str]:
        """The nearest rows; exactly, where the index would leave the list short."""
        statement: LiteralString = (
            "SELECT {id}::text AS {key}, {v} {by} %(vector)s::{type} AS d FROM {table} WHERE {v} IS NOT NULL AND "
            "{where} ORDER BY {v} {by} %(vector)s::{type} LIMIT %(n)s"
        )
        parts = {
            "v": self._sql.Identifier(self._vector),
            "by": self._sql.SQL("<=>" if self.by_cosine else "<#>"),
            "type": self._sql.SQL("halfvec" if self.types[self._vector].startswith("halfvec") else "vector"),
        }
        values = {"vector": f"[{','.join(repr(float(number)) for number in vector)}]", "n": n}
        rows = self.ask(statement, values, f"SET LOCAL hnsw.ef_search = {min(MOST_VISITED, max(40, n))}", **parts)
        if len(rows) < n:
            rows = self.ask(statement, values, "SET LOCAL enable_indexscan = off", **parts)
        # Nothing has a direction of zeros.
        return [row[KEY] for row in rows if row["d"] == row["d"]]
