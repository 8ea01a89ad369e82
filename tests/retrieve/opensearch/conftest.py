"""Servers to speak with: noida-db, which has Elasticsearch's protocol, and a real one where an address names it."""

from __future__ import annotations

import os
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

import pytest

from conftest import SEARCH_SERVER
from fairagent.guests.opensearch.bulk import LoadSettings, load
from fairagent.guests.opensearch.index import LOADED, ServerIndex
from fairagent.guests.opensearch.search import OpenSearchRetriever
from fairagent.guests.opensearch.server import Address, Credentials, Server

from .made import GENDERS, MADE

REASON = "no real server: FAIRAGENT_OPENSEARCH_URL names none (examples/opensearch/compose.yaml starts one)"


@pytest.fixture(scope="session")
def noida(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of noida-db, started for these tests."""
    found = find_spec("noida_db")
    if found is None or found.origin is None:
        pytest.skip("the package noida-db is not installed (pip install 'fairagent[dev]')")
    program = Path(found.origin).with_name("noida-db")
    os.chmod(program, 0o755)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    folder = tmp_path_factory.mktemp("noida")
    command = [program, "start", "--only", "elasticsearch", "--elasticsearch-port", str(port), "--data-dir", folder]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        url = f"http://127.0.0.1:{port}"
        _await(url)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=30)


def _await(url: str) -> None:
    opener = build_opener(ProxyHandler({}))
    for _ in range(200):
        try:
            with opener.open(url, timeout=5):
                return
        except OSError:
            time.sleep(0.05)
    pytest.fail(f"noida-db does not answer at {url}")


@pytest.fixture(scope="session", params=["noida", "real"])
def url(request: pytest.FixtureRequest) -> str:
    """The address of a server."""
    if request.param == "noida":
        return str(request.getfixturevalue("noida"))
    if not SEARCH_SERVER:
        pytest.skip(REASON)
    return SEARCH_SERVER


@pytest.fixture(scope="session")
def server(url: str) -> Iterator[Server]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_PROXY", "127.0.0.1,localhost")
        made = Server(Address.find(url, Credentials(), {}), timeout=120)
    yield made
    made.close()


@pytest.fixture
def name(server: Server) -> Iterator[str]:
    """The name of an index that is not there, and is deleted afterwards."""
    fresh = f"fairagent-test-{uuid.uuid4().hex[:12]}"
    yield fresh
    server.ask("DELETE", f"/{fresh}", ignore_unavailable="true")


@pytest.fixture(scope="session")
def index(server: Server) -> Iterator[ServerIndex]:
    """The index of MADE with its groups, in three shards; not to be written to."""
    made = ServerIndex(server, f"fairagent-test-{uuid.uuid4().hex[:12]}", LOADED)
    load(made, MADE, LoadSettings(k1=1.2, b=0.75, shards=3, replicas=0), groups=GENDERS)
    yield made
    server.ask("DELETE", f"/{made.name}")


@pytest.fixture(scope="session")
def engine(index: ServerIndex) -> OpenSearchRetriever:
    return OpenSearchRetriever(index)
