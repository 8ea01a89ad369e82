"""Cases 72 to 76, 123, 157, 175, 176, 206, 221 and 222: commands that fail at any point, and power cuts.

`pytest -s -m night tests/faults/test_every_point.py` fails each command at each of its points in each way (see
`points`); `make test` takes every n-th.
"""

from __future__ import annotations

import csv
import json
import os
import random
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from evaluate import words
from retrieve.conftest import Made
from retrieve.test_dense import Words

from fairagent.errors import FairAgentError, UsageError
from fairagent.evaluate.check import check_experiment
from fairagent.evaluate.experiment import run_experiment
from fairagent.evaluate.outcome import Outcome, to_line
from fairagent.evaluate.results import write_results
from fairagent.evaluate.run import load_run, read_outcomes
from fairagent.evaluate.workers import threads
from fairagent.guests.testing import LoopbackServer, completion
from fairagent.llm.cache import ReplyCache
from fairagent.retrieve.bm25.build import build_index
from fairagent.retrieve.bm25.search import BM25Retriever
from fairagent.retrieve.dense import DenseRetriever, build_dense_index
from fairagent.retrieve.manifest import Manifest
from fairagent.types import Document, Query
from fairagent.types.clean import printable

from . import life
from .damage import trials
from .points import SOCKETS, Ended, Point, Watched, watched
from .power import KINDS, Moment, after_the_cut, recording

EXPERIMENT = "".join(
    line
    for line in life.EXPERIMENT.format(index="index").replace("topics: 10", "topics: 2").splitlines(keepends=True)
    if "asked more" not in line and "asked warmly" not in line
)
INDEX = ("index", "-c", "collection.yaml", "--index", "index", "--set", "engine=bm25")
FUSED = (*INDEX[:-1], "engine=fused")
"""With vectors and a graph, which are to be of one state with the rest."""
EVALUATE = ("evaluate", "experiment.yaml", "--run", "run", "--workers", "1")


@pytest.fixture(scope="module")
def running() -> Iterator[Watched]:
    with watched() as program:
        yield program


@pytest.fixture
def program(running: Watched) -> Watched:
    """The program, with its folder empty."""
    for path in running.root.parent.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    running.root.mkdir()
    return running


def content(folder: Path) -> dict[str, bytes]:
    """Every file in a folder, and every folder in it as nothing."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else b""
        for path in sorted(folder.rglob("*"))
    }


class Trials:
    """A command that is begun in what is in the program's folder now, to fail at its points.

    `state` is what the command is to leave as it was or to make new; `by_file`: each file of it for itself.
    """

    def __init__(
        self,
        program: Watched,
        command: tuple[str, ...],
        state: Callable[[], Any],
        by_file: bool = False,
        **environ: str,
    ) -> None:
        self.program, self.command, self.state, self.by_file, self.environ = program, command, state, by_file, environ
        self.root = program.root
        self._kept = self.root.with_name("kept")
        shutil.rmtree(self._kept, ignore_errors=True)
        shutil.copytree(self.root, self._kept, symlinks=True)
        self.old = state()
        self.whole = self._run()
        assert self.whole.code == 0, self.whole.said
        self.new, self.expected = state(), self.everything()
        assert self.old != self.new

    def everything(self) -> object:
        """All that is there: nothing may be left behind."""
        return content(self.root)

    def every(self, step: int) -> None:
        """Fail at every `step`-th of the points in each way, beginning elsewhere for each way."""
        wrong: list[str] = []
        for number, point in enumerate(self.whole.points, start=1):
            turn = number % 2
            # By an error, one of two in turn, by the end of the process, and half done.
            ways = ["ECONNRESET" if point.call in SOCKETS else ("ENOSPC", "EIO")[turn], "kill"]
            ways += [("full", "torn")[turn], "half"] if point.call in ("write", "pwrite64") else []
            for place, how in enumerate(ways):
                if (number + 3 * place) % step == 0:
                    try:
                        self.one(number, point, how)
                    except (AssertionError, FairAgentError) as error:
                        wrong.append(f"{how} at {number}, {point.call} {point.place}: {error!s:.700}")
        assert not wrong, f"{len(wrong)} of these: " + "\n\n".join(wrong)

    def one(self, number: int, point: Point, how: str) -> None:
        """Fail once, look at what is left, and repeat the command."""
        self.begin()
        ended = self._run({number: how})
        case = f"{' '.join(self.command)[:60]}: {how} at {number}, {point.call} {point.place}: {ended.said[-1500:]}"
        if how in ("kill", "torn"):
            assert ended.code == -signal.SIGKILL, case
        else:
            assert 0 <= ended.code < 10, case
            assert "Traceback" not in ended.said, case
            assert printable(ended.said) == ended.said, case
            assert not ended.code or "fairagent: " in ended.said, case
        assert self.may_be(self.state()), case
        again = self._run()
        assert again.code == 0, f"{case}\nand then {again.said}"
        assert self.state() == self.new, case
        assert self.everything() == self.expected, case

    def may_be(self, found: Any) -> bool:
        """Whether what a failure left may be there."""
        if self.by_file:
            return all(one in (self.old.get(name), self.new.get(name)) for name, one in found.items() if name != "lock")
        return found in (self.old, self.new)

    def begin(self) -> None:
        shutil.rmtree(self.root)
        shutil.copytree(self._kept, self.root, symlinks=True)

    def _run(self, failures: dict[int, str] | None = None) -> Ended:
        return self.program.run(*self.command, failures=failures, **self.environ)


def index_of(root: Path) -> dict[str, bytes]:
    Manifest.exists(root / "index")  # as every reader, who puts in place what a killed one was about to
    return content(root / "index")


def indexing(program: Watched, step: int) -> None:
    words.write(program.root)
    Trials(program, INDEX, lambda: index_of(program.root)).every(step)


def updating(program: Watched, step: int) -> None:
    """Another text, one document less, one more."""
    root = program.root
    words.write(root)
    assert program.run(*FUSED).code == 0
    lines = (root / "docs.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    other = json.dumps({"id": "d99", "title": "more", "text": "she the judge met a pilot"}) + "\n"
    changed = [*lines[:7], lines[7].replace("met a", "met a first"), *lines[8:20], *lines[21:], other]
    (root / "docs.jsonl").write_text("".join(changed), encoding="utf-8")
    for command in (FUSED, ("index", "--force", *INDEX[1:])):
        trials = Trials(program, command, lambda: index_of(root))
        trials.every(step)
        trials.begin()


# Case 222


class Asked(LoopbackServer):
    """A model whose reply depends on the request alone, and comes in one piece."""

    def __init__(self) -> None:
        super().__init__(lambda request: completion(json.dumps({"keywords": keywords(request)}), usage=(400, 30)))
        self._http.RequestHandlerClass.wbufsize = -1
        # Clients die in the middle of a request.
        self._http.handle_error = lambda request, address: None  # type: ignore[method-assign, misc, assignment]

    def asked(self) -> Counter[str]:
        """How often each request has come, since this was last asked."""
        asked = Counter(json.dumps(request, sort_keys=True) for request in self.requests)
        self.requests.clear()
        return asked


def keywords(request: object) -> list[str]:
    text = json.dumps(request)
    return ["she", words.SUBJECTS[len(text) % 10], words.SUBJECTS[sum(text.encode()) % 10]]


def tables(run: Path) -> dict[str, bytes]:
    """What is in the CSV files and rankings of a run, but for what asking took: failed requests count there."""
    files = {
        name: one
        for name, one in life.files(run).items()
        if (name.endswith(".csv") or name.startswith("runs/")) and not Path(name).name.startswith(".")
    }
    if "results.csv" in files:
        of_asking = ("calls", "input_tokens", "output_tokens", "cost")
        rows = csv.DictReader(StringIO(files["results.csv"].decode()))
        means = [{name: one for name, one in row.items() if name not in of_asking} for row in rows]
        files["results.csv"] = json.dumps(means, indent=0).encode()
    return files


def timeless(outcome: Outcome) -> str:
    values = json.loads(to_line(outcome))
    return json.dumps({name: one for name, one in values.items() if name not in ("seconds", "usage")})


class Evaluations(Trials):
    """What is in the run's folder are the files of so many of its outcomes, each whole; and nothing is paid twice."""

    def __init__(self, program: Watched, server: Asked) -> None:
        self.run, self.server, self.exact = program.root / "run", server, True
        super().__init__(program, EVALUATE, lambda: tables(self.run), OPENAI_BASE_URL=server.url)
        self.paid = server.asked()
        assert len(self.paid) > 3
        assert set(self.paid.values()) == {1}
        self.exact = False
        self.of_all, self.of_values = self.expected, self.everything()
        # What the folder holds after each of its outcomes.
        lines = (self.run / "journal.jsonl").read_bytes().splitlines(keepends=True)
        self.outcomes = {timeless(outcome) for outcome in read_outcomes(self.run)}
        self.allowed: dict[str, set[bytes]] = {}
        for count in range(len(lines) + 1):
            copy = self.root.with_name("copy")
            shutil.copytree(self.run, copy)
            (copy / "journal.jsonl").write_bytes(b"".join(lines[:count]))
            write_results(load_run(copy), copy)
            for name, one in tables(copy).items():
                self.allowed.setdefault(name, set()).add(one)
            shutil.rmtree(copy)

    def one(self, number: int, point: Point, how: str) -> None:
        self.server.requests.clear()
        # A request that has to be sent again is counted in the other files.
        self.exact = how != "ECONNRESET"
        self.expected = self.of_all if self.exact else self.of_values
        super().one(number, point, how)
        asked = self.server.asked()
        assert not self.paid - asked, (number, how)
        # The reply that is on its way when the process dies or its connection breaks, or that finds the disk full.
        assert (asked - self.paid).total() <= (how in ("kill", "torn", "ECONNRESET", "full")), (number, point, how)

    def everything(self) -> object:
        """The run's files, and the names of all; without SQLite's log: who opens the database next takes it up."""
        ReplyCache(self.root / ".fairagent" / "replies").close()
        files = life.files if self.exact else tables
        return files(self.run), sorted(name for name in content(self.root) if not name.endswith(("-wal", "-shm")))

    def may_be(self, found: Any) -> bool:
        if found == self.new:
            return True
        if not (self.run / "run.json").is_file():
            return not self.run.is_dir() or all(one.name.startswith((".", "lock")) for one in self.run.iterdir())
        done = [timeless(outcome) for outcome in read_outcomes(self.run)]
        assert len(set(done)) == len(done)
        return set(done) <= self.outcomes and all(one in self.allowed.get(name, ()) for name, one in found.items())


def evaluating(program: Watched, step: int) -> None:
    root = program.root
    words.write(root, EXPERIMENT)
    with Asked() as server:
        assert program.run(*INDEX).code == 0
        # Once, so that the program has learned all that it needs; in what it leaves nothing is to be done.
        program.run(*EVALUATE, OPENAI_BASE_URL=server.url)
        shutil.rmtree(root / "run")
        shutil.rmtree(root / ".fairagent")
        server.asked()
        Evaluations(program, server).every(step)


def reporting(program: Watched, step: int) -> None:
    root = program.root
    words.write(root, EXPERIMENT)
    with Asked() as server:
        assert program.run(*INDEX).code == 0
        assert program.run(*EVALUATE, OPENAI_BASE_URL=server.url).code == 0

        def state() -> dict[str, bytes]:
            return {name: one for name, one in life.files(root / "run").items() if not Path(name).name.startswith(".")}

        Trials(program, ("report", "run", "--baseline", "asked"), state, by_file=True).every(step)


WRITERS = {"index": indexing, "update": updating, "report": reporting, "evaluate": evaluating}


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("index", 97),
        ("evaluate", 181),
        *(pytest.param(name, step, marks=pytest.mark.slow) for name, step in (("index", 19), ("update", 37))),
        *(pytest.param(name, step, marks=pytest.mark.slow) for name, step in (("report", 13), ("evaluate", 53))),
        *(pytest.param(name, 1, marks=[pytest.mark.night, pytest.mark.timeout(7200)]) for name in WRITERS),
    ],
)
def test_72_and_74_and_75_and_123_and_157_and_206_and_221_and_222_a_failure_at_any_point(
    name: str, step: int, program: Watched
) -> None:
    WRITERS[name](program, step if step > 1 else int(os.environ.get("FAULT_STEP", 1)))


OLD = Made(tuple(Document(f"old{n}", f"a river and a lawyer {n} {'court ' * (n % 4)}") for n in range(40)), "old")
NEW = Made(tuple(Document(f"new{n}", f"a lawyer at the court {n} {'river ' * (n % 3)}") for n in range(50)), "new")
BUILDERS: dict[str, Callable[[Made, Path], object]] = {
    "bm25": build_index,
    "dense": lambda made, folder: build_dense_index(made, folder, Words()),
}


def ranking(folder: Path, kind: str) -> list[str]:
    if kind == "dense":
        found = DenseRetriever(folder, Words()).search(Query("lawyer court river"), 20)
        return [*found.ids, *map(str, found.scores)]
    retriever = BM25Retriever(folder)
    return [*retriever.search(Query("lawyer court river"), 20).ids, *retriever.words(np.arange(3))]


@pytest.mark.parametrize("kind", BUILDERS)
def test_73_folders_of_others_beside_an_index_are_left_alone(tmp_path: Path, kind: str) -> None:
    names = ("i.replaced", "i.old", "i.new", "x.partial")
    for name in names:
        (tmp_path / name / "partial.tex").mkdir(parents=True)
        (tmp_path / name / "partial.tex" / "chapter1.tex").write_text("years of work", encoding="utf-8")
    for _ in range(2):
        BUILDERS[kind](OLD, tmp_path / "i")
    with pytest.raises(UsageError, match=r"x\.partial is there and was not made by .*; move it away, or name"):
        BUILDERS[kind](OLD, tmp_path / "x")
    assert all((tmp_path / name / "partial.tex" / "chapter1.tex").read_text() == "years of work" for name in names)
    assert not (tmp_path / "x").exists()


def cuts(moments: list[Moment], few: int, seed: int) -> Iterator[tuple[int, str]]:
    """Moments and kinds of power cuts: a few drawn ones, and the last ones of all, where renaming is."""
    chance, count = random.Random(seed), len(moments)
    yield from [(chance.randrange(count), chance.choice(KINDS)) for _ in range(trials(few))]
    yield from [(place, kind) for place in range(count - 1, max(0, count - 5), -2) for kind in KINDS]


def test_76_a_power_cut_loses_no_outcome_that_was_said_to_be_done(tmp_path: Path) -> None:
    file = words.write(tmp_path / "files")
    (tmp_path / "work").mkdir()
    done = [0]
    words.run(file, tmp_path / "whole", limit=2)
    expected = life.files(tmp_path / "whole")

    def progress(count: int, _: int) -> None:
        done[0] = count

    with recording(tmp_path / "work", lambda: done[0]) as moments, threads(1) as workers:
        checked = check_experiment(file, 2, environ={})
        run_experiment(checked, tmp_path / "work" / "run", workers, progress=progress, environ={})
    assert len(moments) > 40
    folder = tmp_path / "cut"
    for place, kind in cuts(moments, 4, 79):
        folder.mkdir()
        after_the_cut(moments[place], folder, kind)
        if (folder / "run" / "run.json").is_file():
            assert len(read_outcomes(folder / "run")) >= moments[place].done, (place, kind)
        else:
            assert not moments[place].done
        words.run(file, folder / "run", limit=2)
        assert life.files(folder / "run") == expected, (place, kind)
        shutil.rmtree(folder)


@pytest.mark.parametrize("kind", BUILDERS)
def test_76_and_175_and_176_a_power_cut_while_an_index_is_replaced_leaves_the_old_or_the_new_one(
    tmp_path: Path, kind: str
) -> None:
    index, folder, build = tmp_path / "work" / "index", tmp_path / "cut", BUILDERS[kind]
    build(NEW, tmp_path / "whole")
    after = ranking(tmp_path / "whole", kind)
    index.parent.mkdir()
    build(OLD, index)
    before = ranking(index, kind)
    assert before != after
    with recording(index.parent) as moments:
        build(NEW, index)
    assert len(moments) > 30
    tried = set()
    for place, cut in cuts(moments, 6, 80):
        folder.mkdir()
        after_the_cut(moments[place], folder, cut)
        found = ranking(folder / "index", kind)
        # Once it is said to be done, it is.
        assert found in ((before, after) if place < len(moments) - 1 else (after,)), (place, cut)
        tried.add(found == before)
        build(NEW, folder / "index")
        assert ranking(folder / "index", kind) == after, (place, cut)
        assert [path.name for path in folder.iterdir()] == ["index"]
        shutil.rmtree(folder)
    assert tried == {True, False}
