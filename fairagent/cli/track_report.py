"""A run file scored by the official measures of the TREC Fair Ranking track, as text or JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairagent.cli.terminal import echo, progress_bar
from fairagent.errors import DataError, UsageError

if TYPE_CHECKING:
    from fairagent.collection.trec_fair.files import Split
    from fairagent.measures.trec_fair import Evaluation, Repeated, Task, Year

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
    from fairagent.collection.trec_fair.files import find_track_files
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
