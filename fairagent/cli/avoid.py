"""`fairagent avoid`: make an avoid library for DebiasRAG, from passages or from what a local model completes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from fairagent.cli.evaluate import PARTIAL
from fairagent.cli.options import Assignments, LogPrompts, SettingsFile, echo, logged, settings_of
from fairagent.errors import UsageError
from fairagent.storage.readers import Malformed, file_text

avoid = typer.Typer(no_args_is_help=True, help="Make an avoid library: the biased passages of DebiasRAG.")

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


@avoid.command("search")
def search(
    model: Annotated[
        str, typer.Option("--model", metavar="NAME", help="A local model: folder or name.", show_default=False)
    ],
    groups: Annotated[
        list[str],
        typer.Option(
            "--group",
            metavar="A/B",
            help="Words that differ only in the group, e.g. he/she.",
            show_default=False,
        ),
    ],
    words: Annotated[
        Path, typer.Option("--words", metavar="FILE", help="The words that may complete a sentence, one per line.")
    ],
    vocabulary: Annotated[
        Path, typer.Option("--vocabulary", metavar="FILE", help="The words that prompts are made of, one per line.")
    ],
    out: Out,
    masked: Annotated[bool, typer.Option("--masked", help="The model is a masked one. (default: causal)")] = False,
    length: Annotated[int, typer.Option("--length", metavar="N", min=1, help="The most words of a prompt.")] = 5,
    width: Annotated[int, typer.Option("--width", metavar="N", min=1, help="Prompts retained (beam width).")] = 10,
    kind: Annotated[str, typer.Option("--class", metavar="NAME", help="The bias class of the passages.")] = "",
    device: Annotated[str, typer.Option("--device", metavar="NAME", help="torch's. (default: a GPU if any)")] = "",
) -> None:
    """Search for prompts after which a local model goes on differently for each group (Auto-Debias)."""
    from fairagent.llm.likelihood import open_local
    from fairagent.papers.debias_rag.avoid import write_avoid
    from fairagent.papers.debias_rag.prompt_search import LocalCompletions, passages_of, search_prompts

    members = [tuple(word.strip() for word in group.split("/")) for group in groups]
    opened = open_local("masked" if masked else "causal", model, device)
    completions = LocalCompletions(opened, _lines(words))
    prompts = search_prompts(completions, members, _lines(vocabulary), length, width)
    passages = passages_of(prompts, completions, members, kind)
    write_avoid(out, passages)
    for prompt in prompts:
        echo(f"{prompt.divergence:.4f}  {prompt.text}")
    if completions.left_out:
        echo(f"left out, more than one token of the model's: {', '.join(completions.left_out)}")
    echo(f"{out}: {len(passages):,} passages from {len(prompts):,} prompts")


LARGEST = 1 << 26
"""Bytes of a file of words."""


def _lines(path: Path) -> list[str]:
    """The words of a file, a word a line; UsageError where there are none."""
    try:
        words = [line.strip() for line in file_text(path, LARGEST).splitlines() if line.strip()]
    except (OSError, Malformed) as error:
        raise UsageError(f"{path}: cannot be read ({error})") from None
    if not words:
        raise UsageError(f"{path}: holds no word")
    return words
