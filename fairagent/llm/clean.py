"""Cleaning untrusted text before a model or an engine sees it."""

import unicodedata

LONGEST_QUERY = 2000
"""Characters of a query that a model sees."""

THOUGHTS = "<think>", "</think>"
"""What a reasoning model that thinks aloud puts around its thoughts."""

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co"})


def visible(text: str) -> str:
    r"""`text` without control, zero-width, bidirectional and private-use characters; line breaks and tabs stay.

    >>> visible("law\u200byer\u202e")
    'lawyer'
    """
    # Most texts have nothing to take out, and Python sees that much faster.
    if text.isprintable():
        return text
    return "".join(sign for sign in text if sign in "\n\t" or unicodedata.category(sign) not in _HIDDEN)


def query_shown(query: str) -> str:
    """The query as a model sees it: visible characters, at most 2,000."""
    return visible(query)[:LONGEST_QUERY]
