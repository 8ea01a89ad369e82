"""`fairagent doctor`: check that everything works on this machine, and say how to fix what does not."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairagent.cli import options
from fairagent.cli.options import console, echo
from fairagent.errors import BackendUnavailable, SettingsError
from fairagent.settings import Settings

if TYPE_CHECKING:
    from fairagent.cli.checks import Check

COLORS = {"ok": "green", "note": "yellow", "problem": "bold red"}


def doctor(
    collection: options.CollectionFile = None,
    index: options.IndexFolder = None,
    no_java: Annotated[bool, typer.Option("--no-java", help="Do not start Java.")] = False,
    verify: Annotated[
        Path | None,
        typer.Option(
            "--verify",
            metavar="FOLDER",
            help="Check nothing else than an index (with all beside it) or a run: every byte.",
        ),
    ] = None,
    settings: options.SettingsFile = None,
    assignments: options.Assignments = None,
    as_json: options.AsJson = False,
) -> None:
    """Check what fairagent needs to work here.

    Each line says what was found and, where something is missing, what to do. Ends with 0 where searching works, with
    3 where there is a problem.
    With --verify every byte of an index, of what was made beside it, or of a run is compared with its checksums, and a
    run's tables with its journal. What is opened is only looked at for a moment: sizes, small files, samples of large
    ones.
    """
    from fairagent.cli.checks import Check, all_checks

    checks: list[Check] = []
    if verify is not None:
        from fairagent.cli.verify import verify as verified

        _end([*verified(verify)], "Nothing is damaged.", as_json)
        return
    try:
        chosen = options.settings_of(settings, assignments, collection=collection, index=index)
        checks.append(Check("settings", "ok", str(options.settings_file(settings) or "defaults, no file")))
    except SettingsError as error:
        chosen = Settings()
        checks.append(Check("settings", "problem", str(error), "`fairagent config --defaults` lists all settings"))
    with console().status("checking") if not as_json and console().is_terminal else nullcontext():
        checks += all_checks(chosen, not no_java)
    _end(checks, "Everything that a search needs is here.", as_json)


def _end(checks: Sequence[Check], well: str, as_json: bool) -> None:
    """Print the checks, and end with 3 where there is a problem."""
    from fairagent.report.record import to_json

    problems = sum(check.status == "problem" for check in checks)
    if as_json:
        rows = [{"name": c.name, "status": c.status, "found": c.found, "fix": c.fix} for c in checks]
        echo(to_json({"ok": not problems, "checks": rows}))
    else:
        _print(checks, problems, well)
    if problems:
        raise typer.Exit(BackendUnavailable.exit_code)


def _print(checks: Sequence[Check], problems: int, well: str) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column()
    table.add_column(overflow="fold")
    for check in checks:
        found = Text(check.found)
        if check.fix:
            found.append(f"\n{check.fix}", "bold" if check.status == "problem" else "dim")
        table.add_row(Text(check.status, COLORS[check.status]), Text(check.name), found)
    out = console()
    out.print(table)
    out.print()
    if problems:
        out.print(f"{problems} problem{'s' * (problems != 1)}; what to do stands below each.", style="bold red")
    else:
        out.print(well, style="green")
