"""Leakage: training texts must not appear among test texts."""

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator

from fairagent.collection.records import shown
from fairagent.errors import DataError
from fairagent.types.common import counted

NAMED = 5
"""Overlaps that a message names."""

SHORTEST_PART = 4
"""Words that a sentence within a text has at least, if it is to count: "They were happy." stands anywhere."""

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
    seen = {key for text in training for key in _keys(text, inside)}
    overlapping: dict[bytes, str] = {}
    for text in test:
        if not seen.isdisjoint(_keys(text, inside)):
            overlapping.setdefault(text_key(text), text)
    return tuple(overlapping.values())


def _keys(text: str, inside: bool) -> Iterator[bytes]:
    """The key of the text and, if wanted, of its sentences and quotations; none for those without words."""
    if key := text_key(text):
        yield key
    if inside:
        for part in _BETWEEN.split(text):
            if part != text and len(_NOT_WORDS.sub(" ", part).split()) >= SHORTEST_PART:
                yield text_key(part)


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
        named = "\n".join(f"  {shown(text, 100)}" for text in texts[:NAMED])
        more = f"\n  and {len(texts) - NAMED} more" if len(texts) > NAMED else ""
        raise DataError(
            f"{counted(len(texts), 'text')} of {test_name} stand{'s' * (len(texts) == 1)} in {training_name} too, so "
            f"that the test would reward what was learned by heart; take them out of either:\n{named}{more}"
        )


def text_key(text: str) -> bytes:
    """A hash of the words of a text: equal for texts that differ in case, punctuation or white space; b"" for none."""
    words = _NOT_WORDS.sub(" ", unicodedata.normalize("NFKC", text).casefold()).strip()
    return hashlib.sha256(words.encode("utf-8", "surrogatepass")).digest() if words else b""
