"""Sentence splitting by a small rule, without language data."""

import re

_SHORT_FORMS = "".join(rf"(?<!\b{form}\.)" for form in ("[A-Z]", "St", "Dr", "Mr", "Mrs", "Ms", "Jr", "vs"))
_END = re.compile(rf"(?:(?<=[.!?]){_SHORT_FORMS}|(?<=[.!?][\"')\]]))\s+(?=[\"'(\[]?[^\Wa-z_])|(?<=\s[.!?])\s+|\n+")


def sentences(text: str) -> list[str]:
    r"""The sentences of a text: they end at . ! or ? before a capital or a digit, and at the end of a line.

    Initials and a few short forms (St., Dr. ...) end none; a mark that stands alone, as where a text was taken apart
    into words, ends one before a small letter as well.

    >>> sentences("She was a judge. In 1990 C. P. Ray retired.\nShe wrote, e.g. novels.")
    ['She was a judge.', 'In 1990 C. P. Ray retired.', 'She wrote, e.g. novels.']
    """
    return [part.strip() for part in _END.split(text) if part.strip()]
