"""Asking people for labels: of the documents that the labeler is unsure of and that readers see."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fairagent.errors import UsageError
from fairagent.labeling.examples import Examples, examples_of
from fairagent.labeling.labeler import Embedded, engine_lists, known_documents_of, make_labels, unlabeled_ids
from fairagent.measures import LOG2_MAX2
from fairagent.retrieve.site import Site
from fairagent.storage.lines import LineFile
from fairagent.types import Document, FloatArray, Ranking
from fairagent.types.clean import in_line
from fairagent.types.common import counted

LONGEST = 100
"""Characters of a label."""
DEPTH = 100
"""Of the engine's list for each topic: what a re-ranker may bring up."""


@dataclass(frozen=True, slots=True)
class Helpful:
    """A document to be asked about, and why.

    `uncertainty` is 0 where its group is certain, 1 where all are as likely; `lists` are the topics in whose list it
    is, `weight` what it counts for: its attention there, or how much it is like the others.
    """

    id: str
    uncertainty: float
    weight: float
    lists: int

    @property
    def why(self) -> str:
        """In words."""
        seen = f"in the lists of {counted(self.lists, 'topic')}" if self.lists else "like many others"
        return f"uncertainty {self.uncertainty:.2f}, {seen}"


def uncertainty(chances: FloatArray) -> FloatArray:
    """The entropy of the groups' chances (n, g), as a share of the largest, (n,).

    >>> uncertainty(np.array([[0.5, 0.5], [1.0, 0.0]])).tolist()
    [1.0, 0.0]
    """
    terms = np.where(chances > 0, -chances * np.log(np.where(chances > 0, chances, 1.0)), 0.0)
    share: FloatArray = np.abs(terms.sum(axis=1)) / np.log(chances.shape[1])
    return share


def most_helpful(
    ids: Sequence[str],
    chances: FloatArray | None,
    lists: Mapping[str, Ranking],
    vectors: FloatArray | None = None,
    count: int = 20,
) -> list[Helpful]:
    """The `count` of the documents `ids` with the largest product of uncertainty and weight, the largest first.

    `chances` (n, g) are what is made of them so far; None: nothing is, and all are as uncertain. The weight is the
    attention that the engine's `lists` (topic -> ranking) give a document; where there are none, the mean product of
    its vector (n, d) with all. Documents that neither tells of are last, in their order.
    """
    place = {id: number for number, id in enumerate(ids)}
    weight, seen = np.zeros(len(ids)), np.zeros(len(ids), np.intp)
    for ranking in lists.values():
        for id, attention in zip(ranking.ids, LOG2_MAX2(len(ranking)).tolist(), strict=True):
            if id in place:
                weight[place[id]] += attention
                seen[place[id]] += 1
    if not lists and vectors is not None and len(ids):
        weight = np.maximum(vectors @ vectors.mean(axis=0), 0.0)
    unsure = np.ones(len(ids)) if chances is None else uncertainty(chances)
    order = np.argsort(-(unsure * weight), kind="stable")[:count]
    return [Helpful(ids[at], float(unsure[at]), float(weight[at]), int(seen[at])) for at in order.tolist()]


@dataclass(frozen=True, slots=True, eq=False)
class LabelAsking:
    """Asks for labels of `dimension`, and adds each answer to `file` (JSON lines) as it is given, beside the text.

    Raises UsageError for a file of another form, and what `examples_of` does.
    """

    site: Site
    dimension: str
    file: Path

    def __post_init__(self) -> None:
        if self.file.suffix != ".jsonl":
            raise UsageError(f"{self.file}: answers are added as JSON lines; name a file that ends with .jsonl")

    def examples(self) -> Examples:
        """What is known now: the collection's labels, and the answers so far."""
        file = self.file if self.file.exists() else None
        return examples_of(self.site.collection, self.dimension, known_documents_of(self.site), file, few=True)

    def questions(self, count: int) -> tuple[list[str], list[tuple[Document, Helpful]]]:
        """The labels of the documents, of a target by the world's shares and of the answers; then `count` documents.

        These are the ones whose labels would help most: a classifier is made from what is known so far, where that is
        enough; else what readers see counts alone.
        """
        site, collection, examples = self.site, self.site.collection, self.examples()
        ids = unlabeled_ids(collection, self.dimension, examples.given)
        chances, lists, vectors = None, dict[str, Ranking](), None
        if ids:
            chances = make_labels(examples, Embedded(site), ids).chances if examples.enough else None
            if collection.topics:
                lists = site.memo.get(("engine lists", DEPTH), lambda: engine_lists(site, DEPTH))
            vectors = None if lists else np.asarray(Embedded(site).rows(ids)[0])
        wanted = most_helpful(ids, chances, lists, vectors, count)
        wanted_ids = {one.id for one in wanted}
        texts = {document.id: document for document in collection.source if document.id in wanted_ids}
        labels = collection.groups.labels(self.dimension) if self.dimension in collection.groups.dimensions else ()
        world = collection.population.get(self.dimension, {})
        known = list(dict.fromkeys((*labels, *world, *examples.labels, *examples.of_file.values())))
        return known, [(texts[one.id], one) for one in wanted]

    def answer(self, document: Document, label: str) -> None:
        """Add a label; UsageError for a document that has one already, and for one that is empty or no plain line."""
        if not label or len(label) > LONGEST or in_line(label) != label:
            raise UsageError(f"a label is one line of 1 to {LONGEST} characters")
        if document.id in self.examples().given:
            raise UsageError(f"{in_line(document.id)} has a label of {self.dimension!r} already, which stays as it is")
        line = {"id": document.id, "title": document.title, "text": document.text, self.dimension: label}
        with LineFile(self.file) as lines:
            lines.write(json.dumps(line, ensure_ascii=False))
