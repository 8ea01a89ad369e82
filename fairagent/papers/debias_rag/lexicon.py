"""Attribute lexicons: words that name groups of people, and their counterparts for the other group.

A lexicon is a YAML file: under each bias class (gender, religion ...) a list of entries. `he <-> she` replaces either
word by the other, `hers -> his` the first alone, and `pregnant` nothing. The words that are replaced, and those that
stand alone, mark a text as being of the class.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from fairagent.collection.records import Faults, shown
from fairagent.errors import DataError, SettingsError
from fairagent.settings import read_yaml

SHIPPED = Path(__file__).parent / "lexicons"
"""The folder of the lexicons that come with the package."""
DEFAULT = "general"

_BOTH, _ONE = "<->", "->"
_NO_WORD = re.compile(r"[^\w\s'\u2019-]|^\W|[^\w']$")


@dataclass(frozen=True, eq=False)
class Lexicon:
    """Words that name groups: `swaps` (word -> the word in its place) and `kinds` (word -> its bias class).

    Words are in lower case, with one space between the parts of longer ones; what stands in their place is written as
    the file has it. `order` are the classes in the order of the file.
    """

    name: str
    swaps: Mapping[str, str]
    kinds: Mapping[str, str]
    order: tuple[str, ...]
    forms: Mapping[str, str] = field(default_factory=dict)
    """Word in lower case -> as the file has it."""

    def swap(self, text: str) -> str:
        """`text` with every word that has a counterpart replaced by it, all at once; the longest entry wins.

        Whole words alone are replaced ("man" in "man's", not in "woman" or "man-made"), and the case stays.

        >>> Lexicon("", {"man": "woman", "he": "she"}, {}, ()).swap("The man said HE was. He?")
        'The woman said SHE was. She?'
        """
        return self._swapped.sub(self._counterpart, text) if self.swaps else text

    def tag(self, text: str) -> str:
        """The bias class that most words of the text are of, on a tie the file's first; "" where there are none."""
        words = self._marking.finditer(text) if self.kinds else ()
        counts = Counter(self.kinds.get(_key(match[0]), "") for match in words)
        return max(self.order, key=lambda kind: counts[kind]) if counts else ""

    @cached_property
    def _swapped(self) -> re.Pattern[str]:
        return _any_of(self.swaps)

    @cached_property
    def _marking(self) -> re.Pattern[str]:
        return _any_of(self.kinds)

    def _counterpart(self, match: re.Match[str]) -> str:
        word, key = match[0], _key(match[0])
        # A few letters, such as the long s, are those of a word without regard to case and still no form of it.
        other = self.swaps.get(key, word)
        if word == self.forms.get(key, key):
            return other
        if word.isupper():
            return other.upper()
        if word.islower():
            return other.lower()
        return other[0].upper() + other[1:] if word[0].isupper() else other


def lexicon_file(path: Path | str = "") -> Path:
    """Where the lexicon is: at `path`, or, for "", in the package."""
    return Path(path) if path else SHIPPED / f"{DEFAULT}.yaml"


def load_lexicon(path: Path | str = "") -> Lexicon:
    """The lexicon in a file, "" the shipped one; DataError with every entry that is wrong.

    No word may have two counterparts or be of two classes, and none may be its own counterpart.
    """
    file, faults = lexicon_file(path), Faults()
    try:
        tree = read_yaml(file)
    except SettingsError as error:
        raise DataError(f"the attribute lexicon: {error}") from None
    swaps: dict[str, str] = {}
    kinds: dict[str, str] = {}
    forms: dict[str, str] = {}
    for kind, listed in tree.items():
        if not isinstance(listed, list):
            faults.add(file, None, f"{kind}: expected a list of entries, such as `- he <-> she`")
        for entry in listed if isinstance(listed, list) else ():
            both = _BOTH in str(entry)
            words = [" ".join(part.split()) for part in str(entry).split(_BOTH if both else _ONE)]
            if not isinstance(entry, str) or len(words) > 2 or any(not one or _NO_WORD.search(one) for one in words):
                faults.add(file, None, f"{kind}: {shown(entry)}: expected `word <-> other`, `word -> other` or a word")
                continue
            # What a word is replaced by alone, such as "hearing" for "deaf", may be a word of other matters as well.
            for word in words if both else words[:1]:
                forms.setdefault(_key(word), word)
                if kinds.setdefault(_key(word), kind) != kind:
                    faults.add(file, None, f"{kind}: {word!r} is of class {kinds[_key(word)]!r} already")
            for word, other in [words, words[::-1]][: 1 + both] if len(words) == 2 else ():
                if _key(word) == _key(other):
                    faults.add(file, None, f"{kind}: {word!r} stands on both sides; write it once, as a word alone")
                    break
                if _key(swaps.setdefault(_key(word), other)) != _key(other):
                    cure = "one of both has to go, or to point one way (->)"
                    faults.add(file, None, f"{kind}: {word!r} is replaced by {swaps[_key(word)]!r} already; {cure}")
    if not kinds and not faults:
        faults.add(file, None, "holds no entry; list some under a class, such as `gender: [he <-> she]`")
    faults.check("the attribute lexicon")
    return Lexicon(file.stem, swaps, kinds, tuple(dict.fromkeys(kinds.values())), forms)


def _key(word: str) -> str:
    return " ".join(word.lower().split())


def _any_of(words: Mapping[str, str]) -> re.Pattern[str]:
    """Any of the words as a whole word, the longest first; a hyphen joins, an apostrophe does not."""
    longest_first = sorted(words, key=lambda word: (-len(word.split()), -len(word), word))
    parts = "|".join(r"\s+".join(map(re.escape, word.split())) for word in longest_first)
    return re.compile(rf"(?<!\w)(?<!\w-)(?:{parts})(?!\w|-\w)", re.IGNORECASE)
