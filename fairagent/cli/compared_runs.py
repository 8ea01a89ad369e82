"""Run files compared on a collection, as text or JSON."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import typer

from fairagent.cli.evaluate import PARTIAL, WORKERS, print_results, show, write_page
from fairagent.cli.terminal import progress_bar


def compare_runs(
    runs: Sequence[Path],
    collection: Path,
    dimensions: Sequence[str],
    n: int | None,
    measures: Sequence[str],
    baseline: str,
    folder: Path | None,
    as_json: bool,
) -> None:
    """Print the tables of the runs, and keep them with all else in `folder` if there is one; see the command."""
    from fairagent.evaluate.engine.experiment import run_experiment
    from fairagent.evaluate.engine.results import PAGE
    from fairagent.evaluate.engine.workers import threads
    from fairagent.evaluate.kinds.ranking.of_runs import check_runs

    checked = check_runs(runs, collection, dimensions, measures, n, baseline)
    with tempfile.TemporaryDirectory() as passing, threads(WORKERS) as workers, progress_bar() as bar:
        task = bar.add_task("judging runs", total=None)
        finished = run_experiment(
            checked,
            folder or Path(passing),
            workers,
            progress=lambda done, all: bar.update(task, completed=done, total=all),
        )
    if folder is None:
        print_results(finished, as_json)
    else:
        show(finished, folder, as_json)
        write_page(finished, folder / PAGE)
    if any(outcome.failed for outcome in finished.outcomes):
        raise typer.Exit(PARTIAL)
