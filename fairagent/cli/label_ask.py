"""`fairagent label --ask`: the documents whose labels would help most, asked one by one in the terminal."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fairagent.cli.options import echo, going_on, plural, status
from fairagent.errors import UsageError

if TYPE_CHECKING:
    from fairagent.labeling.helpful import Helpful
    from fairagent.retrieve.site import Site

SHOWN = 600
"""Characters of a document."""
SKIP, END = "", "q"


def ask(
    site: Site,
    dimension: str,
    file: Path,
    count: int,
    answer: Callable[[str], str] = input,
    log_prompts: bool = False,
) -> None:
    """Ask for the labels of `count` documents, and add each answer to `file` as it is given.

    Ctrl-C, the end of the input and "q" end it; what was answered stays. A number is one of the labels that there are,
    other text a new one.
    """
    from fairagent.storage.lines import LineFile

    if file.suffix != ".jsonl":
        raise UsageError(f"{file}: answers are added as JSON lines; name a file that ends with .jsonl")
    with status(hidden=log_prompts):
        labels, wanted = helpful(site, dimension, file if file.exists() else None, count)
        ids = {one.id for one in wanted}
        texts = {document.id: document for document in site.collection.source if document.id in ids}
    if not wanted:
        echo(f"no document lacks a label of {dimension!r}")
        return
    done = 0
    with LineFile(file) as lines, going_on(f"every answer is in {file}"):
        for number, one in enumerate(wanted, start=1):
            document = texts[one.id]
            echo(f"\n{number} of {len(wanted)}  {document.id}  ({one.why})\n{document.title}\n{document.text[:SHOWN]}")
            choices = ", ".join(f"{place} {label}" for place, label in enumerate(labels, start=1))
            echo(f"{dimension}: {choices + ', ' if choices else ''}another label, Enter to skip, {END} to end")
            try:
                said = answer("> ").strip()
            except EOFError:
                break
            if said == END:
                break
            if said == SKIP:
                continue
            label = labels[int(said) - 1] if said.isdecimal() and 0 < int(said) <= len(labels) else said
            if label not in labels:
                labels.append(label)
            lines.write(json.dumps({"id": document.id, dimension: label}, ensure_ascii=False))
            done += 1
    echo(f"{plural(done, 'answer')} in {file}; next: fairagent label --examples {file}")


def helpful(site: Site, dimension: str, file: Path | None, count: int) -> tuple[list[str], Sequence[Helpful]]:
    """The labels that there are, and the documents to ask about.

    The classifier is made from what is known so far, where that is enough; else what readers see counts alone.
    """
    from fairagent.labeling.evidence import Embedded
    from fairagent.labeling.examples import examples_of
    from fairagent.labeling.helpful import DEPTH, most_helpful
    from fairagent.labeling.labeler import engine_lists, known_documents_of, make_labels, unlabeled_ids

    there = site.collection
    examples = examples_of(there, dimension, known_documents_of(site), file, few=True)
    ids = unlabeled_ids(there, dimension, examples.given)
    evidence = Embedded(site)
    chances = make_labels(examples, evidence, ids).chances if examples.enough else None
    lists = engine_lists(site, DEPTH) if there.topics else {}
    vectors = None if lists else np.asarray(evidence.rows(ids)[0])
    known = there.groups.labels(dimension) if dimension in there.groups.dimensions else ()
    world = there.population.get(dimension, {})
    labels = list(dict.fromkeys((*known, *world, *examples.labels)))
    return labels, most_helpful(ids, chances, lists, vectors, count)
