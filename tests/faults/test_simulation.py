"""Case 223: an experiment in a world where server, network, clocks, budget and disk do what a seed says.

`FAULT_SEEDS=1000 pytest -s tests/faults/test_simulation.py` tries so many of them (a night's work); with
`FAULT_SEED=17` that one does the same again, and its trace is printed.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest
from evaluate import words

from fairagent.types.clean import printable

from .simulated import Log, Seed
from .test_every_point import EVALUATE, EXPERIMENT, INDEX, content, tables
from .watched import Ended, Watched, watched_in_memory

SEEDS = int(os.environ.get("FAULT_SEEDS", 20))
ONE = int(os.environ.get("FAULT_SEED", 0))
MOST_ATTEMPTS = 8
SIMULATED = EXPERIMENT.replace("refine: llm", "refine: {kind: llm, on_error: fail}")


def difference(before: bytes, after: bytes) -> list[str]:
    """The lines that differ."""
    return list(unified_diff(before.decode().splitlines(), after.decode().splitlines(), n=0))[2:]


class World:
    """A folder in which experiments are begun anew, each in the world of its seed."""

    def __init__(self, program: Watched) -> None:
        self.program, self.root = program, program.root
        self.log = self.root.with_name("server.log")
        self.kept = self.root.with_name("kept")
        words.write(self.root, SIMULATED)
        assert program.run(*INDEX).code == 0
        shutil.copytree(self.root, self.kept)
        # Twice: at first the program learns what it needs, in the same world.
        for _ in range(2):
            self.begin()
            whole = self.attempt(0, 0, 0)
            assert whole.code == 0, whole.said
        self.points, self.expected = len(whole.points), tables(self.root / "run")
        self.asked = len(Log(self.log).requests)

    def begin(self) -> None:
        shutil.rmtree(self.root)
        shutil.copytree(self.kept, self.root)
        self.log.unlink(missing_ok=True)

    def attempt(self, seed: int, attempt: int, points: int) -> Ended:
        """The command once more."""
        one = Seed(seed)
        environ = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
        if budget := one.budget(attempt):
            environ["FAIRAGENT_BUDGET"] = json.dumps(budget)
        given = ("simulate", str(seed), str(attempt), str(self.log), *EVALUATE)
        return self.program.run(*given, failures=one.failures(attempt, points), **environ)

    def lives(self, seed: int) -> list[list[Any]]:
        """Repeat the command until it is done, or too often: what came of each attempt, as plain values."""
        self.begin()
        trace: list[list[Any]] = []
        for attempt in range(MOST_ATTEMPTS):
            ended = self.attempt(seed, attempt, self.points)
            self.check(seed, attempt, ended)
            fates = [one["fate"] for one in Log(self.log).requests if one["attempt"] == attempt]
            trace.append([ended.code, len(ended.points), fates])
            if ended.code == 0:
                break
        assert trace[-1][0] == 0, trace
        left = [name for name in content(self.root / "run") if Path(name).name.startswith((".", "lock"))]
        assert left == [], left
        found = tables(self.root / "run")
        wrong = [name for name in found.keys() | self.expected.keys() if found.get(name) != self.expected.get(name)]
        assert wrong == [], [(one, difference(self.expected.get(one, b""), found.get(one, b""))) for one in wrong]
        self.check_paid(seed, trace)
        return trace

    def check(self, seed: int, attempt: int, ended: Ended) -> None:
        """Look at one attempt."""
        if ended.code != -signal.SIGKILL:
            assert ended.code in (0, 3, 5, 6, 7), ended
            assert "Traceback" not in ended.said, ended.said
            assert printable(ended.said) == ended.said, ended.said
            assert not ended.code or "fairagent: " in ended.said or ended.code == 7, ended.said
        limit = Seed(seed).budget(attempt).get("calls")
        sent = [one for one in Log(self.log).requests if one["attempt"] == attempt and one["body"]]
        assert limit is None or len(sent) <= limit, (limit, sent)

    def check_paid(self, seed: int, trace: list[list[Any]]) -> None:
        """What was read to its end is asked for once, but for what a dying process had, or no disk took."""
        read = [entry for entry in Log(self.log).entries if "read" in entry]
        twice = Counter(entry["read"] for entry in read)
        again = sum(count - 1 for count in twice.values())
        died = sum(code == -signal.SIGKILL for code, _, _ in trace)
        failures = [Seed(seed).failures(attempt, self.points).values() for attempt in range(len(trace))]
        refused = sum(how in ("ENOSPC", "EIO", "full") for hows in failures for how in hows)
        assert again <= died + refused, (again, died, refused, trace)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with watched_in_memory() as program:
        yield World(program)


@pytest.mark.timeout(120 + 30 * SEEDS)
def test_223_whatever_a_seed_does_the_tables_are_the_same_and_each_reply_is_paid_once(world: World) -> None:
    wrong: list[str] = []
    came = Counter[str]()
    for seed in [ONE] if ONE else range(1, SEEDS + 1):
        try:
            trace = world.lives(seed)
        except AssertionError as error:
            wrong.append(f"FAULT_SEED={seed} pytest -s tests/faults/test_simulation.py: {error!s:.1500}")
            continue
        came.update(f"ended with {code}" for code, _, _ in trace)
        came.update(fate for _, _, fates in trace for fate in fates)
        if ONE:
            print(f"\n{trace}\n")
    print(f"\n{SEEDS} seeds, {world.points} points undisturbed: {dict(came)}")
    assert not wrong, f"{len(wrong)} seeds: " + "\n\n".join(wrong[:10])
    assert ONE or {"ended with 0", "ended with -9", "good", "quota", "reset"} <= set(came)


def test_223_a_seed_does_the_same_again(world: World) -> None:
    for seed in (3, 8):
        assert world.lives(seed) == world.lives(seed)
