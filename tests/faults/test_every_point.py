"""Cases 72 to 76, 113, 123, 157, 175, 176, 206, 221 and 222: what writes is ended, or fails, at any point.

`pytest -m night tests/faults/test_every_point.py` ends and fails each writer at each of its points in each way (see
`harness`); `make test` takes some.
"""

from __future__ import annotations

import csv
import json
import shutil
from collections import Counter
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from evaluate import words
from retrieve.conftest import Made
from retrieve.test_ann import DOCUMENTS, ENCODER
from retrieve.test_dense import Words
from typer.testing import CliRunner

from fairagent.cli import app
from fairagent.errors import FairAgentError, UsageError
from fairagent.evaluate.check import check_experiment
from fairagent.evaluate.experiment import run_experiment
from fairagent.evaluate.outcome import Outcome, to_line
from fairagent.evaluate.results import write_results
from fairagent.evaluate.run import load_run, read_outcomes
from fairagent.evaluate.workers import threads
from fairagent.guests.testing import LoopbackServer, completion
from fairagent.llm.cache import ReplyCache
from fairagent.retrieve.ann import build_ann
from fairagent.retrieve.bm25.build import build_index
from fairagent.retrieve.dense import DenseRetriever, build_dense_index
from fairagent.retrieve.manifest import Manifest
from fairagent.types import Document

from . import life
from .harness import ENDS, Trials, content

EXPERIMENT = "".join(
    line
    for line in life.EXPERIMENT.format(index="index").replace("topics: 10", "topics: 2").splitlines(keepends=True)
    if "asked more" not in line and "asked warmly" not in line
)
INDEX = ("index", "-c", "collection.yaml", "--index", "index", "--set", "engine=bm25")
FUSED = (*INDEX[:-1], "engine=fused")
"""With vectors and a graph, which are to be of one state with the rest."""


def command(*arguments: str) -> None:
    """`fairagent` in the folder of now."""
    done = CliRunner().invoke(app, arguments)
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    if done.exit_code:
        raise FairAgentError(done.stderr.rstrip("\n"))


def index_of(root: Path) -> dict[str, bytes]:
    Manifest.exists(root / "index")  # as every reader, who puts in place what a killed one was about to
    return content(root / "index")


def indexing(root: Path, server: LoopbackServer) -> Trials:
    words.write(root)
    return Trials(root, lambda: command(*INDEX), lambda: index_of(root))


def updating(root: Path, server: LoopbackServer) -> Trials:
    """Another text, one document less, one more."""
    words.write(root)
    command(*FUSED)
    lines = (root / "docs.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    other = json.dumps({"id": "d99", "title": "more", "text": "she the judge met a pilot"}) + "\n"
    changed = [*lines[:7], lines[7].replace("met a", "met a first"), *lines[8:20], *lines[21:], other]
    (root / "docs.jsonl").write_text("".join(changed), encoding="utf-8")
    return Trials(root, lambda: command(*FUSED), lambda: index_of(root))


OLD = Made(tuple(Document(f"old{n}", f"a river and a lawyer {n} {'court ' * (n % 4)}") for n in range(40)), "old")
NEW = Made(tuple(Document(f"new{n}", f"a lawyer at the court {n} {'river ' * (n % 3)}") for n in range(50)), "new")


def replacing(root: Path, server: LoopbackServer) -> Trials:
    """Embeddings, by those of other documents."""
    build_dense_index(OLD, root / "index", Words())
    return Trials(root, lambda: build_dense_index(NEW, root / "index", Words()), lambda: index_of(root))


def beside(root: Path, server: LoopbackServer) -> Trials:
    """Nearest neighbors of embeddings, which stay as they are."""
    pytest.importorskip("faiss")
    build_dense_index(Made(DOCUMENTS.made[:400]), root / "dense", ENCODER)
    dense = DenseRetriever(root / "dense", ENCODER)
    return Trials(root, lambda: build_ann(dense, root / "ann"), lambda: content(root / "ann"))


# Case 222


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


def asked(requests: list[Any]) -> Counter[str]:
    return Counter(json.dumps(request, sort_keys=True) for request in requests)


class Evaluations(Trials):
    """What is in the run's folder are the files of so many of its outcomes, each whole; and nothing is paid twice."""

    def __init__(self, root: Path, server: LoopbackServer) -> None:
        self.run, self.server, self.told = root / "run", server, 0
        super().__init__(root, self.evaluate, lambda: tables(self.run))
        # By two whole runs, each with a cache of its own.
        self.paid = asked(server.requests[: len(server.requests) // 2])
        assert len(self.paid) > 3
        assert self.paid + self.paid == asked(server.requests)
        self.recorded = server.requests[len(server.requests) // 2 :]
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

    def evaluate(self) -> None:
        def progress(count: int, _: int) -> None:
            self.told = count

        self.told, self.begun = 0, len(self.server.requests)
        with threads(1) as workers:
            checked = check_experiment(self.root / "experiment.yaml")
            run_experiment(checked, self.run, workers, progress=progress)

    def done(self) -> tuple[int, int]:
        """How many outcomes were said to be done, and how many requests were sent."""
        return self.told, len(self.server.requests) - self.begun

    def everything(self) -> object:
        """The run's files, and the names of all; without SQLite's log: who opens the database next takes it up."""
        ReplyCache(self.root / ".fairagent" / "replies").close()
        names = sorted(name for name in content(self.root) if not name.endswith(("-wal", "-shm")))
        return life.files(self.run), names

    def may_be(self, found: Any) -> bool:
        if found == self.new:
            return True
        if not (self.run / "run.json").is_file():
            assert not self.said
            return not self.run.is_dir() or all(one.name.startswith((".", "lock")) for one in self.run.iterdir())
        done = [timeless(outcome) for outcome in read_outcomes(self.run)]
        assert len(set(done)) == len(done) >= self.said
        return set(done) <= self.outcomes and all(one in self.allowed.get(name, ()) for name, one in found.items())

    def one(self, how: str, number: int) -> None:
        self.server.requests.clear()
        self.said, sent = self.points[number].done if how in ENDS else (0, 0)
        super().one(how, number)
        paid = asked([*self.recorded[:sent], *self.server.requests])
        assert not self.paid - paid
        # The reply that is on its way when the process dies, or that finds the disk full; a power cut takes more.
        assert how in ENDS[1:] or (paid - self.paid).total() <= (how in ("kill", "full"))


def evaluating(root: Path, server: LoopbackServer) -> Trials:
    words.write(root, EXPERIMENT)
    command(*INDEX)
    return Evaluations(root, server)


def reporting(root: Path, server: LoopbackServer) -> Trials:
    evaluating_once = words.write(root, EXPERIMENT)
    command(*INDEX)
    with threads(1) as workers:
        run_experiment(check_experiment(evaluating_once), root / "run", workers)
    # Its database is put together whenever its last connection goes, which is none of a report's doing.
    shutil.rmtree(root / ".fairagent")

    def state() -> dict[str, bytes]:
        return {
            name: one for name, one in life.files(root / "run").items() if not Path(name).name.startswith((".", "lock"))
        }

    return Trials(root, lambda: command("report", "run", "--baseline", "asked"), state, by_file=True)


WRITERS = {
    **{"index": indexing, "update": updating, "dense": replacing, "ann": beside},
    **{"report": reporting, "evaluate": evaluating},
}


@pytest.mark.parametrize("few", [10, pytest.param(0, marks=[pytest.mark.night, pytest.mark.timeout(7200)])])
@pytest.mark.parametrize("name", WRITERS)
def test_72_and_74_and_75_and_76_and_113_and_123_and_157_and_175_and_176_and_206_and_221_and_222_a_failure_at_any_point(
    name: str, few: int, server: LoopbackServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.script = lambda request: completion(json.dumps({"keywords": keywords(request)}), usage=(400, 30))
    root = tmp_path / "work"
    root.mkdir()
    monkeypatch.chdir(root)
    WRITERS[name](root, server).some(few)


@pytest.mark.parametrize("build", [build_index, lambda made, folder: build_dense_index(made, folder, Words())])
def test_73_and_184_folders_of_others_are_left_alone(tmp_path: Path, build: Callable[..., object]) -> None:
    names = ("i.replaced", "i.old", "i.new", "x.partial")
    for name in names:
        (tmp_path / name / "partial.tex").mkdir(parents=True)
        (tmp_path / name / "partial.tex" / "chapter1.tex").write_text("years of work", encoding="utf-8")
    for _ in range(2):
        build(OLD, tmp_path / "i")
    with pytest.raises(UsageError, match=r"x\.partial is there and was not made by .*; move it away, or name"):
        build(OLD, tmp_path / "x")
    assert all((tmp_path / name / "partial.tex" / "chapter1.tex").read_text() == "years of work" for name in names)
    assert not (tmp_path / "x").exists()
    with pytest.raises(UsageError, match="was not made by fairagent"):
        build(OLD, tmp_path / "i.old")
