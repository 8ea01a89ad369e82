"""`fairagent evaluate-run`: a run file scored by the official measures of the TREC Fair Ranking track."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from fairagent.cli.options import AsJson
from fairagent.cli.terminal import progress_bar
from fairagent.errors import DataError, UsageError

if TYPE_CHECKING:
    from fairagent.measures.trec_fair import Evaluation, Task, Year

MEASURES = {1: {"ndcg": "nDCG", "awrf": "AWRF", "score": "Score"}, 2: {"ee_l": "EE-L", "ee_d": "EE-D", "ee_r": "EE-R"}}
TOPICS_NAMED = 20


class Track(StrEnum):
    """The tracks there are."""

    TREC_FAIR_2022 = "trec-fair-2022"
    TREC_FAIR_2021 = "trec-fair-2021"


class Split(StrEnum):
    """The splits of the topics."""

    TRAIN = "train"
    EVAL = "eval"


def evaluate_run(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run file, gzipped or not.", show_default=False)],
    data: Annotated[Path, typer.Option("--data", metavar="FOLDER", help="The folder of the track's official files.")],
    task: Annotated[int, typer.Option("--task", min=1, max=2, help="1: one ranking per topic; 2: a sequence.")],
    track: Annotated[Track, typer.Option("--track", help="The track whose measures are used.")] = Track.TREC_FAIR_2022,
    split: Annotated[Split, typer.Option("--split", help="The topics to evaluate.")] = Split.EVAL,
    dimension: Annotated[
        list[str] | None,
        typer.Option(
            "--dimension",
            "--dimensions",
            metavar="NAME",
            help="A dimension to measure; several (repeated or with commas) are measured together.",
        ),
    ] = None,
    subset: Annotated[
        str | None,
        typer.Option("--subset", metavar="NAME", help="A subset: 2021, internal, demographic, or all."),
    ] = None,
    n: Annotated[
        int | None, typer.Option("--n", metavar="N", min=1, help="Cut rankings to N pages (task 1). (default: 500)")
    ] = None,
    per_topic: Annotated[bool, typer.Option("--per-topic", help="Also print every topic.")] = False,
    as_json: AsJson = False,
) -> None:
    """Score a run file as the TREC Fair Ranking track does.

    Without --dimension or --subset: all that the track reports, which is every dimension alone, its subsets, and all
    together. Means are over the topics that the run has, as the track takes them: the topics it lacks are named.
    Needs the metadata and the topics with relevant pages, not the corpus.
    """
    from fairagent.collection.trec_fair import read_metadata, read_relevant_pages, read_run
    from fairagent.collection.trec_fair.files import find_track_files
    from fairagent.measures.trec_fair import TrackEvaluator
    from fairagent.report.record import to_json

    year, number = cast("Year", int(track.value[-4:])), cast("Task", task)
    chosen = _chosen(year, dimension or (), subset)
    files = find_track_files(data, year, split.value, corpus=False)
    relevant = read_relevant_pages(files.topics)
    # First: a fault of the run shall not take the minutes that millions of pages do.
    rankings = read_run(run, year, number, relevant.qrels)
    with progress_bar() as bar:
        bar_task = bar.add_task("reading metadata", total=None)
        metadata = read_metadata(files.metadata, year, lambda lines: bar.update(bar_task, completed=lines))
    first = TrackEvaluator(year, number, next(iter(chosen.values())), metadata.pages, relevant.qrels, n)
    evaluations = {name: first.over(names).evaluate(rankings) for name, names in chosen.items()}
    if not any(found.rows for found in evaluations.values()):
        reasons = "; ".join(f"topic {topic}: {why}" for topic, why in first.left_out.items())
        raise DataError(f"run {rankings.name!r}: none of its topics has a target ({reasons})")
    notes = [*relevant.notes, *metadata.notes, *first.notes]
    if as_json:
        typer.echo(to_json(_record(str(first), rankings.name, number, evaluations, notes)))
        return
    typer.echo("\n".join(_text(rankings.name, f"TREC Fair {year}, Task {task}, {split.value}", number, evaluations)))
    if per_topic:
        for name, evaluation in evaluations.items():
            typer.echo("\n".join(["", name, *_topics(number, evaluation)]))
    for note in notes:
        typer.echo(f"note: {note}")


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
    names = tuple(name for given in dimensions for name in given.split(","))
    if unknown := [name for name in names if name not in every]:
        raise UsageError(f"no dimension {unknown[0]!r}; TREC Fair {year} has: {', '.join(every)}")
    if len(set(names)) < len(names):
        raise UsageError("--dimension: one is named twice")
    return {" x ".join(names): names} if names else {**subsets, **{name: (name,) for name in every}}


def _text(run: str, what: str, task: Task, evaluations: dict[str, Evaluation]) -> list[str]:
    from fairagent.evaluate.engine.tables import aligned

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
    from fairagent.evaluate.engine.tables import aligned

    rows = [["topic", *MEASURES[task].values()]]
    rows += [[row.topic, *(f"{getattr(row, m):.4f}" for m in MEASURES[task])] for row in evaluation.rows]
    return list(aligned(rows))


def _named(topics: Sequence[str]) -> str:
    from fairagent.collection.faults import listed

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
