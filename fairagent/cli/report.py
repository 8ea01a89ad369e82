"""`fairagent report`: the tables and the page of a run, written anew from its journal; several runs as one table."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from fairagent.cli.evaluate import show
from fairagent.cli.options import AsJson, Details, console, echo, print_page, status, terminal_width
from fairagent.errors import UsageError
from fairagent.storage.threads import progress

JoinedTo = Annotated[
    Path | None,
    typer.Option("--to", metavar="DIR", help="Where the joined table goes. (default: the first run's folder)"),
]


def report(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="FOLDER...", help="The run's folder; several with --join.", show_default=False),
    ],
    baseline: Annotated[
        str, typer.Option("--baseline", metavar="NAME", help="Test against this system. (default: the experiment's)")
    ] = "",
    join: Annotated[
        bool, typer.Option("--join", help="One table of several runs: a row a system, columns for each run's measures.")
    ] = False,
    to: JoinedTo = None,
    details: Details = False,
    as_json: AsJson = False,
) -> None:
    """Write the tables and the page of a run anew, finished or not.

    Nothing is searched, and no model is called. With --join several runs become one table, e.g. one of answers'
    fairness and one of their accuracy: as text, Markdown, LaTeX and CSV (joined.txt, .md, .tex, .csv). Systems of the
    same name have to be the same: rows that were made with other settings, prompts or trained models are refused.
    Where a run's file has expected numbers, its columns are theirs.
    """
    from fairagent.evaluate.results import PAGE, write_results
    from fairagent.evaluate.run import load_run
    from fairagent.report.page import write_page
    from fairagent.storage.files import locked

    if join:
        if baseline:
            raise UsageError("--baseline is of one run; joined runs keep their own")
        print_joined(folders, to or folders[0], as_json)
        return
    if len(folders) > 1 or to:
        raise UsageError("several runs, and --to, are for --join; without it, name one folder")
    folder = folders[0]
    with status(), _without_collection():
        with progress(f"reading the journal of {folder}"):
            run = load_run(folder, baseline)
        with locked(folder):
            with progress("writing the tables and the run files"):
                write_results(run, folder)
            with progress(f"drawing the page of {len(run.outcomes):,} rankings"):
                write_page(run, folder / PAGE)
    show(run, folder, as_json, details=details)


def print_joined(folders: list[Path], to: Path, as_json: bool) -> None:
    """Print several runs as one table, and write it to the folder `to`."""
    from fairagent.report.joined import NAME, join_runs
    from fairagent.report.record import to_json

    with status(), _without_collection(), progress("reading the journals"):
        joined = join_runs(folders)
        joined.write(to)
    if as_json:
        echo(to_json(joined.record()))
        return
    print_page(joined.text(width=terminal_width()))
    console().print(f"the table as text, Markdown, LaTeX and CSV: {to / NAME}.*", soft_wrap=True)


@contextmanager
def _without_collection() -> Iterator[None]:
    """No search for garbage: among millions of values it takes a quarter of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
