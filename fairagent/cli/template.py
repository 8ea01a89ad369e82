"""`fairagent evaluate --template KIND`: an experiment file to start from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from fairagent.errors import UsageError

if TYPE_CHECKING:
    from fairagent.settings.described import DescribedSection

SECTIONS = {"ranking": "", "questions": "questions", "fair-rag": "fair_rag", "utility": "utility"}
"""Kind of experiment -> the section of the file that makes it one."""


def kinds() -> dict[str, DescribedSection]:
    """Kind of experiment -> its file."""
    from dataclasses import replace

    from fairagent.evaluate.experiment_file import ExperimentFile
    from fairagent.settings.described import describe

    whole = describe(ExperimentFile)[""]
    found = {}
    for kind, own in SECTIONS.items():
        keys = [key for key in whole.keys if key.name not in {*SECTIONS.values()} - {own}]
        required = {"collection", own}
        keys = [replace(key, required=key.required or key.name in required) for key in keys]
        found[kind] = replace(whole, meaning="", keys=tuple(keys))
    return found


def template_text(kind: str) -> str:
    """The file to start from, for a kind of experiment; UsageError where there is none."""
    from fairagent.settings.described import template
    from fairagent.settings.section import nearest

    described = kinds()
    if kind not in described:
        raise UsageError(f"no experiment of kind {kind!r}; {nearest(kind, described)}")
    about = [
        f"# An experiment of the kind {kind}, for `fairagent evaluate FILE`. Paths are relative to this file.",
        "# A line that begins with # and no space is a key with its default: remove the # to set it.",
        "# What `settings` and `systems` take: `fairagent config --defaults`.",
        "",
    ]
    return "\n".join([*about, *template(described[kind]), ""])


def print_template(kind: str | None) -> None:
    """Print the template that was asked for and stop."""
    if kind is not None:
        typer.echo(template_text(kind), nl=False)
        raise typer.Exit
