"""Stores to search, with the same documents: PostgreSQL with pgvector, a file of Milvus Lite, an index on noida-db."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import SEARCH_SERVER
from fairagent.guests.testing import embeddings
from fairagent.retrieve.encoders import Embeddings

PASSWORD = "correct-horse-battery"
WORDS = ("jazz", "piano", "drums", "court", "judge", "poem", "novel", "ship")
ENVIRON = {"PASSWORD": PASSWORD}
COLUMNS = {"id": "key", "title": "headline", "text": "body", "vector": "near"}
GENDERS = ("male", "male", "female", None, "male")
REGIONS = (["Asia"], ["Asia", "Europe"], [], ["Europe"])


@dataclass(frozen=True)
class Made:
    """A document of the tables."""

    id: str
    title: str
    text: str
    gender: str | None
    regions: list[str]

    @property
    def vector(self) -> list[float]:
        return encoded(f"{self.title} {self.text}")


def encoded(text: str) -> list[float]:
    """A vector of length 1, in which every word has a place."""
    row = np.array(embeddings([text]).body["data"][0]["embedding"])
    return [float(number) for number in row / max(1.0, float(np.linalg.norm(row)))]


MADE = [
    Made(
        f"d{n:02}",
        f"Person {n}",
        f"{WORDS[n % 8]} {WORDS[(n * 3 + 1) % 8]} {'jazz ' * (n % 4)}and the year {1900 + n}",
        GENDERS[n % 5],
        REGIONS[n % 4],
    )
    for n in range(40)
]


def cosines(query: str) -> dict[str, float]:
    """The likeness of every document to a query."""
    asked = np.array(encoded(query), dtype=np.float32)
    rows = {one.id: np.array(one.vector, dtype=np.float32) for one in MADE}
    return {id: float(row @ asked / np.linalg.norm(row) / np.linalg.norm(asked)) for id, row in rows.items()}


class WordEncoder:
    """An encoder of `encoded`."""

    name = "words"

    def queries(self, texts: list[str]) -> Embeddings:
        return np.array([encoded(text) for text in texts], dtype=np.float32)


@dataclass(frozen=True)
class Postgres:
    """A server on this machine: its port, and a connection that may do everything."""

    port: int
    admin: Any

    @property
    def url(self) -> str:
        return f"postgresql://reader@127.0.0.1:{self.port}/postgres"


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """PostgreSQL with the table `articles`, which `reader` may read with a password."""
    psycopg = pytest.importorskip("psycopg")
    # A folder with a short name, where sockets may be, which the user that it runs as can reach.
    folder = Path(tempfile.mkdtemp(prefix="fairagent-pg-"))
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setenv("XDG_RUNTIME_DIR", str(folder))
        pgserver = pytest.importorskip("pgserver")
        from pgserver.utils import ensure_user_exists
    user: dict[str, Any] = {}
    if os.geteuid() == 0:
        user = {"user": "pgserver"}
        ensure_user_exists("pgserver")
        shutil.chown(folder, "pgserver")
    folder.chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    data = folder / "data"
    pgserver.initdb(
        ["--no-sync", "--auth-local=trust", "--auth-host=scram-sha-256", "--encoding=utf8", "-U", "postgres"],
        pgdata=data,
        **user,
    )
    start = ["-w", "-o", f"-h 127.0.0.1 -p {port} -k {folder} -F", "-l", str(folder / "log"), "start"]
    pgserver.pg_ctl(start, pgdata=data, **user)
    try:
        with psycopg.connect(host=str(folder), port=port, user="postgres", dbname="postgres", autocommit=True) as admin:
            fill_postgres(admin)
            yield Postgres(port, admin)
    finally:
        pgserver.pg_ctl(["-w", "-m", "immediate", "stop"], pgdata=data, **user)
        shutil.rmtree(folder)


def fill_postgres(admin: Any) -> None:
    admin.execute("CREATE EXTENSION vector")
    admin.execute(f"CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'")
    admin.execute(
        "CREATE TABLE articles (key text PRIMARY KEY, headline text, body text, sex text, places text[], "
        "near vector(16))"
    )
    for one in MADE:
        admin.execute(
            "INSERT INTO articles VALUES (%s, %s, %s, %s, %s, %s::vector)",
            (one.id, one.title, one.text, one.gender, one.regions, str(one.vector)),
        )
    admin.execute("CREATE INDEX ON articles USING hnsw (near vector_cosine_ops)")
    admin.execute("GRANT SELECT ON articles TO reader")


@pytest.fixture(scope="session")
def milvus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of Milvus Lite with the collection `articles`."""
    client_of = pytest.importorskip("pymilvus")
    pytest.importorskip("milvus_lite")
    path = tmp_path_factory.mktemp("milvus") / "articles.db"
    client = client_of.MilvusClient(str(path))
    kinds = client_of.DataType
    schema = client.create_schema(auto_id=False, enable_dynamic_field=True)
    schema.add_field("key", kinds.VARCHAR, is_primary=True, max_length=64)
    schema.add_field("near", kinds.FLOAT_VECTOR, dim=16)
    schema.add_field("headline", kinds.VARCHAR, max_length=200)
    schema.add_field("body", kinds.VARCHAR, max_length=1000)
    schema.add_field("sex", kinds.VARCHAR, max_length=20, nullable=True)
    indexes = client.prepare_index_params()
    indexes.add_index("near", index_type="HNSW", metric_type="COSINE")
    client.create_collection("articles", schema=schema, index_params=indexes)
    rows = [
        {"key": one.id, "near": one.vector, "headline": one.title, "body": one.text, "sex": one.gender}
        | {"places": one.regions}
        for one in MADE
    ]
    client.insert("articles", rows)
    client.close()
    return path


@pytest.fixture(scope="session")
def noida(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of noida-db, which has Elasticsearch's protocol; or of the real server that a variable names."""
    if SEARCH_SERVER:
        yield SEARCH_SERVER
        return
    found = find_spec("noida_db")
    if found is None or found.origin is None:
        pytest.skip("the package noida-db is not installed (pip install 'fairagent[dev]')")
    program = Path(found.origin).with_name("noida-db")
    program.chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    folder = tmp_path_factory.mktemp("noida")
    command = [program, "start", "--only", "elasticsearch", "--elasticsearch-port", str(port), "--data-dir", folder]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        for _ in range(400):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=30)


@pytest.fixture(scope="session")
def articles(noida: str) -> Iterator[str]:
    """The index `fairagent-articles`, in three shards."""
    client_of = pytest.importorskip("opensearchpy")
    client = client_of.OpenSearch([noida], timeout=120)
    text, name = {"type": "text", "analyzer": "english"}, "fairagent-articles"
    keyword = {"type": "keyword"}
    fields: dict[str, Any] = {"key": keyword, "body": text, "sex": keyword, "places": keyword}
    fields["headline"] = {**text, "fields": {"raw": keyword}}
    fields["near"] = {"type": "dense_vector", "dims": 16, "similarity": "cosine"}
    about = {"number_of_shards": 3, "number_of_replicas": 0}
    if client.info()["version"].get("distribution") == "opensearch":
        method = {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"}
        fields["near"] = {"type": "knn_vector", "dimension": 16, "method": method}
        about["knn"] = True
    client.indices.delete(index=name, ignore_unavailable=True)
    client.indices.create(index=name, body={"settings": about, "mappings": {"properties": fields}})
    rows = [
        {"key": one.id, "headline": one.title, "body": one.text, "sex": one.gender, "places": one.regions}
        | {"near": one.vector, "_index": name, "_id": one.id}
        for one in MADE
    ]
    client_of.helpers.bulk(client, rows, refresh=True)
    yield noida
    client.indices.delete(index=name)
    client.close()
