"""A table of PostgreSQL: its columns, its nearest embeddings, its rows, and its words as the server has them.

Every statement runs in a transaction that the server keeps from writing. Messages name the host, never the password.
"""

from __future__ import annotations

import os
import socket
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any, LiteralString

import numpy as np

from fairagent.extend import BackendUnavailable, Check, DataError, Embeddings, installed, parse_json
from fairagent.guests.databases.store import Columns, Row, check_once
from fairagent.guests.opensearch.search import check_text
from fairagent.guests.servers import ServerCache

MOST_ROWS = 10_000
"""Of one list."""
ROWS_AT_ONCE = 100_000
"""Of all rows; without an index of the ids the server sorts them for each page."""
QUERIES_AT_ONCE = 5_000
"""Texts that are made queries in one request."""
QUERIES_CACHED = 50_000
MOST_VISITED = 1_000
"""The longest list of candidates that pgvector's HNSW index keeps (`hnsw.ef_search`)."""
LONGEST_QUOTE = 200
GRACE = 5.0
"""Seconds that a server has, beyond the time of an answer, to say that there is none."""
VECTORS = ("vector", "halfvec")
EXACT = "SET LOCAL enable_indexscan = off"
KEY = "fairagent key"
"""What the id is called in answers; no column of a table."""


class PostgresColumns(Columns):
    """Which columns hold what."""

    search: str = ""
    """`by: text`: the column that is searched (`tsvector`, or text); empty: title and text, without an index."""


class PostgresTable:
    """A table on a server, over one connection, which is used by one thread at a time and opened again if it breaks."""

    most = MOST_ROWS

    def __init__(
        self, address: Mapping[str, Any], host: str, table: str, columns: PostgresColumns, language: str, timeout: float
    ) -> None:
        """Take where it is and how it is signed in to, its name and columns, and the seconds of one answer."""
        self._client = installed("psycopg", "engine: pgvector")
        from psycopg import sql

        self._sql, self._address, self.host = sql, dict(address), host
        self._columns, self._language, self._timeout = columns, language, timeout
        self._table = sql.Identifier(*table.split("."))
        self.name = f"table {table} on {host}"
        self._connection: Any = None
        self._lock = threading.Lock()
        self._queries: ServerCache[str] = ServerCache(QUERIES_CACHED)

    def __repr__(self) -> str:
        return f"PostgresTable({self.name})"

    def ask(
        self, statement: LiteralString, values: Mapping[str, Any] | None = None, *settings: str, **parts: Any
    ) -> Any:
        """The rows of a statement, each a dict; `parts` are names in it, `settings` go before it. Nothing is written.

        Raises BackendUnavailable where the server cannot be reached or refuses, DataError for values it cannot read.
        """
        composed = self._sql.SQL(statement).format(table=self._table, id=self._id, **parts)
        fault: Exception
        with self._lock:
            for attempt in (1, 2):
                late = threading.Event()
                try:
                    connection = self._open()
                    with self._ended(connection, late), connection.transaction():
                        for line in (f"SET LOCAL statement_timeout = {int(1000 * self._timeout)}", *settings):
                            connection.execute(line)
                        return connection.execute(composed, values).fetchall()
                except self._client.Error as error:
                    broken = self._connection is not None and self._connection.closed
                    fault = self._late() if late.is_set() else self._fault(error)
                    if broken and attempt == 1 and not late.is_set():
                        continue
                except (UnicodeEncodeError, ValueError):
                    fault = DataError(f"{self.host} cannot be asked for a text with half a character, or with a NUL")
                break
        # Out of the handler, so that the client's error, which knows the address, is not its context.
        raise fault

    @contextmanager
    def _ended(self, connection: Any, late: threading.Event) -> Iterator[None]:
        """Cut the connection if what is inside lasts longer than a server that is there would let it; `late` tells."""

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

    def _late(self) -> BackendUnavailable:
        return BackendUnavailable(f"{self.host} did not answer in {self._timeout:g} s (engine.timeout)")

    def _open(self) -> Any:
        if self._connection is None or self._connection.closed:
            own = {"connect_timeout": max(2, int(self._timeout)), "application_name": "fairagent"}
            connection = self._client.connect(**(own | self._address), autocommit=True, prepare_threshold=None)
            connection.read_only = True
            connection.row_factory = self._client.rows.dict_row
            weakref.finalize(self, connection.close)
            self._connection = connection
        return self._connection

    def _fault(self, error: Any) -> Exception:
        state, message = error.sqlstate or "", str(error.diag.message_primary or "")[:LONGEST_QUOTE]
        if not state:
            if "authentication failed" in str(error) or "no password supplied" in str(error):
                remedy = "check what the environment variables of engine.user_env and engine.password_env hold"
                return BackendUnavailable(f"{self.host} does not let this user in; {remedy}")
            return BackendUnavailable(
                f"no connection to {self.host} ({type(error).__name__}); is PostgreSQL running there, and has it the "
                "database of engine.url?"
            )
        if state == "57014":
            return self._late()
        if state == "42501":
            return BackendUnavailable(f"who signed in at {self.host} may not read {self.name}: {message}")
        if state.startswith("22"):
            return DataError(f"{self.host} cannot read what it was asked for ({state}): {message}")
        return BackendUnavailable(f"{self.host} refused a query ({type(error).__name__}, {state}): {message}")

    @property
    def _id(self) -> Any:
        return self._sql.Identifier(self._columns.id)

    @cached_property
    def types(self) -> dict[str, str]:
        """Column -> its type; DataError where there is no such table."""
        rows = self.ask(
            "SELECT attname, format_type(atttypid, atttypmod) AS type FROM pg_attribute "
            "WHERE attrelid = to_regclass(%(table)s) AND attnum > 0 AND NOT attisdropped",
            {"table": self._table.as_string(None)},
        )
        if not rows:
            raise DataError(f"there is no {self.name} (engine.table), or it may not be seen")
        return {row["attname"]: row["type"] for row in rows}

    def check(self, columns: Sequence[str]) -> None:
        """Raise DataError naming columns that the table has not."""
        if missing := [name for name in columns if name not in self.types]:
            raise DataError(
                f"{self.name} has no column {', '.join(map(repr, missing))} (engine.columns, engine.groups); it has: "
                f"{', '.join(list(self.types)[:20])}"
            )

    def count(self) -> int:
        """The number of rows."""
        return int(self.ask("SELECT count(*) AS n FROM {table}")[0]["n"])

    # --- embeddings ---

    @cached_property
    def indexed(self) -> tuple[str, ...]:
        """What the indexes of the embeddings compare by, of `cosine` and `ip`."""
        rows = self.ask(
            "SELECT o.opcname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = "
            "i.indkey[0] JOIN pg_opclass o ON o.oid = i.indclass[0] WHERE i.indrelid = to_regclass(%(table)s) AND "
            "a.attname = %(column)s",
            {"table": self._table.as_string(None), "column": self._columns.vector},
        )
        names = " ".join(row["opcname"] for row in rows)
        return tuple(name for name in ("cosine", "ip") if f"_{name}_" in names)

    @property
    def cosine(self) -> bool:
        """Whether by cosine: unless the only index is one of inner products."""
        return self.indexed != ("ip",)

    @cached_property
    def dimensions(self) -> int:
        """How many numbers an embedding has, by the column's type or else by its first value."""
        column = self._columns.vector
        self.check((column,))
        name, _, length = self.types[column].rstrip(")").partition("(")
        if name not in VECTORS:
            raise DataError(f"column {column!r} of {self.name} is of type {self.types[column]}; expected a vector")
        if not length:
            statement: LiteralString = "SELECT vector_dims({v}::vector) AS d FROM {table} WHERE {v} IS NOT NULL LIMIT 1"
            rows = self.ask(statement, v=self._sql.Identifier(column))
            if not rows:
                raise DataError(f"column {column!r} of {self.name} holds no embedding")
            return int(rows[0]["d"])
        return int(length)

    def near(self, vector: Embeddings, n: int) -> list[tuple[str, float]]:
        """The nearest rows; exactly, where the index would leave the list short."""
        statement: LiteralString = (
            "SELECT {id}::text AS id, {v} {by} %(vector)s::{type} AS d FROM {table} WHERE {v} IS NOT NULL AND {id} IS "
            "NOT NULL ORDER BY {v} {by} %(vector)s::{type} LIMIT %(n)s"
        )
        column = self._columns.vector
        parts = {
            "v": self._sql.Identifier(column),
            "by": self._sql.SQL("<=>" if self.cosine else "<#>"),
            "type": self._sql.SQL("halfvec" if self.types[column].startswith("halfvec") else "vector"),
        }
        values = {"vector": f"[{','.join(repr(float(number)) for number in vector)}]", "n": n}
        visited = f"SET LOCAL hnsw.ef_search = {min(MOST_VISITED, max(40, n))}"
        rows = self.ask(statement, values, visited, **parts)
        if len(rows) < n:
            rows = self.ask(statement, values, EXACT, **parts)
        scores = [(row["id"], (1.0 if self.cosine else 0.0) - float(row["d"])) for row in rows]
        # Nothing has a direction of zeros.
        return [(id, score) for id, score in scores if np.isfinite(score)]

    # --- rows ---

    def rows(self, ids: Sequence[str], columns: Sequence[str]) -> dict[str, Row]:
        """The rows that there are of these ids."""
        ids = [id for id in ids if "\0" not in id]
        rows = self.ask(
            "SELECT {id}::text AS {key}{more} FROM {table} WHERE {id} = ANY(CAST(%(ids)s AS {type}[]))",
            {"ids": self._castable(ids)},
            key=self._sql.Identifier(KEY),
            type=self._sql.SQL(self._id_type),
            more=self._also(columns),
        )
        check_once(self, [row[KEY] for row in rows])
        return {row[KEY]: self._read(row) for row in rows}

    def every(self, columns: Sequence[str]) -> Iterator[tuple[str, Row]]:
        """All rows, in the order of their ids, many at a time."""
        after: Any = None
        while True:
            rows = self.ask(
                "SELECT {id}::text AS {key}{more} FROM {table} WHERE {id} IS NOT NULL AND (%(after)s::text IS NULL OR "
                "{id} > CAST(%(after)s::text AS {type})) ORDER BY {id} LIMIT %(n)s",
                {"after": after, "n": ROWS_AT_ONCE},
                key=self._sql.Identifier(KEY),
                type=self._sql.SQL(self._id_type),
                more=self._also(columns),
            )
            for row in rows:
                yield row[KEY], self._read(row)
            if len(rows) < ROWS_AT_ONCE:
                return
            after = rows[-1][KEY]

    def _also(self, columns: Sequence[str]) -> Any:
        """The further columns of a statement; embeddings as text, which needs no adapter."""
        names = [self._sql.Identifier(name) for name in dict.fromkeys(columns)]
        types = [self.types.get(name, "").startswith(VECTORS) for name in dict.fromkeys(columns)]
        each = [
            self._sql.SQL(", {name}::text AS {name}" if vector else ", {name}").format(name=name)
            for name, vector in zip(names, types, strict=True)
        ]
        return self._sql.SQL("").join(each)

    def _read(self, row: dict[str, Any]) -> Row:
        column = self._columns.vector
        if isinstance(row.get(column), str) and self.types[column].startswith(VECTORS):
            row[column] = parse_json(row[column])
        return row

    @cached_property
    def _id_type(self) -> str:
        self.check((self._columns.id,))
        return self.types[self._columns.id]

    def _castable(self, ids: Sequence[str]) -> list[str]:
        """Those that can be ids at all: of a column of whole numbers, whole numbers."""
        numbers = self._id_type in ("smallint", "integer", "bigint")
        return [id for id in ids if not numbers or (id.lstrip("-").isdecimal() and id.isascii() and len(id) < 19)]

    # --- words ---

    def tsqueries(self, texts: Sequence[str]) -> list[str]:
        """What each text asks for, as the server reads it: any of its words; "" where it has none."""
        for text in texts:
            check_text(text)
        by_text = self._queries.all(texts, self._tsqueries, QUERIES_AT_ONCE)
        return [by_text[text] for text in texts]

    def _tsqueries(self, texts: list[str]) -> dict[str, str]:
        # Between words of a text the server writes " & ", and within quotes never.
        rows = self.ask(
            "SELECT replace(plainto_tsquery(%(language)s::regconfig, one)::text, ' & ', ' | ') AS query "
            "FROM unnest(%(texts)s::text[]) WITH ORDINALITY AS texts (one, place) ORDER BY place",
            {"language": self._language, "texts": [text.replace("\0", " ") for text in texts]},
        )
        return dict(zip(texts, (str(row["query"]) for row in rows), strict=True))

    def words_of(self, text: str) -> list[str]:
        """The words of a text as the server has them in its index."""
        check_text(text)
        statement: LiteralString = (
            "SELECT unnest(tsvector_to_array(to_tsvector(%(language)s::regconfig, %(text)s))) AS w"
        )
        return [row["w"] for row in self.ask(statement, {"language": self._language, "text": text.replace("\0", " ")})]

    def matching(self, weights: Mapping[str, float], n: int) -> list[dict[str, Any]]:
        """The best `n` rows that hold any word of these queries, scored by the sum of weight times `ts_rank`."""
        return self._scored(
            "SELECT {id}::text AS id, {score} AS score FROM {table} WHERE {words} @@ %(any)s::tsquery AND {id} IS NOT "
            'NULL ORDER BY score DESC, {id}::text COLLATE "C" LIMIT %(n)s',
            weights,
            {"n": n, "any": " | ".join(weights)},
        )

    def scores(self, weights: Mapping[str, float], ids: Sequence[str]) -> list[dict[str, Any]]:
        """These rows, scored so."""
        return self._scored(
            "SELECT {id}::text AS id, {score} AS score FROM {table} WHERE {id} = ANY(CAST(%(ids)s AS {type}[]))",
            weights,
            {"ids": self._castable(ids)},
        )

    def _scored(
        self, statement: LiteralString, weights: Mapping[str, float], values: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        terms, given = [], {**values, "language": self._language}
        for number, (query, weight) in enumerate(weights.items()):
            given |= {f"query{number}": query, f"weight{number}": weight}
            terms.append(
                self._sql.SQL("{weight}::float8 * ts_rank({words}, {query}::tsquery, 1)").format(
                    words=self._searched,
                    weight=self._sql.Placeholder(f"weight{number}"),
                    query=self._sql.Placeholder(f"query{number}"),
                )
            )
        rows: list[dict[str, Any]] = self.ask(
            statement,
            given,
            score=self._sql.SQL(" + ").join(terms),
            words=self._searched,
            type=self._sql.SQL(self._id_type),
        )
        return rows

    def frequency(self, word: str) -> int:
        """How many rows hold a word of `words_of`."""
        return int(
            self.ask(
                "SELECT count(*) AS n FROM {table} WHERE {words} @@ quote_literal(%(word)s)::tsquery",
                {"word": word, "language": self._language},
                words=self._searched,
            )[0]["n"]
        )

    @cached_property
    def _searched(self) -> Any:
        """The words of a row: its column, or what its texts are as words."""
        columns, identifier = self._columns, self._sql.Identifier
        if columns.search and self.types.get(columns.search) == "tsvector":
            return identifier(columns.search)
        names = [columns.search] if columns.search else list(columns.shown)
        texts = [self._sql.SQL("coalesce({}::text, '')").format(identifier(name)) for name in names]
        return self._sql.SQL("to_tsvector(%(language)s::regconfig, {})").format(
            self._sql.SQL(" || ' ' || ").join(texts)
        )

    def searched(self) -> Check:
        """What `doctor` says of the words."""
        column, type_ = self._columns.search, self.types.get(self._columns.search, "")
        if type_ == "tsvector":
            return Check("words", "ok", f"searched: {column} (tsvector), queries in {self._language}")
        return Check("words", "note", f"searched: {column or 'title and text'}", "a column of type tsvector is faster")
