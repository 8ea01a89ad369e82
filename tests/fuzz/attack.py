"""Ask servers that want to hurt, and print what came of each: `python -m fuzz.attack FIRST COUNT` in tests/.

Each line is a JSON list: seed, what the server did, what came of it, seconds. The last one is the most memory that the
process had, in MB.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

from fairagent.errors import FairAgentError
from fairagent.llm import ModelRequest, Reply, ask
from fairagent.llm.likelihood import EndpointModel
from fairagent.llm.openai import OpenAIModel
from fairagent.settings import ModelSettings

from .hostile import HostileServer, hostile_plan
from .memory import peak_memory

TIMEOUT, DEADLINE = 0.7, 1.0
"""Seconds of an attempt, and of all attempts."""
MOST_SECONDS = 5.0
THREADS = 4
FREE = ModelRequest((("user", "Which color?"),))
LETTERS = ModelRequest((("user", "A or B?"),), choices="AB", whole=False, max_tokens=5)


class Colors(Reply):
    colors: list[str]


def attack(seed: int) -> tuple[int, str, str, float]:
    """One case: its seed, what the server did, what came of it (a reply, an error of ours, or a traceback), seconds."""
    name, steps = hostile_plan(seed)
    way = ("complete", "ask", "stream", "letters", "likelihood")[seed % 5]
    with HostileServer(lambda: steps) as server:
        settings = ModelSettings(name="tiny", base_url=server.url, timeout=TIMEOUT, deadline=DEADLINE, attempts=2)
        started = time.monotonic()
        try:
            came = _call(way, settings)
        except FairAgentError as error:
            # What an error says is shown to people: in few words, and printable.
            came = (
                type(error).__name__ if str(error).isprintable() and len(str(error)) < 2000 else f"SAID {error!r:.300}"
            )
        except Exception:
            came = traceback.format_exc()
        seconds = time.monotonic() - started
        if len(server.requests) > 2 * 4:
            came = f"ASKED {len(server.requests)} times"
    return seed, f"{way}: {name}", came, seconds


def _call(way: str, settings: ModelSettings) -> str:
    if way == "likelihood":
        scorer = EndpointModel(settings, environ={}, sleep=lambda seconds: None)
        try:
            (scores,) = scorer.score([("the judge", " is good")])
        finally:
            scorer.close()
        return "scores" if bool((scores <= 0.01).all()) else f"SCORES {scores}"
    model = OpenAIModel(settings, {}, sleep=lambda seconds: None)
    try:
        if way == "ask":
            ask(model, FREE, Colors)
        elif way == "stream":
            model.stream(FREE, lambda piece: None)
        else:
            reply = model.complete(LETTERS if way == "letters" else FREE)
            if not 0 <= reply.input_tokens + reply.output_tokens < 1e9:
                return f"COUNTED {reply.input_tokens} {reply.output_tokens}"
    finally:
        model.close()
    return "reply"


def main(first: int, count: int) -> None:
    # What takes seconds to load must not be counted.
    for seed in range(5):
        attack(seed)
    with ThreadPoolExecutor(THREADS) as pool:
        for outcome in pool.map(attack, range(first, first + count)):
            print(json.dumps(outcome), flush=True)
    print(json.dumps(peak_memory() / 2**20))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
