"""The context: which part of which documents a generator reads, and in which order."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from fairagent.answer.filtering import LONGEST_TITLE
from fairagent.llm.request import estimate_tokens
from fairagent.types import Document
from fairagent.types.clean import visible

Order = Literal["balanced", "rank", "reversed", "ends"]
"""The documents are numbered so that every beginning is balanced between the groups, and shown so; or they are numbered
by rank, and shown with the best first, last, or at both ends (the worst in the middle)."""
LEAST_TOKENS = 100
"""A document of a balanced context is read to at least so many tokens, or its end, or not at all."""

_PART_OF_WORD = re.compile(r"\s\S{0,40}$")


def fit(documents: Sequence[Document], tokens: int) -> tuple[tuple[Document, ...], tuple[str, ...]]:
    """The documents as a generator reads them, about `tokens` of text together, and notes on what was cut.

    Hidden characters are taken out. No document is left out: each gets the same share of the tokens, and what short
    ones leave over goes to the longer ones. Texts are cut at the end of a word.

    >>> short, long = Document("d1", "A judge."), Document("d2", "lawyer " * 100)
    >>> documents, notes = fit([short, long], 12)
    >>> documents[1].text, notes
    ('lawyer lawyer lawyer lawyer lawyer', ('1 of 2 documents was cut to fit 12 tokens',))
    """
    shown = [replace(one, title=visible(one.title)[:LONGEST_TITLE], text=visible(one.text)) for one in documents]
    lengths = [estimate_tokens(one.text) for one in shown]
    shares, left = [0] * len(shown), tokens
    # The shortest first, an equal share of the rest each.
    for rank, place in enumerate(sorted(range(len(shown)), key=lengths.__getitem__)):
        shares[place] = min(lengths[place], left // (len(shown) - rank))
        left -= shares[place]
    fitting = tuple(replace(one, text=shortened(one.text, share)) for one, share in zip(shown, shares, strict=True))
    cut = sum(before.text != after.text for before, after in zip(shown, fitting, strict=True))
    were = "was" if cut == 1 else "were"
    return fitting, (f"{cut} of {len(fitting)} documents {were} cut to fit {tokens:,} tokens",) if cut else ()


def affordable(documents: Sequence[Document], tokens: int) -> int:
    """How many of the first documents can be read to their ends, or to `LEAST_TOKENS`, together; the first always is.

    >>> affordable([Document("d1", "A judge."), Document("d2", "lawyer " * 100), Document("d3", "A court.")], 103)
    2
    """
    count = 0
    for document in documents:
        tokens -= min(LEAST_TOKENS, estimate_tokens(visible(document.text)))
        if tokens < 0:
            break
        count += 1
    return max(count, min(1, len(documents)))


def arrange(count: int, order: Order) -> tuple[int, ...]:
    """The numbers 1 to `count` (the worst by rank) in the `order` in which the documents are shown.

    >>> arrange(5, "ends"), arrange(3, "reversed")
    ((1, 3, 5, 4, 2), (3, 2, 1))
    """
    numbers = tuple(range(1, count + 1))
    if order == "reversed":
        return numbers[::-1]
    return numbers[::2] + numbers[1::2][::-1] if order == "ends" else numbers


def numbered(documents: Sequence[Document], order: Order) -> list[dict[str, object]]:
    """What a template gets as the `documents` to answer from: in this order, under their numbers."""
    return [
        {"number": number, "title": documents[number - 1].title, "text": documents[number - 1].text}
        for number in arrange(len(documents), order)
    ]


def shortened(text: str, tokens: int) -> str:
    """The beginning of `text` that has at most so many tokens, up to the end of a word."""
    start = text.encode("utf-8", "replace")[: 4 * tokens].decode("utf-8", "ignore")
    if len(start) == len(text):
        return text
    if text[len(start)].isspace():
        return start.rstrip()
    # A very long word is the text of a script without spaces.
    part = _PART_OF_WORD.search(start)
    return start[: part.start()].rstrip() if part else start
