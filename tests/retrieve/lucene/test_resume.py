"""A build that ends early goes on from its last commit, to the same index as one that never stopped."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from fairagent.digests import RECORD
from fairagent.errors import DataError, UsageError
from fairagent.retrieve.lucene import LuceneRetriever, build_index
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


def test_a_damaged_remainder_starts_over(whole, tmp_path):
    folder = tmp_path / "index"
    stop(folder, 1_700)
    for path in (tmp_path / "index.partial" / "new" / "lucene").glob("segments_*"):
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
        if done == AFTER:
            print(done, flush=True)
            sys.stdin.read()

    build_index(made(), Path(FOLDER), progress=progress, commit_every=EVERY)
"""


def test_a_killed_build_goes_on_from_its_last_commit(whole, tmp_path):
    folder = tmp_path / "index"
    root = Path(__file__).resolve().parents[3]
    for after in (1_234, 2_001):
        script = textwrap.dedent(BUILD).replace("FOLDER", repr(str(folder))).replace("AFTER", str(after))
        command = [sys.executable, "-c", script]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, cwd=root, stdin=pipe, stdout=pipe, text=True) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == f"{after}\n"
            # Java's threads go on; what they commit is whole, whenever the end comes.
            wait_for_commits(folder, after // EVERY)
            other.send_signal(signal.SIGKILL)
    assert [path.name for path in tmp_path.iterdir()] == ["index.partial"]
    done = []
    build_index(made(), folder, progress=done.append, commit_every=EVERY)
    assert done == [2_000, *range(2_001, 3_001)]
    assert_same(whole, folder)


def wait_for_commits(folder, count):
    """Until the unfinished index has so many commits."""
    lucene = folder.with_name("index.partial") / "new" / "lucene"
    for _ in range(3_000):
        if any(int(path.name.rpartition("_")[2], 36) >= count for path in lucene.glob("segments_*")):
            return
        time.sleep(0.01)
    pytest.fail("no commit")


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_the_index_does_not_depend_on_how_many_build_it(tmp_path, workers):
    """Every file is the same, but for the id that Lucene draws for each index and segment, and what is made of ids."""
    build_index(made(), tmp_path / "one", commit_every=170, workers=1)
    build_index(made(), tmp_path / "other", commit_every=170, workers=workers)
    assert_same(tmp_path / "one", tmp_path / "other")
    one, other = (without_ids(tmp_path / name / "lucene") for name in ("one", "other"))
    assert one.keys() == other.keys()
    assert len([name for name in one if name.endswith(".si")]) > 3
    assert [name for name in one if one[name] != other[name]] == []


def without_ids(folder):
    """The files of a Lucene index without the random id of each, and the checksum at the end, which counts it in.

    Left out are those that say when and by what a segment was made: segments_N and *.si.
    """
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "write.lock"}
    found = {name: content for name, content in files.items() if not name.startswith("segments_")}
    return {
        name: content.replace(segment_id(content), b"")[:-8] if not name.endswith(".si") else b""
        for name, content in found.items()
    }


def segment_id(content):
    """The id in a file's header: a magic number, the format's name with its length, a version, 16 bytes of id."""
    assert content[:4] == b"\x3f\xd7\x6c\x17"
    start = 4 + 1 + content[4] + 4
    return content[start : start + 16]


def test_a_commit_interval_of_nothing(tmp_path):
    with pytest.raises(UsageError, match="every 0 documents; expected 1 or more"):
        build_index(made(3), tmp_path / "index", commit_every=0)
