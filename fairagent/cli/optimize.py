"""`fairagent prompts optimize`: a better wording of a template, found on half of the topics, tested on the others."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairagent.cli import options
from fairagent.cli.evaluate import LimitTopics, print_account
from fairagent.cli.options import (
    announce_calls,
    build_progress,
    console,
    echo,
    error_console,
    going_on,
    plural,
    progress_bar,
)
from fairagent.errors import UsageError

if TYPE_CHECKING:
    from fairagent.guests.gepa import OptimizedTemplate, OptimizePlan

OWN = Path("my-prompts")
"""Where a winner is saved if the settings name no folder of one's own; the studio's as well."""


def optimize(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A template, e.g. refine_query.", show_default=False)],
    candidates: Annotated[
        int, typer.Option("--candidates", metavar="N", min=1, help="How many wordings to ask for at most.")
    ] = 10,
    batch: Annotated[
        int, typer.Option("--batch", metavar="N", min=1, help="On how many topics a wording is tried before all.")
    ] = 3,
    limit_topics: LimitTopics = None,
    proposer: Annotated[
        str, typer.Option("--proposer", metavar="MODEL", help="The model that writes wordings. (default: model.name)")
    ] = "",
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Everything random derives from it.")] = 0,
    run: Annotated[
        Path | None, typer.Option("--run", metavar="DIR", help="The run's folder. (default: runs/optimize-NAME)")
    ] = None,
    new: Annotated[bool, typer.Option("--new", help="Start over: delete what the folder holds of a run.")] = False,
    check_only: Annotated[
        bool, typer.Option("--check-only", help="Ask nothing: say what would be asked, and what it costs at most.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask the model without asking you first.")] = False,
    save: Annotated[
        bool, typer.Option("--save", help="Save a better wording in the folder of your own templates.")
    ] = False,
    source: Annotated[
        str | None,
        typer.Option("--prompts", metavar="DIR", help="A folder or shipped variant. (default: the settings')"),
    ] = None,
    collection: options.CollectionFile = None,
    index: options.IndexFolder = None,
    settings: options.SettingsFile = None,
    assignments: options.Assignments = None,
    log_prompts: options.LogPrompts = False,
    as_json: options.AsJson = False,
) -> None:
    """Look for a better wording of a template, with GEPA (pip install 'fairagent[optimize]').

    A model is asked for wordings, and told what the last one did on a few topics: which group lacks what, which words
    were used or refused, the gap before and after, and relevance where it is judged. They are scored on the tuning half
    of the topics (by nDCG times AWRF, without judgments by AWRF); one with an error of `prompts check` is never used.
    The best one is shown as a diff, with its test on the other half. Nothing is saved without --save, or where it is no
    better there. `budget` limits all of it. Repeat the command to go on where it was; nothing is paid for twice.
    """
    from fairagent.cli.prompts import known
    from fairagent.cli.telling import of_calls
    from fairagent.guests.gepa import optimize as carry_out
    from fairagent.guests.gepa import plan_optimization
    from fairagent.llm.prompts import Prompts
    from fairagent.report.record import to_json

    chosen = options.settings_of(
        settings,
        assignments,
        prompts=source,
        collection=collection,
        index=index,
        model=options.logged(log_prompts),
    )
    id = known(name, Prompts(chosen.prompts))
    target = _target(id, chosen.prompts) if save else None
    plan = plan_optimization(id, chosen, candidates, batch, limit_topics, seed, proposer)
    folder = run or Path("runs") / f"optimize-{id}"
    askings = [*of_calls([*plan.of_tuning(), *plan.of_testing()], plan.prices)]
    if check_only:
        record = {
            "template": id,
            "tune": list(plan.tune),
            "test": list(plan.test),
            "score": plan.measure,
            "models": [asking._asdict() for asking in askings],
        }
        echo(to_json(record)) if as_json else _print_plan(plan)
        if not as_json:
            announce_calls(askings)
        return
    if not as_json:
        _print_plan(plan)
    announce_calls(askings)
    if not yes:
        _agree()
    _build_index(plan)
    with going_on("what was paid for stays; to go on, repeat the command without --new"), progress_bar() as bar:
        task = bar.add_task(f"optimizing {id}", total=candidates)

        def tell(what: str, number: int, score: float) -> None:
            texts = {"start": f"the start scores {score:.4f}", "refused": f"wording {number} was no template"}
            error_console().print(texts.get(what, f"wording {number} scores {score:.4f}"), soft_wrap=True)
            bar.update(task, completed=number)

        optimized = carry_out(plan, folder, new, tell)
    saved = _save(optimized, target) if target else None
    if as_json:
        echo(to_json({"template": id, "folder": str(folder), **_record(optimized, id), "saved": saved and str(saved)}))
        return
    _print(optimized, plan, folder, saved)
    print_account(optimized.usage)


def _print_plan(plan: OptimizePlan) -> None:
    from fairagent.measures.parse import label_of

    console().print(
        f"{plan.id}: at most {plural(plan.candidates, 'wording')}, scored by {label_of(plan.measure)} on "
        f"{plural(len(plan.tune), 'topic')}; the best is tested on {len(plan.test)} others",
        soft_wrap=True,
    )


def _agree() -> None:
    try:
        typer.confirm("Ask?", default=True, abort=True, err=True)
    except typer.Abort:
        raise UsageError("nobody agreed, so nothing was asked; --yes asks without a question") from None


def _build_index(plan: OptimizePlan) -> None:
    from fairagent.evaluate.experiment import build_indexes

    with progress_bar() as bar:
        build_indexes(plan.checked, build_progress(bar, plan.checked.collection))


def _target(id: str, prompts: str) -> Path:
    """Where a winner is saved: in the settings' folder, or in one of the user's own."""
    from fairagent.llm.prompts import shipped_folder, variants

    folder = Path(prompts) if prompts and prompts not in variants() else OWN
    path = folder / f"{id}.j2"
    if folder.resolve().is_relative_to(shipped_folder().resolve()):
        raise UsageError(f"{folder} is that of the shipped templates; name another with --prompts")
    if path.is_symlink():
        raise UsageError(f"{path} is a link to another file; nothing would be written")
    if folder == OWN and path.exists():
        raise UsageError(f"{path} is there and is not what is optimized; with --prompts {folder} it is")
    return path


def _save(optimized: OptimizedTemplate, path: Path) -> Path | None:
    """Write the winner, if it is better on the other half, too; its path."""
    from fairagent.storage.files import explained, write_whole

    if not optimized.better:
        return None
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, optimized.winner)
    return path


def _record(optimized: OptimizedTemplate, id: str) -> dict[str, Any]:
    usage = optimized.usage.whole
    return {
        "better": optimized.better,
        "scores": {"start": optimized.scores[0], "winner": optimized.scores[1]},
        "wordings": {"asked": optimized.candidates, "refused": optimized.refused},
        "ended": optimized.ended,
        "test": optimized.test and asdict(optimized.test),
        "diff": optimized.diff(id) if optimized.winner else [],
        "winner": optimized.winner or None,
        "usage": {name: getattr(usage, name) for name in ("calls", "input_tokens", "output_tokens", "cost")},
    }


def _print(optimized: OptimizedTemplate, plan: OptimizePlan, folder: Path, saved: Path | None) -> None:
    from fairagent.measures.parse import label_of

    out, test = console(), optimized.test
    refused = f", {optimized.refused} of them no template" if optimized.refused else ""
    out.print(f"{plural(optimized.candidates, 'wording')} asked for{refused}: {optimized.ended}", soft_wrap=True)
    if test is None:
        out.print(
            f"No wording is better than the start, which scores {optimized.scores[0]:.4f} on the tuning half. "
            "Nothing is saved.",
            soft_wrap=True,
        )
        return
    echo("\n".join(optimized.diff(plan.id)))
    out.print(f"tuning half: {optimized.scores[0]:.4f} -> {optimized.scores[1]:.4f}")
    for measure, (before, after) in test.means.items():
        out.print(f"other half, {label_of(measure)}: {before:.4f} -> {after:.4f}", soft_wrap=True)
    p = "none, of one topic" if test.p is None else f"{test.p:.3f}"
    out.print(
        f"other half, {plural(test.topics, 'topic')}: difference {test.difference:+.4f}, 95% interval {test.low:+.4f} "
        f"to {test.high:+.4f}, randomization test p = {p}; "
        f"{test.wins} better, {test.ties} the same, {test.losses} worse",
        soft_wrap=True,
    )
    if not optimized.better:
        out.print("On the other half it is no better than the start. Nothing is saved.")
        return
    if test.p is None or test.p >= 0.05:
        out.print("It is better on the other half, too, but so much may be chance.")
    else:
        out.print("It is better on the other half, too.")
    if saved:
        out.print(f"saved: {saved}", soft_wrap=True)
    else:
        out.print("Not saved; the same command with --save does it, and asks nothing again.", soft_wrap=True)
    out.print(f"what was tried: {folder}", soft_wrap=True)
