"""Word breaks: the words of a text as Lucene's StandardTokenizer gives them, by regular expressions.

The rules are those of UAX #29 as Lucene has them. A word is the longest of
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

Which characters are letters, digits, marks or emoji is in `word_breaks.txt`.
"""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

from fairagent.errors import DataError

LONGEST = 255
"""UTF-16 units of the longest word."""
STRETCH = 16 * LONGEST

SIMPLE = (
    r"(?:[{letters}0-9]|_(?=_{{0,253}}[{letters}0-9]))[{letters}0-9_]*+"
    r"(?:[.':,;{quotes}](?:(?<=[{letters}][.':{quotes}])(?=[{letters}])|(?<=[0-9][.',;{quotes}])(?=[0-9]))"
    r"[{letters}0-9_]++)*+"
)
"""Words of texts in which nothing extends a character: what `_pattern` says, in a form that is much faster."""
ASCII = re.compile(SIMPLE.format(letters="A-Za-z", quotes=""))
WESTERN = re.compile(SIMPLE.format(letters="A-Za-z\xaa\xb5\xba\xc0-\xd6\xd8-\xf6\xf8-\u024f", quotes="\u2018\u2019"))
NOT_WESTERN = re.compile("[^\0-\xa8\xaa-\xac\xaf-\xb6\xb8-\u024f\u2010-\u2023\u2025\u2026\u20ac]")
"""Latin letters, the quotes, dashes and signs that come with them; no soft hyphen, \xa9 or \xae (emoji)."""

LAST_OF_BMP = "\uffff"
"""The last character of the Basic Multilingual Plane: one UTF-16 unit; those after it have two."""
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
    nothing but `_` does not take the square of its length; possessive ones (`*+`) never give back.
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
        f"(?:{letter}{run_of(*letters)}(?:{between_letters}{x}{letter}{x if hebrew else run_of(*letters)})*+"
        f"|{digit}{run_of('DIGIT')}(?:{between_digits}{x}{digit}{run_of('DIGIT')})*+)"
    )
    if hebrew:
        quoted = f"{one_of('HEBREW')}{x}(?:'{x}|\"{x}{one_of('HEBREW')}{x})"
        run = f"(?:(?:{letter}{run_of(*letters)[:-1]})?{quoted}|{run})"
    group = f"(?:{run}++|{one_of('KATAKANA')}{run_of('KATAKANA')})"
    connectors = one_of("CONNECTOR") + run_of("CONNECTOR")
    before = one_of("CONNECTOR") + run_of("CONNECTOR").removesuffix("*+") + "{0,254}+"
    word = f"(?:{before})?+{group}(?:{connectors}{group})*+(?:{connectors})?+"
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
    more = f"(?:{joined}{any_emoji}|{modified})*+"
    tagged = f"(?<={SELECTOR}){TAGS}++{LAST_TAG}" if astral else "(?!)"
    of_letters = f"{one_of('LETTER_EMOJI')}{tail}(?:{joined}{one_of('LETTER_EMOJI')}{tail}|{modified})*+"
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
