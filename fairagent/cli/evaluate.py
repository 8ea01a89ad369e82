"""`fairagent evaluate`: run an experiment file and print its results, check it, or print a file to start from."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairagent.cli.options import (
    AsJson,
    Details,
    LogPrompts,
    Target,
    announce_calls,
    build_progress,
    console,
    echo,
    error_console,
    going_on,
    logged,
    print_page,
    progress_bar,
    target_of,
    terminal_width,
)
from fairagent.errors import UsageError
from fairagent.types.common import counted, dollars

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairagent.evaluate.check import CheckedExperiment
    from fairagent.evaluate.plan import Plan
    from fairagent.evaluate.run import Run
    from fairagent.evaluate.workers import Workers
    from fairagent.llm.models import Models
    from fairagent.settings.described import DescribedSection
    from fairagent.types import Usage

WORKERS = 4
LOG_PROMPTS = "FAIRAGENT_MODEL__LOG_PROMPTS"
PARTIAL = 7
"""The exit code of a run in which topics failed."""
MISSED = 8
"""The exit code of a run that misses a threshold of its experiment, whether topics failed or not."""


def kinds() -> dict[str, DescribedSection]:
    """Kind of experiment -> the keys of its file."""
    from fairagent.evaluate.plan import shipped_kinds
    from fairagent.settings.described import describe

    required = {True: ("kind", "collection"), False: ("kind",)}
    return {kind: describe(model, *required["engine" in model.uses])[""] for kind, model in shipped_kinds().items()}


def template_text(kind: str) -> str:
    """The file to start from, for a kind of experiment; UsageError where there is none."""
    from fairagent.settings.described import template
    from fairagent.settings.faults import no_such

    described = kinds()
    if kind not in described:
        raise UsageError(no_such("experiment of kind", kind, described))
    about = [
        f"# An experiment of the kind {kind}, for `fairagent evaluate FILE`. Paths are relative to this file.",
        "# A line that begins with # and no space is a key with its default: remove the # to set it.",
        "# What `settings` and `systems` take: `fairagent config --defaults`.",
        "",
    ]
    return "\n".join([*about, *template(described[kind]), ""])


def print_template(kind: str | None) -> None:
    """Print the template of a kind and stop."""
    if kind is not None:
        echo(template_text(kind), end="")
        raise typer.Exit


ExperimentFile = Annotated[Path, typer.Argument(metavar="FILE", help="The experiment file (YAML).", show_default=False)]
LimitTopics = Annotated[
    int | None,
    typer.Option(
        "--limit-topics",
        metavar="N",
        min=1,
        help="Only N topics, drawn by the experiment's seed: of each group of topics or class of questions its share. "
        "(default: all)",
    ),
]
RunFolder = Annotated[Path | None, typer.Option("--run", metavar="DIR", help="The run's folder. (default: runs/NAME)")]
Template = Annotated[
    str | None,
    typer.Option(
        "--template",
        metavar="KIND",
        callback=print_template,
        is_eager=True,
        help="Print a commented experiment file of this kind to start from, and stop.",
    ),
]


def evaluate(
    file: ExperimentFile,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            metavar="N",
            min=1,
            help=f"Topics at a time: in threads where a model is called (default: {WORKERS}), else in processes "
            "(default: the cores, at most as many), which start where more than 10 s are left to do",
        ),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option("--dask", metavar="ADDRESS", help="Run on a Dask cluster; `local` starts one of --workers here."),
    ] = None,
    run: RunFolder = None,
    target: Target = None,
    new: Annotated[bool, typer.Option("--new", help="Start over: delete what the folder holds of a run.")] = False,
    limit_topics: LimitTopics = None,
    check_only: Annotated[
        bool,
        typer.Option("--check-only", help="Run nothing: say which systems can run here, and what the others lack."),
    ] = False,
    log_prompts: LogPrompts = False,
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
    given = {} if target is None else {"target": target_of(target)}
    if check_only:
        from fairagent.cli.estimate import check_only as check

        check(file, limit_topics, as_json, given)
        return
    from fairagent.evaluate.check import check_experiment, estimate
    from fairagent.evaluate.workers import LOCAL
    from fairagent.storage.packages import expect_installed

    checked = check_experiment(file, limit_topics, environment(log_prompts), given=given)
    if dask is not None:
        if workers is not None and dask != LOCAL:
            raise UsageError("--workers does not go with the address of a cluster: that has its workers already")
        expect_installed("distributed", "--dask")
    announce_calls((row.model, row.calls, row.dollars) for row in estimate(checked))
    folder = run or run_folder(checked.plan)
    finished, usage = carried_out(checked, folder, workers, dask, new)
    show(finished, folder, as_json, usage, details)
    if not _reached(finished, as_json):
        raise typer.Exit(MISSED)
    if has_failures(finished):
        raise typer.Exit(PARTIAL)


def carried_out(
    checked: CheckedExperiment,
    folder: Path,
    workers: int | None = None,
    dask: str | None = None,
    new: bool = False,
    passing: bool = False,
) -> tuple[Run, Usage]:
    """A checked experiment's run in `folder`, done or gone on with, and what was paid for it now; with its page.

    In a folder that is `passing` there is no page, and nothing to go on with.
    """
    from fairagent.evaluate.experiment import build_indexes, run_experiment
    from fairagent.evaluate.results import PAGE
    from fairagent.report.page import write_page

    repeat = f"to go on, repeat the command{' without --new' if new else ''}"
    with going_on(repeat), progress_bar() as bar:
        build_indexes(checked, build_progress(bar, checked.collection))
    with (
        accounted(checked.plan) as models,
        nullcontext() if passing else going_on(f"what is done stays; {repeat}"),
        _workers(workers, dask, checked.plan) as opened,
        progress_bar() as bar,
    ):
        task = bar.add_task(f"evaluating {checked.plan.experiment.name}", total=None)

        busy = False

        def progress(done: int, total: int) -> None:
            nonlocal busy
            busy = busy or done < total
            bar.update(task, completed=done, total=total)

        finished = run_experiment(checked, folder, opened, new, progress, models=models)
        # Processes that end now would count as started.
        idle = workers is not None and workers > 1 and busy and opened.alone
    if idle:
        error_console().print(
            f"--workers {workers}: one process did it all; to start another takes longer than it saves here"
        )
    if not passing:
        write_page(finished, folder / PAGE)
    return finished, models.usage


def has_failures(run: Run) -> bool:
    """Whether topics failed under any system."""
    return any(outcome.failed for outcome in run.outcomes)


def run_folder(plan: Plan) -> Path:
    """The folder of an experiment's run, where none is named."""
    from fairagent.storage.files import file_name

    return Path("runs") / file_name(plan.experiment.name)


def environment(log_prompts: bool) -> dict[str, str]:
    """The environment that an experiment's settings are read with."""
    return {**os.environ, **({LOG_PROMPTS: "true"} if logged(log_prompts) else {})}


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


def show(run: Run, folder: Path, as_json: bool, paid: Usage | None = None, details: bool = False) -> None:
    """Print the results of a run, and what was paid for them now."""
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
    if not details:
        console().print(f"intervals, tests and more tables: --details, or {folder / 'results.txt'}", soft_wrap=True)
    console().print(f"tables, TREC runs and values by topic: {folder}\npage: {folder / PAGE}", soft_wrap=True)
    if (folder / TRANSCRIPT).is_file():
        console().print(f"calls of models: {folder / TRANSCRIPT}", soft_wrap=True)


def _reached(run: Run, as_json: bool) -> bool:
    """Whether a run meets its thresholds, printed; those that it misses stand on standard error."""
    from fairagent.evaluate.thresholds import summary, thresholds_table, verdicts

    if missed := not all(one.met for one in verdicts(run)):
        error_console().print(thresholds_table(run, met=False).text(terminal_width()), soft_wrap=True)
    elif run.thresholds and not as_json:
        console().print(summary(run))
    return not missed


def print_results(
    run: Run,
    as_json: bool,
    before: Mapping[str, Any] = {},
    after: Mapping[str, Any] = {},
    details: bool = False,
) -> None:
    """Print the verdict and the tables of a run, or one JSON object that has more keys around its own."""
    from fairagent.evaluate.findings import findings, verdict_lines
    from fairagent.evaluate.results import alarms_of, exposure_table, results_text
    from fairagent.evaluate.thresholds import verdicts
    from fairagent.report.record import to_json

    if not as_json:
        print_page(results_text(run, terminal_width(), details))
        return
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
            {"dimension": name, **dict(zip(("system", "group", "exposure", "target"), row, strict=True))}
            for name in run.dimensions
            for row in exposure_table(run, name).rows
        ],
        "alarms": alarms_of(run),
        **({"thresholds": [one.record() for one in verdicts(run)]} if run.thresholds else {}),
        **run.of_kind.records,
    }
    echo(to_json({**before, "partial": run.partial, **record, **after}))


def print_account(paid: Usage, error: bool = False) -> None:
    """Print what was paid, if a model was called, or the cache answered."""
    if line := account(paid):
        (error_console() if error else console()).print(line, soft_wrap=True)


def account(paid: Usage) -> str:
    """What was paid to language models now and what the cache saved, in one line; "" without any call.

    >>> from fairagent.types import Usage
    >>> account(Usage(saved=Usage(calls=231, input_tokens=100_000, output_tokens=20_000, cost=0.04)))
    'paid now: 0 calls; the cache saved 231 calls, 120,000 tokens, $0.0400'
    """
    now = _amount(paid) if paid.calls else "0 calls"
    if paid.saved is None:
        return f"paid now: {now}" if paid.calls else ""
    return f"paid now: {now}; the cache saved {_amount(paid.saved)}"


def _amount(usage: Usage) -> str:
    tokens = usage.input_tokens + usage.output_tokens
    return f"{counted(usage.calls, 'call')}, {tokens:,} tokens, {dollars(usage.cost)}"


def _workers(workers: int | None, address: str | None, plan: Plan) -> AbstractContextManager[Workers]:
    from fairagent.evaluate.workers import crew, dask, threads
    from fairagent.storage.processes import cores

    if address is not None:
        return dask(address, workers)
    if "engine" in plan.experiment.uses and not any(system.asks for system in plan.systems.values()):
        return crew(workers or min(WORKERS, cores()))
    # They wait for a model, share its connections and budget, or its weights.
    return threads(workers or WORKERS)
