"""`fairagent label`: groups for documents that have none, made from examples and trusted as far as they go."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fairagent.cli import options
from fairagent.cli.options import console, echo, status
from fairagent.errors import DataError, UsageError
from fairagent.storage.packages import expect_installed
from fairagent.types.common import counted, listed

if TYPE_CHECKING:
    from fairagent.labeling.labeler import MadeLabels
    from fairagent.measures import Interval

By = Literal["classifier", "words"]
LISTED = 20
"""The cut-off of the AWRF that is reported."""

Dimension = Annotated[
    str | None,
    typer.Option("--dimension", metavar="NAME", help="The dimension to label. (default: the only one there is)"),
]


@options.spread
def label(
    dimension: Dimension = None,
    *,
    examples: Annotated[
        Path | None,
        typer.Option("--examples", metavar="FILE", help="Labeled examples: id and label (JSON lines, CSV, TSV)."),
    ] = None,
    by: Annotated[By, typer.Option("--by", help="What tells the groups apart.")] = "classifier",
    words: Annotated[
        Path | None, typer.Option("--words", metavar="FILE", help="Word lists (YAML): label -> words; for --by words.")
    ] = None,
    confidence: Annotated[
        float, typer.Option("--confidence", metavar="P", min=0, max=1, help="Abstain below this chance.")
    ] = 0.0,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="The labels. (default: NAME.DIMENSION.labels.jsonl)")
    ] = None,
    ask: Annotated[
        bool, typer.Option("--ask", help="Ask for the labels that would help most; answers go to --examples.")
    ] = False,
    count: Annotated[int, typer.Option("--count", metavar="N", min=1, help="How many --ask asks for.")] = 20,
    force: Annotated[bool, typer.Option("--force", help="Replace labels that were made before.")] = False,
    of: options.SiteOptions,
) -> None:
    """Make labels for documents that have none, from 50 to 200 that have one.

    Learns from a group column with gaps, or from --examples; writes chances with their source, and beside them how far
    they are right, which experiments make an interval of. Given labels stay as they are. People's own attributes are
    theirs to say: docs/labels.md.
    """
    from fairagent.cli.label_ask import ask as ask_people
    from fairagent.labeling.examples import examples_of
    from fairagent.labeling.labeler import (
        Embedded,
        Evidence,
        WordLists,
        awrf_of_lists,
        engine_lists,
        known_documents_of,
        labels_file,
        make_labels,
        read_word_lists,
        unlabeled_ids,
        write_labels,
    )
    from fairagent.search.pipeline import open_site
    from fairagent.settings import read_yaml

    chosen = of.chosen()
    expect_installed("scikit-learn", "fairagent label", "labels")
    if (by == "words") != (words is not None):
        raise UsageError("--by words needs --words FILE, and nothing else does")
    with status(hidden=of.log_prompts):
        site = open_site(settings=chosen)
        there = site.collection
        names = there.groups.dimensions
        if dimension is None and len(names) != 1:
            raise UsageError(f"which dimension? --dimension NAME; there are: {', '.join(names) or 'none yet'}")
        name = dimension or names[0]
    if ask:
        ask_people(site, name, examples or labels_file(site, name, "examples"), count, log_prompts=of.log_prompts)
        return
    with status(hidden=of.log_prompts):
        path = out or labels_file(site, name)
        errors = path.with_name(f"{path.name.removesuffix('.jsonl')}.errors.json")
        if not force and (taken := next((one for one in (path, errors) if one.exists()), None)):
            raise UsageError(f"{taken} is there already; --force replaces it, --out names another file")
        given = examples_of(there, name, known_documents_of(site), examples)
        ids = unlabeled_ids(there, name, given.given)
        evidence: Evidence
        if words is None:
            evidence = Embedded(site)
        else:
            lists = read_word_lists(words)
            if strange := [one for one in lists if one not in given.labels]:
                raise DataError(f"{words}: no example is {listed(strange)}; there are: {listed(given.labels)}")
            evidence = WordLists(lists, {document.id: document for document in there.source})
        made = make_labels(given, evidence, ids, confidence)
        write_labels(path, there, made)
        made.errors.write(errors)
        lists_of_topics = engine_lists(site, LISTED) if there.topics else {}
        awrf = awrf_of_lists(there, made, lists_of_topics, LISTED)
    report(made, awrf)
    typed = name in there.groups.dimensions and there.groups.of_type(name, ids[:1]) is not None
    # Paths in the collection's file are relative to its `root`.
    root = there.origin.file.parent / (read_yaml(there.origin.file).get("root") or "") if there.origin else Path()
    labels_path, errors_path = (os.path.relpath(one, root) for one in (path, errors))
    column = f"predicted: true, errors: {errors_path}{', applies_to: all' if typed else ''}"
    echo(f"\n{path}, {errors}")
    echo(f"To use them, put this into `groups` of the collection's file, in the place of the column of {name!r}:\n")
    echo(f"- {{path: {labels_path}, dimensions: {{{name}: {{{column}}}}}}}")


def report(made: MadeLabels, awrf: tuple[list[float], Interval, str] | None) -> None:
    """Print how far the labels are right, by examples that were held out, and what that does to AWRF."""
    from rich.table import Table

    errors, out = made.errors, console()
    for note in made.examples.notes:
        out.print(note, soft_wrap=True, markup=False, highlight=False)
    most = made.chances.argmax(axis=1) if len(made.ids) else []
    table = Table("group", *("examples", "right", "made"), *errors.labels, box=None, title_justify="left")
    for place, label in enumerate(errors.labels):
        own = sum(1 for told, best in zip(made.labeled.tolist(), most, strict=True) if told and best == place)
        confused = [f"{row[place]:.2f}" for row in errors.confusion]
        table.add_row(label, f"{errors.examples[place]:,}", f"{errors.right[place]:.2f}", f"{own:,}", *confused)
    out.print(table)
    echo("right: of held-out examples; then the mean chances of the group's examples; made: by the likeliest label")
    abstained = len(made.ids) - int(made.labeled.sum())
    echo(
        f"{made.source}: {errors.accuracy:.3f} right, calibration error {errors.calibration:.3f}; "
        f"{counted(len(made.ids) - abstained, 'label')} made, {abstained:,} abstained"
    )
    for one in made.bins:
        echo(f"  chance about {one.chance:.2f}: {one.right:.2f} right of {counted(one.documents, 'example')}")
    if awrf:
        certain, mean, target = awrf
        about = f"AWRF@{LISTED} of the engine's own list, {counted(len(certain), 'topic')}, target {target}"
        exact = f"({sum(certain) / len(certain):.3f} were the chances exact)"
        echo(f"{about}: {mean.value:.3f} [{mean.low:.3f}, {mean.high:.3f}] under label error {exact}")
