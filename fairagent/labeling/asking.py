"""Asking people for labels: of which documents, and where each answer goes; for the terminal and the studio."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fairagent.errors import UsageError
from fairagent.labeling.evidence import Embedded
from fairagent.labeling.examples import Examples, examples_of, read_examples
from fairagent.labeling.helpful import DEPTH, Helpful, most_helpful
from fairagent.labeling.labeler import engine_lists, known_documents_of, make_labels, unlabeled_ids
from fairagent.retrieve.site import Site
from fairagent.storage.lines import LineFile
from fairagent.types import Document
from fairagent.types.clean import in_line

LONGEST = 100
"""Characters of a label."""


class LabelGiven(UsageError):
    """The document has a label already, and given labels stay as they are."""


@dataclass(frozen=True, slots=True, eq=False)
class LabelQuestion:
    """A document whose label would help, and why."""

    document: Document
    helpful: Helpful


@dataclass(frozen=True, slots=True, eq=False)
class LabelAsking:
    """Asks for labels of `dimension`, and adds each answer to `file` (JSON lines) as it is given.

    Raises UsageError for a file of another form, and what `examples_of` does.
    """

    site: Site
    dimension: str
    file: Path

    def __post_init__(self) -> None:
        if self.file.suffix != ".jsonl":
            raise UsageError(f"{self.file}: answers are added as JSON lines; name a file that ends with .jsonl")

    @property
    def answers(self) -> int:
        """How many the file has."""
        return len(read_examples(self.file, self.dimension)) if self.file.exists() else 0

    def examples(self) -> Examples:
        """What is known now: the collection's labels, and the answers so far."""
        file = self.file if self.file.exists() else None
        known = known_documents_of(self.site)
        return examples_of(self.site.collection, self.dimension, known, file, few=True)

    def unlabeled(self, examples: Examples) -> list[str]:
        """The ids of the documents that could be asked about, when this is known."""
        return unlabeled_ids(self.site.collection, self.dimension, examples.given)

    def labels(self, examples: Examples) -> list[str]:
        """The labels that there are: of the documents, of a target by the world's shares, of the answers."""
        there = self.site.collection
        known = there.groups.labels(self.dimension) if self.dimension in there.groups.dimensions else ()
        world = there.population.get(self.dimension, {})
        return list(dict.fromkeys((*known, *world, *examples.labels, *examples.own.values())))

    def questions(self, count: int) -> tuple[list[str], list[LabelQuestion]]:
        """The labels that there are, and the `count` documents whose labels would help most.

        A classifier is made from what is known so far, where that is enough; else what readers see counts alone.
        """
        site, there, examples = self.site, self.site.collection, self.examples()
        ids = self.unlabeled(examples)
        chances = make_labels(examples, Embedded(site), ids).chances if ids and examples.enough else None
        lists = (
            site.memo.get(("engine lists", DEPTH), lambda: engine_lists(site, DEPTH)) if ids and there.topics else {}
        )
        vectors = None if lists or not ids else np.asarray(Embedded(site).rows(ids)[0])
        wanted = most_helpful(ids, chances, lists, vectors, count)
        named = {one.id for one in wanted}
        texts = {document.id: document for document in there.source if document.id in named}
        return self.labels(examples), [LabelQuestion(texts[one.id], one) for one in wanted]

    def answer(self, id: str, label: str) -> int:
        """Add a label, and say how many answers the file has; `LabelGiven` for a document that has one already.

        UsageError for a label that is empty, too long or no plain line, and for an id that is no document's.
        """
        label = label.strip()
        if not label or len(label) > LONGEST or in_line(label) != label:
            raise UsageError(f"a label is one line of 1 to {LONGEST} characters")
        examples, groups = self.examples(), self.site.collection.groups
        if id in examples.given:
            raise LabelGiven(f"{in_line(id)} has a label of {self.dimension!r} already, which stays as it is")
        of_type = groups.of_type(self.dimension, [id]) if self.dimension in groups.dimensions else None
        if not known_documents_of(self.site).has([id])[0] or (of_type is not None and not of_type[0]):
            raise UsageError(f"{in_line(id)} is no document of this collection that could have a label")
        with LineFile(self.file) as lines:
            lines.write(json.dumps({"id": id, self.dimension: label}, ensure_ascii=False))
        return self.answers
