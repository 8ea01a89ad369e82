"""`fairagent avoid`: make an avoid library for DebiasRAG from passages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from fairagent.cli.evaluate import PARTIAL
from fairagent.cli.options import Assignments, LogPrompts, SettingsFile, echo, logged, settings_of
from fairagent.errors import UsageError

avoid = typer.Typer(no_args_is_help=True, help="Make an avoid library: the biased passages of DebiasRAG.")


@avoid.callback()
def _group() -> None:
    """Without it typer would take the one command for the group."""


FailedPassage = Literal["drop", "fail"]
Out = Annotated[Path, typer.Option("--out", metavar="FILE", help="The library (JSON lines).", show_default=False)]


@avoid.command("diagnose")
def diagnose(
    data: Annotated[
        Path, typer.Option("--data", metavar="FILE", help="Passages (JSON lines with id and text).", show_default=False)
    ],
    out: Out,
    classes: Annotated[
        list[str] | None,
        typer.Option("--class", metavar="NAME", help="A bias class; may be repeated. (default: the lexicon's)"),
    ] = None,
    batch: Annotated[int, typer.Option("--batch", metavar="N", min=1, help="Passages per call.")] = 10,
    on_error: Annotated[
        FailedPassage,
        typer.Option("--on-error", help="Passages without a usable reply: left out, exit code 7; or end the work."),
    ] = "drop",
    settings: SettingsFile = None,
    assignments: Assignments = None,
    log_prompts: LogPrompts = False,
) -> None:
    """Let the settings' model say which of your passages are biased, and against whom; those are the library.

    Replies are cached: whatever ends the work, repeat the command, and nothing is paid for twice.
    """
    from fairagent.llm.models import Models
    from fairagent.llm.prompts import Prompts
    from fairagent.papers.debias_rag.avoid import diagnose as diagnosed
    from fairagent.papers.debias_rag.avoid import read_avoid, write_avoid
    from fairagent.papers.debias_rag.lexicon import load_lexicon
    from fairagent.types import Document

    chosen = settings_of(settings, assignments, model=logged(log_prompts))
    passages = [Document(one.id, one.text) for one in read_avoid(data)]
    lexicon = getattr(chosen.debias, "lexicon", "")
    kinds = classes or list(load_lexicon(lexicon).order)
    models = Models.of(chosen)
    try:
        diagnosis = diagnosed(models.open(chosen.model), Prompts(chosen.prompts), passages, kinds, batch, on_error)
    finally:
        models.close()
    for id, why in diagnosis.failed:
        echo(f"{id}: not diagnosed: {why}", err=True)
    if not diagnosis.passages:
        raise UsageError(f"the model calls none of {diagnosis.seen} passages biased, so there is no library to write")
    write_avoid(out, diagnosis.passages)
    echo(f"{out}: {len(diagnosis.passages):,} of {diagnosis.seen:,} passages, in {diagnosis.usage.calls:,} calls")
    if diagnosis.failed:
        echo(f"{len(diagnosis.failed):,} passages are left out, since the model gave no usable reply", err=True)
        raise typer.Exit(PARTIAL)
