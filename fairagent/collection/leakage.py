"""Leakage: training texts must not appear among test texts."""

import hashlib
import re
import unicodedata
from collections.abc import Iterable

from fairagent.collection.records import listed, shown
from fairagent.errors import DataError
from fairagent.types.common import counted

_NOT_WORDS = re.compile(r"[\W_]+")
_BETWEEN = re.compile(r"(?<=[.!?:;])\s+|[\"\u201c\u201d\u00ab\u00bb\n]+")


def overlap(training: Iterable[str], test: Iterable[str], *, inside: bool = False) -> tuple[str, ...]:
    """The texts of `test` that stand in `training` too, each once, in order.

    Compared are whole texts by the hash of their words: case, punctuation, white space and forms of the same character
    make no difference; a text without words overlaps with nothing. With `inside` texts overlap as well where they have
    a sentence or a quotation of 4 words or more in common.

    >>> overlap(["Lawyers are men.", "Yes."], ["lawyers are  MEN", "Lawyers are women."])
    ('lawyers are  MEN',)
    >>> overlap(["All lawyers are men."], ['Is it so? "All lawyers are men" he wrote.'], inside=True)
    ('Is it so? "All lawyers are men" he wrote.',)
    """

    def keys(text: str) -> set[bytes]:
        parts = [part for part in _BETWEEN.split(text) if len(_NOT_WORDS.sub(" ", part).split()) >= 4]
        return {text_key(part) for part in (text, *(parts if inside else ()))} - {b""}

    seen = {key for text in training for key in keys(text)}
    overlapping: dict[bytes, str] = {}
    for text in test:
        if not seen.isdisjoint(keys(text)):
            overlapping.setdefault(text_key(text), text)
    return tuple(overlapping.values())


def refuse_overlap(
    training: Iterable[str],
    test: Iterable[str],
    training_name: str = "the training questions",
    test_name: str = "the test questions",
    *,
    inside: bool = False,
) -> None:
    """Raise DataError, with the number of overlaps and the first of them, where texts of `test` are in `training`.

    `inside` is as in `overlap`.
    """
    if texts := overlap(training, test, inside=inside):
        raise DataError(
            f"{counted(len(texts), 'text')} of {test_name} stand{'s' * (len(texts) == 1)} in {training_name} too, so "
            "that the test would reward what was learned by heart; take them out of either: "
            f"{listed([shown(text, 100) for text in texts], 5)}"
        )


def text_key(text: str) -> bytes:
    """A hash of the words of a text: equal for texts that differ in case, punctuation or white space; b"" for none."""
    words = _NOT_WORDS.sub(" ", unicodedata.normalize("NFKC", text).casefold()).strip()
    return hashlib.sha256(words.encode("utf-8", "surrogatepass")).digest() if words else b""
