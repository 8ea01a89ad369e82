"""`fairagent evaluate-run`: run files judged, as the TREC Fair Ranking track does or on any collection."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from fairagent.cli.options import AsJson
from fairagent.errors import UsageError

if TYPE_CHECKING:
    from fairagent.measures.trec_fair import Task, Year


class Track(StrEnum):
    """The tracks there are."""

    TREC_FAIR_2022 = "trec-fair-2022"
    TREC_FAIR_2021 = "trec-fair-2021"


class Split(StrEnum):
    """The splits of the topics."""

    TRAIN = "train"
    EVAL = "eval"


class OfRepeated(StrEnum):
    """What becomes of a page that a ranking lists twice."""

    ERROR = "error"
    COUNT = "count"


def evaluate_run(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN", help="The run files, gzipped or not.", show_default=False)
    ],
    collection: Annotated[
        Path | None,
        typer.Option("--collection", "-c", metavar="FILE", help="Judge by this collection: its settings file."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="FOLDER", help="Judge as the track does: the folder of its official files."),
    ] = None,
    task: Annotated[
        int | None, typer.Option("--task", min=1, max=2, help="1: one ranking per topic; 2: a sequence.")
    ] = None,
    track: Annotated[
        Track | None, typer.Option("--track", help="trec-fair-2022 or trec-fair-2021. (default: trec-fair-2022)")
    ] = None,
    split: Annotated[
        Split | None, typer.Option("--split", help="The topics to evaluate: train or eval. (default: eval)")
    ] = None,
    subset: Annotated[
        str | None,
        typer.Option("--subset", metavar="NAME", help="A subset: 2021, internal, demographic, or all."),
    ] = None,
    repeated: Annotated[
        OfRepeated | None,
        typer.Option(
            "--repeated",
            help="A page listed twice: error, or count both as the track's code does. (default: error)",
        ),
    ] = None,
    per_topic: Annotated[bool, typer.Option("--per-topic", help="Also print every topic.")] = False,
    dimension: Annotated[
        list[str] | None,
        typer.Option(
            "--dimension",
            "--dimensions",
            metavar="NAME",
            help="A dimension to measure (repeated or with commas); the track measures several together.",
        ),
    ] = None,
    n: Annotated[
        int | None,
        typer.Option(
            "--n", metavar="N", min=1, help="Cut rankings to N documents. (default: 20; the track's are not cut)"
        ),
    ] = None,
    measure: Annotated[
        list[str] | None,
        typer.Option("--measure", metavar="NAME", help="A measure by its name, e.g. nDCG@10; may be repeated."),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option("--baseline", metavar="NAME", help="The run that others are tested against. (default: the first)"),
    ] = None,
    run: Annotated[
        Path | None, typer.Option("--run", metavar="DIR", help="Keep tables, values by topic and a page here.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Judge run files: on a collection, or as the TREC Fair Ranking track does.

    A run file has TREC's six columns (topic, Q0, document, rank, score, tag; ordered by score), or topic and document
    alone, best first; tabs, commas or spaces separate them, and a header line may come first.

    With --collection: an experiment of which the runs are the systems, under the names of their files, with the same
    measures, tests and page as `fairagent evaluate`. A topic that a run lacks has an empty ranking there.

    With --data and --task: the official measures for one run. Without --dimension or --subset: all that the track
    reports, which is every dimension alone, its subsets, and all together. Means are over the topics that the run has,
    as the track takes them: the topics it lacks are named. Needs the metadata and the topics with relevant pages, not
    the corpus. Rankings longer than the track takes (500 pages, in 2021 1000) need --n.
    """
    of_track = {
        "--data": data,
        "--task": task,
        "--track": track,
        "--split": split,
        "--subset": subset,
        "--repeated": repeated,
        "--per-topic": per_topic or None,
    }
    of_collection = {"--measure": measure, "--baseline": baseline, "--run": run}
    if collection is not None:
        _refuse(of_track, "--collection")
        from fairagent.cli.compared_runs import compare_runs

        compare_runs(runs, collection, _names(dimension), n, measure or (), baseline or "", run, as_json)
        return
    if data is None or task is None:
        raise UsageError(
            "name what to judge by: --collection FILE, or --data FOLDER and --task for the track's measures"
        )
    _refuse(of_collection, "--data")
    if len(runs) > 1:
        raise UsageError(f"the track's report is of one run, not {len(runs)}; --collection compares several")
    from fairagent.cli.track_report import print_track_report

    year = cast("Year", int((track or Track.TREC_FAIR_2022).value[-4:]))
    print_track_report(
        runs[0],
        data,
        year,
        cast("Task", task),
        (split or Split.EVAL).value,
        _names(dimension),
        subset,
        n,
        (repeated or OfRepeated.ERROR).value,
        per_topic,
        as_json,
    )


def _refuse(options: Mapping[str, object], door: str) -> None:
    """Raise UsageError for options of the other way to judge."""
    for name, value in options.items():
        if value is not None:
            raise UsageError(f"{name} does not go with {door}")


def _names(given: list[str] | None) -> tuple[str, ...]:
    return tuple(name for names in given or () for name in names.split(","))
