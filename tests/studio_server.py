"""The studio on a free port of this machine, in a thread; and a small collection with a hostile title."""

from __future__ import annotations

import json
import re
import shutil
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx
from cli import conftest as small

from fairagent.collection import load_collection
from fairagent.retrieve.bm25.build import build_index
from fairagent.studio.app import studio_app
from fairagent.studio.desk import Desk
from fairagent.studio.lanes import Lanes
from fairagent.studio.server import Door, hash_of, hosts_of
from fairagent.studio.serving import StudioServer, listening

HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>\x1b[31m\u202e"
COLLECTION = re.sub("qrels: .*\n|    era: .*\n", "", small.COLLECTION)
"""The command line's small collection without judgments and its second dimension."""
TOKEN = "not-a-real-token"


def write_collection(folder: Path) -> Path:
    """Its 24 lawyers, the last 8 of them women; the second has a hostile title."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = [page | ({"title": HOSTILE} if n == 1 else {}) for n, page in enumerate(small.documents()[:24])]
    rows = "".join(f"{page['id']}\t{'male' if n < 16 else 'female'}\n" for n, page in enumerate(pages))
    (folder / "collection.yaml").write_text(COLLECTION, encoding="utf-8")
    (folder / "docs.jsonl").write_text("".join(json.dumps(page) + "\n" for page in pages), encoding="utf-8")
    (folder / "topics.jsonl").write_text('{"id": "T1", "title": "lawyer"}\n', encoding="utf-8")
    (folder / "groups.tsv").write_text(f"id\tgender\n{rows}", encoding="utf-8")
    build_index(load_collection(folder / "collection.yaml"), folder / "index")
    return folder


def without_target(folder: Path, copy: Path) -> Path:
    """A copy of the collection whose file names neither a target nor a population."""
    shutil.copytree(folder, copy)
    (copy / "collection.yaml").write_text(COLLECTION.partition("target:")[0], encoding="utf-8")
    return copy


def without_groups(folder: Path) -> Path:
    """The collection, whose file names no groups any more."""
    (folder / "collection.yaml").write_text(COLLECTION.partition("groups:")[0], encoding="utf-8")
    return folder


@dataclass(frozen=True)
class Studio:
    """A server that runs."""

    desk: Desk
    url: str
    token: str

    @property
    def address(self) -> str:
        return f"{self.url}/#token={self.token}" if self.token else f"{self.url}/"

    def client(self, **more: Any) -> httpx.Client:
        """Who has the token."""
        headers = {"authorization": f"Bearer {self.token}"} if self.token else {}
        return httpx.Client(base_url=self.url, headers=headers, trust_env=False, timeout=60, **more)

    def get(self, path: str, status: int = 200, **params: str) -> Any:
        """The record of a call, which is answered with this status."""
        with self.client() as client:
            reply = client.get(path, params=params)
        assert reply.status_code == status, reply.text
        return reply.json()

    def post(self, path: str, body: Any, status: int = 200) -> Any:
        """The same of a call with a body."""
        with self.client() as client:
            reply = client.post(path, json=body)
        assert reply.status_code == status, reply.text
        return reply.json()

    def events(self, path: str, body: Any) -> list[tuple[str, Any]]:
        """The events of a call: kinds and records."""
        with self.client() as client:
            reply = client.post(path, json=body, headers={"accept": "text/event-stream"})
        assert reply.headers["content-type"].startswith("text/event-stream")
        parts = [part.split("\n") for part in reply.text.removesuffix("\n\n").split("\n\n")]
        return [(kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for kind, data in parts]


def asking(folder: Path, url: str, **overrides: Any) -> Desk:
    """The same with a language model at that address, for what asks one by its settings."""
    named = {"name": "tiny", "base_url": url, "attempts": 1, "deadline": 20}
    return desk_of(folder, **{"cache": "", "model": named, "profile": "offline", **overrides})


def desk_of(folder: Path, **overrides: Any) -> Desk:
    """The desk of a collection that `write_collection` wrote."""
    given = {"collection": str(folder / "collection.yaml"), "index": str(folder / "index")}
    return Desk(None, given | {"engine": "bm25", "target": "population", "n": 10} | overrides)


@contextmanager
def running(
    desk: Desk,
    token: str = TOKEN,
    lanes: Lanes | None = None,
    runs: Path = Path("runs"),
    prompts: Path | None = None,
    limits: Mapping[str, int] = MappingProxyType({}),
    **door: Any,
) -> Iterator[Studio]:
    """A server for `desk`, while the block runs; `door` is as in `Door`, and that of the token without it."""
    with closing(listening(0)) as opened, closing(desk):
        port = opened.getsockname()[1]
        lanes = lanes or Lanes()
        door = {"hosts": hosts_of("127.0.0.1", port), "admission": {hash_of(token): None} if token else None} | door
        server = StudioServer(studio_app(desk, lanes, Door(**door), runs, prompts), lanes, **limits)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [opened]})
        thread.start()
        try:
            yield Studio(desk, f"http://127.0.0.1:{port}", token)
        finally:
            server.should_exit = True
            thread.join()
