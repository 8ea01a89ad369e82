"""`fairagent init`: look at a file of one's own, and propose the collection file for it."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from fairagent.cli.options import console, echo, option
from fairagent.errors import UsageError
from fairagent.storage.files import new_file
from fairagent.types.clean import in_line


def init(
    file: Annotated[
        Path, typer.Argument(help="CSV, TSV, JSON lines, Parquet, or a folder of Hugging Face's datasets.")
    ],
    output: Annotated[Path, option("--output -o", "The file to write.", "FILE")] = Path("collection.yaml"),
    id: Annotated[
        str | None, option("--id", 'The column with the ids; "@content": a digest of the row.', "COLUMN")
    ] = None,
    text: Annotated[list[str] | None, option("--text", "The column with the text; may be repeated.", "COLUMN")] = None,
    title: Annotated[str | None, option("--title", "The column with the title.", "COLUMN")] = None,
    group: Annotated[list[str] | None, option("--group", "A column with groups; may be repeated.", "COLUMN")] = None,
    format: Annotated[
        str | None, option("--format", "jsonl, tsv, csv, parquet or dataset. (default: by its name)", "FORM")
    ] = None,
    encoding: Annotated[str, option("--encoding", "The file's encoding, e.g. cp1251. (default: a guess)", "NAME")] = "",
    topics: Annotated[
        Path | None, option("--topics", "Topics: TREC's <top>, XML, SMART's .I/.W, JSON lines, TSV or CSV.", "FILE")
    ] = None,
    qrels: Annotated[
        Path | None, option("--qrels", "Judgments of these topics: TREC's or BEIR's columns.", "FILE")
    ] = None,
    target: Annotated[
        str | None, option("--target", "What each group should get, e.g. uniform. (default: a prompt)", "KIND")
    ] = None,
    yes: Annotated[bool, option("--yes -y", "Write without asking.")] = False,
) -> None:
    """Look at a file with documents, and propose a collection file that says which of its columns is what.

    Shows what was seen, asks, and writes; a file that is there already is never overwritten. What is named by an option
    is not guessed. Spellings that look like the same label (M, male) are joined by a `map`, to be confirmed, and rare
    labels to `other` where there are many. The file stays the only source: another encoding, or ids that a few rows
    lack or share, are mended whenever it is read. With topics and judgments there is
    also an experiment that runs as it is.
    """
    from rich.table import Table

    from fairagent.collection.look import experiment_file, experiment_text, look_at, match_judged, prepare
    from fairagent.settings import load_settings, parse_yaml

    _check_free(output)
    ready = prepare(file, format, encoding, topics, qrels, output)
    look = look_at(file, format, id, text or (), title, group or (), ready.encoding)
    match_judged(ready, look)
    out = console()
    rows = f"{look.rows:,} rows" if look.whole else f"the first {look.rows:,} rows"
    out.print(f"{look.path}: {rows}, {len(look.columns)} columns", soft_wrap=True)
    table = Table(box=None, pad_edge=False)
    for head in ("column", "taken as", "filled", "holds"):
        table.add_column(head, justify="right" if head == "filled" else "left")
    kinds = {look.id: "id", look.title: "title"} | dict.fromkeys(look.text, "text")
    for name, column in look.columns.items():
        if name in look.groups:
            holds = look.labels_of(name)
        elif column.texts:
            holds = f"{column.characters / column.texts:,.0f} characters on average"
        else:
            holds = "lists" if column.lists else "other values" if column.filled else "nothing"
        kind = kinds.get(name) or ("groups" if name in look.groups else "-")
        table.add_row(in_line(name), kind, f"{column.filled:,}", in_line(holds))
    out.print(table)
    if look.id == "@content":
        out.print(
            "No column tells the rows apart: a document's id is a digest of its row (@content), so that it is another "
            "document once a cell of the row changes; name a column with ids by --id."
        )
    if not look.groups:
        out.print(
            "No column looks like groups; name one with --group. Without, BM25 searches, and nothing is measured."
        )
    for note in (*ready.notes, *look.notes()):
        out.print(f"note: {in_line(note)}", soft_wrap=True)
    if target is None and not yes and sys.stdin.isatty() and look.groups:
        question = "Which target (uniform, corpus, estimated; nothing: later)"
        target = typer.prompt(question, default="", show_default=False).strip() or None
    # None: the line is left to fill in.
    chosen: Any = None if target is None else parse_yaml(target, "--target")
    load_settings(overrides={"target": chosen}, environ={})
    texts = {output: look.file(output, chosen, ready.more)}
    if experiment := experiment_text(ready, look, output, chosen):
        texts[experiment_file(output)] = experiment
    for path in texts:
        _check_free(path)
    echo(f"\n{texts[output]}")
    if not yes:
        try:
            agreed = typer.confirm(f"Write {output}?", default=True)
        except typer.Abort:
            raise UsageError("nobody answered, so nothing was written; --yes writes without asking") from None
        if not agreed:
            echo("Nothing was written.")
            return
    for path, written in texts.items():
        try:
            with new_file(path, replacing=False) as opened:
                opened.write(written.encode())
        except FileExistsError:
            _check_free(path)
        except OSError as error:
            raise UsageError(f"{path} cannot be written ({error.strerror})") from None
    echo(f"Wrote {' and '.join(map(str, texts))}. What comes next:\n")
    echo(f"  fairagent index -c {output}")
    if experiment:
        echo(f"  fairagent evaluate {experiment_file(output)}")
    example = next((topic.query for topic in ready.topics.values()), "")
    words = shlex.quote(example or look.words or "your words")
    words = words if words.startswith("'") else f'"{words}"'
    echo(f"  fairagent search {words} -c {output}{'' if look.groups else ' --set profile=engine'}")
    if look.groups and target is None:
        echo(f"\nWithout a `target:` in {output} the search shows what each choice would mean.")


def _check_free(output: Path) -> None:
    if os.path.lexists(output):
        raise UsageError(f"{output} is there already and is never overwritten; name another file with --output")
