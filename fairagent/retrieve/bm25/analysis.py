"""Analyzers by name: how texts and queries become index terms (words, case, stop words, stems), without Java.

| name | words | then |
|---|---|---|
| english | word breaks | no possessive 's, lower case, no stop words, Porter's stems |
| english-nostem | word breaks | the same without stems |
| snowball-german, ... | word breaks | `one_form`, lower case, the stems of the language; no stop words |
| whitespace | what stands between white space | - |

The first two and the last give the terms of the analyzers of the same names of Anserini, term by term. These keep an
é of two characters apart from one, and ’ from ': a query's term that no document has is looked up in other `forms`. Its
english-krovetz and its analyzers of languages (de, zh, ...) are Lucene's: they need the extra `lucene`.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from typing import Protocol
from unicodedata import normalize

import Stemmer

from fairagent.errors import SettingsError
from fairagent.retrieve.bm25.words import LAST_OF_BMP, LONGEST, split_words, utf16_units
from fairagent.settings.plugins import plugins

LANGUAGES = tuple(name for name in Stemmer.algorithms() if name not in ("porter", "lovins"))
"""The languages with stems: danish, german, russian, ..."""
NAMES = ("english", "english-nostem", "whitespace", *(f"snowball-{language}" for language in LANGUAGES))
"""The analyzers that need no Java."""
GROUP = "fairagent.analyzers"
"""Entry points of classes that make an analyzer by its name."""
STOP_WORDS = frozenset((
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not", "of",
    "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was", "will", "with",
))  # fmt: skip
"""Lucene's stop words of English."""
# What Java holds for white space, which Python does in part: no no-break space, no next line.
BLANK = r"\t-\r\x1c- \u1680\u2000-\u2006\u2008-\u200a\u2028\u2029\u205f\u3000"
BETWEEN_BLANKS = re.compile(f"[^{BLANK}]+")
PIECES = re.compile(f"[^{BLANK}]{{1,{LONGEST}}}")
APOSTROPHES = re.compile("[\u2018\u2019\u02bc\uff07]")
POSSESSIVE = ("'s", "'S", "\u2019s", "\u2019S", "\uff07s", "\uff07S")
ONE_CHARACTER = {0x130: "i", 0x3A3: "\u03c3"}
"""Each character has its own lower case: \u0130 an i without a second dot, \u03a3 a \u03c3 at the end of a word too."""
LATER_RULES = re.compile(r"(.*)(bl|log)[iy](?:s|es|(?:ed|ing)s?)?", re.DOTALL)
"""Words that may end in bli or logi once the plural, ed and ing are off and y is i: possibly, technologies."""
DOUBLED = re.compile("(.*([^aeiouylszbdfgmnprt\U00010000-\U0010ffff]))\\2(?:ed|ing)s?", re.DOTALL)
CACHED = 100_000
"""Words whose terms an analyzer caches."""
WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")


class Analyzer(Protocol):
    """What makes index terms of a text."""

    name: str

    def terms(self, text: str) -> list[str]:
        """The index terms of `text` in order, repeated where they repeat; raises DataError where it is no text."""


class WordAnalyzer:
    """An analyzer whose terms each come from one word; safe to use from several threads.

    >>> open_analyzer("english").terms("The women's lawyers' organizations")
    ['women', 'lawyer', 'organ']
    """

    def __init__(self, name: str, split: Callable[[str], list[str]], term: Callable[[str], str]) -> None:
        """`split` gives the words of a text as they stand there, `term` the term of a word, "" for a stop word."""
        self.name, self.split, self.term = name, split, term
        self._cached = lru_cache(maxsize=CACHED)(term)

    def terms(self, text: str) -> list[str]:
        """The index terms of `text` in order, repeated where they repeat; raises DataError where it is no text."""
        return [term for term in map(self._cached, self.split(text)) if term]


@cache
def open_analyzer(name: str) -> Analyzer:
    """The analyzer `name`: one of `NAMES`, or one of Lucene's.

    Raises SettingsError where there is none `name`, BackendUnavailable where it is Lucene's and that is not here.
    """
    if name == "english":
        return WordAnalyzer(name, split_words, _english_stem)
    if name == "english-nostem":
        return WordAnalyzer(name, split_words, _english)
    if name == "whitespace":
        return WordAnalyzer(name, _split_at_blanks, str)
    if name in NAMES:
        # Without its own cache: that is not for several threads.
        stem = Stemmer.Stemmer(name.removeprefix("snowball-"), 0).stemWord
        return WordAnalyzer(name, lambda text: split_words(one_form(text)), lambda word: stem(lower(word)))
    if not re.fullmatch(r"[a-z]{2}|english-krovetz", name):
        raise SettingsError(
            f"no analyzer {name!r}; known: {', '.join(NAMES)}; with the extra `lucene` english-krovetz and codes of "
            "languages (ar, bn, da, de, zh, ...)"
        )
    (lucene,) = plugins(GROUP)["lucene"]
    analyzer: Analyzer = lucene.load()(name)
    return analyzer


def one_form(text: str) -> str:
    """`text` composed (Unicode's NFC), with straight apostrophes."""
    return text if text.isascii() else APOSTROPHES.sub("'", normalize("NFC", text))


def forms(term: str) -> tuple[str, ...]:
    """The term, and the same in other Unicode forms and with other apostrophes.

    >>> forms("o'neil"), forms("court")
    (("o'neil", 'o’neil'), ('court',))
    """
    if term.isascii() and "'" not in term:
        return (term,)
    plain = one_form(term)
    curly = plain.replace("'", "\u2019")
    return tuple(dict.fromkeys((term, plain, curly, normalize("NFD", plain), normalize("NFD", curly))))


def lower(word: str) -> str:
    """`word` in lower case, character by character as Lucene does it."""
    return word.lower() if word.isascii() else word.translate(ONE_CHARACTER).lower()


def _english(word: str) -> str:
    term = lower(word[:-2] if word.endswith(POSSESSIVE) else word)
    return "" if term in STOP_WORDS else term


def _english_stem(word: str) -> str:
    """Porter's stem as Lucene has it: three rules differ from Snowball's.

    Two that Porter added later: bli becomes ble, logi log. And of any double consonant before `ed` or `ing` but l, s
    and z one is left, where Snowball looks at those of English (trekked, revving). A double y (hyyed) is left to
    Snowball, which may differ there.
    """
    word = _english(word)
    # Lucene leaves words of one or two UTF-16 units alone; Snowball would make `a` of `as`.
    if len(word) <= 2 and utf16_units(word) <= 2:
        return word
    stem = _porter(word)
    if stem.endswith(("bli", "logi")) and (match := LATER_RULES.fullmatch(word)) and stem == match[1] + match[2] + "i":
        before, ending = match.groups()
        # Both need a vowel and a consonant in what stands before, as `ness` does, which goes where these are.
        if len(_porter(before + "ness")) < len(before + "ness"):
            return _porter(before + "ble") if ending == "bl" else before + "log"
    elif (match := DOUBLED.fullmatch(word)) and stem == match[1] + match[2]:
        return _porter(match[1])
    return stem


_porter: Callable[[str], str] = Stemmer.Stemmer("porter", 0).stemWord


def _split_at_blanks(text: str) -> list[str]:
    words: list[str] = PIECES.findall(text)
    if text.isascii() or utf16_units(text) == len(text):
        return words
    # Lucene cuts a word where it has 255 UTF-16 units or, after a pair of surrogates, 256.
    pieces = []
    for word in BETWEEN_BLANKS.findall(text):
        start = units = 0
        for at, character in enumerate(word, 1):
            units += 1 + (character > LAST_OF_BMP)
            if units >= LONGEST or at == len(word):
                pieces.append(word[start:at])
                start, units = at, 0
    return pieces


def plain_words(text: str) -> list[str]:
    """The words of `text` in order, in lower case, as they stand (no stems, no stop words).

    >>> plain_words("Lawyers' fees: the lawyer's fees, 1901")
    ['lawyers', 'fees', 'the', "lawyer's", 'fees', '1901']
    """
    return WORD.findall(text.lower())


def readable_words(texts: Iterable[str], terms: Sequence[str], analyzer: Analyzer) -> list[str]:
    """For each term its commonest word in the texts, of equally common ones the shortest, then by the alphabet.

    Where no word was counted that is analyzed to it alone: the term itself if that is, else "".
    """
    counts = Counter(word for text in texts for word in plain_words(text))
    best: dict[str, str] = {}
    for word in sorted(counts, key=lambda word: (-counts[word], len(word), word)):
        if len(own := analyzer.terms(word)) == 1:
            best.setdefault(own[0], word)
    return [best.get(term) or (term if analyzer.terms(term) == [term] else "") for term in terms]
