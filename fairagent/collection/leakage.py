"""A guard against leakage: what something was fitted to must not be what it is tested on."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable

from fairagent.collection.faults import shown
from fairagent.errors import DataError

NAMED = 5
"""Overlaps that a message names."""

_NOT_WORDS = re.compile(r"[\W_]+")


def overlap(training: Iterable[str], test: Iterable[str]) -> tuple[str, ...]:
    """The texts of `test` that stand in `training` too, each once, in order.

    Compared are whole texts by the hash of their words: case, punctuation, white space and forms of the same character
    make no difference; a text without words overlaps with nothing.

    >>> overlap(["Lawyers are men.", "Yes."], ["lawyers are  MEN", "Lawyers are women."])
    ('lawyers are  MEN',)
    """
    seen = {key for text in training if (key := text_key(text))}
    found: dict[bytes, str] = {}
    for text in test:
        if (key := text_key(text)) and key in seen:
            found.setdefault(key, text)
    return tuple(found.values())


def refuse_overlap(
    training: Iterable[str],
    test: Iterable[str],
    training_name: str = "the training questions",
    test_name: str = "the test questions",
) -> None:
    """Raise DataError, with the number of overlaps and the first of them, where texts of `test` are in `training`."""
    if found := overlap(training, test):
        named = "\n".join(f"  {shown(text, 100)}" for text in found[:NAMED])
        more = f"\n  and {len(found) - NAMED} more" if len(found) > NAMED else ""
        raise DataError(
            f"{len(found)} text{'s' * (len(found) != 1)} of {test_name} stand{'s' * (len(found) == 1)} in "
            f"{training_name} too, so that the test would reward what was learned by heart; take them out of either:\n"
            f"{named}{more}"
        )


def text_key(text: str) -> bytes:
    """A hash of the words of a text: equal for texts that differ in case, punctuation or white space; b"" for none."""
    words = _NOT_WORDS.sub(" ", unicodedata.normalize("NFKC", text).casefold()).strip()
    return hashlib.sha256(words.encode("utf-8", "surrogatepass")).digest() if words else b""
