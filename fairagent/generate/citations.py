"""Citations such as [2], [1, 3] and [1-3] in an answer's text, checked against the context."""

import re
from dataclasses import dataclass, field

from fairagent.clean import THOUGHTS
from fairagent.generate.generator import OnText

# White space is gone through once: a match begins where it begins, and gives none of it back.
_SPACE = r"(?<!\s)\s*+"
_NUMBERS = r"\d{1,9}+(?:\s*+[,;\-\u2013]\s*+\d{1,9}+)*+"
_BRACKETS = rf"\[\s*+{_NUMBERS}\s*+\]"
_CITATION = re.compile(rf"{_SPACE}\[\s*+({_NUMBERS})\s*+\]")
_RUN = re.compile(rf"{_SPACE}{_BRACKETS}(?:\s*+[,;]?+\s*+{_BRACKETS})*+")
_PART = re.compile(r"(\d+)(?:\s*[-\u2013]\s*(\d+))?")
_UNFINISHED = re.compile(rf"{_SPACE}(?:\[[\d\s,;\-\u2013]{{0,80}}+)?\Z")
HELD = 200
"""Characters of an unfinished citation, or of white space, that are held back at most."""


def without_citations(text: str) -> str:
    """`text` without what looks like a citation, such as the footnotes of an article.

    >>> without_citations("She was a judge [3], then a senator [4], [5-6].")
    'She was a judge, then a senator.'
    """
    return _RUN.sub("", text)


@dataclass(slots=True)
class CitationReader:
    """Reads an answer to `documents` documents piece by piece, and leaves out the citations of documents there are not.

    `on_text` is told what is sure so far: a citation is held back until it is complete, and what a reasoning model
    thinks aloud at the beginning is not told at all. All it is told together is `text`. `cited` are the numbers in the
    order of their first mention, `invented` those that were left out.

    >>> reader = CitationReader(3)
    >>> reader.read("A judge [1, 9], then a sen")
    >>> reader.read("ator [2][7-8].")
    >>> reader.close()
    >>> reader.text, reader.cited, reader.invented
    ('A judge [1], then a senator [2].', [1, 2], ['9', '7-8'])
    """

    documents: int
    on_text: OnText | None = None
    text: str = ""
    cited: list[int] = field(default_factory=list)
    invented: list[str] = field(default_factory=list)
    _waiting: str = ""
    _thinking: bool = False

    def read(self, piece: str) -> None:
        """Take the next piece."""
        self._waiting += piece
        begin, end = THOUGHTS
        while not self.text:
            start = self._waiting.lstrip()
            self._thinking = self._thinking or start.startswith(begin)
            if not self._thinking:
                if start and begin.startswith(start):
                    return
                break
            _, found, after = self._waiting.partition(end)
            if not found:
                # The end may have come in part.
                self._waiting = self._waiting[1 - len(end) :]
                return
            self._thinking, self._waiting = False, after
        unfinished = _UNFINISHED.search(self._waiting, max(0, len(self._waiting) - HELD))
        self._tell(unfinished.start() if unfinished else len(self._waiting))

    def close(self) -> None:
        """The answer is complete."""
        if self._thinking:
            # It thought until it was cut off.
            self._waiting = ""
        self._waiting = self._waiting.rstrip()
        self._tell(len(self._waiting))

    def _tell(self, length: int) -> None:
        sure, self._waiting = self._waiting[:length], self._waiting[length:]
        checked = _CITATION.sub(self._check, sure)
        if not self.text:
            checked = checked.lstrip()
        if checked:
            self.text += checked
            if self.on_text:
                self.on_text(checked)

    def _check(self, citation: re.Match[str]) -> str:
        """The citation as it is, or without the numbers of no documents; "" where none is left."""
        good: list[str] = []
        bad: list[str] = []
        for part in _PART.finditer(citation[1]):
            ends = [int(number) for number in part.groups() if number]
            there = min(ends) >= 1 and max(ends) <= self.documents
            (good if there else bad).append(part[0])
            numbers = range(min(ends), max(ends) + 1) if there else ()
            self.cited += [number for number in numbers if number not in self.cited]
        self.invented += bad
        if not bad:
            return citation[0]
        space = citation[0][: citation[0].index("[")]
        return f"{space}[{', '.join(good)}]" if good else ""
