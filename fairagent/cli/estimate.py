"""`fairagent estimate`: upper bounds on the calls, tokens and cost of an experiment, before it runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from fairagent.cli.evaluate import ExperimentFile, LimitTopics
from fairagent.cli.options import AsJson
from fairagent.cli.terminal import echo

if TYPE_CHECKING:
    from fairagent.evaluate.engine.worst_case import Estimate


def estimate(file: ExperimentFile, limit_topics: LimitTopics = None, as_json: AsJson = False) -> None:
    """Check an experiment file, and say how many calls, tokens and dollars it takes at most.

    Tokens are estimated from the rendered prompts, one for every four characters, with the longest reply allowed;
    dollars where the file or the settings have `prices`. What is in the cache costs nothing and is counted all the
    same. Nothing is searched, and no model is asked.
    """
    from fairagent.evaluate.engine.check import check_experiment
    from fairagent.evaluate.engine.worst_case import estimate as estimated
    from fairagent.llm.endpoint import KEY_VARIABLE
    from fairagent.report.record import to_json

    # To estimate takes no key: whoever does may not have one yet.
    environ = {**os.environ, KEY_VARIABLE: os.environ.get(KEY_VARIABLE) or "none"}
    rows = estimated(check_experiment(file, limit_topics, environ, labeled=False))
    if as_json:
        echo(to_json({"systems": [asdict(row) for row in rows], "dollars": total_of(rows)}))
        return
    print_estimate(rows)


def total_of(rows: Sequence[Estimate]) -> float | None:
    """The dollars of all together; None where a price is not known."""
    priced = [row.dollars for row in rows if row.dollars is not None]
    return sum(priced) if len(priced) == len(rows) else None


def print_estimate(rows: Sequence[Estimate]) -> None:
    """Print a line a system, and the sum."""
    from fairagent.evaluate.engine.tables import aligned

    table = [["system", "model", "topics", "calls", "tokens in", "tokens out", "cost"]]
    table += [[row.system, row.model or "-", str(row.topics), *_counts(row), _dollars(row.dollars)] for row in rows]
    echo("\n".join(aligned(table)))
    calls, dollars = sum(row.calls for row in rows), _dollars(total_of(rows))
    echo(f"\nAt most {calls:,} calls, {dollars}: every refinement, second look of a filter and judgment of")
    echo("an answer, each with the longest text and reply allowed; most are shorter or not needed. Tokens: four")
    echo("characters each.")
    echo("Corrections of invalid replies and repeated attempts come on top.")


def _counts(row: Estimate) -> list[str]:
    return [f"{row.calls:,}", f"{row.input_tokens:,}", f"{row.output_tokens:,}"]


def _dollars(value: float | None) -> str:
    return "price unknown" if value is None else f"${value:.4f}"
