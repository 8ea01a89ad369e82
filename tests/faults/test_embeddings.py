"""Embeddings of a server that fails, costs too much or is interrupted midway: with a cache nothing is paid twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from retrieve.test_dense import Made
from typer.testing import CliRunner

from fairagent.cli import app
from fairagent.errors import BudgetExceeded, IndexMismatch, ReplyInvalid
from fairagent.guests.testing import LoopbackServer, ServerReply, embeddings
from fairagent.llm.models import Models
from fairagent.retrieve import encoded
from fairagent.retrieve.dense import DenseRetriever
from fairagent.retrieve.encoded import build_dense_index
from fairagent.retrieve.encoders import EndpointEncoder, open_encoder
from fairagent.settings import BudgetSettings, ModelSettings
from fairagent.types import Document, Query

from .tiny import write

MADE = Made([Document(f"d{number:03}", f"judge {number} of the court {number % 7}") for number in range(300)])
PROBE = 1
"""The test text is asked for as well."""


@pytest.fixture(autouse=True)
def _blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoded, "CHUNK", 64)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer() as server:
        yield server


def opened(server: LoopbackServer, cache: Path | str = "", **limits: Any) -> EndpointEncoder:
    models = Models(cache, BudgetSettings(**limits), environ={})
    found = open_encoder(
        "endpoint:small", served=lambda name: models.open_embeddings(ModelSettings(name=name, base_url=server.url))
    )
    assert isinstance(found, EndpointEncoder)
    return found


def asked(server: LoopbackServer) -> Counter[str]:
    return Counter(text for request in server.requests for text in request["input"])


def whole(server: LoopbackServer, folder: Path) -> bytes:
    """What an undisturbed build makes."""
    build_dense_index(MADE, folder, opened(server))
    return (folder / "vectors.npy").read_bytes()


def test_185_and_186_a_budget_that_is_used_up_midway(server: LoopbackServer, tmp_path: Path) -> None:
    expected = whole(server, tmp_path / "whole")
    server.requests.clear()
    index, cache = tmp_path / "index", tmp_path / "cache"
    with pytest.raises(BudgetExceeded, match="budget of 6 calls"):
        build_dense_index(MADE, index, opened(server, cache, calls=6))
    assert len(server.requests) == 6
    build_dense_index(MADE, index, opened(server, cache))
    assert (index / "vectors.npy").read_bytes() == expected
    assert set(asked(server).values()) == {1}
    assert len(asked(server)) == 300 + PROBE


def test_187_a_model_that_is_replaced_midway_is_not_mixed_in(server: LoopbackServer, tmp_path: Path) -> None:
    index, cache = tmp_path / "index", tmp_path / "cache"
    length = {"now": 16}

    def replaced(request: dict[str, Any]) -> ServerReply:
        length["now"] = 8 if len(server.requests) > 4 else 16
        return embeddings(request["input"], length["now"])

    server.script = replaced
    with pytest.raises(ReplyInvalid, match="vectors of 8 numbers; 16 were expected, as before"):
        build_dense_index(MADE, index, opened(server, cache))
    assert not index.exists()
    server.script = lambda request: embeddings(request["input"], 8)
    # Whoever has no vectors of the earlier model builds those of the new one, from the beginning.
    build_dense_index(MADE, index, opened(server))
    assert np.load(index / "vectors.npy").shape == (300, 8)
    server.script = lambda request: embeddings(request["input"], 16)
    with pytest.raises(IndexMismatch, match="makes others"):
        DenseRetriever(index, opened(server))


def test_188_blank_texts_are_not_sent_and_like_nothing(server: LoopbackServer, tmp_path: Path) -> None:
    documents = [Document("a", "  "), Document("b", "judge"), Document("c", "")]
    build_dense_index(Made(documents), tmp_path / "index", opened(server))
    rows = np.load(tmp_path / "index" / "vectors.npy")
    assert np.linalg.norm(rows.astype(np.float32), axis=1).tolist() == pytest.approx([0, 1, 0])
    assert "" not in asked(server)
    assert opened(server).documents(["", " "]).tolist() == [[0.0] * 16] * 2
    found = DenseRetriever(tmp_path / "index", opened(server)).search(Query("judge"), 3)
    assert found.ids[0] == "b"


def test_189_search_asks_for_the_query_alone(server: LoopbackServer, tmp_path: Path) -> None:
    file = write(tmp_path / "files")
    engine = "engine={kind: dense, encoder: 'endpoint:small'}"
    options = ["-c", str(file), "--index", str(tmp_path / "index"), "--set", engine]
    options += ["--set", f"model.base_url={server.url}", "--set", f"cache={tmp_path / 'cache'}"]
    result = CliRunner().invoke(app, ["index", *options])
    assert result.exit_code == 0, result.stderr
    before = len(server.requests)
    found = CliRunner().invoke(app, ["search", "judge river", *options, "--set", "profile=engine"])
    assert found.exit_code == 0, found.stderr
    # The vector of the test text is in the cache.
    assert [request["input"] for request in server.requests[before:]] == [["judge river"]]
