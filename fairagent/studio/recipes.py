"""A search of the studio as people would repeat it: in Python, as a settings file, on the command line."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairagent.settings import Settings
from fairagent.settings.described import flow

NAMED = "collection", "index"
"""Settings that the command line has options for."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """One search: the `file` and the `overrides` that its settings came from, and what was asked."""

    file: Path | None
    overrides: Mapping[str, Any]
    query: str
    topic: str
    command: str = "search"

    def python(self) -> str:
        """As a script."""
        given = {"settings": str(self.file)} if self.file else {}
        arguments = [f"{name}={value!r}" for name, value in {**given, **self.overrides}.items()]
        imported, asked = "from fairagent import open_agent", repr(self.query)
        if self.topic:
            imported, asked = f"{imported}, Query", f"Query({self.query!r}, {self.topic!r})"
        shown = "result.answer.text" if self.command == "answer" else "result"
        opened = "".join(f"    {argument},\n" for argument in arguments)
        return f"{imported}\n\nagent = open_agent(\n{opened})\nresult = agent.{self.command}({asked})\nprint({shown})\n"

    def shell(self) -> str:
        """As a command line."""
        words = ["fairagent", self.command, self.query, *(["--topic", self.topic] if self.topic else [])]
        words += ["--settings", str(self.file)] if self.file else []
        for name, value in self.overrides.items():
            words += [f"--{name}", str(value)] if name in NAMED else ["--set", f"{name}={flow(value)}"]
        return shlex.join(words)

    @staticmethod
    def yaml(settings: Settings) -> str:
        """The settings as a file, what the profile sets included."""
        values = settings.model_dump(mode="json", exclude_unset=True)
        return "".join(f"{name}: {flow(value)}\n" for name, value in values.items())
