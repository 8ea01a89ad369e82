"""Keywords proposed by a model: the reply's format, and validation of each keyword."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from fairagent.clean import visible
from fairagent.llm import Reply
from fairagent.llm.reply import list_within, text_like, text_within

MOST_KEYWORDS = 12
LONGEST_KEYWORD = 80
LONGEST_PLAN = 1000
"""Characters of the thoughts before keywords, where a server holds bounds."""
SHOWN_OF_REFUSED = 40
"""Characters of a refused keyword that are kept for the trace."""

_ADDRESS = re.compile(r"://|@|\bwww\.|\w\.[a-z]{2,}\b", re.IGNORECASE)
_OPERATOR = re.compile(r'["^~*?:\\|<>(){}\[\]]|&&|(?:^|\s)[-+!]|\b(?:AND|OR|NOT)\b')
_WORD = re.compile(r"\w+")


# Of any script: what is excluded are marks at the beginning (so no dots of a pattern), operators of queries, and what
# ends a JSON string.
KEYWORD = r"^[^ -/:-@\[-`{-~\x00-\x1F][^\"\\^~*?:|<>(){}\[\]\x00-\x1F]{0,39}$"
"""The regular expression of a keyword, for servers that hold bounds: one to forty characters."""

Proposed = Annotated[str, text_like(KEYWORD, 40)]


class Keywords(Reply):
    """The reply of the prompts that refine a query."""

    keywords: Annotated[list[Proposed], list_within(MOST_KEYWORDS)]


class _Reasoned(Reply):
    reasoning: Annotated[str, text_within(LONGEST_PLAN)]


# In this order of bases the reasoning comes first, so that a server that enforces the form makes the model think first.
class ReasonedKeywords(Keywords, _Reasoned):
    """Keywords after the thoughts that led to them, which are not looked at."""


REPLIES: dict[str, type[Keywords]] = {kind.__name__: kind for kind in (Keywords, ReasonedKeywords)}
"""The replies that a refining template may ask for, by the name in its head."""


@dataclass(frozen=True, slots=True)
class Sifted:
    """Proposed keywords: those that are fit to be searched for, in their order, and the others with the reason.

    `refused` are what no keyword may be, `repeated` those that are known already.
    """

    kept: tuple[str, ...]
    repeated: tuple[str, ...]
    refused: tuple[str, ...]


def sift(proposed: Sequence[str], query: str, known: Iterable[str]) -> Sifted:
    """The proposed keywords that are fit to be searched for and new, at most 12.

    Zero-width, bidirectional and control characters are taken out, white space is made single, quotes around a keyword
    are dropped. Refused are: several lines; more than 80 characters; web and mail addresses; query operators; and what
    comes after the 12th. Repeated are the `known` ones (case does not count) and those that only repeat words of
    `query`. What is empty or comes twice is left out without a word.

    >>> sifted = sift(["Barrister", "barrister", "lawyers", "see x.org", "a OR b", "judge"], "lawyers", ["Judge"])
    >>> sifted.kept, sifted.repeated
    (('Barrister',), ('lawyers', 'judge'))
    >>> sifted.refused
    ('see x.org: an address', 'a OR b: a query operator')
    """
    query_words = words_of(query)
    taken = {_key(word) for word in known}
    seen: set[str] = set()
    kept: list[str] = []
    repeated: list[str] = []
    refused: list[str] = []
    for raw in proposed:
        keyword = visible(unicodedata.normalize("NFKC", raw)).strip().strip("\"'“”‘’`").strip()
        key = _key(keyword)
        if key in seen or not words_of(keyword):
            continue
        seen.add(key)
        if fault := _fault(keyword):
            refused.append(f"{_shown(keyword)}: {fault}")
        elif key in taken or words_of(keyword) <= query_words:
            repeated.append(_shown(keyword))
        elif len(kept) == MOST_KEYWORDS:
            refused.append(f"{_shown(keyword)}: more than {MOST_KEYWORDS} keywords")
        else:
            kept.append(" ".join(keyword.split()))
    if len(refused) > MOST_KEYWORDS:
        refused[MOST_KEYWORDS:] = [f"and {len(refused) - MOST_KEYWORDS} more"]
    return Sifted(tuple(kept), tuple(repeated[:MOST_KEYWORDS]), tuple(refused))


def words_of(text: str) -> frozenset[str]:
    """The distinct words of a text, in one writing."""
    return frozenset(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


def _fault(keyword: str) -> str:
    """Why this is no keyword; "" where it is one."""
    if len(keyword.splitlines()) > 1:
        return "several lines"
    if len(keyword) > LONGEST_KEYWORD:
        return f"longer than {LONGEST_KEYWORD} characters"
    if _ADDRESS.search(keyword):
        return "an address"
    return "a query operator" if _OPERATOR.search(keyword) else ""


def _shown(keyword: str) -> str:
    line = " ".join(keyword.split())
    return line if len(line) <= SHOWN_OF_REFUSED else f"{line[:SHOWN_OF_REFUSED]} ..."


def _key(keyword: str) -> str:
    return " ".join(keyword.casefold().split())
