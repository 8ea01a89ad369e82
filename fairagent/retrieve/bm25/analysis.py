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

Word breaks are those of Lucene's StandardTokenizer, by regular expressions: the rules of UAX #29. A word
is the longest of
 * letters and digits, joined by `_` and its like (WB13a, b), letters also by one of `: . '` between letters (WB6, 7),
   digits by one of `, ; . '` between digits (WB11, 12), Katakana among itself (WB13); after a Hebrew letter a single
   quote, and a double quote between two (WB7a to c);
 * a run of Thai, Lao, Khmer, Myanmar: where their words end is nowhere written;
 * one ideograph, one Hiragana;
 * emoji: one, or a sequence that joiners, a keycap or two regional indicators make one.
All that extends a character (accents, format characters, joiners; WB4) goes with the one before it. What is no word is
left out. A word longer than 255 UTF-16 units is cut there, and goes on as if the text began anew.

>>> split_words("Don't pay U.S. $3,000.50 for_it: a:b, l’été")
["Don't", 'pay', 'U.S', '3,000.50', 'for_it', 'a:b', 'l’été']
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Protocol
from unicodedata import normalize

import Stemmer

from fairagent.errors import DataError, SettingsError
from fairagent.settings.plugins import plugins

LONGEST = 255
"""UTF-16 units of the longest word."""
STRETCH = 16 * LONGEST
LAST_OF_BMP = "\uffff"
"""The last character of the Basic Multilingual Plane: one UTF-16 unit; those after it have two."""
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


SIMPLE = (
    r"(?:[{letters}0-9]|_(?=_{{0,253}}[{letters}0-9]))[{letters}0-9_]*+"
    r"(?:[.':,;{quotes}](?:(?<=[{letters}][.':{quotes}])(?=[{letters}])|(?<=[0-9][.',;{quotes}])(?=[0-9]))"
    r"[{letters}0-9_]++)*"
)
"""Words of texts in which nothing extends a character: what `_pattern` says, in a form that is much faster."""
ASCII = re.compile(SIMPLE.format(letters="A-Za-z", quotes=""))
WESTERN = re.compile(SIMPLE.format(letters="A-Za-z\xaa\xb5\xba\xc0-\xd6\xd8-\xf6\xf8-\u024f", quotes="\u2018\u2019"))
NOT_WESTERN = re.compile("[^\0-\xa8\xaa-\xac\xaf-\xb6\xb8-\u024f\u2010-\u2023\u2025\u2026\u20ac]")
"""Latin letters, the quotes, dashes and signs that come with them; no soft hyphen, \xa9 or \xae (emoji)."""

JOINER, SELECTOR, TEXT_SELECTOR = "\u200d", "\ufe0f", "\ufe0e"
"""The zero width joiner; the selectors of a character's presentation as an emoji and as text."""
MODIFIER, TAGS, LAST_TAG = "[\U0001f3fb-\U0001f3ff]", "[\U000e0020-\U000e007e]", "\U000e007f"
"""Modifiers (colors of skin), which extend characters too; tags, as of the flag of Scotland."""


def split_words(text: str) -> list[str]:
    """The words of `text` in order, as they stand there; raises DataError for half of a surrogate pair."""
    if text.isascii():
        pattern = ASCII
    elif not NOT_WESTERN.search(text):
        pattern = WESTERN
    else:
        units = utf16_units(text)
        # Classes with characters beyond U+FFFF are slower to look up, and so are Hebrew's rules.
        pattern = _pattern(units > len(text), bool(_hebrew().search(text)))
    words: list[str] = pattern.findall(text)
    # A word of 128 characters may have 256 units.
    if words and len(text) > LONGEST // 2 and max(map(len, words)) > LONGEST // 2:
        return _split_long(text, pattern)
    return words


def _split_long(text: str, pattern: re.Pattern[str]) -> list[str]:
    """The words of a text with long ones, each looked for within the `LONGEST` units where it begins."""
    words, at = [], 0
    while at < len(text):
        # In stretches, so that a word of a million characters is not read to its end for each of its pieces.
        end = at + STRETCH
        match = pattern.search(text, at, end)
        if end < len(text) and (match is None or match.start() > end - LONGEST):
            at = end - LONGEST
        elif match is None:
            break
        else:
            start, at = match.span()
            if utf16_units(match.group()) > LONGEST:
                window = text[start : start + LONGEST]
                while utf16_units(window) > LONGEST:
                    window = window[:-1]
                match = pattern.match(window)
                at = start + (match.end() if match else 1)
            if match:
                words.append(match.group())
    return words


def utf16_units(text: str) -> int:
    """The length of `text` as Java counts it; raises DataError for half of a surrogate pair."""
    try:
        return len(text.encode("utf-16-le")) // 2
    except UnicodeEncodeError as error:
        near = text[max(0, error.start - 20) : error.start + 20]
        raise DataError(f"half of a surrogate pair (not valid Unicode) in the text, near {near!r}") from None


@cache
def _hebrew() -> re.Pattern[str]:
    return re.compile("[" + _members("HEBREW", LAST_OF_BMP) + "]")


@cache
def _pattern(astral: bool, hebrew: bool) -> re.Pattern[str]:
    """Words of any text, or of one without characters beyond U+FFFF, without Hebrew letters; takes a few ms.

    No alternative begins with what another one can begin with, but for the letters that are pictographs too, which
    come first; so the first that matches is the longest. Runs that may come to nothing have a bound, so that a text of
    nothing but `_` does not take the square of its length; possessive ones (`*+`) never give back. Groups are atomic:
    possessive ones match too little before Python 3.11.5 (gh-106052).
    """
    last = "\U0010ffff" if astral else LAST_OF_BMP

    def one_of(*names: str, also: str = "") -> str:
        members = "".join(_members(name, last) for name in names) + also
        return f"[{members}]" if members else "(?!)"

    marks, joiners = ("EXTEND", "SOUTHEAST_ASIAN_EXTEND"), JOINER + SELECTOR + TEXT_SELECTOR
    letters = ("LETTER", "LETTER_EMOJI", "HEBREW")

    def run_of(*names: str) -> str:
        return one_of(*names, *marks, also=joiners) + "*+"

    x, letter, digit = run_of(), one_of(*letters), one_of("DIGIT")
    between_letters = one_of("MID_LETTER", "MID_BOTH", also="'")
    between_digits = one_of("MID_NUMBER", "MID_BOTH", also="'")
    # What follows the letter after a mark in the middle begins anew: a Hebrew quote can follow it, but not that letter.
    run = (
        f"(?:{letter}{run_of(*letters)}(?>(?:{between_letters}{x}{letter}{x if hebrew else run_of(*letters)})*)"
        f"|{digit}{run_of('DIGIT')}(?>(?:{between_digits}{x}{digit}{run_of('DIGIT')})*))"
    )
    if hebrew:
        quoted = f"{one_of('HEBREW')}{x}(?:'{x}|\"{x}{one_of('HEBREW')}{x})"
        run = f"(?:(?:{letter}{run_of(*letters)[:-1]})?{quoted}|{run})"
    group = f"(?:(?>{run}+)|{one_of('KATAKANA')}{run_of('KATAKANA')})"
    connectors = one_of("CONNECTOR") + run_of("CONNECTOR")
    before = one_of("CONNECTOR") + run_of("CONNECTOR").removesuffix("*+") + "{0,254}+"
    word = f"(?>(?:{before})?){group}(?>(?:{connectors}{group})*)(?>(?:{connectors})?)"
    southeast = one_of("SOUTHEAST_ASIAN", "SOUTHEAST_ASIAN_EXTEND") + run_of("SOUTHEAST_ASIAN")
    ideograph = one_of("HAN", "HIRAGANA") + x
    regional = one_of("REGIONAL") + x
    xs = one_of(*marks, also=JOINER) + "*+"
    letter_emoji, emoji = _emoji(one_of, xs, astral)
    # The keycap extends characters too: what is followed by the selector and another one is longest.
    keycap = f"[#*](?:{xs}{SELECTOR}\u20e3{xs}|{xs.removesuffix('+')}\u20e3{xs})"
    alternatives = (letter_emoji, word, ideograph, southeast, emoji, keycap, regional * 2)
    return re.compile("|".join(alternatives))


def _emoji(one_of: Callable[..., str], xs: str, astral: bool) -> tuple[str, str]:
    """Emoji and their sequences, those that begin with a letter (and have one that is none) and the others.

    `xs` is what extends a character but for the two selectors of a presentation.
    """
    tail = f"{xs}{SELECTOR}?+"
    any_emoji, modifier = one_of("EMOJI", "LETTER_EMOJI") + tail, MODIFIER + xs if astral else "(?!)"
    # A joiner is either the last of what extends an emoji, or follows the selector.
    joined = f"(?:(?<={JOINER})|(?<={SELECTOR}){JOINER}++)"
    modified = f"(?<={SELECTOR}){JOINER}{modifier}"
    more = f"(?>(?:{joined}{any_emoji}|{modified})*)"
    tagged = f"(?<={SELECTOR}){TAGS}++{LAST_TAG}" if astral else "(?!)"
    of_letters = f"{one_of('LETTER_EMOJI')}{tail}(?>(?:{joined}{one_of('LETTER_EMOJI')}{tail}|{modified})*)"
    return (
        f"{of_letters}{joined}{one_of('EMOJI')}{tail}{more}",
        f"(?:{JOINER}{{0,254}}+{any_emoji}|{modifier})(?:{tagged}|{more})",
    )


@cache
def _ranges() -> dict[str, list[str]]:
    """Class -> its ranges of code points."""
    blocks = Path(__file__).with_name("word_breaks.txt").read_text(encoding="ascii").split("\n\n")[1:]
    return {block.split()[0]: [span for line in block.splitlines()[1:] for span in line.split()] for block in blocks}


def _members(name: str, last: str) -> str:
    """The inside of a character class: the ranges of the table up to the character `last`."""
    members = []
    for span in _ranges()[name]:
        first, _, end = span.partition("-")
        low, high = chr(int(first, 16)), chr(int(end or first, 16))
        if low <= last:
            members.append(f"{re.escape(low)}-{re.escape(min(high, last))}")
    return "".join(members)
