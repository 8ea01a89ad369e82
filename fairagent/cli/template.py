"""`fairagent evaluate --template KIND`: an experiment file to start from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from fairagent.errors import UsageError

if TYPE_CHECKING:
    from fairagent.settings import Section
    from fairagent.settings.described import DescribedSection

SECTIONS = {"ranking": "", "questions": "questions", "fair-rag": "fair_rag", "utility": "utility"}
"""Kind of experiment -> the section of the file that makes it one."""


def models() -> dict[str, type[Section]]:
    """Kind of experiment -> the model of its file."""
    from fairagent.evaluate.experiment_file import ExperimentFile

    return dict.fromkeys(SECTIONS, ExperimentFile)


def kinds() -> dict[str, DescribedSection]:
    """Kind of experiment -> the keys of its file."""
    from fairagent.settings.described import DescribedSection, describe

    found = {}
    for kind, model in models().items():
        whole, own = describe(model, "collection", SECTIONS[kind])[""], SECTIONS[kind]
        others = {*SECTIONS.values()} - {own}
        found[kind] = DescribedSection("", tuple(key for key in whole.keys if key.name not in others))
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
