"""What the engines of databases have in common as parts: checks, groups from columns, and what `doctor` says."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from pydantic import Field

from fairagent.extend import (
    BUNDLED,
    BackendUnavailable,
    Check,
    FairAgentError,
    GroupTable,
    Part,
    Progress,
    Site,
    encoder,
)
from fairagent.guests.databases.store import Columns, DatabaseVectors, Store, read_groups
from fairagent.guests.opensearch.checks import CHECKED_IDS
from fairagent.guests.opensearch.index import named
from fairagent.guests.servers import expect_of_collection, with_groups


class DatabaseConfig(Part):
    """A table that is searched where it is."""

    on_server: ClassVar[bool] = True
    columns: Columns = Columns()
    """Which columns hold what."""
    groups: dict[str, str] = Field(default={})
    """Dimension -> the column with its labels, where the collection has no groups of its own. They are read once, of
    all rows."""
    encoder: str = Field(BUNDLED, min_length=1)
    """The encoder that made the table's embeddings; named as for `engine: dense`."""
    timeout: float = Field(30.0, gt=0)
    """The longest time of one answer, in seconds."""

    @abstractmethod
    def connect(self, environ: Mapping[str, str] = os.environ) -> Store:
        """The table; BackendUnavailable where its package is not installed. Nothing is requested yet."""

    def opened(self, site: Site) -> Any:
        """The table; the parts of a pipeline share it."""
        return site.memo.get((self.kind, self.model_dump_json()), self.connect)

    def group_table(self, site: Site) -> GroupTable:
        """The groups in the table's columns."""
        key = (self.kind, "groups", self.model_dump_json())
        table: GroupTable = site.memo.get(
            key, lambda: read_groups(self.opened(site), self.groups, site.collection.population)
        )
        return table

    @property
    def wanted(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return (self.columns.id, *self.columns.shown, self.columns.vector, *self.groups.values())

    def check(self, site: Site) -> None:
        """Raise BackendUnavailable where the table cannot be reached, DataError for columns that it lacks."""
        self.opened(site).check(self.wanted)
        self.build(site)

    def prepare(self, site: Site, progress: Progress) -> None:
        """Nothing: the table is never written to."""

    def with_parts_of(self, site: Site) -> Site:
        """With the groups in the table's columns; SettingsError for a dimension that is there already."""
        return with_groups(site, self.groups, lambda: self.group_table(site))

    def build(self, site: Site) -> Any:
        """The engine; SettingsError in an experiment whose collection does not have the groups."""
        expect_of_collection(site, self.groups)
        store = self.opened(site)
        return DatabaseVectors(store, self.columns, encoder(site, self.encoder), tuple(self.groups.values()))

    def diagnose(self, site: Site) -> Iterator[Check]:
        """The table, its columns and embeddings, the groups, and ids of the collection's groups that it lacks."""
        try:
            store = self.opened(site)
            store.check(self.wanted)
            rows = store.count()
            if not rows:
                yield Check(self.kind, "problem", f"{store.name} is empty", "name another table")
                return
            yield Check(self.kind, "ok", f"{store.name}: {rows:,} rows, which are only read")
            yield self._embeddings(store)
            yield self._groups(site, store)
        except FairAgentError as error:
            yield Check(self.kind, "problem", str(error), "mend this first; nothing else of it was checked")

    def _embeddings(self, store: Any) -> Check:
        likeness = "cosine" if store.cosine else "inner product"
        return Check("embeddings", "ok", f"{store.dimensions} numbers, compared by {likeness}; {self.encoder}")

    def _groups(self, site: Site, store: Store) -> Check:
        if self.groups:
            table = self.group_table(site)
            words = (f"{one}: {len(table.labels(one))} labels, {table.missing(one):.0%} without" for one in self.groups)
            return Check("groups in columns", "ok", "; ".join(words))
        groups = site.collection.groups
        if not isinstance(groups, GroupTable):
            return Check("groups in columns", "ok", "none; the collection's are used")
        checked, missing, first = 0, 0, list[str]()
        for _, ids in groups.batches():
            there = store.rows(ids, ())
            absent = [id for id in ids if id not in there]
            checked, missing, first = checked + len(ids), missing + len(absent), (first + absent)[:5]
            if checked >= CHECKED_IDS:
                break
        detail = f"{missing:,} of {checked:,} ids of the group table are not in {store.name}"
        if missing:
            fix = f"the first: {named(first)}; if all are missing, engine.columns.id is another column's"
            return Check("groups in columns", "problem" if missing == checked else "note", detail, fix)
        return Check("groups in columns", "ok", detail)


def secret(variable: str, environ: Mapping[str, str], host: str) -> str:
    """What an environment variable holds, "" for none; BackendUnavailable where it is not set."""
    if variable and not environ.get(variable, "").strip():
        raise BackendUnavailable(f"{host} is signed in to with {variable}, which is not set")
    return environ[variable].strip() if variable else ""
