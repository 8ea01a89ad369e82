"""`fairagent evaluate-run`: run files judged; `fairagent audit`: what groups got in a log of requests."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fairagent.cli import options
from fairagent.cli.evaluate import carried_out, expect_whole, print_results, show
from fairagent.cli.options import AsJson, Details, echo, option, print_json, progress_bar, status
from fairagent.errors import DataError, UsageError
from fairagent.settings.faults import no_such
from fairagent.types.common import counted, listed

if TYPE_CHECKING:
    from fairagent.measures.trec_fair import Task, Year

MEASURES = {1: {"ndcg": "nDCG", "awrf": "AWRF", "score": "Score"}, 2: {"ee_l": "EE-L", "ee_d": "EE-D", "ee_r": "EE-R"}}
TOPICS_NAMED = 20


def evaluate_run(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN", help="The run files, packed or not.", show_default=False)
    ],
    collection: Annotated[
        Path | None, option("--collection -c", "Judge by this collection: its settings file.", "FILE")
    ] = None,
    data: Annotated[
        Path | None, option("--data", "Judge as the track does: the folder of its official files.", "FOLDER")
    ] = None,
    task: Annotated[int | None, option("--task", "1: one ranking per topic; 2: a sequence.", min=1, max=2)] = None,
    track: Annotated[
        Literal["trec-fair-2022", "trec-fair-2021"] | None,
        option("--track", "trec-fair-2022 or trec-fair-2021. (default: trec-fair-2022)"),
    ] = None,
    split: Annotated[
        Literal["train", "eval"] | None, option("--split", "The topics to evaluate: train or eval. (default: eval)")
    ] = None,
    subset: Annotated[str | None, option("--subset", "A subset: 2021, internal, demographic, or all.", "NAME")] = None,
    repeated: Annotated[
        Literal["error", "count"] | None,
        option("--repeated", "A page listed twice: error, or count both as the track's code does. (default: error)"),
    ] = None,
    per_topic: Annotated[bool, option("--per-topic", "Also print every topic.")] = False,
    dimension: Annotated[
        list[str] | None,
        option(
            "--dimension --dimensions",
            "A dimension to measure (repeated or with commas); the track measures several together.",
            "NAME",
        ),
    ] = None,
    n: Annotated[
        int | None, option("--n", "Cut rankings to N documents. (default: 20; the track's are not cut)", "N", min=1)
    ] = None,
    measure: Annotated[
        list[str] | None, option("--measure", "A measure by its name, e.g. nDCG@10; may be repeated.", "NAME")
    ] = None,
    baseline: Annotated[
        str | None, option("--baseline", "The run that others are tested against. (default: the first)", "NAME")
    ] = None,
    target: options.Target = None,
    run: Annotated[Path | None, option("--run", "Keep tables, values by topic and a page here.", "DIR")] = None,
    details: Details = False,
    as_json: AsJson = False,
) -> None:
    """Judge run files: on a collection, or as the TREC Fair Ranking track does.

    A run file has TREC's six columns (topic, Q0, document, rank, score, tag; ordered by score), or fewer; or columns
    that a header names, as PyTerrier writes them; or JSON, as ranx does (docs/experiments.md).

    With --collection: an experiment of which the runs are the systems, under the names of their files, with the same
    measures, tests and page as `fairagent evaluate`. A topic that a run lacks has an empty ranking there.

    With --data and --task: the official measures of each run. Without --dimension or --subset: all that the track
    reports, which is every dimension alone, its subsets, and all together. Means are over the topics that the run has,
    as the track takes them: the topics it lacks are named. Needs the metadata and the topics with relevant pages, not
    the corpus. Rankings longer than the track takes (500 pages, in 2021 1000) need --n.
    """
    dimensions = tuple(name for names in dimension or () for name in names.split(","))
    if collection is None and (data is None or task is None):
        raise UsageError(
            "name what to judge by: --collection FILE, or --data FOLDER and --task for the track's measures"
        )
    of_track = {"--data": data, "--task": task, "--track": track, "--split": split, "--subset": subset}
    of_track |= {"--repeated": repeated, "--per-topic": per_topic or None}
    of_collection = {"--measure": measure, "--baseline": baseline, "--run": run, "--target": target}
    for name, value in (of_track if collection else of_collection).items():
        if value is not None:
            raise UsageError(f"{name} does not go with {'--collection' if collection else '--data'}")
    if collection is not None:
        from fairagent.evaluate.check import check_runs

        chosen_target = options.target_of(target)
        checked = check_runs(runs, collection, dimensions, measure or (), n, baseline or "", chosen_target)
        with tempfile.TemporaryDirectory() as passing:
            finished, _ = carried_out(checked, run or Path(passing), passing=run is None)
            if run is None:
                print_results(finished, as_json, details=details)
            else:
                show(finished, run, as_json, details=details)
        expect_whole(finished)
        return
    assert data is not None
    from fairagent.collection.trec_fair import find_track_files, read_metadata, read_relevant_pages, read_run
    from fairagent.evaluate.tables import Table
    from fairagent.measures.trec_fair import TrackEvaluator, check_length

    year: Year = 2021 if track == "trec-fair-2021" else 2022
    of_task: Task = 1 if task == 1 else 2
    measures, chosen = MEASURES[of_task], _chosen(year, dimensions, subset)
    files = find_track_files(data, year, split or "eval", corpus=False)
    relevant = read_relevant_pages(files.topics)
    # First: a fault of a run shall not take the minutes that millions of pages do.
    read = [read_run(path, year, of_task, relevant.qrels, repeated or "error") for path in runs]
    for rankings in read:
        check_length(rankings, year, of_task, n)
    with progress_bar() as bar:
        reading = bar.add_task("reading metadata", total=None)
        metadata = read_metadata(files.metadata, year, lambda lines: bar.update(reading, completed=lines))
    first = TrackEvaluator(year, of_task, next(iter(chosen.values())), metadata.pages, relevant.qrels, n)
    evaluators = {name: first.over(names) for name, names in chosen.items()}
    notes = [*relevant.notes, *metadata.notes, *first.notes]
    records, lines = list[dict[str, object]](), list[str]()
    for rankings in read:
        evaluations = {name: evaluator.evaluate(rankings) for name, evaluator in evaluators.items()}
        widest = next(iter(evaluations.values()))
        if not any(evaluation.rows for evaluation in evaluations.values()):
            reasons = "; ".join(f"topic {topic}: {why}" for topic, why in first.left_out.items())
            raise DataError(f"run {rankings.name!r}: none of its topics has a target ({reasons})")
        unknown = sum(row.unknown for row in widest.rows)
        if unknown == rankings.pages.size:
            some = ", ".join(map(str, rankings.pages[:5].tolist()))
            raise DataError(
                f"run {rankings.name!r}: none of its {rankings.pages.size:,} pages has metadata: {some} ..."
            )
        means = {name: {of: one.mean(of) if one.rows else None for of in measures} for name, one in evaluations.items()}
        of_run = [
            {
                "name": name,
                "dimensions": list(one.dimensions),
                "means": means[name],
                "topics": [asdict(row) for row in one.rows],
                "missing": list(one.missing),
                "left_out": dict(one.left_out),
            }
            for name, one in evaluations.items()
        ]
        about = {"run": rankings.name, "track": str(first).split(", ")[0], "task": task}
        records.append({**about, "evaluations": of_run})
        title = f"{rankings.name}: TREC Fair {year}, Task {task}, {split or 'eval'}"
        table = Table.of(["dimensions", *measures.values()], ([name, *of.values()] for name, of in means.items()))
        lines += [""] if lines else []
        lines += [f"{title}; topics in the means: {len(widest.rows)}", "", table.text(), ""]
        if widest.missing:
            named = listed(widest.missing, TOPICS_NAMED)
            lines.append(f"topics that the run lacks, which no mean counts: {len(widest.missing)} ({named})")
        for name, one in evaluations.items():
            if one is widest or one.left_out != widest.left_out:
                lines += [f"left out, {name}: topic {topic}, {why}" for topic, why in one.left_out.items()]
        if unknown:
            lines.append(f"listed pages without metadata, which take a rank and count for no group: {unknown}")
        for name, one in evaluations.items() if per_topic else ():
            rows = [[row.topic, *(getattr(row, of) for of in measures)] for row in one.rows]
            lines += ["", Table.of(["topic", *measures.values()], rows, name).text()]
    if as_json:
        print_json({**(records[0] if len(records) == 1 else {"runs": records}), "notes": notes})
    else:
        echo("\n".join([*lines, *(f"note: {note}" for note in notes)]))


def _chosen(year: Year, dimensions: tuple[str, ...], subset: str | None) -> dict[str, tuple[str, ...]]:
    """Name -> dimensions of each evaluation; UsageError for what the track does not have."""
    from fairagent.measures.trec_fair import DIMENSIONS_2021, DIMENSIONS_2022, SUBSETS_2022

    every = tuple(one.name for one in (DIMENSIONS_2022 if year == 2022 else DIMENSIONS_2021))
    subsets = {"all": every, **(SUBSETS_2022 if year == 2022 else {})}
    if dimensions and subset:
        raise UsageError("--dimension and --subset exclude each other")
    if subset:
        if subset not in subsets:
            raise UsageError(f"TREC Fair {year} has {no_such('subset', subset, subsets)}")
        return {subset: subsets[subset]}
    if unknown := [name for name in dimensions if name not in every]:
        raise UsageError(f"TREC Fair {year} has {no_such('dimension', unknown[0], every)}")
    if len(set(dimensions)) < len(dimensions):
        raise UsageError("--dimension: one is named twice")
    return {" x ".join(dimensions): dimensions} if dimensions else {**subsets, **{name: (name,) for name in every}}


@options.spread
def audit(
    log: Annotated[
        Path,
        typer.Argument(
            metavar="LOG", help="JSON lines, a CSV or TSV, or an account of rerank: amortized.", show_default=False
        ),
    ],
    of: options.CollectionOptions,
    target: options.Target = None,
    as_json: AsJson = False,
) -> None:
    """Audit a log of requests, of fairagent or any other engine: each group's share of the attention, and its due.

    A table has columns for query and document, and may have rank, time and request; JSON lines have `query` and `ids`,
    or `hits`, and may have `time`. The collection says which documents are of which groups, and the target what these
    are due: --target, else the collection's own where that holds for every query, else its population, else its own
    shares. An account holds shares and dues itself, and needs no collection. Ids that the collection lacks are counted;
    none there is an error.
    """
    from fairagent.collection import load_collection
    from fairagent.evaluate.audit import audit_account, audit_requests, is_account, read_log
    from fairagent.retrieve.manifest import indexed_documents
    from fairagent.search.account import Account
    from fairagent.search.live import index_folder
    from fairagent.storage.threads import progress
    from fairagent.types.change import percent

    with status(), progress(f"auditing {log}"):
        if is_account(log):
            result = audit_account(Account(log))
        else:
            chosen = of.chosen(target=options.target_of(target))
            if not chosen.collection:
                raise UsageError("whose documents are these? Name the collection's settings file (--collection FILE)")
            loaded = load_collection(Path(chosen.collection), chosen.index)
            known = indexed_documents(loaded, index_folder(loaded, chosen))
            result = audit_requests(read_log(log), loaded, chosen, known, log)
    if as_json:
        print_json(asdict(result))
        return
    when = f", from {result.begins} to {result.ends}" if result.begins else ""
    first = f"the first {result.n} documents of each" if result.n else "all documents shown"
    lines = [f"{result.log}: {counted(result.requests, 'request')}{when}; {first}, collection {result.collection}"]
    for one in result.dimensions:
        lines.append(f"\n{one.name}; due: {one.target}; without a label {percent(one.unlabeled)} of the attention")
        width = max(map(len, ("group", *(group.label for group in one.groups))))
        lines.append(f"  {'group':{width}}  share  95 % interval     due  whatever the missing labels are")
        for group in one.groups:
            ends = "" if group.low is None else f"{group.low:.3f} to {group.high:.3f}"
            bounds = f"{group.least:.3f} to {group.most:.3f}"
            lines.append(f"  {group.label:{width}}  {group.share:.3f}  {ends:14}  {group.due:.3f}  {bounds}")
    lines.append(
        f"\nShares of all attention (discount {result.discount}); intervals resample queries (bootstrap). They say "
        "what was shown, and not who clicked, nor whether what was shown was right."
    )
    options.print_page("\n".join([*lines, *(f"note: {note}" for note in result.notes)]))
