"""A build that ends early goes on after its last block, to the same index as one that never stopped."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fairagent.errors import DataError
from fairagent.retrieve.bm25 import build
from fairagent.retrieve.bm25.build import build_index
from fairagent.retrieve.bm25.search import BM25Retriever
from fairagent.types import Document, Query

from ..conftest import Made

BLOCK = 20_000
"""Characters of a block."""
MEMORY = 64 * BLOCK


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
        build_index(collection, folder, memory=MEMORY)


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def blocks(folder):
    """The blocks that are safe in the workshop beside an unfinished index."""
    return sorted(path.name for path in (folder.with_name("index.partial") / "new" / "blocks").iterdir())


@pytest.fixture
def analyzed(monkeypatch):
    """How many texts were analyzed, block by block."""
    counts = []
    own = build.analyzed
    monkeypatch.setattr(build, "analyzed", lambda name, some: (counts.append(len(some)), own(name, some))[1])
    return counts


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The files of the index of a build that was not interrupted, and is one block."""
    folder = tmp_path_factory.mktemp("whole") / "index"
    build_index(made(), folder)
    return files(folder)


def test_blocks_make_no_difference(whole, tmp_path, analyzed):
    build_index(made(), tmp_path / "index", memory=MEMORY)
    assert files(tmp_path / "index") == whole
    assert len(analyzed) == 8
    assert sum(analyzed) == 3_000
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError("the disk is full")])
def test_an_interrupted_build_goes_on_after_its_last_block(whole, tmp_path, analyzed, error):
    folder = tmp_path / "index"
    stop(folder, 1_700, error)
    assert [path.name for path in tmp_path.iterdir()] == ["index.partial"]
    assert blocks(folder) == ["000000", "000001", "000002", "000003"]
    stop(folder, 2_000, error)
    assert len([count for count in analyzed if count]) == 5
    done = []
    build_index(made(), folder, progress=done.append, memory=MEMORY)
    assert sum(analyzed) == 3_000
    assert done == np.cumsum(analyzed).tolist()
    assert files(folder) == whole
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


@pytest.mark.parametrize(("after", "error"), [(100, None), (1_700, DataError("document 1,701 is bad"))])
def test_before_the_first_block_and_of_bad_documents_nothing_is_left(tmp_path, after, error):
    stop(tmp_path / "index", after, error)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("what", ["documents", "analyzer", "memory", "not to be resumed"])
def test_what_is_not_the_same_starts_over(tmp_path, analyzed, what):
    folder = tmp_path / "index"
    stop(folder, 1_700, state="older" if what == "documents" else "as made", count=1_800)
    analyzed.clear()
    analyzer = "english-nostem" if what == "analyzer" else "english"
    memory = 2 * MEMORY if what == "memory" else MEMORY
    build_index(made(600), folder, analyzer, resume=what != "not to be resumed", memory=memory)
    assert sum(analyzed) == 600
    build_index(made(600), tmp_path / "fresh", analyzer)
    assert files(tmp_path / "fresh") == files(folder)
    retriever = BM25Retriever(folder, analyzer=analyzer)
    assert len(retriever.search(Query("common"), 5_000)) == 600
    assert retriever.document_frequency("word1700") == 0


def test_a_state_that_cannot_be_read_is_not_gone_on_from(whole, tmp_path):
    stop(tmp_path / "index", 1_700)
    (tmp_path / "index.partial" / "new" / "build.json").write_text("{")
    build_index(made(), tmp_path / "index", memory=MEMORY)
    assert files(tmp_path / "index") == whole


@pytest.mark.slow
def test_the_index_does_not_depend_on_how_many_build_it(whole, tmp_path):
    build_index(made(), tmp_path / "index", workers=2, memory=MEMORY)
    assert files(tmp_path / "index") == whole
