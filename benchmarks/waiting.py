"""How well an experiment waits for a slow model: 60 topics at once, or one after another.

`python benchmarks/waiting.py [SECONDS]` runs the loop on the demo collection against a loopback server in a process of
its own that takes so long for a reply (default: 1). No run can be faster than the topic that asks most often; it is
asked to take at most 1.3 times that. Two things stand against it: the first request goes alone, so that a wrong key
costs one (`fairagent.llm.server`), and the first run opens the index.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

from fairagent import load_collection, write_demo
from fairagent.evaluate.check import check_experiment
from fairagent.evaluate.experiment import run_experiment
from fairagent.evaluate.results import results_table, topics_table
from fairagent.evaluate.run import Run
from fairagent.evaluate.workers import threads
from fairagent.guests.testing import LoopbackServer
from fairagent.guests.testing.server import Request
from fairagent.llm.models import Models
from fairagent.retrieve.bm25.build import build_index

TOPICS = 60
ASKED = 1.3
WORDS = {
    "female": ("she", "her", "woman", "sister", "mother"),
    "male": ("he", "his", "man", "brother", "father"),
    "Asia": ("india", "china", "korea", "vietnam", "japan", "indonesia", "pakistan", "iran"),
    "Africa": ("morocco", "kenya", "nigeria", "ghana", "egypt", "ethiopia", "senegal"),
    "Latin America and the Caribbean": ("brazil", "mexico", "peru", "chile", "cuba"),
}
"""Group -> words for it, one a reply."""
EXPERIMENT = """\
name: waiting
collection: demo/collection.yaml
cache: ''
settings:
  index: '{index}'
  engine: bm25
  loop: fair-qr
  refine: {{kind: llm, drift: 3}}
  iterations: 12
  expansion: {{documents: 0}}
  model: {{name: tiny}}
systems: {{agent: {{}}}}
"""


def main(seconds: float) -> None:
    pipe, other = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(other, seconds), daemon=True)
    process.start()
    environ = {"OPENAI_BASE_URL": pipe.recv()}
    with tempfile.TemporaryDirectory() as folder:
        file = write(Path(folder))
        at_once, quick = timed(file, TOPICS, environ)
        alone, slow = timed(file, 1, environ)
    process.terminate()
    calls = [outcome.calls for outcome in at_once.outcomes]
    longest = max(calls) * seconds
    same = tables(at_once) == tables(alone)
    print(f"{len(calls)} topics, {sum(calls)} calls of {seconds:g} s; the longest chain: {max(calls)}, {longest:.1f} s")
    print(f"{TOPICS} workers  {quick:6.1f} s, {quick / longest:.2f} times the longest chain (asked: at most {ASKED})")
    print(f" 1 worker   {slow:6.1f} s, {slow / quick:.1f} times as long")
    print(f"results are the same: {same}")
    if quick > ASKED * longest or not same:
        sys.exit(1)


def timed(file: Path, workers: int, environ: dict[str, str]) -> tuple[Run, float]:
    """The experiment with so many workers, and its seconds."""
    checked = check_experiment(file, environ=environ)
    plan = checked.plan
    models = Models(plan.cache, plan.budget, plan.prices, environ)
    started = time.perf_counter()
    with threads(workers) as workers:
        run = run_experiment(checked, file.parent / f"run{workers}", workers, environ=environ, models=models)
    models.close()
    return run, time.perf_counter() - started


def tables(run: Run) -> tuple[str, str]:
    """What must not depend on the number of workers."""
    return results_table(run).csv(), topics_table(run).csv()


def write(folder: Path) -> Path:
    """The demo collection with its index and 20 topics more, and the experiment."""
    settings = write_demo(folder / "demo")
    topics, qrels = folder / "demo" / "topics.jsonl", folder / "demo" / "qrels.txt"
    described = [json.loads(line) for line in topics.read_text(encoding="utf-8").splitlines()]
    judged = qrels.read_text(encoding="utf-8").splitlines()
    with topics.open("a", encoding="utf-8") as more, qrels.open("a", encoding="utf-8") as judgments:
        for topic in described[: TOPICS - len(described)]:
            more.write(json.dumps({**topic, "id": f"{topic['id']}b", "title": f"famous {topic['title']}"}) + "\n")
            own = (line.split(maxsplit=1) for line in judged if line.startswith(f"{topic['id']} "))
            judgments.writelines(f"{id}b {rest}\n" for id, rest in own)
    build_index(load_collection(settings), folder / "index")
    file = folder / "waiting.yaml"
    file.write_text(EXPERIMENT.format(index=folder / "index"), encoding="utf-8")
    return file


def serve(pipe: Connection, seconds: float) -> None:
    """Answer until the process is ended, each time with the next word for the group."""

    def reply(request: Request) -> str:
        time.sleep(seconds)
        asked = str(request["messages"][-1]["content"])
        group = asked.partition('"group_shown_too_little": "')[2].partition('"')[0]
        tried = asked.partition('"tried_before_do_not_repeat": ')[2]
        return json.dumps({"keywords": [word for word in WORDS.get(group, ()) if f'"{word}"' not in tried][:1]})

    with LoopbackServer(reply) as server:
        pipe.send(server.url)
        time.sleep(3600)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0)
