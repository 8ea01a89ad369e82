"""The page docs/plain_openai.md: its blocks run in order against a server on the loopback interface."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from fairagent.guests.testing import LoopbackServer, ServerReply, completion, embeddings

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "plain_openai.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)


def answer(request: dict[str, Any]) -> ServerReply:
    """What OpenAI says to a search of a vector store, to texts to embed, or to a chat."""
    if "query" in request:
        hits = [
            {
                "file_id": f"file-{place}",
                "filename": f"{place}.md",
                "score": 0.9 - place / 20,
                "attributes": {"gender": "female" if place % 4 == 3 else "male"},
                "content": [{"type": "text", "text": f"Text {place}."}],
            }
            for place in range(12)
        ]
        return ServerReply({"object": "vector_store.search_results.page", "data": hits, "has_more": False})
    return embeddings(request["input"]) if "input" in request else completion("Many people [0.md].")


def test_the_page(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    with LoopbackServer(answer) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        first, second = blocks("python")
        exec(first, names)
        printed = capsys.readouterr().out
        exec(second, names)
        names["client"].close()
    assert printed == f"{blocks('text')[0]}Many people [0.md].\n"
    assert [hit.file_id for hit in names["fair"].hits] == ["file-0", "file-3", "file-1"]
    assert server.paths[:2] == ["/v1/vector_stores/vs_123/search", "/v1/chat/completions"]
    assert "[3.md] Text 3." in server.requests[1]["messages"][1]["content"]
    assert "p1 female" in capsys.readouterr().out
