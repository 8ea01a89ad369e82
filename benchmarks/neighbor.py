"""Searches and answers of one user while another's requests wait for a model's server that is silent, slow or dying.

    python benchmarks/neighbor.py            # 20,000 made-up documents, two users of `fairagent serve --tokens`

One model's server answers at once, but for prompts with the word "stall": to these it says nothing, a byte every half
second, or half a reply before it closes. Mallory has eight answers of that sort in the making all the time; Ann
searches and has answers written meanwhile, and each has to come from the model. The ratios are of Ann's milliseconds
beside Mallory to those alone; then what Mallory's requests got, and the longest that one took.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import numpy as np
from made_up import write_made_up
from serving import queries, served
from timing import FAIRAGENT

TOKENS = {name: f"{name}-token-for-the-benchmark-0123456789" for name in ("ann", "mallory")}
TEXT = "As it says [1]."
CHOICE = {"index": 0, "message": {"role": "assistant", "content": TEXT}, "finish_reason": "stop"}
USAGE = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}
REPLY = json.dumps({"model": "tiny", "choices": [CHOICE], "usage": USAGE}).encode()


class ModelServer(BaseHTTPRequestHandler):
    """Answers as OpenAI's API does, and badly where a prompt has the word "stall"."""

    fault = ""

    def do_POST(self) -> None:
        """One reply, with the fault."""
        stalled = b"stall" in self.rfile.read(int(self.headers["Content-Length"]))
        if stalled and self.fault == "silent":
            time.sleep(600)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(REPLY)))
        self.end_headers()
        if stalled and self.fault == "slow":
            for byte in REPLY:
                self.wfile.write(bytes([byte]))
                time.sleep(0.5)
        else:
            self.wfile.write(REPLY[: len(REPLY) // 2] if stalled else REPLY)
        self.close_connection = stalled

    def log_message(self, format: str, *values: object) -> None:
        """Nothing is logged."""


class Server(ThreadingHTTPServer):
    """One whose clients may leave."""

    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that have gone are no error here."""


def main() -> None:
    """Print a line a fault; exit code 1 where one of Ann's requests fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--requests", type=int, default=100, help="of Ann, of each sort")
    parser.add_argument("--timeout", type=float, default=10, help="seconds that the model has for a reply")
    parser.add_argument("--wait", type=float, default=30, help="seconds for Mallory's last requests to end")
    chosen = parser.parse_args()
    model = Server(("127.0.0.1", 0), ModelServer)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        place = ("-c", str(write_made_up(folder / "made-up", chosen.documents)), "--index", str(folder / "index"))
        subprocess.run([*FAIRAGENT, "index", *place], check=True, stdout=subprocess.DEVNULL)
        users = folder / "users.jsonl"
        users.touch(0o600)
        lines = ({"name": name, "sha256": hashlib.sha256(token.encode()).hexdigest()} for name, token in TOKENS.items())
        users.write_text("".join(json.dumps(line) + "\n" for line in lines))
        settings = {
            **{"model.name": "tiny", "model.base_url": f"http://127.0.0.1:{model.server_port}/v1", "generate": "llm"},
            **{"refine": "feedback", "profile": "offline", "model.timeout": chosen.timeout, "model.attempts": 1},
        }
        options = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
        command = (*FAIRAGENT, "serve", "--tokens", str(users), "--port", "0", *place, *options)
        texts = queries(folder / "made-up" / "topics.jsonl")
        print(
            "        searches p50  p99 ms  ratio  answers p50  p99 ms  ratio  Mallory's statuses, the longest request"
        )
        alone: list[float] = []
        for fault in ("", "silent", "slow", "dying"):
            ModelServer.fault = fault
            with served(command) as (url, _):
                numbers, statuses, longest = asyncio.run(
                    beside(url, texts, chosen.requests, chosen.wait if fault else 0)
                )
            alone = alone or numbers
            row = (*numbers[:2], numbers[0] / alone[0], *numbers[2:], numbers[2] / alone[2])
            line = "{:8}{:12.0f}{:8.0f}{:7.2f}{:13.0f}{:8.0f}{:7.2f}".format(fault or "alone", *row)
            print(f"{line}  {dict(statuses)}, {longest:.1f} s" if fault else line, flush=True)


async def beside(url: str, texts: Iterator[str], requests: int, wait: float) -> tuple[list[float], Counter[int], float]:
    """Ann's p50 and p99 in ms for searches and answers; what Mallory's requests got, and the seconds of the longest."""
    statuses: Counter[int] = Counter()
    seconds = [0.0]

    async def mallory(session: httpx.AsyncClient) -> None:
        while True:
            start = time.perf_counter()
            query = {"query": f"stall {next(texts)}"}
            statuses[(await session.post("api/answer", json=query, headers=bearer("mallory"))).status_code] += 1
            seconds.append(time.perf_counter() - start)
            await asyncio.sleep(1)

    async with httpx.AsyncClient(base_url=url, timeout=120) as session:
        await session.post("api/search", json={"query": next(texts)}, headers=bearer("ann"))
        stalling = [asyncio.create_task(mallory(session)) for _ in range(8 if wait else 0)]
        await asyncio.sleep(1)
        numbers: list[float] = []
        for door in ("api/search", "api/answer"):
            times = []
            for _ in range(requests):
                start = time.perf_counter()
                reply = await session.post(door, json={"query": next(texts)}, headers=bearer("ann"))
                times.append(1000 * (time.perf_counter() - start))
                if not reply.is_success or (door == "api/answer" and TEXT not in reply.text):
                    raise SystemExit(f"{door}: {reply.status_code} {reply.text[:300]}")
            numbers += np.quantile(times, [0.5, 0.99]).tolist()
        await asyncio.sleep(wait)
        for task in stalling:
            task.cancel()
        await asyncio.gather(*stalling, return_exceptions=True)
    return numbers, statuses, max(seconds)


def bearer(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKENS[name]}"}


if __name__ == "__main__":
    main()
