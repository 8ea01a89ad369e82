"""Attribute lexicons: words that name groups of people, and their counterparts for the other group.

A lexicon is a YAML file: under each bias class (gender, religion ...) a list of entries. `he <-> she` replaces either
word by the other, `hers -> his` the first alone, and `pregnant` nothing. The words that are replaced, and those that
stand alone, mark a text as being of the class.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import yaml

from fairagent.collection.records import Faults, shown
from fairagent.storage.readers import LARGEST_YAML, Malformed, compose_yaml, file_text

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


@dataclass(frozen=True, slots=True)
class _Entry:
    """One line of a lexicon."""

    line: int
    kind: str
    words: tuple[str, ...]
    both: bool


def lexicon_file(path: Path | str = "") -> Path:
    """Where the lexicon is: at `path`, or, for "", in the package."""
    return Path(path) if path else SHIPPED / f"{DEFAULT}.yaml"


def load_lexicon(path: Path | str = "") -> Lexicon:
    """The lexicon in a file, "" the shipped one; DataError with file and line of everything that is wrong.

    No word may have two counterparts or be of two classes, and none may be its own counterpart.
    """
    file = lexicon_file(path)
    faults = Faults()
    entries = list(_entries(file, faults))
    swaps: dict[str, str] = {}
    kinds: dict[str, str] = {}
    lines: dict[str, int] = {}
    forms: dict[str, str] = {}
    for entry in entries:
        # What a word is replaced by alone, such as "hearing" for "deaf", may be a word of other matters as well.
        for word in entry.words if entry.both else entry.words[:1]:
            key = _key(word)
            if kinds.setdefault(key, entry.kind) != entry.kind:
                faults.add(file, entry.line, f"{word!r} is of class {kinds[key]!r} already (line {lines[key]})")
            lines.setdefault(key, entry.line)
            forms.setdefault(key, word)
        pairs = [entry.words, entry.words[::-1]][: 1 + entry.both] if len(entry.words) == 2 else []
        for word, other in pairs:
            key = _key(word)
            if key == _key(other):
                faults.add(file, entry.line, f"{word!r} stands on both sides; write it once, as a word of its class")
            elif _key(swaps.setdefault(key, other)) != _key(other):
                cure = "one of both has to go, or to point one way (->)"
                faults.add(file, entry.line, f"{word!r} is replaced by {swaps[key]!r} already; {cure}")
    if not entries and not faults:
        faults.add(file, None, "holds no entry; list some under a class, such as `gender: [he <-> she]`")
    faults.check("the attribute lexicon")
    return Lexicon(file.stem, swaps, kinds, tuple(dict.fromkeys(entry.kind for entry in entries)), forms)


def _entries(file: Path, faults: Faults) -> Iterator[_Entry]:
    """The entries of a file with their lines; what is wrong goes to `faults`."""
    try:
        # Nodes, unlike values, know their lines; aliases are the nodes they stand for.
        root = compose_yaml(file_text(file, LARGEST_YAML))
    except FileNotFoundError:
        faults.add(file, None, "no such file")
        return
    except OSError as error:
        faults.add(file, None, f"cannot be read ({error})")
        return
    except Malformed as error:
        faults.add(file, error.line, str(error))
        return
    if root is None:
        return
    if not isinstance(root, yaml.MappingNode):
        faults.add(file, root.start_mark.line + 1, "expected bias classes, each with a list of entries")
        return
    for kind, listed in root.value:
        line = kind.start_mark.line + 1
        if not isinstance(kind, yaml.ScalarNode) or not kind.value.strip():
            faults.add(file, line, "expected the name of a bias class")
        elif not isinstance(listed, yaml.SequenceNode):
            faults.add(file, line, f"{kind.value}: expected a list of entries, such as `- he <-> she`")
        else:
            for node in listed.value:
                if entry := _entry(file, kind.value.strip(), node, faults):
                    yield entry


def _entry(file: Path, kind: str, node: yaml.Node, faults: Faults) -> _Entry | None:
    line, value = node.start_mark.line + 1, node.value
    if not isinstance(node, yaml.ScalarNode):
        faults.add(file, line, "expected `word <-> other`, `word -> other` or a word")
        return None
    both = _BOTH in value
    words = tuple(" ".join(part.split()) for part in value.split(_BOTH if both else _ONE))
    if len(words) > 2 or any(not word or _NO_WORD.search(word) for word in words):
        faults.add(file, line, f"{shown(value)}: expected `word <-> other`, `word -> other` or a word")
        return None
    return _Entry(line, kind, words, both)


def _key(word: str) -> str:
    return " ".join(word.lower().split())


def _any_of(words: Mapping[str, str]) -> re.Pattern[str]:
    """Any of the words as a whole word, the longest first; a hyphen joins, an apostrophe does not."""
    longest_first = sorted(words, key=lambda word: (-len(word.split()), -len(word), word))
    parts = "|".join(r"\s+".join(map(re.escape, word.split())) for word in longest_first)
    return re.compile(rf"(?<!\w)(?<!\w-)(?:{parts})(?!\w|-\w)", re.IGNORECASE)
