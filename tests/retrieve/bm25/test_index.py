"""Building an index: what it says it was built from, and that it appears whole or not at all."""

from dataclasses import replace

import pytest

from fairagent.errors import DataError, IndexMismatch
from fairagent.retrieve.bm25 import build
from fairagent.retrieve.bm25.build import build_index
from fairagent.retrieve.bm25.search import BM25Retriever
from fairagent.types import Document, Query

from ..conftest import Made

SMALL = Made((Document("d1", "old text"), Document("d2", "older text")), name="small")


class Breaking(Made):
    """A collection whose documents end in an error."""

    error: BaseException = DataError("the third document is bad")

    def documents(self):
        yield from self.made
        raise self.error


@pytest.fixture
def folder(tmp_path):
    """A folder with an index of SMALL in it."""
    build_index(SMALL, tmp_path / "index")
    return tmp_path / "index"


def content(folder):
    """The bytes of every file, by path."""
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_index_of_something_else_is_refused_naming_every_difference(folder):
    with pytest.raises(IndexMismatch) as error:
        BM25Retriever(folder, replace(SMALL, state="edited"), "whitespace")
    assert "(fingerprint: index as made, now edited; analyzer: index english, now whitespace)" in str(error.value)


@pytest.mark.parametrize("text", ["", "[]", "\udcff"])
def test_a_manifest_that_cannot_be_read(folder, text):
    (folder / "fairagent.json").write_text(text, errors="surrogateescape")
    with pytest.raises(IndexMismatch, match=r"fairagent.json cannot be read; build it again"):
        BM25Retriever(folder, SMALL)


def test_a_new_index_replaces_the_old_one(folder):
    (folder / "left over").write_text("")
    build_index(Made((Document("d3", "new text"),), "new"), folder)
    assert not (folder / "left over").exists()
    assert BM25Retriever(folder).search(Query("text"), 5).ids == ("d3",)
    assert [path.name for path in folder.parent.iterdir()] == ["index"]


FAILURES = [
    (Breaking(SMALL.made), "third document is bad"),
    (Made(()), "collection 'made' has no documents"),
    (Made((*SMALL.made, Document("d1", "again"), Document("d2", "again"))), "2 document ids occur twice, 'd1'"),
    (Made((Document("\ud800", "text"),)), r"1 to 255 bytes of UTF-8 without NUL, not '\\ud800'"),
    (Made((Document("d1", "half \udc00"),)), "surrogate"),
]


@pytest.mark.parametrize(("collection", "message"), FAILURES, ids=[failure[1][:30] for failure in FAILURES])
def test_a_build_that_fails_leaves_the_old_index_and_nothing_else(folder, collection, message):
    before = content(folder)
    with pytest.raises(DataError, match=message):
        build_index(collection, folder)
    assert content(folder) == before
    assert [path.name for path in folder.parent.iterdir()] == ["index"]


def test_documents_keep_their_order_however_often_words_are_counted(tmp_path, monkeypatch):
    """A document's number is its position in the collection, and the files are the same."""
    documents = tuple(Document(f"d{n * 37 % 500:03d}", f"common word{n} " + "again " * (n % 11)) for n in range(500))
    build_index(Made(documents), tmp_path / "at once")
    monkeypatch.setattr(build, "TOGETHER", 50)
    build_index(Made(documents), tmp_path / "index")
    assert content(tmp_path / "index") == content(tmp_path / "at once")
    retriever = BM25Retriever(tmp_path / "index")
    assert all(retriever.document(document.id) == document for document in documents)
    for n in (0, 123, 499):
        assert retriever.search(Query(f"word{n}"), 2).ids == (documents[n].id,)
        assert retriever.score(Query(f"word{n}"), [documents[n - 1].id, documents[n].id])[0] == 0
    assert len(retriever.search(Query("common"), 1_000)) == 500
