"""Every regular expression takes time in proportion to its text: at most twice as much for twice as long a text.

The patterns are found in the code, each with the methods that it is used by, so that a new one is tested without being
listed. What texts to try is read from the pattern: its own characters and beginnings, again and again. Patterns that
are made while the program runs are listed by hand, each with a function that uses it.
"""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from itertools import product
from typing import Any

from collecting import faults
from lacking import needs
from test_layers import ROOT, SOURCES, dotted, parsed

from fairagent.answer.citations import CitationReader, sentences, without_citations
from fairagent.answer.filtering import parse_verdict
from fairagent.collection.trec_fair.corpus import html_to_text, wikitext_to_text
from fairagent.evaluate.ranking import recall
from fairagent.measures.parse import parse_measure
from fairagent.papers.debias_rag.benchmarks.items import filled_word
from fairagent.papers.debias_rag.lexicon import Lexicon
from fairagent.papers.fair_rag.lamp import candidates
from fairagent.retrieve.bm25.words import split_words

LENGTH = 4_000
AT_ONCE = 0.012
"""Seconds in which a linear pattern is through with so long a text, and a quadratic one is not."""
METHODS = ("search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer")

Use = Callable[[str], object]


@dataclass(frozen=True)
class Found:
    """A pattern and how it is used; `pattern` is None where it is made while the program runs."""

    place: str
    pattern: re.Pattern[Any] | None
    methods: tuple[str, ...]


def read(text: str) -> str:
    reader = CitationReader(3)
    reader.read(text)
    reader.close()
    return reader.text


def read_piecewise(text: str) -> str:
    reader = CitationReader(3)
    for place in range(0, len(text), 40):
        reader.read(text[place : place + 40])
    reader.close()
    return reader.text


def tolerated(function: Callable[[str], object]) -> Use:
    """The function, whose complaints do not matter here."""

    def use(text: str) -> object:
        try:
            return function(text)
        except Exception as error:
            return error

    return use


LEXICON = Lexicon("", {"man": "woman", "king of men": "queen of women", "he": "she"}, {}, ())
"""Of the shipped lexicon's form; with its 417 words each text takes a second."""
MADE: dict[str, Use] = {
    "evaluate/ranking/recall.py: f\"({'|'.join(DEFINITIONS)})@([1-9][0-9]*)\"": tolerated(
        lambda text: re.fullmatch(rf"({'|'.join(recall.DEFINITIONS)})@([1-9][0-9]*)", text.strip())
    ),
    "papers/debias_rag/benchmarks/items.py: pattern": tolerated(lambda text: filled_word("The BLANK is BLANK.", text)),
    "papers/debias_rag/lexicon.py: f'(?<!\\\\w)(?<!\\\\w-)(?:{parts})(?!\\\\w|-\\\\w)'": LEXICON.swap,
    "retrieve/bm25/words.py: '[' + _members('HEBREW', LAST_OF_BMP) + ']'": split_words,
    "retrieve/bm25/words.py: '|'.join(alternatives)": split_words,
}
"""Place -> a use of the pattern that is made there."""
DOORS: dict[str, Use] = {
    "citations at once": read,
    "citations piecewise": read_piecewise,
    "without citations": without_citations,
    "sentences": sentences,
    "wikitext": wikitext_to_text,
    "html": html_to_text,
    "verdicts": parse_verdict,
    "candidates": tolerated(candidates),
    "measures": tolerated(parse_measure),
}
"""What uses several patterns, or takes texts apart in a way of its own."""


def found_patterns() -> Iterator[Found]:
    for place, source in SOURCES.items():
        tree = parsed(source)
        named = {
            statement.targets[0].id: statement.value
            for statement in tree.body
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
        }
        for node in ast.walk(tree):
            if not (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id == "re"
                and node.func.attr in ("compile", *METHODS)
            ):
                continue
            said = f"{place}: {ast.unparse(node.args[0])}"
            name = next((name for name, value in named.items() if value is node), "")
            if name and needs([(ROOT / place, "")]):
                # Looked at where its extra is installed.
                continue
            if name:
                used = tuple(method for method in METHODS if f"{name}.{method}" in source)
                yield Found(said, getattr(import_module(dotted(place)), name), used or METHODS)
            elif isinstance(node.args[0], ast.Constant):
                flags = next((ast.unparse(one) for one in node.args[1:] if "re." in ast.unparse(one)), "0")
                flags = next((ast.unparse(one.value) for one in node.keywords if one.arg == "flags"), flags)
                method = METHODS if node.func.attr == "compile" else (node.func.attr,)
                yield Found(said, re.compile(node.args[0].value, eval(flags)), method)
            else:
                yield Found(said, None, ())


FOUND = {one.place: one for one in found_patterns()}


def units(pattern: str | bytes) -> list[str]:
    """Pieces of text that a pattern may stumble over when they come again and again."""
    text = pattern.decode() if isinstance(pattern, bytes) else pattern
    signs = list(dict.fromkeys([" ", "a", "1", ".", "x", *(sign for sign in text if not sign.isalnum()), *text[:0]]))
    signs = [sign for sign in signs if sign.isprintable()] + ["\n"]
    example = re.sub(r"\\s[*+?]?|\\b", " ", text)
    example = re.sub(r"\\[dS]|\[0-9\]", "1", re.sub(r"\\w|\[[a-zA-Z]-[^\]]*\]", "a", example))
    example = re.sub(r"\(\?[:!<=]+|\\|\{[0-9,]+\}", "", example)[:40]
    starts = [example[:length] for length in range(1, len(example) + 1)]
    words = re.findall(r"[A-Za-z]{2,}", text)
    pairs = ["".join(pair) for pair in product(signs[:11], signs[:11])]
    return list(dict.fromkeys([*signs, *words, *starts, *pairs]))


def seconds(use: Use, text: str) -> float:
    before = time.process_time()
    use(text)
    return time.process_time() - before


def slow_on(use: Use, pieces: list[str]) -> list[str]:
    """The pieces on which the time grows faster than the text."""

    for piece in pieces:
        texts = [
            f"{piece * (length // len(piece))}{after}" for after in ("", "\x00", ">") for length in (LENGTH, 2 * LENGTH)
        ]
        for once, twice in zip(texts[::2], texts[1::2], strict=True):
            if seconds(use, once) > AT_ONCE:
                # Whoever else is at work here must not be blamed on the pattern.
                ratios = [seconds(use, twice) / max(seconds(use, once), 1e-4) for _ in range(3)]
                if min(ratios) > 3:
                    return [repr(piece)]
    return []


def takes_twice_the_time_for_twice_the_text(place: str) -> None:
    found = FOUND[place]
    if found.pattern is None:
        assert place in MADE, "made while the program runs: list it with a use in MADE"
        assert slow_on(MADE[place], units(place)) == []
        return
    pattern = found.pattern
    for method in found.methods:
        encode = isinstance(pattern.pattern, bytes)

        def use(text: str, method: str = method, encode: bool = encode) -> object:
            given: Any = text.encode() if encode else text
            if method in ("sub", "subn"):
                return getattr(pattern, method)(given[:0], given)
            made = getattr(pattern, method)(given)
            return list(made) if method == "finditer" else made

        assert slow_on(use, units(pattern.pattern)) == [], f"{pattern.pattern!r} with {method}"


def test_a_pattern_takes_twice_the_time_for_twice_the_text() -> None:
    assert faults(takes_twice_the_time_for_twice_the_text, FOUND) == []


def test_what_uses_patterns_does_too() -> None:
    brackets = ["[", "[1", "[1,", "[1] ", "[1]:", '[1]: "', "[[", "[//", "{", "{{", "{|", "(", "nDCG(", "),", "<", ">"]
    marks = [" ", "\n", ". ", "A. ", "'", '"', "=", "&", "&#", "/", "*", "a,", "1", "<a ", "<ref ", "<ref>", "<!--"]
    pieces = [*brackets, *marks]
    assert {name: found for name, use in DOORS.items() if (found := slow_on(use, pieces))} == {}


def test_what_is_listed_is_there() -> None:
    assert MADE.keys() <= FOUND.keys()
    assert len(FOUND) > 50


def test_a_quadratic_pattern_is_found() -> None:
    assert slow_on(re.compile(r"\s+$").search, units(r"\s+$"))
