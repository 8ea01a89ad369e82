"""Documents as a model is shown them: visible text, cut to a length, under ids that no author can predict."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fairagent.clean import visible
from fairagent.prompts.calls import LETTER, Calls, Case
from fairagent.types import Document

LONGEST_TEXT = 8000
"""Characters of a document that a model sees: a passage of 512 tokens has about 2,500."""
LONGEST_TITLE = 300
LARGEST_CALL = 40_000
"""Bytes of all documents of one call; with the longest query they fit into a prompt (64 kB)."""

ID_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Page:
    """One document, cleaned and cut for a model; `id` is the document's own, which no model sees.

    `note` says what a model does not see of it, "" where it sees everything.
    """

    id: str
    title: str
    text: str
    note: str = ""


def page_of(document: Document) -> Page:
    r"""The document without control, zero-width and bidirectional characters, cut to 8,000 (title: 300).

    >>> page_of(Document("d1", "A law\u200byer.", "Law"))
    Page(id='d1', title='Law', text='A lawyer.', note='hidden characters taken out: 1')
    """
    title, text = visible(document.title), visible(document.text)
    hidden = len(document.title) + len(document.text) - len(title) - len(text)
    notes = [f"hidden characters taken out: {hidden}"] if hidden else []
    if len(title) > LONGEST_TITLE:
        notes.append(f"title cut to {LONGEST_TITLE:,} of {len(title):,} characters")
    if len(text) > LONGEST_TEXT:
        notes.append(f"text cut to {LONGEST_TEXT:,} of {len(text):,} characters")
    return Page(document.id, title[:LONGEST_TITLE], text[:LONGEST_TEXT], "; ".join(notes))


def as_data(ids: Sequence[str], pages: Sequence[Page]) -> list[dict[str, str]]:
    """What a template gets as `documents`, to be shown as JSON: id, title and text of each page."""
    return [{"id": id, "title": page.title, "text": page.text} for id, page in zip(ids, pages, strict=True)]


def call_ids(prompt: str, asked: Sequence[str], pages: Sequence[Page]) -> tuple[str, ...]:
    """The ids of the pages in one call: `prompt` (a template's id), what is `asked`, and all pages make them.

    >>> call_ids("fairness_filter", ["lawyers"], [Page("d1", "", "A lawyer.")]) # doctest: +ELLIPSIS
    ('...',)
    """
    # Not random, so that a repeated run makes the same requests and finds their replies in the cache. Still no
    # document can name an id, its own or a neighbor's ("document 3f.. passes"): every id is a hash over all texts of
    # the call, the author's own included. To write one into a text changes all of them, even for an author who knows
    # the query and the other documents.
    content = json.dumps([prompt, *asked, *([page.title, page.text] for page in pages)])
    digest = hashlib.sha256(content.encode()).hexdigest()
    places = range(len(pages))
    return tuple(hashlib.sha256(f"{digest} {place}".encode()).hexdigest()[:ID_DIGITS] for place in places)


def longest_calls(case: Case, prompt: str, count: int, batch: int) -> Iterator[Calls]:
    """The calls about `count` documents, `batch` in one, all as long as a model is ever shown one."""
    page = Page("", LETTER * LONGEST_TITLE, LETTER * LONGEST_TEXT)
    for pages in batches([page] * count, batch):
        yield case.calls(prompt, documents=as_data(call_ids(prompt, [""], pages), pages))


def batches(pages: Sequence[Page], most: int) -> Iterator[tuple[Page, ...]]:
    """The pages in their order, at most `most` (>= 1) and 40,000 bytes of them at a time."""
    batch: list[Page] = []
    size = 0
    for page in pages:
        more = len(json.dumps([page.title, page.text], ensure_ascii=False).encode())
        if batch and (len(batch) == most or size + more > LARGEST_CALL):
            yield tuple(batch)
            batch, size = [], 0
        batch.append(page)
        size += more
    if batch:
        yield tuple(batch)
