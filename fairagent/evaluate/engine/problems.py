"""What is wrong with an experiment, gathered so that everything can be reported at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

from fairagent.errors import FairAgentError

P = ParamSpec("P")
T = TypeVar("T")


class Problems:
    """A growing list of problems; checks add to it and go on, `check` raises them together.

    `of` says which systems have a problem: its message -> their names; one that is not in it is everybody's.
    """

    def __init__(self) -> None:
        self.found: list[FairAgentError] = []
        self.of: dict[str, list[str]] = {}

    def attempt(self, where: str, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """What `work` gives; None, and its error noted with its place (if any), where it raises one of ours."""
        return self.attempt_for("", where, work, *args, **kwargs)

    def attempt_for(self, system: str, where: str, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """The same for one system, of which no more may be said than `where` tells."""
        try:
            return work(*args, **kwargs)
        except FairAgentError as error:
            self.add(type(error), f"{where}: {error}" if where else str(error), system)
            return None

    def add(self, kind: type[FairAgentError], message: str, system: str = "") -> None:
        """Note one problem, unless it is there already: systems share faults as they share settings."""
        if system:
            self.of.setdefault(message, []).append(system)
        if message not in map(str, self.found):
            self.found.append(kind(message))

    def of_system(self, name: str) -> list[FairAgentError]:
        """Those that keep this one system from running: what was said to be its own, or begins with its place."""
        return [
            error
            for error in self.found
            if name in self.of.get(str(error), ()) or str(error).startswith((f"systems.{name}:", f"systems.{name}."))
        ]

    def error(self, file: Path) -> FairAgentError:
        """One error, of the first problem's kind, with all of them."""
        count = f"{len(self.found)} problem{'s' * (len(self.found) != 1)}"
        listed = ["- " + str(error).replace("\n", "\n  ") for error in self.found]
        return type(self.found[0])("\n".join([f"experiment {file}: {count}, nothing was run", *listed]))

    def check(self, file: Path) -> None:
        """Raise that error; nothing where there is no problem."""
        if self.found:
            raise self.error(file)
