"""Run files compared on a collection: the experiment of which they are the systems."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from fairagent.collection.config import CollectionFile
from fairagent.errors import DataError, UsageError
from fairagent.evaluate.engine.check import Checked, check_values
from fairagent.evaluate.kinds.ranking.kind import LENGTH, STANDARD, UNJUDGED
from fairagent.evaluate.kinds.ranking.recall import WHOLE
from fairagent.retrieve.run_file import check_scored
from fairagent.settings import read_yaml, validate

SUFFIXES = (".txt", ".tsv", ".csv", ".run", ".trec", ".res")
"""Ends of files' names that are no part of a run's name."""


def check_runs(
    runs: Sequence[Path],
    collection: Path,
    dimensions: Sequence[str] = (),
    measures: Sequence[str] = (),
    n: int | None = None,
    baseline: str = "",
    environ: Mapping[str, str] = os.environ,
) -> Checked:
    """An experiment that compares `runs` on a collection, checked as one of a file is.

    Judged are `dimensions` (none: all of the collection) by `measures`, or by the standard ones at `n` (20), which cuts
    the runs; on a collection without judgments, by those that need none. Raises UsageError where two files have one
    name, or measures are named beside `n`, and what `check_experiment` raises.
    """
    if n is not None and measures:
        raise UsageError("measures have their own cut-offs, e.g. nDCG@10: leave out n")
    named: dict[str, Path] = {}
    for run in runs:
        if (other := named.setdefault(run_name(run), run)) != run:
            raise UsageError(f"two runs are called {run_name(run)!r}, {other} and {run}: rename one of the files")
    values = {
        "name": "runs",
        "collection": str(collection.absolute()),
        "measures": list(measures) or _standard(collection, named.get(baseline, runs[0]), n or LENGTH),
        "dimensions": list(dimensions),
        "baseline": baseline,
        "run_depth": n or WHOLE,
        "systems": {
            name: {"profile": "engine", "engine": {"kind": "run-file", "path": str(run.absolute())}}
            for name, run in named.items()
        },
    }
    return check_values(values, f"of {len(runs)} run{'s' * (len(runs) != 1)}", Path.cwd(), environ=environ)


def _standard(collection: Path, baseline: Path, n: int) -> list[str]:
    """The standard measures at cut-off `n`; without judgments those that need none, nor scores that are not there."""
    file = validate(CollectionFile, read_yaml(collection), str(collection))
    measures: tuple[str, ...] = STANDARD if file.track or file.qrels else UNJUDGED
    if measures is UNJUDGED and not _scored(baseline):
        measures = tuple(measure for measure in measures if not measure.startswith("kept"))
    return [measure.replace(f"@{LENGTH}", f"@{n}") for measure in measures]


def _scored(run: Path) -> bool:
    try:
        check_scored(run, "")
    except DataError:
        return False
    return True


def run_name(path: Path) -> str:
    """What a run file's run is called.

    >>> run_name(Path("runs/bm25.txt.gz")), run_name(Path("UDInfo.run2"))
    ('bm25', 'UDInfo.run2')
    """
    name = path.name.removesuffix(".gz")
    return Path(name).stem if Path(name).suffix in SUFFIXES else name
