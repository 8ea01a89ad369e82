"""A made collection of some 65 documents in several scripts, and its index, built once."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from fairagent.retrieve.bm25.build import build_index
from fairagent.retrieve.bm25.search import BM25Retriever
from fairagent.types import Document


@dataclass(frozen=True)
class Made:
    """A collection in memory; another `state` stands for other files."""

    made: Sequence[Document]
    state: str = "as made"
    name: str = "made"

    def documents(self) -> Iterator[Document]:
        return iter(self.made)

    def fingerprint(self) -> str:
        return self.state


# 40 documents that no query can tell apart, in an order that is not that of their ids.
TIED = tuple(Document(f"tie{n * 17 % 40:02d}", "A quiet harbor town.") for n in range(40))
EXTRA = {"year": 1901, "tags": ["law", "Ω"], "nested": {"empty": None, "half": 0.5, "true": True}}
VARIED = (
    Document("law1", "The lawyer argued the case in court; the court agreed with the lawyer.", "A lawyer", EXTRA),
    Document("law2", "A woman and a lawyer, she went to court.", "Advocate"),
    Document("law3", "Courts and lawyers of the harbor town. Lawyers, lawyers, lawyers!"),
    Document("title-only", "", "Lawyers"),
    Document("empty", ""),
    Document("stop-words-only", "the and of"),
    Document("long", "ocean " * 30_000 + "lawyer " + "wave tide " * 15_000),
    Document("russian", "Она была адвокатом в Москве.", "Адвокат"),
    Document("greek", "Η δικηγόρος πήγε στο δικαστήριο."),
    Document("arabic", "كانت محامية في القاهرة"),
    Document("hebrew", "היא הייתה עורכת דין"),
    Document("hindi", "वह एक वकील थी"),
    Document("chinese", "她是一位律師"),
    Document("japanese", "彼女は弁護士だった"),
    Document("korean", "그녀는 변호사였다"),
    Document("thai", "เธอเป็นทนายความ"),
    Document("emoji", "😀 👩‍⚖️ judge"),
    Document("operators", 'AND OR NOT lawyer^2 (court) "harbor" ~ * ? : [a TO b] && || ! \\ /x/'),
    Document("commas", "one, two,, three , four"),
    Document("controls", "bell\x07 nul\0 tab\t newline\n end"),
    Document("quotes", "L'avocate d'Été — naïve façade, O'Neill's"),
    Document("numbers", "1901 3.14 42nd 1,000,000"),
    Document("a:b/c d", "odd lawyer"),
    Document("x'y\"z\\", "odd lawyer"),
    Document("日本-1", "odd lawyer"),
    Document("🙂", "odd lawyer"),
    Document("-1", "odd lawyer"),
    Document("é" * 127 + "e", "odd lawyer"),
)
MADE = Made((*TIED[:20], *VARIED, *TIED[20:]))


@pytest.fixture(scope="session")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the index of MADE; not to be written to."""
    folder = tmp_path_factory.mktemp("made") / "index"
    build_index(MADE, folder)
    return folder


@pytest.fixture(scope="session")
def retriever(index: Path) -> BM25Retriever:
    return BM25Retriever(index, MADE)


@pytest.fixture
def hurried_threads() -> Iterator[None]:
    """Threads take turns a thousand times as often as usual."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)
