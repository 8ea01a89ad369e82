"""`fairagent label`: groups for documents that have none, made from examples and trusted as far as they go."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from fairagent.cli import options
from fairagent.cli.options import console, echo, going_on, option, status
from fairagent.errors import DataError, UsageError
from fairagent.storage.files import write_whole
from fairagent.storage.packages import expect_installed
from fairagent.types.common import counted, listed

if TYPE_CHECKING:
    from fairagent.retrieve.site import Site

LISTED = 20
"""The cut-off of the AWRF that is reported."""
SHOWN = 600
"""Characters of a document that `--ask` shows."""


@options.spread
def label(
    dimension: Annotated[
        str | None, option("--dimension", "The dimension to label. (default: the only one there is)", "NAME")
    ] = None,
    *,
    examples: Annotated[
        Path | None, option("--examples", "Labeled examples: id and label (JSON lines, CSV, TSV).", "FILE")
    ] = None,
    by: Annotated[Literal["classifier", "words"], option("--by", "What tells the groups apart.")] = "classifier",
    words: Annotated[
        Path | None, option("--words", "Word lists (YAML): label -> words; for --by words.", "FILE")
    ] = None,
    confidence: Annotated[float, option("--confidence", "Abstain below this chance.", "P", min=0, max=1)] = 0.0,
    out: Annotated[Path | None, option("--out", "The labels. (default: NAME.DIMENSION.labels.jsonl)", "FILE")] = None,
    ask: Annotated[bool, option("--ask", "Ask for the labels that would help most; answers go to --examples.")] = False,
    count: Annotated[int, option("--count", "How many --ask asks for.", "N", min=1)] = 20,
    force: Annotated[bool, option("--force", "Replace labels that were made before.")] = False,
    write: Annotated[bool, option("--write", "Put the lines that use the labels into the collection's file.")] = False,
    of: options.CollectionOptions,
) -> None:
    """Make labels for documents that have none, from 50 to 200 that have one.

    Learns from a group column with gaps, or from --examples; writes chances with their source, and beside them how far
    they are right, which experiments make an interval of. Given labels stay as they are. People's own attributes are
    theirs to say: docs/labels.md.
    """
    from rich.table import Table

    from fairagent.labeling import labeler
    from fairagent.labeling.examples import examples_of
    from fairagent.search.pipeline import open_site

    chosen = of.chosen()
    expect_installed("scikit-learn", "fairagent label", "labels")
    if (by == "words") != (words is not None):
        raise UsageError("--by words needs --words FILE, and nothing else does")
    with status():
        site = open_site(settings=chosen)
        collection = site.collection
        names = collection.groups.dimensions
        if dimension is None and len(names) != 1:
            raise UsageError(f"which dimension? --dimension NAME; there are: {', '.join(names) or 'none yet'}")
        name = dimension or names[0]
    if ask:
        ask_for_labels(site, name, examples or labeler.labels_file(site, name, "examples"), count)
        return
    with status():
        path = out or labeler.labels_file(site, name)
        errors = path.with_name(f"{path.name.removesuffix('.jsonl')}.errors.json")
        if not force and (taken := next((one for one in (path, errors) if one.exists()), None)):
            raise UsageError(f"{taken} is there already; --force replaces it, --out names another file")
        known = examples_of(collection, name, labeler.known_documents_of(site), examples)
        ids = labeler.unlabeled_ids(collection, name, known.given)
        typed = name in names and collection.groups.of_type(name, ids[:1]) is not None
        section = labeler.section_of(site, path, errors, name, typed)
        if write:  # what cannot be written is told before anything is made
            labeler.with_section(site, section)
        evidence: labeler.Evidence
        if words is None:
            evidence = labeler.Embedded(site)
        else:
            lists = labeler.read_word_lists(words)
            if strange := [one for one in lists if one not in known.labels]:
                raise DataError(f"{words}: no example is {listed(strange)}; there are: {listed(known.labels)}")
            evidence = labeler.WordLists(lists, {document.id: document for document in collection.source})
        made = labeler.make_labels(known, evidence, ids, confidence)
        labeler.write_labels(path, collection, made)
        made.errors.write(errors)
        rankings = labeler.engine_lists(site, LISTED) if collection.topics else {}
        awrf = labeler.awrf_of_lists(collection, made, rankings, LISTED)
    measured, shown = made.errors, console()
    for note in made.examples.notes:
        shown.print(note, soft_wrap=True, markup=False, highlight=False)
    likeliest = made.chances[made.labeled].argmax(axis=1).tolist() if len(made.ids) else []
    table = Table("group", *("examples", "right", "made"), box=None, title_justify="left")
    for place, name in enumerate(measured.labels):
        counts = f"{measured.examples[place]:,}", f"{measured.right[place]:.2f}", f"{likeliest.count(place):,}"
        table.add_row(name, *counts)
    shown.print(table)
    echo("right: of held-out examples; made: by the likeliest label")
    labeled = int(made.labeled.sum())
    echo(
        f"{made.source}: {measured.accuracy:.3f} right, calibration error {measured.calibration:.3f}; "
        f"{counted(labeled, 'label')} made, {len(made.ids) - labeled:,} abstained"
    )
    for one in made.bins:
        echo(f"  chance about {one.chance:.2f}: {one.right:.2f} right of {counted(one.documents, 'example')}")
    if awrf:
        certain, mean, target = awrf
        about = f"AWRF@{LISTED} of the engine's own list, {counted(len(certain), 'topic')}, target {target}"
        exact = f"({sum(certain) / len(certain):.3f} were the chances exact)"
        echo(f"{about}: {mean.value:.3f} [{mean.low:.3f}, {mean.high:.3f}] under label error {exact}")
    echo(f"\n{path}, {errors}")
    if write:
        write_whole(*labeler.with_section(site, section))
        echo(f"{collection.origin and collection.origin.file} names them now")
    else:
        echo(f"--write puts this into the collection's file, in the place of the column of {name!r}:\n")
        echo(labeler.dumped({"groups": section}))


def ask_for_labels(site: Site, dimension: str, file: Path, count: int, answer: Callable[[str], str] = input) -> None:
    """Ask for the labels of `count` documents, and add each answer to `file` as it is given.

    Ctrl-C, the end of the input and "q" end it; what was answered stays. A number is one of the labels that there are,
    other text a new one.
    """
    from fairagent.labeling.labeler import LabelAsking

    asking, done = LabelAsking(site, dimension, file), 0
    with status():
        labels, wanted = asking.questions(count)
    if not wanted:
        echo(f"no document lacks a label of {dimension!r}")
        return
    with going_on(f"every answer is in {file}"):
        for number, (document, helpful) in enumerate(wanted, start=1):
            about = f"{document.id}  ({helpful.why})\n{document.title}\n{document.text[:SHOWN]}"
            echo(f"\n{number} of {len(wanted)}  {about}")
            choices = "".join(f"{place} {label}, " for place, label in enumerate(labels, start=1))
            echo(f"{dimension}: {choices}another label, Enter to skip, q to end")
            try:
                reply = answer("> ").strip()
            except EOFError:
                break
            if reply == "q":
                break
            if not reply:
                continue
            label = labels[int(reply) - 1] if reply.isdecimal() and 0 < int(reply) <= len(labels) else reply
            try:
                asking.answer(document, label)
            except UsageError as error:
                echo(f"not written: {error}")
                continue
            if label not in labels:
                labels.append(label)
            done += 1
    echo(f"{counted(done, 'answer')} in {file}; next: fairagent label --examples {file}")
