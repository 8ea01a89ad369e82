"""An experiment that compares the shipped templates with those of a folder, as `fairagent evaluate` takes it."""

import shlex
from pathlib import Path

from fairagent.pipeline import resolve
from fairagent.report.record import Record
from fairagent.settings import Settings
from fairagent.settings.described import flow
from fairagent.tryout import REFINERS, refining_part

OF_ALL = {"collection", "index", "prompts", "n", "cache", "budget", "prices"}
"""Settings that are no systems', or that an experiment decides."""
LOOPS = ("choose_action", "group_keywords", "group_passages", "judge_relevance")
"""Templates that the loop asks with, as its settings say."""


def comparison(id: str, settings: Settings, folder: Path) -> Record:
    """The experiment's file, the commands that run it, and what stands in the way of its telling anything of `id`."""
    asking = settings
    if id in REFINERS:
        asking = resolve(settings, {"loop": "fair-qr", "refine": refining_part(id, settings)})
    values = {
        name: value for name, value in asking.model_dump(mode="json", exclude_unset=True).items() if name not in OF_ALL
    }
    if settings.index:
        values["index"] = str(Path(settings.index).absolute())
    lines = [
        f"name: {id}, shipped and edited",
        f"collection: {flow(str(Path(settings.collection).absolute()))}",
        "baseline: shipped",
        *(f"{name}: {flow(value)}" for name, value in _of_all(settings).items()),
        "settings:",
        *(f"  {name}: {flow(value)}" for name, value in values.items()),
        "systems:",
        "  shipped: {prompts: ''}",
        f"  edited: {flow({'prompts': str(folder.absolute())})}",
    ]
    file = f"compare-{id}.yaml"
    commands = [shlex.join(["fairagent", command, file]) for command in ("estimate", "evaluate")]
    return {"file": file, "yaml": "\n".join(lines) + "\n", "commands": commands, "note": _note(id, settings)}


def _of_all(settings: Settings) -> Record:
    given = settings.model_dump(mode="json", exclude_unset=True)
    return {name: given[name] for name in ("budget", "prices") if given.get(name)}


def _note(id: str, settings: Settings) -> str:
    """Why the rankings of such an experiment would all be the same; "" where they need not be."""
    if id in REFINERS or (id in LOOPS and id in settings.loop.templates):
        return ""
    if id in LOOPS:
        return f"With these settings nothing asks with {id}: set what does under `settings` (docs/prompts.md)."
    return (
        f"Rankings do not depend on {id}, so that this experiment shows no difference. Take a kind that asks with it "
        "(`fairagent evaluate --template KIND`), with the same two systems."
    )
