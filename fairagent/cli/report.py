"""`fairagent report`: the tables and the page of a run, written anew from its journal."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from fairagent.cli.evaluate import show
from fairagent.cli.options import AsJson, status
from fairagent.storage.threads import progress


def report(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The run's folder.", show_default=False)],
    baseline: Annotated[
        str, typer.Option("--baseline", metavar="NAME", help="Test against this system. (default: the experiment's)")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Write the tables and the page of a run anew, finished or not.

    Nothing is searched, and no model is called.
    """
    from fairagent.evaluate.results import PAGE, write_results
    from fairagent.evaluate.run import load_run
    from fairagent.report.page import write_page
    from fairagent.storage.files import locked

    with status(), _without_collection():
        with progress(f"reading the journal of {folder}"):
            run = load_run(folder, baseline)
        with locked(folder):
            with progress("writing the tables and the run files"):
                write_results(run, folder)
            with progress(f"drawing the page of {len(run.outcomes):,} rankings"):
                write_page(run, folder / PAGE)
    show(run, folder, as_json)


@contextmanager
def _without_collection() -> Iterator[None]:
    """No search for garbage: among millions of values it takes a quarter of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
