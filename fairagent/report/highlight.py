"""Keywords in titles: the words of a title that a query asked for."""

import re
from collections.abc import Iterable

Pieces = tuple[tuple[str, bool], ...]
"""A text in pieces, each with whether it is a keyword."""

_WORD = re.compile(r"\w+")
_ENDINGS = re.compile(
    "i?(?:s|es|e|y|al|ally|ance|able|an|ans|ant|ed|ence|ent|er|ers|or|ors|ic|ics|ical|ing|ings|ion|ions|ism|ist|ists|"
    "ity|ies|ties|ive|ly|ments?|ness)"
)
"""What a stemmer takes off: keywords may be stems, as the index keeps them."""
_SHORTEST_STEM = 4


def keywords_of(terms: Iterable[str]) -> frozenset[str]:
    """The words of some keywords in lower case; a single letter says nothing and is left out."""
    return frozenset(word for term in terms for word in _WORD.findall(term.casefold()) if len(word) > 1)


def highlighted(title: str, keywords: frozenset[str]) -> Pieces:
    """`title` in pieces, the words that are keywords (or grow from a keyword that is a stem) apart.

    >>> highlighted("A botanist of Peru", frozenset({"botan", "peru"}))
    (('A ', False), ('botanist', True), (' of ', False), ('Peru', True))
    >>> highlighted("Portraits", frozenset({"port"}))
    (('Portraits', False),)
    """
    pieces: list[tuple[str, bool]] = []
    end = 0
    for word in _WORD.finditer(title):
        if is_keyword(word[0], keywords):
            pieces += [(title[end : word.start()], False), (word[0], True)]
            end = word.end()
    pieces.append((title[end:], False))
    return tuple((text, marked) for text, marked in pieces if text)


def is_keyword(word: str, keywords: frozenset[str]) -> bool:
    """Whether `word` is one of `keywords`, or one of them with an ending that a stemmer takes off.

    >>> is_keyword("Universities", frozenset({"univers"})), is_keyword("study", frozenset({"studi"}))
    (True, True)
    """
    word = word.casefold()
    if word in keywords:
        return True
    if word.endswith("y") and len(word) >= _SHORTEST_STEM and f"{word[:-1]}i" in keywords:
        return True
    cuts = range(_SHORTEST_STEM, len(word))
    return any(word[:cut] in keywords and _ENDINGS.fullmatch(word, cut) for cut in cuts)
