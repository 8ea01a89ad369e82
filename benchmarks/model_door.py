"""What the door to language models adds to a call: prompt, validation, budget, retries and cache, but not the model.

`python benchmarks/model_door.py [CALLS]` asks a loopback server in a process of its own, which answers at once:
plainly through the `openai` package, then through the door, then the same again from the cache. Milliseconds a call.
"""

from __future__ import annotations

import json
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path

import openai

from fairagent.guests.testing import LoopbackServer
from fairagent.llm import ModelRequest, Reply, ask
from fairagent.llm.models import Models
from fairagent.llm.prompts import Prompts
from fairagent.settings import BudgetSettings, ModelSettings, Price

ASKED_HIT = 3.0
"""Milliseconds that a call may take when its reply is in the cache."""
THREADS = 8
REPLY = json.dumps({"keywords": ["she", "her", "woman", "women", "actress"]})


class Keywords(Reply):
    """What the prompt asks for."""

    keywords: list[str]


def main(calls: int) -> None:
    pipe, other = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(other,), daemon=True)
    process.start()
    url = pipe.recv()
    prompts = Prompts()
    values = {
        "dimension": "gender",
        "group": "female",
        "share": "10.0%",
        "target": "50.0%",
        "keywords": [],
        "tried": [],
    }
    requests = [ModelRequest(prompts.render("refine_query", query=f"lawyers {n}", **values)) for n in range(calls)]

    client = openai.OpenAI(api_key="no-key", base_url=url, max_retries=0)

    def plainly(request: ModelRequest) -> None:
        messages = [{"role": role, "content": text} for role, text in request.messages]
        reply = client.chat.completions.create(model="tiny", messages=messages)  # type: ignore[arg-type]
        assert reply.choices[0].message.content == REPLY

    with tempfile.TemporaryDirectory() as folder:
        limits = BudgetSettings(calls=10 * calls, dollars=1000.0)
        models = Models(Path(folder) / "cache", limits, {"tiny": Price(input=0.1, output=0.3)}, environ={})
        model = models.open(ModelSettings(name="tiny", base_url=url))

        def through_the_door(request: ModelRequest) -> None:
            ask(model, request, Keywords)

        plainly(requests[0])
        plain = timed(plainly, requests)
        first = timed(through_the_door, requests)
        again = timed(through_the_door, requests)
        with ThreadPoolExecutor(THREADS) as pool:
            started = time.perf_counter()
            list(pool.map(through_the_door, requests))
            together = 1000 * (time.perf_counter() - started) / calls
        print(f"{calls} calls, prompts of {sum(len(text) for _, text in requests[0].messages):,} characters")
        print(f"openai package alone      median {plain:6.2f} ms")
        print(f"through the door, asked   median {first:6.2f} ms, so {first - plain:.2f} ms on top")
        print(f"through the door, kept    median {again:6.2f} ms (asked: below {ASKED_HIT:g})")
        print(f"kept, {THREADS} threads            mean {together:6.2f} ms a call")
        print(f"paid: {models.usage.calls} calls, saved: {models.usage.saved.calls if models.usage.saved else 0}")
        models.close()
    process.terminate()
    if again >= ASKED_HIT:
        sys.exit(f"{again:.2f} ms is not below {ASKED_HIT:g}")


def timed(call: Callable[[ModelRequest], None], requests: list[ModelRequest]) -> float:
    """The median of the milliseconds that the calls take."""
    taken = []
    for request in requests:
        started = time.perf_counter()
        call(request)
        taken.append(1000 * (time.perf_counter() - started))
    return statistics.median(taken)


def serve(pipe: Connection) -> None:
    """Answer until the process is ended."""
    with LoopbackServer(lambda request: REPLY) as server:
        pipe.send(server.url)
        time.sleep(3600)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
