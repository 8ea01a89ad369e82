"""Splitting long documents into passages that fit a model's or an encoder's input."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import Field, model_validator

from fairagent.loading import expect_installed
from fairagent.settings import Section
from fairagent.types import Document

START = "@start"
"""The field in a passage's `extra` that says at which character of its document's text it starts."""


class Chunks(Section):
    """How documents are cut: at the ends of sentences where possible, by LlamaIndex's SentenceSplitter.

    Tokens are counted by LlamaIndex's tokenizer: that of GPT-3.5, which comes with it, unless a program sets another
    (`llama_index.core.Settings.tokenizer`).
    """

    tokens: int = Field(512, ge=16)
    """The most that a passage holds."""
    overlap: int = Field(128, ge=0)
    """The most that a passage repeats of the one before it."""

    @model_validator(mode="after")
    def _consistent(self) -> Chunks:
        if self.overlap >= self.tokens:
            raise ValueError(f"`overlap` ({self.overlap}) must be smaller than `tokens` ({self.tokens})")
        return self


def passage_id(document: str, number: int) -> str:
    """The id of a document's passage; numbers start with 1.

    >>> passage_id("d7", 1), document_of("d7#1"), document_of("a#b#12")
    ('d7#1', 'd7', 'a#b')
    """
    return f"{document}#{number}"


def document_of(passage: str) -> str:
    """The id of the document that a passage belongs to."""
    return passage.rpartition("#")[0]


def passages(documents: Iterable[Document], chunks: Chunks) -> Iterator[Document]:
    """Every passage of every document, in order, with the title and the other fields of its document.

    A document that is short enough, or empty, is one passage.
    """
    splitter = _splitter(chunks)
    for document in documents:
        text, start = document.text, -1
        # No token is shorter than a byte.
        short = len(text) <= chunks.tokens and len(text.encode("utf-8", "surrogatepass")) <= chunks.tokens
        for number, part in enumerate([text] if short else splitter.split_text(text) or [""], start=1):
            start = max(text.find(part, start + 1), 0)
            yield Document(passage_id(document.id, number), part, document.title, {**document.extra, START: start})


def joined(parts: Iterable[Document]) -> str:
    """The text that the passages, in order, were cut from.

    White space between passages may differ, and of a text that repeats itself word for word for longer than a passage
    some repetitions may be missing: the splitter does not say where its passages stand.

    >>> text = " ".join(f"Here is number {n}." for n in range(30))
    >>> joined(passages([Document("d", text)], Chunks(tokens=16, overlap=6))) == text
    True
    """
    text = ""
    for part in parts:
        start = part.extra[START]
        assert isinstance(start, int)
        text = text[:start].ljust(start) + part.text
    return text


def check_splitter() -> None:
    """Raise BackendUnavailable where LlamaIndex, which cuts documents, is not installed."""
    expect_installed("llama-index-core", "cutting documents into passages (chunks)")


def _splitter(chunks: Chunks) -> Any:
    check_splitter()
    # Here and not above: it takes a second to load.
    from llama_index.core.node_parser import SentenceSplitter

    return SentenceSplitter(chunk_size=chunks.tokens, chunk_overlap=chunks.overlap)
