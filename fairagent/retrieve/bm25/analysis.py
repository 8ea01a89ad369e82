"""Temporary: replaced at the merge."""

import re
from functools import lru_cache
from typing import Protocol

import Stemmer

NAMES = ("english",)
STOP = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "but",
        "by",
        "for",
        "if",
        "in",
        "into",
        "is",
        "it",
        "no",
        "not",
        "of",
        "on",
        "or",
        "such",
        "that",
        "the",
        "their",
        "then",
        "there",
        "these",
        "they",
        "this",
        "to",
        "was",
        "will",
        "with",
    ]
)
PATTERN = re.compile(r"[^\W_](?:[\w]|(?<=[^\W\d_])[.'’:·](?=[^\W\d_])|(?<=\d)[.,;'](?=\d))*|_+\w[\w]*")


class Analyzer(Protocol):
    name: str

    def terms(self, text: str) -> list[str]: ...


class WordAnalyzer:
    def __init__(self, name):
        self.name = name
        self._stem = Stemmer.Stemmer("porter").stemWord
        self._term = lru_cache(100000)(self.term)

    def split(self, text):
        return PATTERN.findall(text)

    def term(self, word):
        if word.endswith(("'s", "’s", "'S", "’S")):
            word = word[:-2]
        word = word.lower()
        return "" if word in STOP else self._stem(word)

    def terms(self, text):
        return [t for t in map(self._term, self.split(text)) if t]


@lru_cache
def open_analyzer(name):
    return WordAnalyzer(name)
