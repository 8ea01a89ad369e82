"""Requests a second of `fairagent serve`, with the default and with `profile: engine`, and of a bare application.

    python benchmarks/serving.py                     # 20,000 made-up documents; needs `pip install bm25s`
    python benchmarks/serving.py --soak 2000         # and what the default's memory grows by meanwhile

The bare application is FastAPI with bm25s, which gives the ids, titles and scores of ten documents: no groups, no
trace, no token. All servers get the same queries, no two alike, from the same client process on the same machine, one
server after the other. A ratio below 1 says that ours answers fewer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import httpx
import numpy as np
from made_up import write_made_up
from timing import FAIRAGENT

BARE = """
import json, socket, sys
import bm25s, uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

class Asked(BaseModel):
    query: str

documents = [json.loads(line) for line in open(sys.argv[1] + "/docs.jsonl")]
engine = bm25s.BM25()
engine.index(bm25s.tokenize([one["text"] for one in documents], show_progress=False), show_progress=False)
app = FastAPI()

@app.post("/api/search")
def search(asked: Asked):
    found, scores = engine.retrieve(bm25s.tokenize([asked.query], show_progress=False), k=10, show_progress=False)
    ranked = zip(found[0].tolist(), scores[0].tolist())
    return {"hits": [{"id": documents[n]["id"], "title": documents[n]["title"], "score": score} for n, score in ranked]}

listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
listening.bind(("127.0.0.1", 0))
listening.listen(128)
print(f"http://127.0.0.1:{listening.getsockname()[1]}/", flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])
"""


def main() -> None:
    """Print the figures; exit code 1 where a reply is no list of documents."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--requests", type=int, default=400, help="of each server and number of clients")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--soak", type=int, default=0, help="searches of the default whose memory is looked at")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        collection = write_made_up(folder / "made-up", chosen.documents)
        place = ("-c", str(collection), "--index", str(folder / "index"))
        subprocess.run([*FAIRAGENT, "index", *place], check=True, stdout=subprocess.DEVNULL)
        ours = (*FAIRAGENT, "serve", "--no-token", "--port", "0", *place)
        servers = {"default": ours, "profile: engine": (*ours, "--set", "profile=engine")}
        if find_spec("bm25s"):
            servers["bare FastAPI, bm25s"] = (sys.executable, "-c", BARE, str(folder / "made-up"))
        texts = queries(folder / "made-up" / "topics.jsonl")
        rates = {}
        print("server                clients   a second   CPU ms   p50 ms   p99 ms      bytes")
        for name, command in servers.items():
            with served(command) as (url, process):
                asyncio.run(asked(url, [next(texts) for _ in range(20)], 1))
                for clients in chosen.clients:
                    before, start = cpu_seconds(process), time.perf_counter()
                    times, size = asyncio.run(asked(url, [next(texts) for _ in range(chosen.requests)], clients))
                    rates[name, clients] = rate = chosen.requests / (time.perf_counter() - start)
                    cost = 1000 * (cpu_seconds(process) - before) / chosen.requests
                    middle, last = np.quantile(times, [0.5, 0.99]) * 1000
                    print(f"{name:22}{clients:7}{rate:11.1f}{cost:9.1f}{middle:9.0f}{last:9.0f}{size:11,}", flush=True)
        for clients in chosen.clients:
            if ("bare FastAPI, bm25s", clients) in rates:
                ratios = [rates[name, clients] / rates["bare FastAPI, bm25s", clients] for name in list(servers)[:2]]
                print(f"to the bare one, {clients} clients: default {ratios[0]:.2f}, profile: engine {ratios[1]:.2f}")
        if chosen.soak:
            soak(servers["default"], texts, chosen.soak)


def soak(command: tuple[str, ...], texts: Iterator[str], searches: int) -> None:
    """Print the server's memory after every tenth of the searches, and how much it grew after the first tenth."""
    sizes = []
    with served(command) as (url, process):
        for _ in range(10):
            asyncio.run(asked(url, [next(texts) for _ in range(searches // 10)], 4))
            sizes.append(resident(process))
    print(f"MB after every {searches // 10} searches: {', '.join(f'{size:.0f}' for size in sizes)}")
    print(f"grown by {sizes[-1] - sizes[0]:.1f} MB after the first {searches // 10}")


def queries(topics: Path) -> Iterator[str]:
    """The topics' queries with two words more, so that no two are alike."""
    texts = [json.loads(line)["query"] for line in topics.read_text().splitlines()]
    for number in range(10**9):
        yield f"{texts[number % len(texts)]} w{number % 997} w{300 + number % 1009}"


@contextmanager
def served(command: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    """The address of a server, which it prints first, and its process."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield process.stdout.readline().strip(), process.pid
        finally:
            process.kill()


async def asked(url: str, texts: list[str], clients: int) -> tuple[list[float], int]:
    """The seconds of every request, so many at once, and the bytes of a reply."""
    times, sizes, waiting = [], [], iter(texts)

    async def client(session: httpx.AsyncClient) -> None:
        for text in waiting:
            start = time.perf_counter()
            reply = await session.post("api/search", json={"query": text})
            times.append(time.perf_counter() - start)
            if not reply.is_success or "hits" not in reply.json():
                raise SystemExit(f"{reply.status_code}: {reply.text[:200]}")
            sizes.append(len(reply.content))

    async with httpx.AsyncClient(base_url=url, timeout=120) as session:
        await asyncio.gather(*(client(session) for _ in range(clients)))
    return times, sizes[-1]


def cpu_seconds(process: int) -> float:
    """That a process has used, by Linux's /proc."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(process: int) -> float:
    """MB of memory that a process has."""
    line = next(one for one in Path(f"/proc/{process}/status").read_text().splitlines() if one.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    main()
