"""An index to search, on noida-db."""

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conftest import SEARCH_SERVER

PASSWORD = "correct-horse-battery"
WORDS = ("jazz", "piano", "drums", "court", "judge", "poem", "novel", "ship")
COLUMNS = {"id": "key", "title": "headline", "text": "body"}
GENDERS = ("male", "male", "female", None, "male")
REGIONS = (["Asia"], ["Asia", "Europe"], [], ["Europe"])


MADE = [
    SimpleNamespace(
        id=f"d{n:02}",
        title=f"Person {n}",
        text=f"{WORDS[n % 8]} {WORDS[(n * 3 + 1) % 8]} {'jazz ' * (n % 4)}and the year {1900 + n}",
        gender=GENDERS[n % 5],
        regions=REGIONS[n % 4],
    )
    for n in range(40)
]


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
    about = {"number_of_shards": 3, "number_of_replicas": 0}
    client.indices.delete(index=name, ignore_unavailable=True)
    client.indices.create(index=name, body={"settings": about, "mappings": {"properties": fields}})
    rows = [
        {"key": one.id, "headline": one.title, "body": one.text, "sex": one.gender, "places": one.regions}
        | {"_index": name, "_id": one.id}
        for one in MADE
    ]
    client_of.helpers.bulk(client, rows, refresh=True)
    yield noida
    client.indices.delete(index=name)
    client.close()
