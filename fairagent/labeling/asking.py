"""Asking people for labels: of which documents, and where each answer goes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fairagent.errors import UsageError
from fairagent.labeling.evidence import Embedded
from fairagent.labeling.examples import Examples, examples_of
from fairagent.labeling.helpful import DEPTH, Helpful, most_helpful
from fairagent.labeling.labeler import engine_lists, known_documents_of, make_labels, unlabeled_ids
from fairagent.retrieve.site import Site
from fairagent.storage.files import LineFile
from fairagent.types import Document
from fairagent.types.clean import in_line

LONGEST = 100
"""Characters of a label."""


@dataclass(frozen=True, slots=True, eq=False)
class LabelQuestion:
    """A document whose label would help, and why."""

    document: Document
    helpful: Helpful


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
        known = known_documents_of(self.site)
        return examples_of(self.site.collection, self.dimension, known, file, few=True)

    def questions(self, count: int) -> tuple[list[str], list[LabelQuestion]]:
        """The labels of the documents, of a target by the world's shares and of the answers; then `count` documents.

        These are the ones whose labels would help most: a classifier is made from what is known so far, where that is
        enough; else what readers see counts alone.
        """
        site, there, examples = self.site, self.site.collection, self.examples()
        ids = unlabeled_ids(there, self.dimension, examples.given)
        chances = make_labels(examples, Embedded(site), ids).chances if ids and examples.enough else None
        lists = (
            site.memo.get(("engine lists", DEPTH), lambda: engine_lists(site, DEPTH)) if ids and there.topics else {}
        )
        vectors = None if lists or not ids else np.asarray(Embedded(site).rows(ids)[0])
        wanted = most_helpful(ids, chances, lists, vectors, count)
        named = {one.id for one in wanted}
        texts = {document.id: document for document in there.source if document.id in named}
        labels = there.groups.labels(self.dimension) if self.dimension in there.groups.dimensions else ()
        world = there.population.get(self.dimension, {})
        known = list(dict.fromkeys((*labels, *world, *examples.labels, *examples.own.values())))
        return known, [LabelQuestion(texts[one.id], one) for one in wanted]

    def answer(self, document: Document, label: str) -> None:
        """Add a label; UsageError for a document that has one already, and for one that is empty or no plain line."""
        if not label or len(label) > LONGEST or in_line(label) != label:
            raise UsageError(f"a label is one line of 1 to {LONGEST} characters")
        if document.id in self.examples().given:
            raise UsageError(f"{in_line(document.id)} has a label of {self.dimension!r} already, which stays as it is")
        line = {"id": document.id, "title": document.title, "text": document.text, self.dimension: label}
        with LineFile(self.file) as lines:
            lines.write(json.dumps(line, ensure_ascii=False))
