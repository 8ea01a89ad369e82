"""What a document says about its group, as a row of numbers: its embedding, or how often words of each group occur."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fairagent.collection.records import shown
from fairagent.errors import DataError
from fairagent.retrieve.base import full_text
from fairagent.retrieve.bm25.analysis import plain_words
from fairagent.retrieve.site import Site
from fairagent.retrieve.vectors import open_vectors
from fairagent.settings import read_yaml
from fairagent.types import Document, FloatArray
from fairagent.types.common import counted

BATCH = 4096


class Evidence(Protocol):
    """Numbers about documents; any object like this will do."""

    @property
    def source(self) -> str:
        """What the labels' file calls it."""

    def rows(self, ids: Sequence[str]) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Numbers (n, k) about these documents, and of which (n,) they say anything."""


class Embedded:
    """The embeddings of the documents, as they are in the index: the settings' `encoder`, by default light ones."""

    def __init__(self, site: Site) -> None:
        self.source = f"classifier ({site.settings.encoder})"
        self._engine = open_vectors(site, site.settings.encoder)

    def rows(self, ids: Sequence[str]) -> tuple[FloatArray, NDArray[np.bool_]]:
        """See `Evidence.rows`; a document without any known word has zeros, and says nothing."""
        blocks = [self._engine.vectors(ids[start : start + BATCH]) for start in range(0, len(ids), BATCH)]
        rows = np.concatenate(blocks).astype(np.float64) if blocks else np.zeros((0, 1))
        return rows, np.abs(rows).sum(axis=1) > 0


class WordLists:
    """How often the words of each label occur in a document: ln(1 + count), a number a label.

    A term may be several words. A term of several labels counts for each by its part, 1 / labels, so that what tells
    nothing apart weighs little (after the term groups of TExFAIR, arXiv 2403.05975).
    """

    source = "words"

    def __init__(self, lists: Mapping[str, Sequence[str]], texts: Mapping[str, Document]) -> None:
        terms = {label: {tuple(plain_words(term)) for term in some} - {()} for label, some in lists.items()}
        shared = Counter(term for some in terms.values() for term in some)
        self.labels = tuple(terms)
        self._weights: dict[tuple[str, ...], list[tuple[int, float]]] = {}
        for place, some in enumerate(terms.values()):
            for term in some:
                self._weights.setdefault(term, []).append((place, 1.0 / shared[term]))
        self._lengths = sorted({len(term) for term in self._weights})
        self._texts = texts

    def counts(self, text: str) -> FloatArray:
        """The weighted occurrences of each label's words, (g,).

        >>> WordLists({"female": ["she", "her"], "male": ["he", "his"]}, {}).counts("She and her son; he").tolist()
        [2.0, 1.0]
        """
        words, weights = plain_words(text), np.zeros(len(self.labels))
        for length in self._lengths:
            for start in range(len(words) - length + 1):
                for place, weight in self._weights.get(tuple(words[start : start + length]), ()):
                    weights[place] += weight
        return weights

    def rows(self, ids: Sequence[str]) -> tuple[FloatArray, NDArray[np.bool_]]:
        """See `Evidence.rows`; a document without any of the words says nothing."""
        counts = np.array([self.counts(full_text(self._texts[id])) for id in ids]).reshape(len(ids), len(self.labels))
        return np.log1p(counts), counts.sum(axis=1) > 0


def read_word_lists(path: Path) -> dict[str, list[str]]:
    """Label -> terms, of a YAML file.

    DataError where there are fewer than two labels, or one has no term; SettingsError for what is no YAML mapping.
    """
    lists: dict[str, list[str]] = {}
    for label, terms in read_yaml(path).items():
        if not isinstance(terms, list) or not terms or not all(isinstance(term, str) for term in terms):
            raise DataError(f"{path}: {shown(label)} has {shown(terms)}, expected a list of words")
        lists[str(label)] = terms
    if len(lists) < 2:
        raise DataError(f"{path}: {counted(len(lists), 'label')} with words, and two or more are needed")
    return lists
