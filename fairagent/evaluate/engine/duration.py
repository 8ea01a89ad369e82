"""How long an experiment will take, by what its topics took in a run of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fairagent.evaluate.engine.check import Checked
from fairagent.evaluate.engine.fingerprint import fingerprint
from fairagent.evaluate.engine.run import HEAD, load_run


@dataclass(frozen=True, slots=True)
class Measured:
    """What a topic took under one system: the mean in seconds, over so many `topics` of a run."""

    seconds: float
    topics: int


def measured(checked: Checked, folder: Path) -> dict[str, Measured]:
    """System -> what its topics took in the run in `folder`, the failed ones left out; {} where there is no run.

    A system whose settings have changed since then is left out. Raises DataError where the run is damaged.
    """
    if not (folder / HEAD).is_file():
        return {}
    run, now = load_run(folder), fingerprint(checked)["systems"]
    before = run.provenance["systems"]
    assert isinstance(before, Mapping)
    found = {}
    for system in checked.plan.systems:
        seconds = [one.seconds for one in run.outcomes if one.system == system and one.failed is None]
        if seconds and before.get(system) == now[system]:
            found[system] = Measured(sum(seconds) / len(seconds), len(seconds))
    return found
