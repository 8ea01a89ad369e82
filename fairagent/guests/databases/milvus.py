"""Milvus, or a file of Milvus Lite, as an engine. Nothing is written, nor loaded into a server's memory."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field

from fairagent.extend import BackendUnavailable, DataError, Embeddings, SettingsError, expect_installed, installed
from fairagent.guests.databases.part import DatabaseConfig, secret
from fairagent.guests.databases.store import Columns, Row, check_once

MOST_ENTITIES = 16_384
"""The most that Milvus gives at once."""
ROWS_AT_ONCE = 1_000
LIKENESS = {"COSINE": True, "IP": False}
"""What Milvus compares by, of what can be read as a score -> whether that is the cosine."""


class MilvusConfig(DatabaseConfig):
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
    def _file(self) -> bool:
        return "://" not in self.url

    def relative_to(self, folder: Path) -> Self:
        """With the file's path from anywhere."""
        return self.model_copy(update={"url": str((folder / self.url).absolute())}) if self._file else self

    def connect(self, environ: Mapping[str, str] = os.environ) -> MilvusEntities:
        """The collection; BackendUnavailable without pymilvus or the file, SettingsError for no address."""
        expect_installed("pymilvus", "engine: milvus")
        if self._file:
            expect_installed("milvus-lite", "a file of Milvus Lite")
            if not Path(self.url).exists():
                # The client would make an empty one.
                raise BackendUnavailable(f"there is no file {self.url} (engine.url)")
            host = Path(self.url).name
        else:
            parts = urlsplit(self.url)
            if "@" in parts.netloc or parts.query:
                raise SettingsError(
                    f"engine.url of {parts.hostname} has a user, a password or a token in it, which settings and runs "
                    "would keep; name the environment variable that holds it: engine.token_env"
                )
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise SettingsError("engine.url is no address of a Milvus server; expected e.g. http://localhost:19530")
            host = parts.netloc
        token = secret(self.token_env, environ, host)

        def client() -> Any:
            known = {"token": token} if token else {}
            return installed("pymilvus", "engine: milvus").MilvusClient(
                self.url, db_name=self.database, timeout=self.timeout, **known
            )

        return MilvusEntities(client, host, self.entities, self.columns, self.timeout, self._file)


class MilvusEntities:
    """A collection of Milvus. Threads may share it."""

    most = MOST_ENTITIES

    def __init__(
        self, client: Callable[[], Any], host: str, name: str, columns: Columns, timeout: float, local: bool
    ) -> None:
        """Take what opens the client, where it leads, the collection, its fields, the seconds of one answer.

        `local`: it is a file of Milvus Lite, which is its own server in this process.
        """
        self._make, self.host, self._collection, self._columns, self._timeout = client, host, name, columns, timeout
        self._local = local
        self.name = f"collection {name} on {host}"

    def __repr__(self) -> str:
        return f"MilvusEntities({self.name})"

    @cached_property
    def _client(self) -> Any:
        # Its own log would print every error, with a traceback, before it is raised.
        logging.getLogger("pymilvus").setLevel(logging.CRITICAL)
        return self._tried(self._make)

    def _ask(self, method: str, *arguments: Any, **options: Any) -> Any:
        client = self._client
        call = getattr(client, method)
        return self._tried(lambda: call(self._collection, *arguments, timeout=self._timeout, **options))

    def _tried(self, call: Callable[[], Any]) -> Any:
        from grpc import RpcError
        from pymilvus import MilvusException

        fault: Exception
        try:
            return call()
        except MilvusException as error:
            message = " ".join(str(error.message).split())[:200]
            fault = BackendUnavailable(f"Milvus at {self.host} refused ({error.code}): {message}")
            if error.code == 2 or "connect" in message.lower():
                fault = BackendUnavailable(f"no connection to Milvus at {self.host}; is it running there?")
            elif "auth" in message.lower():
                fault = BackendUnavailable(
                    f"Milvus at {self.host} does not let this user in; check what the environment variable of "
                    "engine.token_env holds"
                )
        except RpcError as error:
            fault = BackendUnavailable(f"no answer from Milvus at {self.host} ({type(error).__name__})")
        # Out of the handler, so that the client's error, which knows the request, is not its context.
        raise fault

    @cached_property
    def _described(self) -> Mapping[str, Any]:
        client = self._client
        if not self._tried(lambda: client.has_collection(self._collection, timeout=self._timeout)):
            raise DataError(f"there is no {self.name} (engine.entities)")
        if self._local:
            # Into the memory of this process; on a server that is for others to decide.
            self._ask("load_collection")
        described: Mapping[str, Any] = self._ask("describe_collection")
        return described

    @cached_property
    def _fields(self) -> dict[str, Mapping[str, Any]]:
        return {one["name"]: one for one in self._described["fields"]}

    def check(self, columns: Sequence[str]) -> None:
        """Raise DataError naming fields that the collection has not; one with dynamic fields may have any."""
        missing = [name for name in columns if name and name not in self._fields]
        fixed = [name for name in missing if name in (self._columns.id, self._columns.vector)]
        if lacking := fixed or (missing if not self._described.get("enable_dynamic_field") else []):
            raise DataError(
                f"{self.name} has no field {', '.join(map(repr, lacking))} (engine.columns, engine.groups); it has: "
                f"{', '.join(list(self._fields)[:20])}"
            )
        state = str(self._ask("get_load_state").get("state", "")).rpartition(".")[2].rstrip(">")
        if "NotLoad" in state or "NotExist" in state:
            raise BackendUnavailable(f"{self.name} is not loaded, and is not loaded from here; load it on the server")

    def count(self) -> int:
        """The number of entities."""
        return int(self._ask("query", filter="", output_fields=["count(*)"])[0]["count(*)"])

    @cached_property
    def cosine(self) -> bool:
        """Whether by cosine; DataError for a likeness whose scores are no inner products."""
        index: Mapping[str, Any] = next(
            (
                about
                for name in self._ask("list_indexes")
                if (about := self._ask("describe_index", name)).get("field_name") == self._columns.vector
            ),
            {},
        )
        metric = str(index.get("metric_type") or "none")
        if metric not in LIKENESS:
            raise DataError(
                f"field {self._columns.vector!r} of {self.name} compares embeddings by {metric}, and scores of that "
                f"are no inner products; what can be read: {', '.join(LIKENESS)}"
            )
        return LIKENESS[metric]

    @cached_property
    def dimensions(self) -> int:
        """How many numbers an embedding has."""
        self.check((self._columns.vector,))
        field = self._fields[self._columns.vector]
        type_ = getattr(field["type"], "name", str(field["type"]))
        if type_ != "FLOAT_VECTOR":
            raise DataError(
                f"field {self._columns.vector!r} of {self.name} is of type {type_}; embeddings are in a FLOAT_VECTOR"
            )
        return int(field["params"]["dim"])

    def near(self, vector: Embeddings, n: int) -> list[tuple[str, float]]:
        """The nearest entities."""
        answer = self._ask(
            "search",
            data=[[float(number) for number in vector]],
            anns_field=self._columns.vector,
            limit=n,
            output_fields=[self._columns.id],
        )
        return [
            (str(hit["entity"].get(self._columns.id, hit.get(self._columns.id))), hit["distance"]) for hit in answer[0]
        ]

    def rows(self, ids: Sequence[str], columns: Sequence[str]) -> dict[str, Row]:
        """The entities that there are of these ids."""
        id, rows = self._columns.id, dict[str, Row]()
        for start in range(0, len(ids), ROWS_AT_ONCE):
            some = [self._literal(one) for one in ids[start : start + ROWS_AT_ONCE]]
            listed = ", ".join(filter(None, some))
            if not listed:
                continue
            entities = self._ask("query", filter=f"{id} in [{listed}]", output_fields=[id, *filter(None, columns)])
            check_once(self, [str(row[id]) for row in entities])
            rows |= {str(row[id]): row for row in entities}
        return rows

    def every(self, columns: Sequence[str]) -> Iterator[tuple[str, Row]]:
        """All entities."""
        id = self._columns.id
        fields = [id, *filter(None, columns)]
        pages = self._ask("query_iterator", batch_size=ROWS_AT_ONCE, output_fields=fields)
        try:
            while page := self._tried(pages.next):
                for row in page:
                    yield str(row[id]), row
        finally:
            pages.close()

    def _literal(self, id: str) -> str:
        """An id as an expression has it; "" for what none can be."""
        self.check((self._columns.id,))
        type_ = self._fields[self._columns.id]["type"]
        if not getattr(type_, "name", str(type_)).startswith("INT"):
            strange = any(one < " " or "\ud800" <= one <= "\udfff" for one in id)
            return "" if strange else json.dumps(id, ensure_ascii=False)
        return id if id.isascii() and id.lstrip("-").isdecimal() and len(id) < 19 else ""
