"""`fairagent prompts`: list, show, check, compare, try out and copy the prompt templates."""

from __future__ import annotations

import difflib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from fairagent.cli.options import AsJson, Assignments, SettingsFile, settings_of
from fairagent.cli.prompts_try import Name, Source, known, try_prompt
from fairagent.cli.terminal import console, echo, error_console
from fairagent.errors import Fault, PromptError, UsageError
from fairagent.intake.malformed import Malformed
from fairagent.intake.text import file_text

if TYPE_CHECKING:
    from fairagent.prompts import Prompt, Prompts

LARGEST = 1 << 20
"""Bytes of a template's file to be shown."""

prompts = typer.Typer(no_args_is_help=True, help="List, show, check, try out, compare and copy the prompt templates.")


@prompts.command("list")
def list_prompts(
    source: Source = None, settings: SettingsFile = None, assignments: Assignments = None, as_json: AsJson = False
) -> None:
    """List the templates that a call would use, and the shipped variants."""
    from fairagent.prompts import variants
    from fairagent.report.record import to_json

    used = _open(source, settings, assignments)
    if as_json:
        records = [_record(used[id]) for id in used.ids]
        echo(to_json({"prompts": records, "variants": list(variants())}))
        return
    out = console()
    for id in used.ids:
        head = used[id].head
        out.print(Text(id, "bold"), f"version {head.version}, replies with {head.reply}", soft_wrap=True)
        out.print(f"    {head.purpose}", soft_wrap=True)
        if used.folder and used[id].path.parent == used.folder:
            out.print(f"    from {used[id].path}", soft_wrap=True)
    out.print(f"variants, for --prompts and `prompts:` in the settings: {', '.join(variants())}")


@prompts.command("show")
def show(
    name: Name,
    source: Source = None,
    settings: SettingsFile = None,
    assignments: Assignments = None,
    as_json: AsJson = False,
) -> None:
    """Print a template as it stands in its file."""
    from fairagent.report.record import to_json

    used = _open(source, settings, assignments)
    prompt = used[known(name, used)]
    text = _text(prompt.path)
    echo(to_json({**_record(prompt), "text": text}) if as_json else text, end="\n" if as_json else "")


@prompts.command("check")
def check(
    source: Source = None, settings: SettingsFile = None, assignments: Assignments = None, as_json: AsJson = False
) -> None:
    """Check templates, and name every fault with its file and line (exit code 4).

    Without --prompts, the shipped ones with their variants, and the settings' own.
    """
    from fairagent.prompts import Prompts, variants
    from fairagent.report.record import to_json

    own = settings_of(settings, assignments).prompts
    found: dict[Fault, None] = {}
    sources = [source] if source is not None else dict.fromkeys(["", *variants(), own])
    templates: set[Path] = set()
    for each in sources:
        try:
            used = Prompts(each)
            templates |= {used[id].path for id in used.ids}
        except PromptError as error:
            found |= dict.fromkeys(error.faults)
    if as_json:
        faults = [{"file": str(fault.path), "line": fault.line, "message": fault.message} for fault in found]
        echo(to_json({"templates": len(templates), "faults": faults}))
    elif found:
        for fault in found:
            error_console().print(str(fault), soft_wrap=True)
        error_console().print(f"{len(found)} fault{'s' * (len(found) != 1)}")
    else:
        console().print(f"{len(templates)} templates, no fault")
    if found:
        raise typer.Exit(PromptError.exit_code)


@prompts.command("diff")
def diff(source: Source = None, settings: SettingsFile = None, assignments: Assignments = None) -> None:
    """Show how the templates of a folder or variant differ from the default ones."""
    from fairagent.prompts import folder_of, shipped_folder

    chosen = source if source is not None else settings_of(settings, assignments).prompts
    folder = folder_of(chosen)
    if folder is None:
        raise UsageError("nothing to compare with the default templates: name a folder or variant with --prompts")
    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder}")
    for path in sorted(folder.glob("*.j2")):
        default = shipped_folder() / path.name
        before = _text(default).splitlines() if default.is_file() else []
        after = _text(path).splitlines()
        lines = list(difflib.unified_diff(before, after, f"default/{path.name}", str(path), lineterm=""))
        echo("\n".join(lines) or f"{path} is as the default one")


@prompts.command("eject")
def eject(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to copy to.", show_default=False)],
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Their names. (default: all)")] = None,
    source: Annotated[
        str, typer.Option("--prompts", metavar="DIR", help="Copy from this variant or folder. (default: as shipped)")
    ] = "",
) -> None:
    """Copy templates to a folder, to edit them there; nothing is overwritten."""
    from fairagent.prompts import Prompts

    used = Prompts(source)
    paths = [used[known(name, used)].path for name in names or used.ids]
    there = [path.name for path in paths if (folder / path.name).exists()]
    if there:
        raise UsageError(f"{folder} already holds {', '.join(there)}; nothing was copied. Name another folder")
    folder.mkdir(parents=True, exist_ok=True)
    for path in paths:
        shutil.copyfile(path, folder / path.name)
    out = console()
    out.print(f"{', '.join(path.name for path in paths)} copied to {folder}", soft_wrap=True)
    out.print(f"Edit, then: fairagent prompts check --prompts {folder}", soft_wrap=True)


prompts.command("try")(try_prompt)


def _text(path: Path) -> str:
    """A template's file as it is; DataError where it cannot be read."""
    try:
        return file_text(path, LARGEST)
    except (OSError, Malformed) as error:
        raise PromptError("a prompt template cannot be read", [Fault(path, None, str(error))]) from None


def _open(source: str | None, settings: Path | None, assignments: list[str] | None) -> Prompts:
    from fairagent.prompts import Prompts

    return Prompts(source if source is not None else settings_of(settings, assignments).prompts)


def _record(prompt: Prompt) -> dict[str, object]:
    head = prompt.head
    return {**head.model_dump(mode="json"), "file": str(prompt.path), "sha256": prompt.sha256}
