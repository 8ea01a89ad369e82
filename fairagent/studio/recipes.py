"""How a search is repeated elsewhere: in Python, from a settings file, on the command line."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairagent.extend import PlainRecord, Query, SearchOptions, flow
from fairagent.studio.calls import Choices

if TYPE_CHECKING:
    from fairagent.studio.desk import StartSettings

PLAIN = SearchOptions()


def recipes(
    start: StartSettings,
    choices: Choices,
    query: Query,
    command: str = "search",
    options: SearchOptions = PLAIN,
    dimensions: Sequence[str] = (),
) -> PlainRecord:
    """A search as people would repeat it: in Python, as a settings file (with the profile's), on the command line.

    `options` are those of this search alone, in a collection with these `dimensions`; SettingsError where they do not
    fit.
    """
    overrides = {**start.overrides, **choices.overrides}
    given = ({"settings": str(start.file)} if start.file else {}) | overrides
    arguments = "".join(f"    {name}={value!r},\n" for name, value in given.items())
    imported = f"from fairagent import open_agent{', Query' if query.id else ''}"
    searched = f"Query({query.text!r}, {query.id!r})" if query.id else repr(query.text)
    searched += "".join(f", {name}={value!r}" for name, value in options.given.items())
    shown = "result.answer.text" if command == "answer" else "result"
    words = ["fairagent", command, query.text, *(["--topic", query.id] if query.id else [])]
    words += ["--settings", str(start.file)] if start.file else []
    settings = options.over(start.settings(choices), dimensions)
    values = settings.model_dump(mode="json", exclude_unset=True)
    if options.fairness is not None:
        overrides["rerank.fairness"] = options.fairness
    if options.shares is not None:
        overrides["target"] = values["target"]
    overrides |= {name: value for name, value in options.given.items() if name in ("n", "unknown")}
    for name, value in overrides.items():
        words += [f"--{name}", str(value)] if name in ("collection", "index") else ["--set", f"{name}={flow(value)}"]
    kept = "".join(
        f" --where {shlex.quote(f'{column}={value}')}"
        for column, some in (options.where or {}).items()
        for value in (some if isinstance(some, tuple) else [some])
    )
    filtered = f"# A filter belongs to a search, not to settings: fairagent {command} --settings THIS-FILE{kept}\n"
    called = f"agent = open_agent(\n{arguments})\nresult = agent.{command}({searched})\nprint({shown})\n"
    return {
        "python": f"{imported}\n\n{called}",
        "yaml": (filtered if kept else "") + "".join(f"{name}: {flow(value)}\n" for name, value in values.items()),
        "command": shlex.join(words) + kept,
    }
