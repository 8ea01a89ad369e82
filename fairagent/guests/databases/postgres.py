"""PostgreSQL with pgvector as an engine: by embeddings, or by words with its full-text search.

`postgres_table.py` has what the server is asked for.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from pydantic import Field

from fairagent.extend import (
    Check,
    FloatArray,
    Postings,
    Query,
    Ranking,
    SettingsError,
    Site,
    UsageError,
    check_length,
    engine_time,
    installed,
    term_weights,
)
from fairagent.guests.databases.part import DatabaseConfig, secret
from fairagent.guests.databases.postgres_table import MOST_ROWS, PostgresColumns, PostgresTable
from fairagent.guests.databases.store import StoredTexts, check_once, fetched
from fairagent.guests.servers import best_of, expect_of_collection
from fairagent.guests.terms import LocalTerms


class PostgresConfig(DatabaseConfig):
    """A table of PostgreSQL: its embeddings (pgvector), or its words (full-text search)."""

    kind: Literal["pgvector"] = "pgvector"
    url: str = Field("postgresql://localhost/postgres", min_length=1)
    """Where the database is, as libpq has it, without a password: `postgresql://USER@HOST:5432/DATABASE?sslmode=...`."""
    table: str = Field(min_length=1)
    """The table or view, also `SCHEMA.TABLE`."""
    columns: PostgresColumns = PostgresColumns()
    """Which columns hold what."""
    by: Literal["embeddings", "text"] = "embeddings"
    """What is searched: the embeddings in `columns.vector`, or the words in `columns.search`."""
    language: str = Field("english", min_length=1)
    """`by: text`: the server's configuration for text search."""
    user_env: str = ""
    """The environment variable with the user's name; empty: the one in `url`."""
    password_env: str = ""
    """The environment variable with the password; empty: none is needed, or libpq finds it (~/.pgpass)."""

    def __str__(self) -> str:
        return self.kind if self.by == "embeddings" else f"{self.kind} ({self.by})"

    @property
    def tells_words(self) -> bool:
        """Whether it tells the terms of its documents."""
        return self.by == "text"

    @property
    def wanted(self) -> tuple[str, ...]:
        """The columns that it reads."""
        columns = self.columns
        searched = columns.vector if self.by == "embeddings" else columns.search
        return tuple(filter(None, (columns.id, *columns.shown, searched, *self.groups.values())))

    def connect(self, environ: Mapping[str, str] = os.environ) -> PostgresTable:
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
        return PostgresTable(signing_in, host, self.table, self.columns, self.language, self.timeout)

    def build(self, site: Site) -> Any:
        """The engine; SettingsError in an experiment whose collection does not have the groups."""
        if self.by == "embeddings":
            return super().build(site)
        expect_of_collection(site, self.groups)
        return PostgresWords(self.opened(site), self.columns, tuple(self.groups.values()))

    def _embeddings(self, store: PostgresTable) -> Check:
        if self.by == "text":
            return store.searched()
        check = super()._embeddings(store)
        note = "no index of pgvector fits: every row is compared"
        return check if store.indexed else Check(check.name, "note", check.detail, note)


class PostgresWords(StoredTexts):
    """The ranking of PostgreSQL's full-text search: the sum of weight times `ts_rank`, over length; no idf.

    A row is found if it holds any word of the query. Ties are ordered by the bytes of ids. Threads may share it.
    """

    def __init__(self, table: PostgresTable, columns: PostgresColumns, extra: Sequence[str] = ()) -> None:
        """Take the table, its columns, and further columns of its documents."""
        super().__init__(table, columns, extra)
        self._table, self._terms = table, LocalTerms(self)
        self.words, self.analyze = self._terms.words, self._terms.analyze

    @engine_time("server")
    def search(self, query: Query, n: int) -> Ranking:
        """The best `n` documents with a score above 0; empty where no word of the query is in the table."""
        check_length(n)
        if n > MOST_ROWS:
            raise UsageError(f"{n:,} documents were requested; a table gives at most {MOST_ROWS:,} at a time")
        if not (weights := self._weights(query)):
            return Ranking((), np.zeros(0))
        rows = self._table.matching(weights, n)
        check_once(self._table, [row["id"] for row in rows])
        return best_of([(row["id"], float(row["score"])) for row in rows if row["score"] > 0], n)

    @engine_time("server")
    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        """The scores of the documents `ids`, (n,); 0 where no word matches. DataError naming ids that are not there."""
        weights = self._weights(query)
        if not len(ids) or not weights:
            return np.zeros(len(ids))
        scores = {row["id"]: float(row["score"]) for row in self._table.scores(weights, ids)}
        if len(scores) < len(set(ids)):
            fetched(self._table, ids, ())
        return np.array([scores[id] for id in ids])

    @engine_time("server")
    def document_frequency(self, word: str) -> int:
        """How many documents hold `word` (of several words, the rarest); 0 where none does or it is a stop word."""
        return min(map(self._table.frequency, self._table.words_of(word)), default=0)

    def postings(self, ids: Sequence[str]) -> Postings:
        """The words of these documents, from their texts, as they stand; their shares are those among these alone."""
        # All texts at once; then they are cached.
        self.documents(ids)
        return self._terms.postings(ids)

    def _weights(self, query: Query) -> dict[str, float]:
        """What the server is asked for -> its weight."""
        weights = term_weights(query, lambda text: [text] if text.strip() else [])
        of_lexemes: dict[str, float] = {}
        for one, weight in zip(self._table.tsqueries(list(weights)), weights.values(), strict=True):
            of_lexemes[one] = of_lexemes.get(one, 0.0) + weight
        of_lexemes.pop("", None)
        return of_lexemes
