"""The rows of a utility experiment: every system, with its documents shown in each order."""

from __future__ import annotations

from collections.abc import Mapping

from fairagent.evaluate.plan import SystemPlan
from fairagent.evaluate.utility.section import IN_ORDER, OF_JUDGMENTS, Shown, Utility


def rows(systems: Mapping[str, SystemPlan], section: Utility) -> dict[str, SystemPlan]:
    """The rows by their names, system by system; what is taken from the judgments is shown in its own order alone."""
    found: dict[str, SystemPlan] = {}
    for name, system in systems.items():
        for order in section.orders if system.settings.engine.kind not in OF_JUDGMENTS else section.orders[:1]:
            row = f"{name} {IN_ORDER[order]}".strip()
            found[row] = system.model_copy(update={"shown": Shown(of=name, order=order)})
    return found


def generator(system: SystemPlan) -> str:
    """What tells one generator from another: who answers, how it is asked, and how much it is shown."""
    settings = system.settings
    asked = f"{settings.model.model_dump_json()} {settings.prompts}" if settings.generate.templates else ""
    return f"{settings.generate.model_dump_json()} {settings.context.tokens} {asked}"
