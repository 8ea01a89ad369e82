"""A collection of Milvus, or of a file of Milvus Lite, as an engine, through pymilvus."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field

from fairagent.errors import BackendUnavailable, DataError
from fairagent.guests.stores.store import ROWS_AT_ONCE, Columns, Row, Store, StoreConfig, host_of, secret
from fairagent.retrieve.encoders import Embeddings
from fairagent.storage.packages import expect_installed, installed


class MilvusConfig(StoreConfig):
    """A collection of Milvus, searched by its embeddings."""

    kind: Literal["milvus"] = "milvus"
    url: str = Field("http://localhost:19530", min_length=1)
    """The server's address, or a file of Milvus Lite (`articles.db`)."""
    entities: str = Field(min_length=1)
    """The name of the collection on the server."""
    database: str = ""
    """The server's database; empty: its default."""
    columns: Columns = Columns()
    """Which fields hold what, dynamic ones too."""
    token_env: str = ""
    """The environment variable with the token, `USER:PASSWORD` or an API key; empty: none is needed."""

    @property
    def is_file(self) -> bool:
        """Whether it is a file of Milvus Lite."""
        return "://" not in self.url

    def relative_to(self, folder: Path) -> Self:
        """With the file's path from anywhere."""
        return self.model_copy(update={"url": str((folder / self.url).absolute())}) if self.is_file else self

    def connect(self, environ: Mapping[str, str] | None = None) -> MilvusEntities:
        """The collection; BackendUnavailable without pymilvus or the file, SettingsError for no address."""
        expect_installed("pymilvus", "engine: milvus")
        if self.is_file:
            expect_installed("milvus-lite", "a file of Milvus Lite")
            if not Path(self.url).exists():
                # The client would make an empty one.
                raise BackendUnavailable(f"there is no file {self.url} (engine.url)")
        host = Path(self.url).name if self.is_file else host_of(self.url, "engine.token_env")
        return MilvusEntities(self, host, secret(self.token_env, environ, host))


class MilvusEntities(Store):
    """A collection of Milvus. Nothing is written, nor loaded into a server's memory. Threads may share it."""

    most = 16_384

    def __init__(self, part: MilvusConfig, host: str, token: str) -> None:
        """Take what the settings say of it, where it is, and what it is signed in to with."""
        self._part, self._host, self._id, self._vector = part, host, part.columns.id, part.columns.vector
        signed = {"token": token} if token else {}
        self._make = lambda: installed("pymilvus", "engine: milvus").MilvusClient(
            part.url, db_name=part.database, timeout=part.timeout, **signed
        )
        self.name = f"collection {part.entities} on {host}"
        self._where = " and ".join(f"{column} in {_literals(values)}" for column, values in part.allowed.items())

    @cached_property
    def _client(self) -> Any:
        # Its own log would print every error, with a traceback, before it is raised.
        logging.getLogger("pymilvus").setLevel(logging.CRITICAL)
        return self._tried(self._make)

    def ask(self, method: str, *arguments: Any, **options: Any) -> Any:
        """What a method of the client says of the collection; BackendUnavailable where it cannot be reached."""
        call = getattr(self._client, method)
        return self._tried(lambda: call(self._part.entities, *arguments, timeout=self._part.timeout, **options))

    def _tried(self, call: Callable[[], Any]) -> Any:
        from grpc import RpcError
        from pymilvus import MilvusException

        try:
            return call()
        except MilvusException as error:
            message = " ".join(str(error.message).split())[:200]
            fault = f"Milvus at {self._host} refused ({error.code}): {message}"
            if error.code == 2 or "connect" in message.lower():
                fault = f"no connection to Milvus at {self._host}; is it running there?"
            elif "auth" in message.lower():
                fault = (
                    f"Milvus at {self._host} does not let this user in; check what the environment variable of "
                    "engine.token_env holds"
                )
        except RpcError as error:
            fault = f"no answer from Milvus at {self._host} ({type(error).__name__})"
        # Out of the handler, so that the client's error, which knows the request, is not its context.
        raise BackendUnavailable(fault)

    @cached_property
    def _described(self) -> Mapping[str, Any]:
        if not self.ask("has_collection"):
            raise DataError(f"there is no {self.name} (engine.entities)")
        if self._part.is_file:
            # Into the memory of this process; on a server that is for others to decide.
            self.ask("load_collection")
        described: Mapping[str, Any] = self.ask("describe_collection")
        return described

    @cached_property
    def _fields(self) -> dict[str, Mapping[str, Any]]:
        return {one["name"]: one for one in self._described["fields"]}

    def _type(self, name: str) -> str:
        self.check((name,))
        type_ = self._fields[name]["type"]
        return getattr(type_, "name", str(type_))

    def check(self, columns: Sequence[str]) -> None:
        """Raise DataError naming fields that the collection has not; one with dynamic fields may have any."""
        missing = [name for name in columns if name not in self._fields]
        fixed = [name for name in missing if name in (self._id, self._vector)]
        if lacking := fixed or (missing if not self._described.get("enable_dynamic_field") else []):
            raise self.lacking(lacking, list(self._fields))
        state = str(self.ask("get_load_state").get("state", "")).rpartition(".")[2].rstrip(">")
        if "NotLoad" in state or "NotExist" in state:
            raise BackendUnavailable(f"{self.name} is not loaded, and is not loaded from here; load it on the server")

    def count(self) -> int:
        """The number of entities."""
        return int(self.ask("query", filter=self._where, output_fields=["count(*)"])[0]["count(*)"])

    def rows(self, ids: Sequence[str], columns: Sequence[str]) -> list[tuple[str, Row]]:
        """The entities that there are of these ids."""
        some: list[Any] = [one for one in ids if not any(character < " " for character in one)]
        if self._type(self._id).startswith("INT"):
            some = [int(one) for one in ids if one.isascii() and one.lstrip("-").isdecimal() and len(one) < 19]
        if not some:
            return []
        rows = self.ask("query", filter=f"{self._id} in {_literals(some)}", output_fields=[self._id, *columns])
        return [(str(row[self._id]), row) for row in rows]

    def every(self, columns: Sequence[str]) -> Iterator[tuple[str, Row]]:
        """All entities."""
        fields = [self._id, *columns]
        pages = self.ask("query_iterator", filter=self._where, batch_size=ROWS_AT_ONCE, output_fields=fields)
        try:
            while page := self._tried(pages.next):
                yield from ((str(row[self._id]), row) for row in page)
        finally:
            pages.close()

    @cached_property
    def compared(self) -> tuple[str, int]:
        """What the field's index compares by ("" where it has none), and the field's length."""
        column = self._vector
        if (type_ := self._type(column)) != "FLOAT_VECTOR":
            raise DataError(f"field {column!r} of {self.name} is of type {type_}; expected FLOAT_VECTOR")
        described = (self.ask("describe_index", name) for name in self.ask("list_indexes"))
        metric = next((str(one.get("metric_type") or "") for one in described if one.get("field_name") == column), "")
        return metric, int(self._fields[column]["params"]["dim"])

    def near(self, vector: Embeddings, n: int) -> Sequence[str]:
        """The nearest entities."""
        options = {"data": [vector.tolist()], "anns_field": self._vector, "limit": n, "output_fields": [self._id]}
        [hits] = self.ask("search", filter=self._where, **options)
        return [str(hit["entity"].get(self._id, hit.get(self._id))) for hit in hits]


def _literals(values: Sequence[Any]) -> str:
    """Values as an expression of Milvus has them."""
    return json.dumps(list(values), ensure_ascii=False)
