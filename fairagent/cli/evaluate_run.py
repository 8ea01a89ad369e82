"""`fairagent evaluate-run`: run files judged, as the TREC Fair Ranking track does or on any collection.

A run file scored by the official measures of the TREC Fair Ranking track, as text or JSON.

Run files compared on a collection, as text or JSON.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from fairagent.cli.evaluate import PARTIAL, WORKERS, print_results, show, write_page
from fairagent.cli.options import AsJson, echo, progress_bar
from fairagent.errors import DataError, UsageError

if TYPE_CHECKING:
    from fairagent.collection.trec_fair.topics import Split
    from fairagent.measures.trec_fair import Evaluation, Repeated, Task, Year


class Track(StrEnum):
    """The tracks there are."""

    TREC_FAIR_2022 = "trec-fair-2022"
    TREC_FAIR_2021 = "trec-fair-2021"


class SplitOption(StrEnum):
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
        SplitOption | None, typer.Option("--split", help="The topics to evaluate: train or eval. (default: eval)")
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

        compare_runs(runs, collection, _names(dimension), n, measure or (), baseline or "", run, as_json)
        return
    if data is None or task is None:
        raise UsageError(
            "name what to judge by: --collection FILE, or --data FOLDER and --task for the track's measures"
        )
    _refuse(of_collection, "--data")
    if len(runs) > 1:
        raise UsageError(f"the track's report is of one run, not {len(runs)}; --collection compares several")

    year = cast("Year", int((track or Track.TREC_FAIR_2022).value[-4:]))
    print_track_report(
        runs[0],
        data,
        year,
        cast("Task", task),
        (split or SplitOption.EVAL).value,
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


MEASURES = {1: {"ndcg": "nDCG", "awrf": "AWRF", "score": "Score"}, 2: {"ee_l": "EE-L", "ee_d": "EE-D", "ee_r": "EE-R"}}
TOPICS_NAMED = 20


def print_track_report(
    run: Path,
    data: Path,
    year: Year,
    task: Task,
    split: Split,
    dimensions: Sequence[str],
    subset: str | None,
    n: int | None,
    repeated: Repeated,
    per_topic: bool,
    as_json: bool,
) -> None:
    """Print what the track reports about a run; see the command."""
    from fairagent.collection.trec_fair import read_metadata, read_relevant_pages, read_run
    from fairagent.collection.trec_fair.topics import find_track_files
    from fairagent.measures.trec_fair import TrackEvaluator, check_length
    from fairagent.report.record import to_json

    chosen = _chosen(year, dimensions, subset)
    files = find_track_files(data, year, split, corpus=False)
    relevant = read_relevant_pages(files.topics)
    # First: a fault of the run shall not take the minutes that millions of pages do.
    rankings = read_run(run, year, task, relevant.qrels, repeated)
    check_length(rankings, year, task, n)
    with progress_bar() as bar:
        bar_task = bar.add_task("reading metadata", total=None)
        metadata = read_metadata(files.metadata, year, lambda lines: bar.update(bar_task, completed=lines))
    first = TrackEvaluator(year, task, next(iter(chosen.values())), metadata.pages, relevant.qrels, n)
    evaluations = {name: first.over(names).evaluate(rankings) for name, names in chosen.items()}
    if not any(found.rows for found in evaluations.values()):
        reasons = "; ".join(f"topic {topic}: {why}" for topic, why in first.left_out.items())
        raise DataError(f"run {rankings.name!r}: none of its topics has a target ({reasons})")
    notes = [*relevant.notes, *metadata.notes, *first.notes]
    if as_json:
        echo(to_json(_record(str(first), rankings.name, task, evaluations, notes)))
        return
    echo("\n".join(_text(rankings.name, f"TREC Fair {year}, Task {task}, {split}", task, evaluations)))
    if per_topic:
        for name, evaluation in evaluations.items():
            echo("\n".join(["", name, *_topics(task, evaluation)]))
    for note in notes:
        echo(f"note: {note}")


def _chosen(year: Year, dimensions: Sequence[str], subset: str | None) -> dict[str, tuple[str, ...]]:
    """Name -> dimensions of each evaluation; UsageError for what the track does not have."""
    from fairagent.measures.trec_fair import DIMENSIONS_2021, DIMENSIONS_2022, SUBSETS_2022

    every = tuple(dim.name for dim in (DIMENSIONS_2022 if year == 2022 else DIMENSIONS_2021))
    subsets = {"all": every, **(SUBSETS_2022 if year == 2022 else {})}
    if dimensions and subset:
        raise UsageError("--dimension and --subset exclude each other")
    if subset and subset not in subsets:
        raise UsageError(f"--subset {subset}: TREC Fair {year} has: {', '.join(subsets)}")
    if subset:
        return {subset: subsets[subset]}
    names = tuple(dimensions)
    if unknown := [name for name in names if name not in every]:
        raise UsageError(f"no dimension {unknown[0]!r}; TREC Fair {year} has: {', '.join(every)}")
    if len(set(names)) < len(names):
        raise UsageError("--dimension: one is named twice")
    return {" x ".join(names): names} if names else {**subsets, **{name: (name,) for name in every}}


def _text(run: str, what: str, task: Task, evaluations: dict[str, Evaluation]) -> list[str]:
    from fairagent.evaluate.tables import aligned

    rows = [["dimensions", *MEASURES[task].values()]]
    for name, found in evaluations.items():
        rows.append([name, *(f"{found.mean(m):.4f}" if found.rows else "-" for m in MEASURES[task])])
    some = next(iter(evaluations.values()))
    lines = [f"{run}: {what}; topics in the means: {len(some.rows)}", "", *aligned(rows), ""]
    if some.missing:
        lines.append(f"topics that the run lacks, which no mean counts: {len(some.missing)} ({_named(some.missing)})")
    for name, found in evaluations.items():
        if found is some or found.left_out != some.left_out:
            lines += [f"left out, {name}: topic {topic}, {why}" for topic, why in found.left_out.items()]
    unknown = sum(row.unknown for row in some.rows)
    if unknown:
        lines.append(f"listed pages without metadata, which take a rank and count for no group: {unknown}")
    return lines


def _topics(task: Task, evaluation: Evaluation) -> list[str]:
    from fairagent.evaluate.tables import aligned

    rows = [["topic", *MEASURES[task].values()]]
    rows += [[row.topic, *(f"{getattr(row, m):.4f}" for m in MEASURES[task])] for row in evaluation.rows]
    return list(aligned(rows))


def _named(topics: Sequence[str]) -> str:
    from fairagent.collection.records import listed

    return listed(topics, TOPICS_NAMED)


def _record(
    title: str, run: str, task: Task, evaluations: dict[str, Evaluation], notes: Sequence[str]
) -> dict[str, Any]:
    return {
        "run": run,
        "track": title.split(", ")[0],
        "task": task,
        "evaluations": [
            {
                "name": name,
                "dimensions": list(found.dimensions),
                "means": {measure: found.mean(measure) if found.rows else None for measure in MEASURES[task]},
                "topics": [asdict(row) for row in found.rows],
                "missing": list(found.missing),
                "left_out": dict(found.left_out),
            }
            for name, found in evaluations.items()
        ],
        "notes": list(notes),
    }


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
    from fairagent.evaluate.experiment import run_experiment
    from fairagent.evaluate.ranking.kind import check_runs
    from fairagent.evaluate.results import PAGE
    from fairagent.evaluate.workers import threads

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
