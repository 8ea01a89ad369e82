"""A small experiment with a language model, and the program to run.

The texts and topics are those of tests/evaluate/words.py, searched with the real engine.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from evaluate import words

from fairagent.evaluate.check import check_experiment
from fairagent.evaluate.experiment import build_indexes, run_experiment
from fairagent.evaluate.run import Results
from fairagent.evaluate.workers import Workers, threads
from fairagent.guests.testing import LoopbackServer, ServerReply, completion
from fairagent.llm.models import Models
from fairagent.types import Usage

EXPERIMENT = """\
name: life
collection: collection.yaml
topics: 10
seed: 7
prices: {{tiny: {{input: 0.1, output: 0.3}}}}
settings: {{index: '{index}', engine: bm25, loop: fair-qr, rerank: {{kind: exposure, fairness: 0.5, unlabeled: 1}},
  target: uniform, model: {{name: tiny}}}}
systems:
  plain: {{profile: engine}}
  asked: {{refine: llm, iterations: 3}}
  asked more: {{refine: {{kind: llm, drift: 2}}, iterations: 4}}
  asked warmly: {{refine: llm, iterations: 3, model: {{temperature: 0.9}}}}
"""


def write(folder: Path) -> Path:
    """Write collection, experiment and index; return the experiment's file."""
    file = words.write(folder, EXPERIMENT.format(index=folder / "index"))
    build_indexes(check_experiment(file, environ={"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}))
    return file


class Moody:
    """A model that says something else each time that it is asked the same, as real ones do. Threads may ask it."""

    def __init__(self, answer: Callable[[str], ServerReply] | None = None) -> None:
        self._asked: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._answer = answer or (lambda text: completion(text, usage=(400, 30)))

    def __call__(self, request: dict[str, object]) -> ServerReply:
        body = json.dumps(request, sort_keys=True)
        with self._lock:
            self._asked[body] += 1
            times = self._asked[body]
        chance = random.Random(hashlib.sha256(f"{times} {body}".encode()).hexdigest())
        return self._answer(json.dumps({"keywords": [chance.choice(["she", "he"]), *chance.sample(words.SUBJECTS, 2)]}))


def paid_twice(server: LoopbackServer) -> list[str]:
    """The requests that the server has answered more than once."""
    asked = Counter(json.dumps(request, sort_keys=True) for request in server.requests)
    return [body for body, times in asked.items() if times > 1]


def files(folder: Path) -> dict[str, bytes]:
    """All that a run wrote, but for how long it took, the order in which it came, and what was asked for it."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in ("timings.csv", "journal.jsonl", "transcript.jsonl")
    }


def run(
    file: Path,
    folder: Path,
    count: int = 1,
    kind: type[Workers] = Workers,
    *,
    new: bool = False,
    limit: int | None = None,
    **environ: str,
) -> tuple[Results, Usage]:
    """The run and what was paid for it, in this process; the cache is a folder beside that of the run."""
    here = {"FAIRAGENT_CACHE": str(folder.with_name(f"{folder.name}-cache"))}
    checked = check_experiment(file, limit, environ={**os.environ, **here, **environ})
    models = Models(checked.plan.cache, checked.plan.budget, checked.plan.prices)
    try:
        with threads(count) as plain:
            mine = kind(plain.executor, plain.width)
            return run_experiment(checked, folder, mine, new, models=models), models.usage
    finally:
        models.close()


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    """The exit code of the process when it is done, and what it complained of."""
    _, said = process.communicate(timeout=250)
    return process.returncode, said


def environment(**more: str) -> dict[str, str]:
    """That of a program which finds our packages, and none of the user's settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FAIRAGENT_", "OPENAI_"))}
    return {**kept, "PYTHONPATH": os.pathsep.join(sys.path), "NO_PROXY": "127.0.0.1", **more}


def start(*arguments: str, folder: Path, server: LoopbackServer) -> subprocess.Popen[str]:
    """`fairagent` in a process of its own that works in `folder` and asks `server`."""
    folder.mkdir(exist_ok=True)
    command, pipe = [sys.executable, "-m", "fairagent", *arguments], subprocess.PIPE
    environ = environment(OPENAI_BASE_URL=server.url)
    return subprocess.Popen(command, cwd=folder, env=environ, stdout=pipe, stderr=pipe, text=True, encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Shuffled(Workers):
    """Workers that do their jobs in another order."""

    def for_each(self, jobs, keep, total=0) -> None:
        mixed = list(jobs)
        random.Random(3).shuffle(mixed)
        Workers.for_each(self, mixed, keep)
