"""The journal of a run: a line for each topic and system, on the disk before anything else happens.

A process may die at any moment. Then the last line may be torn; it is ignored, and its topic is done again. A line that
is whole was forced to the disk, so what was paid for once is not paid for twice. Every line ends in a checksum of
itself and of what its system was made from: no changed digit and no line of another run gets into a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from fairagent.digests import unsealed
from fairagent.errors import DataError, Fault
from fairagent.evaluate.engine.outcome import Outcome, from_value, to_line
from fairagent.intake.json_text import parse_json
from fairagent.lines import LineFile, whole_lines

NOT_FINITE = "a number in its outcome is not finite"
"""What is kept of an outcome that cannot be written."""


class Journal(LineFile):
    """The journal of a run; `keys` say of each system what it was made from."""

    def __init__(self, path: Path, keys: Mapping[str, str]) -> None:
        super().__init__(path)
        self._keys = keys

    def add(self, outcome: Outcome) -> None:
        """See `LineFile.write`; an outcome with a number that is not finite is kept as a failed one."""
        try:
            line = to_line(outcome)
        except ValueError:
            failed = Outcome.failure(outcome.topic, outcome.query, outcome.system, NOT_FINITE, outcome.seconds)
            took = {name: getattr(outcome, name) for name in ("calls", "input_tokens", "output_tokens")}
            line = to_line(replace(failed, **took))
        self.write(line, self._keys[outcome.system])


def read_journal(path: Path, keys: Mapping[str, str]) -> list[Outcome]:
    """Every whole line in order; none where there is no file.

    Raises DataError with every line that is no outcome of one of the systems that `keys` names, made from the same.
    """
    outcomes: list[Outcome] = []
    faults: list[Fault] = []
    for number, line in enumerate(whole_lines(path), start=1):
        try:
            outcomes.append(_outcome(line, keys))
        except (ValueError, RecursionError) as error:
            faults.append(Fault(path, number, f"no outcome of this run ({error})"))
    if faults:
        raise DataError("the journal is damaged; remove these lines to have their topics done again", faults)
    return outcomes


def _outcome(line: bytes, keys: Mapping[str, str]) -> Outcome:
    said = parse_json(line.decode())
    system = said.get("system") if isinstance(said, dict) else None
    if not isinstance(system, str) or system not in keys:
        raise ValueError("of no system that the run has")
    unsealed(line, keys[system])
    return from_value(said)
