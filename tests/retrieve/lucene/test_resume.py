"""A build that ends early goes on from its last commit, to the same index as one that never stopped."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from fairagent.digests import RECORD
from fairagent.errors import DataError, UsageError
from fairagent.retrieve.lucene import LuceneRetriever, build_index
from fairagent.retrieve.lucene.growing import HEADER, GrowingArray
from fairagent.types import Document, Query

from ..conftest import Made

EVERY = 500


def made(count=3_000, state="as made"):
    """Documents of which each brings a new term, an old one, and one that all have."""
    texts = (f"common word{n} word{n * 7 % count} again" + " again" * (n % 5) for n in range(count))
    return Made(tuple(Document(f"d{n * 37 % count:04d}", text, f"Title {n}") for n, text in enumerate(texts)), state)


class Stopping(Made):
    """Ends in an error after so many documents."""

    after: int = 0
    error: BaseException = KeyboardInterrupt()

    def documents(self):
        yield from itertools.islice(self.made, self.after)
        raise self.error


def stop(folder, after, error=None, count=3_000, state="as made"):
    """Build until the error comes."""
    collection = Stopping(made(count).made, state)
    object.__setattr__(collection, "after", after)
    object.__setattr__(collection, "error", error or KeyboardInterrupt())
    with pytest.raises(type(collection.error)):
        build_index(collection, folder, commit_every=EVERY)


def arrays(folder):
    # Lucene draws an id for every index, so that its files differ, and with them the record.
    return {path.name: path.read_bytes() for path in folder.glob("*.*") if path.name != RECORD}


def assert_same(one, other):
    """Equal arrays, manifests, rankings and stored documents."""
    assert arrays(one) == arrays(other)
    first, second = LuceneRetriever(one), LuceneRetriever(other)
    for text in ("common", "word0 word7", "again word2999", "title 12 word499 word500 word501"):
        expected, found = first.search(Query(text), 50), second.search(Query(text), 50)
        assert expected.ids == found.ids
        assert np.array_equal(expected.scores, found.scores)
    ids = first.search(Query("again"), 300).ids
    for name in ("row", "term", "count", "length", "vocabulary", "document_share"):
        assert np.array_equal(getattr(first.postings(ids), name), getattr(second.postings(ids), name))
    assert first.document("d0037") == second.document("d0037")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The index of a build that was not interrupted, and had no commit on the way."""
    folder = tmp_path_factory.mktemp("whole") / "index"
    build_index(made(), folder)
    return folder


def test_commits_make_no_difference(whole, tmp_path):
    build_index(made(), tmp_path / "index", commit_every=EVERY)
    assert_same(whole, tmp_path / "index")
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError("the disk is full"), MemoryError()])
def test_an_interrupted_build_goes_on_from_its_last_commit(whole, tmp_path, error):
    folder = tmp_path / "index"
    stop(folder, 1_700, error)
    assert [path.name for path in tmp_path.iterdir()] == ["index.partial"]
    stop(folder, 1_900, error)
    done = []
    build_index(made(), folder, progress=done.append, commit_every=EVERY)
    assert done == [1_500, *range(1_501, 3_001)]
    assert_same(whole, folder)
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


def test_an_interruption_right_at_a_commit(whole, tmp_path):
    folder = tmp_path / "index"
    for after in (500, 1_000, 3_000):
        stop(folder, after)
    done = []
    build_index(made(), folder, progress=done.append, commit_every=EVERY)
    assert done == [3_000]
    assert_same(whole, folder)


def test_before_the_first_commit_nothing_is_left(tmp_path):
    stop(tmp_path / "index", EVERY - 1)
    assert not list(tmp_path.iterdir())


def test_bad_documents_leave_nothing(tmp_path):
    stop(tmp_path / "index", 1_700, DataError("document 1,701 is bad"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("what", ["documents", "analyzer", "not to be resumed"])
def test_what_is_not_the_same_starts_over(tmp_path, what):
    folder = tmp_path / "index"
    stop(folder, 1_700, state="older" if what == "documents" else "as made", count=1_800)
    done = []
    analyzer = "english-nostem" if what == "analyzer" else "english"
    resume = what != "not to be resumed"
    build_index(made(600), folder, analyzer, done.append, commit_every=EVERY, resume=resume)
    assert done == list(range(1, 601))
    build_index(made(600), tmp_path / "fresh", analyzer)
    assert arrays(tmp_path / "fresh") == arrays(folder)
    retriever = LuceneRetriever(folder, analyzer=analyzer)
    assert len(retriever.search(Query("common"), 5_000)) == 600
    assert retriever.document_frequency("word1700") == 0


def test_what_starts_over_and_is_interrupted_does_not_bring_back_the_old(whole, tmp_path):
    folder = tmp_path / "index"
    stop(folder, 1_700)
    stop(folder, 600, state="other")
    done = []
    build_index(made(), folder, progress=done.append, commit_every=EVERY)
    assert done[0] == 1
    assert_same(whole, folder)


@pytest.mark.parametrize("damage", ["an array is cut", "an array is missing", "lucene cannot be read"])
def test_a_damaged_remainder_starts_over(whole, tmp_path, damage):
    folder, partial = tmp_path / "index", tmp_path / "index.partial" / "new"
    stop(folder, 1_700)
    if damage == "an array is cut":
        os.truncate(partial / "vectors.terms.npy", 1_000)
    elif damage == "an array is missing":
        (partial / "vocabulary.bytes").unlink()
    else:
        for path in (partial / "lucene").glob("segments_*"):
            path.write_bytes(b"what is this")
    done = []
    build_index(made(), folder, progress=done.append, commit_every=EVERY)
    assert done[0] == 1
    assert_same(whole, folder)


BUILD = """
    import sys
    from pathlib import Path
    from fairagent.retrieve.lucene import build_index
    from tests.retrieve.lucene.test_resume import EVERY, made

    def progress(done):
        if done in {EVERY, 2 * EVERY, AFTER}:
            print(done, flush=True)
            if done == AFTER:
                sys.stdin.read()

    build_index(made(), Path(FOLDER), progress=progress, commit_every=EVERY)
"""


def test_a_killed_build_goes_on_from_its_last_commit(whole, tmp_path):
    folder = tmp_path / "index"
    root = Path(__file__).resolve().parents[3]
    for after, first in ((1_234, "500"), (2_001, "1000")):
        script = textwrap.dedent(BUILD).replace("FOLDER", repr(str(folder))).replace("AFTER", str(after))
        command = [sys.executable, "-c", script]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, cwd=root, stdin=pipe, stdout=pipe, text=True) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == f"{first}\n"
            while other.stdout.readline() != f"{after}\n":
                assert other.poll() is None
            other.send_signal(signal.SIGKILL)
    assert [path.name for path in tmp_path.iterdir()] == ["index.partial"]
    done = []
    build_index(made(), folder, progress=done.append, commit_every=EVERY)
    assert done == [2_000, *range(2_001, 3_001)]
    assert_same(whole, folder)


def test_a_commit_interval_of_nothing(tmp_path):
    with pytest.raises(UsageError, match="every 0 documents; expected 1 or more"):
        build_index(made(3), tmp_path / "index", commit_every=0)


@pytest.mark.parametrize("values", [[], [1, 2, 3], list(range(1_000))])
def test_a_growing_array_is_a_file_of_numpy(tmp_path, values):
    array = GrowingArray(tmp_path / "a.npy", np.uint16)
    for value in values:
        array.append([value])
    assert array.read().tolist() == values
    array.finish()
    np.save(tmp_path / "b.npy", np.array(values, np.uint16))
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()
    assert np.load(tmp_path / "a.npy").tolist() == values


def test_a_growing_array_is_cut_back(tmp_path):
    array = GrowingArray(tmp_path / "a.npy", np.int64)
    array.append([1, 2, 3])
    array.close()
    array = GrowingArray(tmp_path / "a.npy", np.int64, 2)
    assert (tmp_path / "a.npy").stat().st_size == HEADER + 16
    array.append([7])
    array.finish()
    assert np.load(tmp_path / "a.npy").tolist() == [1, 2, 7]
