"""`fairagent estimate`: upper bounds on the calls, tokens and cost of an experiment before it runs, and its time.

`fairagent evaluate --check-only`: which systems can run here, what the others lack, and what all of it costs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from fairagent.cli.evaluate import ExperimentFile, LimitTopics, RunFolder
from fairagent.cli.options import AsJson, echo

if TYPE_CHECKING:
    from fairagent.evaluate.check import CheckedExperiment
    from fairagent.evaluate.run import TopicTime
    from fairagent.evaluate.worst_case import Estimate, Readiness


def estimate(
    file: ExperimentFile, limit_topics: LimitTopics = None, run: RunFolder = None, as_json: AsJson = False
) -> None:
    """Check an experiment file, and say how many calls, tokens and dollars it takes at most, and how long.

    Tokens are estimated from the rendered prompts, one for every four characters, with the longest reply allowed;
    dollars where the file or the settings have `prices`. What is in the cache costs nothing and is counted all the
    same. The time goes by the topics that a run of the experiment has done, with however few (`evaluate
    --limit-topics 3`); without one only the wait for models has a bound. Nothing is searched, and no model is asked.
    """
    from fairagent.evaluate.check import check_experiment
    from fairagent.evaluate.run import topic_times
    from fairagent.evaluate.worst_case import estimate as estimated
    from fairagent.llm.endpoint import KEY_VARIABLE
    from fairagent.report.record import to_json
    from fairagent.storage.files import file_name

    # To estimate takes no key: whoever does may not have one yet.
    environ = {**os.environ, KEY_VARIABLE: os.environ.get(KEY_VARIABLE) or "none"}
    checked = check_experiment(file, limit_topics, environ, labeled=False)
    folder = run or Path("runs") / file_name(checked.plan.experiment.name)
    rows, known = estimated(checked), topic_times(checked, folder)
    if as_json:
        times = {name: asdict(one) for name, one in known.items()}
        echo(to_json({"systems": [asdict(row) for row in rows], "dollars": total_of(rows), "measured": times}))
        return
    print_estimate(rows)
    echo("\n".join(["", *_time(rows, known, folder, checked)]))


def total_of(rows: Sequence[Estimate]) -> float | None:
    """The dollars of all together; None where a price is not known."""
    priced = [row.dollars for row in rows if row.dollars is not None]
    return sum(priced) if len(priced) == len(rows) else None


def print_estimate(rows: Sequence[Estimate]) -> None:
    """Print a line a system, and the sum."""
    from fairagent.evaluate.tables import aligned

    table = [["system", "model", "topics", "calls", "tokens in", "tokens out", "cost"]]
    table += [[row.system, row.model or "-", str(row.topics), *_counts(row), _dollars(row.dollars)] for row in rows]
    echo("\n".join(aligned(table)))
    calls, dollars = sum(row.calls for row in rows), _dollars(total_of(rows))
    echo(f"\nAt most {calls:,} calls, {dollars}: every refinement, second look of a filter and judgment of")
    echo("an answer, each with the longest text and reply allowed; most are shorter or not needed. Tokens: four")
    echo("characters each.")
    echo("Corrections of invalid replies and repeated attempts come on top.")


def _time(
    rows: Sequence[Estimate], known: Mapping[str, TopicTime], folder: Path, checked: CheckedExperiment
) -> Iterator[str]:
    """How long it takes, and what that rests on."""
    from fairagent.retrieve.forecast import in_words

    systems = list(checked.plan.systems)
    if known:
        seconds = len(checked.plan.topics) * sum(one.seconds for one in known.values())
        fewest = min(one.topics for one in known.values())
        all_of_them = "" if len(known) == len(systems) else f" for {', '.join(known)}"
        yield f"About {in_words(seconds)}{all_of_them}, one topic after the other (workers divide that): by the mean of"
        yield f"{fewest:,} topics or more a system in {folder}. A reply that came from the cache took no time there."
    if unknown := [system for system in systems if system not in known]:
        yield f"How long is not known for {', '.join(unknown)}: {folder} has no topic of it under these settings."
    if waiting := sum(row.waiting for row in rows):
        calls = sum(row.calls for row in rows)
        yield f"Waiting for models takes at most {in_words(waiting)}: {calls:,} calls one after the other, each up to"
        yield "its time limit (model.timeout); calls at once divide that."


def _counts(row: Estimate) -> list[str]:
    return [f"{row.calls:,}", f"{row.input_tokens:,}", f"{row.output_tokens:,}"]


def _dollars(value: float | None) -> str:
    return "price unknown" if value is None else f"${value:.4f}"


def check_only(file: Path, limit: int | None, as_json: bool) -> None:
    """Print the readiness of an experiment, and end with the exit code that running it would end with."""
    from fairagent.evaluate.worst_case import readiness
    from fairagent.report.record import to_json

    found = readiness(file, limit)
    if as_json:
        echo(to_json(_readiness_record(found)))
    else:
        _print(found)
    if found.exit_code:
        raise typer.Exit(found.exit_code)


def _readiness_record(found: Readiness) -> dict[str, object]:
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
    from fairagent.evaluate.tables import aligned

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
