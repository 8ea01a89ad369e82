"""`fairagent evaluate --check-only`: which systems can run here, what the others lack, and what all of it costs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from fairagent.cli.estimate import print_estimate, total_of
from fairagent.cli.terminal import echo

if TYPE_CHECKING:
    from fairagent.evaluate.engine.readiness import Readiness


def check_only(file: Path, limit: int | None, as_json: bool) -> None:
    """Print the readiness of an experiment, and end with the exit code that running it would end with."""
    from fairagent.evaluate.engine.readiness import readiness
    from fairagent.report.record import to_json

    found = readiness(file, limit)
    if as_json:
        echo(to_json(_record(found)))
    else:
        _print(found)
    if found.exit_code:
        raise typer.Exit(found.exit_code)


def _record(found: Readiness) -> dict[str, object]:
    return {
        "name": found.name,
        "topics": found.topics,
        "lacks": list(found.lacks),
        "systems": [
            {"system": name, "ready": not lacking, "lacks": [number + 1 for number in lacking]}
            for name, lacking in found.systems.items()
        ],
        "costs": None if found.costs is None else [asdict(row) for row in found.costs],
        "dollars": None if found.costs is None else total_of(found.costs),
    }


def _print(found: Readiness) -> None:
    from fairagent.evaluate.engine.tables import aligned

    echo("\n".join(line for line in (found.name, found.about) if line))
    echo(f"\n{len(found.ready)} of {len(found.systems)} systems can run here; nothing was run")
    table = [["system", "lacks"]]
    table += [
        [name, " ".join(f"[{number + 1}]" for number in lacking) or "nothing"]
        for name, lacking in found.systems.items()
    ]
    echo("\n" + "\n".join(aligned(table)))
    for number, message in enumerate(found.lacks, start=1):
        echo(f"\n[{number}] " + message.replace("\n", "\n    "))
    if found.costs is None:
        echo("\nwhat it costs cannot be counted before what is asked is there")
    elif not any(row.calls for row in found.costs):
        echo("\nno language model would be asked")
    else:
        echo("\nwhat language models would be asked:\n")
        print_estimate(found.costs)
