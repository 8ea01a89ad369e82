"""`fairagent estimate`: upper bounds on the calls, tokens and cost of an experiment before it runs.

`fairagent evaluate --check-only`: which systems can run here, what the others lack, and what all of it costs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fairagent.cli.evaluate import ExperimentFile, LimitTopics
from fairagent.cli.options import AsJson, echo, terminal_width
from fairagent.types.common import dollars

if TYPE_CHECKING:
    from fairagent.evaluate.check import Estimate


def estimate(file: ExperimentFile, limit_topics: LimitTopics = None, as_json: AsJson = False) -> None:
    """Check an experiment file, and say how many calls, tokens and dollars it takes at most.

    Tokens are estimated from the rendered prompts, one for every four characters, with the longest reply allowed;
    dollars where the file or the settings have `prices`. What is in the cache costs nothing and is counted all the
    same. Nothing is searched, and no model is called.
    """
    from fairagent.evaluate.check import check_experiment
    from fairagent.evaluate.check import estimate as estimated
    from fairagent.llm.endpoint import KEY_VARIABLE
    from fairagent.report.record import to_json

    # To estimate takes no key: whoever does may not have one yet.
    environ = {**os.environ, KEY_VARIABLE: os.environ.get(KEY_VARIABLE) or "none"}
    checked = check_experiment(file, limit_topics, environ, labeled=False)
    rows = estimated(checked)
    if as_json:
        echo(to_json({"systems": [asdict(row) for row in rows], "dollars": total_of(rows)}))
    else:
        print_estimate(rows)


def total_of(rows: Sequence[Estimate]) -> float | None:
    """The dollars of all together; None where a price is not known."""
    priced = [row.dollars for row in rows if row.dollars is not None]
    return sum(priced) if len(priced) == len(rows) else None


def print_estimate(rows: Sequence[Estimate]) -> None:
    """Print a line a system, and the sum."""
    from fairagent.evaluate.tables import Table

    lines = []
    for row in rows:
        counts = (f"{count:,}" for count in (row.topics, row.calls, row.input_tokens, row.output_tokens))
        lines.append([row.system, row.model or "-", *counts, dollars(row.dollars)])
    heads = ["system", "model", "topics", "calls", "tokens in", "tokens out", "cost"]
    echo(Table.of(heads, lines).text(terminal_width()))
    calls, cost = sum(row.calls for row in rows), dollars(total_of(rows))
    echo(f"\nAt most {calls:,} calls, {cost}: every refinement, second look of a filter and judgment of")
    echo("an answer, each with the longest text and reply allowed; most are shorter or not needed. Tokens: four")
    echo("characters each.")
    echo("Corrections of invalid replies and repeated attempts come on top.")


def check_only(file: Path, limit: int | None, as_json: bool, given: Mapping[str, Any]) -> None:
    """Print which systems of an experiment are ready, and end with the exit code that running it would end with."""
    from fairagent.evaluate.check import readiness
    from fairagent.evaluate.tables import aligned
    from fairagent.report.record import to_json

    ready = readiness(file, limit, given=given)
    lacks = {name: [number + 1 for number in lacking] for name, lacking in ready.systems.items()}
    if as_json:
        record = {
            "name": ready.name,
            "topics": ready.topics,
            "lacks": list(ready.lacks),
            "overridden": {name: list(lines) for name, lines in ready.overridden.items()},
            "systems": [{"system": name, "ready": not some, "lacks": some} for name, some in lacks.items()],
            "costs": None if ready.costs is None else [asdict(row) for row in ready.costs],
            "dollars": None if ready.costs is None else total_of(ready.costs),
        }
        echo(to_json(record))
    else:
        echo("\n".join(filter(None, (ready.name, ready.about))))
        echo(f"\n{len(ready.ready)} of {len(ready.systems)} systems can run here; nothing was run")
        rows = [[name, " ".join(f"[{number}]" for number in some) or "nothing"] for name, some in lacks.items()]
        echo("\n" + "\n".join(aligned([["system", "lacks"], *rows])))
        for number, message in enumerate(ready.lacks, start=1):
            echo(f"\n[{number}] " + message.replace("\n", "\n    "))
        if ready.overridden:
            echo("\nshared settings that a system's profile overrides:\n")
            echo("\n".join(f"{name}: {'; '.join(lines)}" for name, lines in ready.overridden.items()))
        if ready.costs is None:
            echo("\nwhat it costs cannot be counted before what is missing is there")
        elif not any(row.calls for row in ready.costs):
            echo("\nno language model would be called")
        else:
            echo("\nwhat language models would be called:\n")
            print_estimate(ready.costs)
    if ready.exit_code:
        raise typer.Exit(ready.exit_code)
