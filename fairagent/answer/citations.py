"""The sentences of a text, and its citations.

Sentences are split by a small rule, without language data. Citations such as [2], [1, 3] and [1-3] are checked against
the context.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from fairagent.llm.replies import Thoughts
from fairagent.measures.answers import citation_support
from fairagent.types import Answer, Document
from fairagent.types.clean import visible

OnText = Callable[[str], None]
"""Called with the answer piece by piece while it is written: together its text, unless another takes its place."""


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


# Possessive quantifiers: white space is read once, so that no text takes quadratic time.
_SPACE = r"(?<!\s)\s*+"
_NUMBERS = r"\d{1,9}+(?>(?:\s*+[,;\-\u2013]\s*+\d{1,9}+)*)"
_BRACKETS = rf"\[\s*+{_NUMBERS}\s*+\]"
CITATION = re.compile(rf"{_SPACE}\[\s*+({_NUMBERS})\s*+\]")
_RUN = re.compile(rf"{_SPACE}{_BRACKETS}(?>(?:\s*+[,;]?+\s*+{_BRACKETS})*)")
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


def numbers_in(text: str, most: int) -> list[int]:
    """The numbers from 1 to `most` that the citations of a text name, each once.

    >>> numbers_in("She was a judge [3, 9], then a senator [1-2].", 4)
    [3, 1, 2]
    """
    reader = CitationReader(most)
    reader.read(text)
    return reader.cited


@dataclass(slots=True)
class CitationReader:
    """Reads an answer to `documents` documents piece by piece, and leaves out citations beyond their numbers.

    `on_text` gets what is sure so far, together `text`: a citation is held back until it is complete. What a reasoning
    model thinks aloud is left out; of thoughts without an opening tag this is known at their end, and `text` begins
    anew. `cited` are the numbers in the order of their first mention, `invented` those that were left out.

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
    _thoughts: Thoughts = field(default_factory=Thoughts)

    def read(self, piece: str) -> None:
        """Take the next piece."""
        answer, all_thoughts = self._thoughts.read(piece)
        if all_thoughts:
            self.text, self._waiting, self.cited, self.invented = "", "", [], []
        self._waiting += answer
        unfinished = _UNFINISHED.search(self._waiting, max(0, len(self._waiting) - HELD))
        self._pass_on(unfinished.start() if unfinished else len(self._waiting))

    def close(self) -> None:
        """The answer is complete."""
        self._waiting += self._thoughts.close()
        self._waiting = self._waiting.rstrip()
        self._pass_on(len(self._waiting))

    def _pass_on(self, length: int) -> None:
        sure, self._waiting = self._waiting[:length], self._waiting[length:]
        checked = CITATION.sub(self._check, sure)
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
            ends = sorted(int(number) for number in part.groups() if number)
            if ends[0] < 1 or ends[-1] > self.documents:
                bad.append(part[0])
                continue
            good.append(part[0])
            self.cited += [number for number in range(ends[0], ends[-1] + 1) if number not in self.cited]
        self.invented += bad
        if not bad:
            return citation[0]
        space = citation[0][: citation[0].index("[")]
        return f"{space}[{', '.join(good)}]" if good else ""


def words(text: str) -> list[str]:
    """The words of a text without case, for engines whose analysis is not known."""
    return re.findall(r"\w+", text.casefold())


_FIRST = re.compile(rf"(?:{CITATION.pattern})+[.,;]?")


Claim = tuple[list[str], list[int]]
"""The words of a sentence, and the numbers of the documents that it cites."""


def claims_of(answer: Answer, documents: Sequence[Document]) -> tuple[list[Claim], list[frozenset[str]]]:
    """The claims of an answer, and the words of each of its documents; a title is part of its document."""
    claims: list[Claim] = []
    for sentence in sentences(visible(answer.text)):
        first = _FIRST.match(sentence)
        if first and claims:
            # A citation that follows the mark at the end of its sentence belongs to that sentence.
            claims[-1][1].extend(numbers_in(first[0], len(documents)))
            sentence = sentence[first.end() :]
        if claim := words(without_citations(sentence)):
            claims.append((claim, numbers_in(sentence, len(documents))))
    return claims, [frozenset(words(visible(f"{one.title} {one.text}"))) for one in documents]


def support_of(answer: Answer, documents: Sequence[Document]) -> float:
    """`citation_support` of an answer from these documents.

    >>> context = [Document("d1", "She grew roses.", "Ada Roe"), Document("d2", "A court.")]
    >>> support_of(Answer("Ada Roe grew roses [1]. She was a judge [2]."), context)
    0.625
    """
    return citation_support(*claims_of(answer, documents))


def telling(claim: Collection[str]) -> set[str]:
    """The words that tell texts apart: those of four letters or more, or all where there is none."""
    return {word for word in claim if len(word) > 3} or set(claim)
