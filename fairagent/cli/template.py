"""`fairagent evaluate --template KIND`: an experiment file to start from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from fairagent.cli.terminal import echo
from fairagent.errors import UsageError

if TYPE_CHECKING:
    from fairagent.evaluate.engine.kind import ExperimentKind
    from fairagent.settings.described import DescribedSection


def models() -> dict[str, type[ExperimentKind]]:
    """Kind of experiment -> the model of its file."""
    from fairagent.evaluate.engine.reading import kind_class, shipped

    return {kind: kind_class(kind) for kind in shipped()}


def kinds() -> dict[str, DescribedSection]:
    """Kind of experiment -> the keys of its file."""
    from fairagent.settings.described import describe

    required = {True: ("kind", "collection"), False: ("kind",)}
    return {kind: describe(model, *required[model.searches])[""] for kind, model in models().items()}


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
        echo(template_text(kind), end="")
        raise typer.Exit
