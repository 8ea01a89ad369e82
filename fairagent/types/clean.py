"""Untrusted text, cleaned: before a model or an engine sees it, and before a person's terminal, table or log does.

Titles, group labels, names, replies and what messages quote come from strangers. Control characters steer a terminal,
bidirectional overrides show another text than there is, a line break begins a false row, and a spreadsheet runs what
begins like a formula.
"""

import logging
import re
import unicodedata
from collections.abc import Callable
from typing import Any

LONGEST_QUERY = 2000
"""Characters of a query that a model sees."""

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co"})
_BREAKS = frozenset({"Zl", "Zp"})
_JOINERS = "\u200c\u200d"
"""Persian and Hindi are written with them, and emoji; they can neither steer nor reverse anything."""
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_FORMULA = ("=", "+", "-", "@")
_NUMBER = re.compile(r"[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?")


class _Signs(dict[int, str]):
    """What stands for each character, by its code; computed once for each that occurs."""

    def __init__(self, of: Callable[[str], str]) -> None:
        self._of = of

    def __missing__(self, code: int) -> str:
        self[code] = self._of(chr(code))
        return self[code]


def _seen_by_model(sign: str) -> str:
    return sign if sign in "\n\t" or unicodedata.category(sign) not in _HIDDEN else ""


def _seen_by_person(sign: str) -> str:
    category = unicodedata.category(sign)
    if category in _BREAKS:
        return "\n"
    hidden = category in _HIDDEN and sign not in "\n\t" and sign not in _JOINERS
    return _REPLACEMENT if hidden or ord(sign) & 0xFFFE == 0xFFFE else sign


_FOR_MODELS = _Signs(_seen_by_model)
_FOR_PEOPLE = _Signs(_seen_by_person)


def shown(value: object, most: int = 60) -> str:
    """`value` as it stands in an error message: quoted, and cut where it is long.

    >>> shown("T1 0 D1 1", most=7)
    "'T1 0 D ..."
    """
    try:
        # Of a long text no more is looked at than may be shown; of anything else `repr` is somebody's code.
        text = repr(value[: 4 * most + 4] if isinstance(value, str | bytes) else value)
    except Exception as error:
        text = f"a {type(value).__name__} whose repr raises {type(error).__name__}"
    return text if len(text) <= most else f"{text[:most]} ..."


def label_text(value: Any) -> str:
    """A label, or the name of a group, as text: 1 and 1.0 are "1", true is "true"; ValueError for anything else.

    >>> label_text("1.0"), label_text(1.0), label_text(True)
    ('1.0', '1', 'true')
    """
    if isinstance(value, str):
        return str.__str__(value)
    # Scalars of numpy are asked for Python's, so that it need not be loaded.
    value = value.item() if type(value).__module__ == "numpy" else value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return str(int(value))
    expected = "text, a whole number, true or false, a list of these or label: weight pairs"
    raise ValueError(f"{shown(value)} is no label; expected {expected}")


def visible(text: str) -> str:
    r"""`text` without control, zero-width, bidirectional and private-use characters; line breaks and tabs stay.

    >>> visible("law\u200byer\u202e")
    'lawyer'
    """
    # Most texts have nothing to take out, and Python sees that much faster.
    return text if text.isprintable() else text.translate(_FOR_MODELS)


def query_shown(query: str) -> str:
    """The query as a model sees it: visible characters, at most 2,000."""
    return visible(query)[:LONGEST_QUERY]


def printable(text: str) -> str:
    r"""`text` for a terminal, a log or a page: whatever `visible` takes out becomes U+FFFD, so that it is seen.

    Joiners, which some scripts need, stay; line separators become line breaks.

    >>> printable("law\x1b[31m\u202e\tb\r\n")
    'law\ufffd[31m\ufffd\tb\n'
    """
    return text if text.isprintable() else text.replace("\r\n", "\n").translate(_FOR_PEOPLE)


def logger(name: str) -> logging.Logger:
    """The logger of a module, whose records are each one printable line, whatever they quote."""
    log = logging.getLogger(name)
    log.addFilter(in_one_line)
    return log


def in_one_line(record: logging.LogRecord) -> bool:
    """Make the record's message a printable line; for `logging.Handler.addFilter`."""
    record.msg, record.args = in_line(record.getMessage()), None
    return True


def in_line(text: str) -> str:
    r"""`text` for a cell of a table: printable, and in one line.

    >>> in_line("Court\nrank 1\tfake")
    'Court rank 1 fake'
    """
    return text if text.isprintable() else printable(text).replace("\n", " ").replace("\t", " ")


NO_TITLE = re.compile(
    r"\W*((the )?title (is )?(not known|unknown|missing)|(no|unknown) title|untitled|none|null|nan|n/?a)?\W*",
    re.IGNORECASE,
)
"""Titles that tell no document from another, as catalogues write them."""
LONGEST_NAME = 60


def name_of(title: str, text: str, id: str) -> str:
    """What a list calls a document: its title, or where that says nothing the first words of its text, else its id.

    >>> name_of("Boats", "A sheet", "d1"), name_of("[title not known]", "A sheet", "d1"), name_of("", " ", "d1")
    ('Boats', 'A sheet', 'd1')
    """
    if not NO_TITLE.fullmatch(title):
        return title
    words = " ".join(text[: 10 * LONGEST_NAME].split())
    return (words if len(words) <= LONGEST_NAME else words[:LONGEST_NAME].rpartition(" ")[0]) or id


def spreadsheet_cell(text: str) -> str:
    """`text` for a cell of a CSV file: in one line, and with an apostrophe before what would be run as a formula.

    >>> spreadsheet_cell("=cmd()"), spreadsheet_cell("-0.5"), spreadsheet_cell("- no loop")
    ("'=cmd()", '-0.5', "'- no loop")
    """
    line = in_line(text)
    return f"'{line}" if line.lstrip().startswith(_FORMULA) and not _NUMBER.fullmatch(line) else line
