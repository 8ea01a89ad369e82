"""Cases 72 to 76 and 175: full disks, folders of others, kills and power cuts of indexes and experiments."""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from evaluate import words
from guests.dense.test_splade import Words as SparseWords
from retrieve.conftest import Made
from retrieve.test_dense import Words

from fairagent.errors import BackendUnavailable, UsageError
from fairagent.evaluate.run import read_outcomes
from fairagent.guests.dense.splade import SpladeRetriever, build_splade_index
from fairagent.retrieve import dense as dense_engine
from fairagent.retrieve.bm25.build import build_index
from fairagent.retrieve.bm25.search import BM25Retriever
from fairagent.retrieve.dense import DenseRetriever, build_dense_index
from fairagent.storage.folders import MARKER
from fairagent.types import Document, Query

from . import life
from .damage import trials
from .power import KINDS, Recording, after_the_cut

OLD = Made(tuple(Document(f"old{n}", f"a river and a lawyer {n} {'court ' * (n % 4)}") for n in range(40)), "old")
NEW = Made(tuple(Document(f"new{n}", f"a lawyer at the court {n} {'river ' * (n % 3)}") for n in range(50)), "new")


def ranking(folder: Path) -> tuple[str, ...]:
    retriever = BM25Retriever(folder)
    return (*retriever.search(Query("lawyer court river"), 20).ids, *retriever.words(np.arange(3)))


# Case 72


def test_72_a_read_only_disk_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mkdir = os.mkdir

    def refused(path: str, *more: object, **options: object) -> None:
        if "partial" in str(path):
            raise OSError(30, "Read-only file system", str(path))
        mkdir(path, *more, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "mkdir", refused)
    for build in (lambda: build_index(OLD, tmp_path / "i"), lambda: build_dense_index(OLD, tmp_path / "d", Words())):
        with pytest.raises(BackendUnavailable, match=r"\.partial cannot be written \(Read-only file system\)"):
            build()


# Case 73


def thesis(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "chapter1.tex").write_text("years of work", encoding="utf-8")
    return folder / "chapter1.tex"


def test_73_folders_of_others_beside_an_index_are_left_alone(tmp_path: Path) -> None:
    kept = [thesis(tmp_path / f"{name}{more}") for name in ("i", "d") for more in (".replaced", ".old", ".new")]
    for _ in range(2):
        build_index(OLD, tmp_path / "i")
        build_dense_index(OLD, tmp_path / "d", Words())
    mine = [thesis(tmp_path / name / "partial.tex").parent.parent for name in ("x.partial", "y.partial")]
    for build in (lambda: build_index(OLD, tmp_path / "x"), lambda: build_dense_index(OLD, tmp_path / "y", Words())):
        with pytest.raises(UsageError, match=r"[xy]\.partial is there and was not made by .*; move it away, or name"):
            build()
    assert all(path.read_text(encoding="utf-8") == "years of work" for path in kept)
    assert all((path / "partial.tex" / "chapter1.tex").is_file() for path in mine)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("left", ["nothing", "marker", "begun", "moved away", "put there"])
def test_73_what_a_killed_process_left_is_taken_up(tmp_path: Path, left: str) -> None:
    """Every state that a workshop passes through."""
    build_index(OLD, tmp_path / "index")
    build_index(NEW, tmp_path / "next")
    partial = tmp_path / "index.partial"
    partial.mkdir()
    if left != "nothing":
        (partial / MARKER).touch()
    if left == "begun":
        (partial / "new").mkdir()
        (partial / "new" / "ids.npy").write_bytes(b"half")
    elif left == "moved away":
        (tmp_path / "index").rename(partial / "old")
        (tmp_path / "next").rename(partial / "new")
    elif left == "put there":
        (tmp_path / "index").rename(partial / "old")
        (partial / "old" / "ids.npy").unlink()
        (tmp_path / "next").rename(tmp_path / "index")
    there = "old" if left in ("nothing", "marker", "begun") else "new"
    assert ranking(tmp_path / "index")[0].startswith(there)
    build_index(NEW, tmp_path / "index")
    assert ranking(tmp_path / "index")[0].startswith("new")
    assert not partial.exists()


# Case 76


def cuts(recording: Recording, few: int, seed: int) -> Iterator[tuple[int, str]]:
    """Moments and kinds of power cuts: a few drawn ones, and the last ones of all, where renaming is."""
    chance = random.Random(seed)
    count = len(recording.moments)
    drawn = [(chance.randrange(count), chance.choice(KINDS)) for _ in range(trials(few))]
    last = [(place, kind) for place in range(count - 1, max(0, count - 5), -2) for kind in KINDS]
    yield from (*drawn, *last)


def test_76_a_power_cut_loses_no_outcome_that_was_said_to_be_done(tmp_path: Path) -> None:
    file = words.write(tmp_path / "files")
    (tmp_path / "work").mkdir()
    done = [0]
    words.run(file, tmp_path / "whole", limit=2)
    expected = life.files(tmp_path / "whole")
    from fairagent.evaluate.check import check_experiment
    from fairagent.evaluate.experiment import run_experiment
    from fairagent.evaluate.workers import threads

    def progress(count: int, _: int) -> None:
        done[0] = count

    with Recording(tmp_path / "work", lambda: done[0]) as recording, threads(1) as workers:
        checked = check_experiment(file, 2, environ={})
        run_experiment(checked, tmp_path / "work" / "run", workers, progress=progress, environ={})
    assert len(recording.moments) > 40
    for place, kind in cuts(recording, 4, 79):
        moment, folder = recording.moments[place], tmp_path / "cut"
        folder.mkdir()
        after_the_cut(moment, folder, kind)
        if (folder / "run" / "run.json").is_file():
            assert len(read_outcomes(folder / "run")) >= moment.done, (place, kind)
        else:
            assert not moment.done
        words.run(file, folder / "run", limit=2)
        assert life.files(folder / "run") == expected, (place, kind)
        shutil.rmtree(folder)


Build = Callable[[Made, Path], object]
Answer = Callable[[Path], tuple[str, ...]]


def _dense(folder: Path) -> tuple[str, ...]:
    found = DenseRetriever(folder, Words()).search(Query("lawyer court river"), 20)
    return (*found.ids, *map(str, found.scores))


def _splade(folder: Path) -> tuple[str, ...]:
    found = SpladeRetriever(folder, SparseWords()).search(Query("lawyer court river"), 20)
    return (*found.ids, *map(str, found.scores))


@pytest.mark.parametrize(
    ("build", "answer", "old", "new"),
    [
        (build_index, ranking, OLD, NEW),
        (lambda made, folder: build_dense_index(made, folder, Words()), _dense, OLD, NEW),
        (lambda made, folder: build_splade_index(made, folder, SparseWords()), _splade, OLD, NEW),
    ],
    ids=["bm25", "dense", "splade"],
)
def test_76_and_175_a_power_cut_while_an_index_is_replaced_leaves_the_old_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, build: Build, answer: Answer, old: Made, new: Made
) -> None:
    monkeypatch.setattr(dense_engine, "CHUNK", 10)
    build(new, tmp_path / "whole")
    after = answer(tmp_path / "whole")
    (tmp_path / "work").mkdir()
    build(old, tmp_path / "work" / "index")
    before = answer(tmp_path / "work" / "index")
    assert before != after
    with Recording(tmp_path / "work") as recording:
        build(new, tmp_path / "work" / "index")
    assert len(recording.moments) > 30
    tried = Counter[str]()
    for place, kind in cuts(recording, 6, 80):
        folder = tmp_path / "cut"
        folder.mkdir()
        after_the_cut(recording.moments[place], folder, kind)
        found = answer(folder / "index")
        # Once it is said to be done, it is.
        assert found in ((before, after) if place < len(recording.moments) - 1 else (after,)), (place, kind)
        tried["old" if found == before else "new"] += 1
        build(new, folder / "index")
        assert answer(folder / "index") == after, (place, kind)
        assert [path.name for path in folder.iterdir()] == ["index"]
        shutil.rmtree(folder)
    assert set(tried) == {"old", "new"}
