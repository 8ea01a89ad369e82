"""Run files compared on a collection: the experiment of which they are the systems."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from fairagent.errors import UsageError
from fairagent.evaluate.engine.check import Checked, check_values
from fairagent.evaluate.judging import standard_measures

CUT_OFF = 20
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

    Judged are `dimensions` (none: all of the collection) by `measures`, or by the standard ones at `n` (20). Raises
    UsageError where two files have one name, or measures are named beside `n`, and what `check_experiment` raises.
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
        "measures": list(measures) or [str(measure) for measure in standard_measures(n or CUT_OFF)],
        "dimensions": list(dimensions),
        "baseline": baseline,
        "systems": {
            name: {"profile": "engine", "engine": {"kind": "run-file", "path": str(run.absolute())}}
            for name, run in named.items()
        },
    }
    return check_values(values, f"of {len(runs)} run{'s' * (len(runs) != 1)}", Path.cwd(), environ=environ)


def run_name(path: Path) -> str:
    """What a run file's run is called.

    >>> run_name(Path("runs/bm25.txt.gz")), run_name(Path("UDInfo.run2"))
    ('bm25', 'UDInfo.run2')
    """
    name = path.name.removesuffix(".gz")
    return Path(name).stem if Path(name).suffix in SUFFIXES else name
