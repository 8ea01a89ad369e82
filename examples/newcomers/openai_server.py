"""Stands in for OpenAI: a vector store with twelve files, every fourth by a woman, and a chat model with one reply."""

import threading
from typing import Any

from fairagent.guests.testing import LoopbackServer, ServerReply, completion


def reply(request: dict[str, Any]) -> ServerReply:
    """What is found for a query, or what the model says."""
    if "query" not in request:
        return completion("Many people [0.md].")
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


with LoopbackServer(reply) as server:
    print(server.url, flush=True)
    threading.Event().wait()
