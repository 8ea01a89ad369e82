"""`fairagent evaluate`: run an experiment file and print its results; what it takes (`estimate`); its report."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairagent.cli import options
from fairagent.cli.options import AsJson, Details, console, echo, error_console, option, print_json, terminal_width
from fairagent.errors import UsageError
from fairagent.types.common import counted, dollars

if TYPE_CHECKING:
    from fairagent.evaluate.check import CheckedExperiment, Estimate
    from fairagent.evaluate.plan import Plan
    from fairagent.evaluate.run import Results
    from fairagent.evaluate.workers import Workers
    from fairagent.llm.models import Models
    from fairagent.types import Usage

WORKERS = 4
MISSED = 8
"""The exit code of a run that misses a threshold of its experiment, whether topics failed or not."""


TEMPLATES = Path(__file__).parent / "templates"
"""A file to start from for each kind of experiment, written by docs/generate.py from the kinds' keys."""


def _print_template(kind: str | None) -> None:
    """Print the template of a kind and stop."""
    if kind is None:
        return
    from fairagent.settings.faults import no_such

    files = {path.stem: path for path in sorted(TEMPLATES.glob("*.yaml"))}
    if kind not in files:
        raise UsageError(no_such("experiment of kind", kind, files))
    echo(files[kind].read_text(encoding="utf-8"), end="")
    raise typer.Exit


ExperimentFile = Annotated[Path, typer.Argument(metavar="FILE", help="The experiment file (YAML).", show_default=False)]
DRAWN = "Only N topics, drawn by the experiment's seed: of each group of topics or class of questions its share."
LimitTopics = Annotated[int | None, option("--limit-topics", f"{DRAWN} (default: all)", "N", min=1)]
RunFolder = Annotated[Path | None, option("--run", "The run's folder. (default: runs/NAME)", "DIR")]
Template = Annotated[
    str | None,
    option(
        "--template",
        "Print a commented experiment file of this kind to start from, and stop.",
        "KIND",
        callback=_print_template,
        is_eager=True,
    ),
]


def evaluate(
    file: ExperimentFile,
    workers: Annotated[
        int | None,
        option(
            "--workers",
            f"Topics at a time: in threads where a model is called (default: {WORKERS}), else in processes "
            "(default: the cores, at most as many), which start where more than 10 s are left to do",
            "N",
            min=1,
        ),
    ] = None,
    run: RunFolder = None,
    target: options.Target = None,
    new: Annotated[bool, option("--new", "Start over: delete what the folder holds of a run.")] = False,
    limit_topics: LimitTopics = None,
    check_only: Annotated[
        bool, option("--check-only", "Run nothing: say which systems can run here, and what the others lack.")
    ] = False,
    log_prompts: options.LogPrompts = False,
    template: Template = None,
    details: Details = False,
    as_json: AsJson = False,
) -> None:
    """Compare systems on a collection's topics, as an experiment file says.

    Everything is checked before anything runs. Whatever ends a run, even kill -9: repeat the command, and it goes on
    where it was and comes to the same results, and no call of a language model that was answered is paid for again.
    A budget that is used up ends it too (exit code 6): what is done stays. Printed are a verdict for each dimension
    and the means; --details adds intervals and tests. The folder gets the tables (text, CSV, LaTeX), the rankings as
    TREC runs (on the Fair Ranking track also as submissions to it), every value by topic, and a page to look at
    (report.html). All of these name the target that rankings are judged by: --target, else `target` of the file, else
    the collection's own, else `trec`. Where the numbers of a finished run miss what the file asserts (`assert`), a
    table of these is printed last, and the exit code is 8.
    With --check-only nothing is run, built or fetched: every system is listed with what it lacks on this machine
    (models, data, packages, a key) and how to get it, with which of the shared settings its profile overrides, and with
    `estimate`'s upper bounds; the exit code is 0 where all can run, else that with which running it would end now.
    """
    given = {} if target is None else {"target": options.target_of(target)}
    if check_only:
        _print_readiness(file, limit_topics, as_json, given)
        return
    from fairagent.evaluate.check import check_experiment, estimate
    from fairagent.evaluate.thresholds import summary, thresholds_table, verdicts

    checked = check_experiment(file, limit_topics, environment(log_prompts), given=given)
    options.announce_calls(
        (row.model, row.calls, row.input_tokens + row.output_tokens, row.dollars) for row in estimate(checked)
    )
    folder = run or run_folder(checked.plan)
    finished, usage = carried_out(checked, folder, workers, new)
    show(finished, folder, as_json, usage, details)
    if not all(one.met for one in verdicts(finished)):
        error_console().print(thresholds_table(finished, met=False).text(terminal_width()), soft_wrap=True)
        raise typer.Exit(MISSED)
    if finished.thresholds and not as_json:
        console().print(summary(finished))
    expect_whole(finished)


def carried_out(
    checked: CheckedExperiment, folder: Path, workers: int | None = None, new: bool = False, passing: bool = False
) -> tuple[Results, Usage]:
    """A checked experiment's run in `folder`, done or gone on with, and what was paid for it now; with its page.

    In a folder that is `passing` there is no page, and nothing to go on with.
    """
    from fairagent.evaluate import workers as pools
    from fairagent.evaluate.experiment import build_indexes, run_experiment
    from fairagent.evaluate.results import PAGE
    from fairagent.report.page import write_page
    from fairagent.storage.threads import cores

    plan, repeat = checked.plan, f"to go on, repeat the command{' without --new' if new else ''}"
    pool: AbstractContextManager[Workers]
    if "engine" in plan.experiment.uses and not any(system.asks for system in plan.systems.values()):
        pool = pools.crew(workers or min(WORKERS, cores()))
    else:
        # They wait for a model, share its connections and budget, or its weights.
        pool = pools.threads(workers or WORKERS)
    with options.going_on(repeat), options.progress_bar() as bar:
        build_indexes(checked, options.build_progress(bar, checked.collection))
    with (
        accounted(plan) as models,
        nullcontext() if passing else options.going_on(f"what is done stays; {repeat}"),
        pool as opened,
        options.progress_bar() as bar,
    ):
        task = bar.add_task(f"evaluating {plan.experiment.name}", total=None)
        busy = False

        def progress(done: int, total: int) -> None:
            nonlocal busy
            busy = busy or done < total
            bar.update(task, completed=done, total=total)

        finished = run_experiment(checked, folder, opened, new, progress, models=models)
        # Processes that end now would count as started.
        idle = workers is not None and workers > 1 and busy and opened.alone
    if idle:
        note = f"--workers {workers}: one process did it all; to start another takes longer than it saves here"
        error_console().print(note)
    if not passing:
        write_page(finished, folder / PAGE)
    return finished, models.usage


def expect_whole(*runs: Results) -> None:
    """End with exit code 7 where topics failed under any system."""
    if any(outcome.failed for run in runs for outcome in run.outcomes):
        raise typer.Exit(options.PARTIAL)


def run_folder(plan: Plan) -> Path:
    """The folder of an experiment's run, where none is named."""
    from fairagent.storage.files import file_name

    return Path("runs") / file_name(plan.experiment.name)


def environment(log_prompts: bool) -> dict[str, str]:
    """The environment that an experiment's settings are read with."""
    return {**os.environ, **({"FAIRAGENT_MODEL__LOG_PROMPTS": "true"} if options.logged(log_prompts) else {})}


@contextmanager
def accounted(plan: Plan) -> Iterator[Models]:
    """The models of an experiment, closed at the end; what was paid is printed where something fails."""
    from fairagent.llm.models import Models

    models = Models(plan.cache, plan.budget, plan.prices)
    try:
        yield models
    except BaseException:
        print_account(models.usage, error=True)
        raise
    finally:
        models.close()


def print_account(paid: Usage, error: bool = False) -> None:
    """Print what was paid to language models now and what the cache saved, in one line; nothing without any call."""

    def amount(usage: Usage) -> str:
        tokens = usage.input_tokens + usage.output_tokens
        return f"{counted(usage.calls, 'call')}, {tokens:,} tokens, {dollars(usage.cost)}"

    if paid.calls or paid.saved:
        saved = f"; the cache saved {amount(paid.saved)}" if paid.saved else ""
        out = error_console() if error else console()
        out.print(f"paid now: {amount(paid) if paid.calls else '0 calls'}{saved}", soft_wrap=True)


def show(run: Results, folder: Path, as_json: bool, paid: Usage | None = None, details: bool = False) -> None:
    """Print the results of a run, what was paid for them now, and where the rest is."""
    from fairagent.evaluate.results import PAGE
    from fairagent.evaluate.run import TRANSCRIPT
    from fairagent.report.record import usage_record
    from fairagent.types import Usage

    now = {} if paid is None else {"paid": usage_record(paid), "saved": usage_record(paid.saved or Usage())}
    print_results(run, as_json, {"folder": str(folder)}, now, details)
    if as_json:
        return
    if paid:
        print_account(paid)
    lines = [] if details else [f"intervals, tests and more tables: --details, or {folder / 'results.txt'}"]
    lines += [f"tables, TREC runs and values by topic: {folder}", f"page: {folder / PAGE}"]
    lines += [f"calls of models: {folder / TRANSCRIPT}"] if (folder / TRANSCRIPT).is_file() else []
    console().print("\n".join(lines), soft_wrap=True)


def print_results(
    run: Results, as_json: bool, before: Mapping[str, Any] = {}, after: Mapping[str, Any] = {}, details: bool = False
) -> None:
    """Print the verdict and the tables of a run, or one JSON object that has more keys around its own."""
    from fairagent.evaluate.findings import findings, verdict_lines
    from fairagent.evaluate.results import alarms_of, exposure_table, results_text
    from fairagent.evaluate.thresholds import verdicts

    if not as_json:
        options.print_page(results_text(run, terminal_width(), details))
        return
    keys = ("system", "group", "exposure", "target")
    record = {
        "name": run.name,
        "collection": run.collection,
        "baseline": run.baseline,
        "systems": list(run.systems),
        "oracles": list(run.oracle_systems),
        "targets": dict(run.targets),
        "steered_otherwise": list(run.steered_otherwise),
        "equal": [asdict(one) for one in run.equal],
        "excluded": dict(run.excluded),
        "verdict": list(verdict_lines(run)),
        "findings": [one.record() for one in findings(run)],
        "comparisons": [asdict(row) for row in run.comparisons],
        "exposures": [
            {"dimension": name, **dict(zip(keys, row, strict=True))}
            for name in run.dimensions
            for row in exposure_table(run, name).rows
        ],
        "alarms": alarms_of(run),
        **({"thresholds": [one.record() for one in verdicts(run)]} if run.thresholds else {}),
        **run.of_kind.records,
    }
    print_json({**before, "partial": run.partial, **record, **after})


# --- before it runs -----------------------------------------------------------------------------------------------


def estimate(file: ExperimentFile, limit_topics: LimitTopics = None, as_json: AsJson = False) -> None:
    """Check an experiment file, and say how many calls, tokens and dollars it takes at most.

    Tokens are estimated from the rendered prompts, one for every four characters, with the longest reply allowed;
    dollars where the file or the settings have `prices`. What is in the cache costs nothing and is counted all the
    same. Nothing is searched, and no model is called.
    """
    from fairagent.evaluate.check import check_experiment
    from fairagent.evaluate.check import estimate as estimated
    from fairagent.llm.server import KEY_VARIABLE

    # To estimate takes no key: whoever does may not have one yet.
    environ = {**os.environ, KEY_VARIABLE: os.environ.get(KEY_VARIABLE) or "none"}
    rows = estimated(check_experiment(file, limit_topics, environ, labeled=False))
    if as_json:
        print_json({"systems": [asdict(row) for row in rows], "dollars": _total_of(rows)})
    else:
        _print_estimate(rows)


def _total_of(rows: Sequence[Estimate]) -> float | None:
    """The dollars of all together; None where a price is not known."""
    priced = [row.dollars for row in rows if row.dollars is not None]
    return sum(priced) if len(priced) == len(rows) else None


def _print_estimate(rows: Sequence[Estimate]) -> None:
    """Print a line a system, and the sum."""
    from fairagent.evaluate.tables import Table

    lines = []
    for row in rows:
        counts = (f"{count:,}" for count in (row.topics, row.calls, row.input_tokens, row.output_tokens))
        lines.append([row.system, row.model or "-", *counts, dollars(row.dollars)])
    heads = ["system", "model", "topics", "calls", "tokens in", "tokens out", "cost"]
    echo(Table.of(heads, lines).text(terminal_width()))
    most = f"{sum(row.calls for row in rows):,} calls, {dollars(_total_of(rows))}"
    echo(f"\nAt most {most}: each with the longest text and")
    echo("reply allowed (a token: four characters). Corrections of invalid replies and repeated attempts come on top.")


def _print_readiness(file: Path, limit: int | None, as_json: bool, given: Mapping[str, Any]) -> None:
    """Print which systems of an experiment are ready, and end with the exit code that running it would end with."""
    from fairagent.evaluate.check import readiness
    from fairagent.evaluate.tables import aligned

    ready = readiness(file, limit, given=given)
    lacks = {name: [number + 1 for number in lacking] for name, lacking in ready.systems.items()}
    if as_json:
        record = {
            "name": ready.name,
            "topics": ready.topics,
            "lacks": list(ready.lacks),
            "overridden": {name: list(lines) for name, lines in ready.overridden.items()},
            "systems": [{"system": name, "ready": not some, "lacks": some} for name, some in lacks.items()],
            "costs": None if ready.costs is None else [asdict(row) for row in ready.costs],
            "dollars": None if ready.costs is None else _total_of(ready.costs),
        }
        print_json(record)
    else:
        echo("\n".join(filter(None, (ready.name, ready.about))))
        echo(f"\n{len(ready.ready)} of {len(ready.systems)} systems can run here; nothing was run")
        rows = [[name, " ".join(f"[{number}]" for number in some) or "nothing"] for name, some in lacks.items()]
        echo("\n" + "\n".join(aligned([["system", "lacks"], *rows])))
        for number, message in enumerate(ready.lacks, start=1):
            echo(f"\n[{number}] " + message.replace("\n", "\n    "))
        if ready.overridden:
            echo("\nshared settings that a system's profile overrides:\n")
            echo("\n".join(f"{name}: {'; '.join(lines)}" for name, lines in ready.overridden.items()))
        if ready.costs is None:
            echo("\nwhat it costs cannot be counted before what is missing is there")
        elif not any(row.calls for row in ready.costs):
            echo("\nno language model would be called")
        else:
            echo("\nwhat language models would be called:\n")
            _print_estimate(ready.costs)
    if ready.exit_code:
        raise typer.Exit(ready.exit_code)


# --- after it ran ---------------------------------------------------------------------------------------------------

JoinedTo = Annotated[
    Path | None, option("--to", "Where the joined table goes. (default: the first run's folder)", "DIR")
]


def report(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="FOLDER...", help="The run's folder; several with --join.", show_default=False),
    ],
    baseline: Annotated[
        str, option("--baseline", "Test against this system. (default: the experiment's)", "NAME")
    ] = "",
    join: Annotated[
        bool, option("--join", "One table of several runs: a row a system, columns for each run's measures.")
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
    from fairagent.storage.threads import progress

    if join:
        if baseline:
            raise UsageError("--baseline is of one run; joined runs keep their own")
        print_joined(folders, to or folders[0], as_json)
        return
    if len(folders) > 1 or to:
        raise UsageError("several runs, and --to, are for --join; without it, name one folder")
    folder = folders[0]
    with options.status():
        with progress(f"reading the journal of {folder}"):
            run = load_run(folder, baseline)
        with locked(folder), progress(f"writing the tables and the page of {len(run.outcomes):,} rankings"):
            write_results(run, folder)
            write_page(run, folder / PAGE)
    show(run, folder, as_json, details=details)


def print_joined(folders: list[Path], to: Path, as_json: bool) -> None:
    """Print several runs as one table, and write it to the folder `to`."""
    from fairagent.report.joined import NAME, join_runs
    from fairagent.storage.threads import progress

    with options.status(), progress("reading the journals"):
        joined = join_runs(folders)
        joined.write(to)
    if as_json:
        print_json(joined.record())
        return
    options.print_page(joined.text(width=terminal_width()))
    console().print(f"the table as text, Markdown, LaTeX and CSV: {to / NAME}.*", soft_wrap=True)
