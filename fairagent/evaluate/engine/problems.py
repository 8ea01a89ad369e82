"""What is wrong with an experiment, gathered so that everything can be reported at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

from fairagent.errors import FairAgentError

P = ParamSpec("P")
T = TypeVar("T")


class Problems:
    """A growing list of problems; checks add to it and go on, `check` raises them together."""

    def __init__(self) -> None:
        self.found: list[FairAgentError] = []

    def attempt(self, where: str, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """What `work` gives; None, and its error noted with its place (if any), where it raises one of ours."""
        try:
            return work(*args, **kwargs)
        except FairAgentError as error:
            self.add(type(error), f"{where}: {error}" if where else str(error))
            return None

    def add(self, kind: type[FairAgentError], message: str) -> None:
        """Note one problem, unless it is there already: systems share faults as they share settings."""
        if message not in map(str, self.found):
            self.found.append(kind(message))

    def error(self, file: Path | str) -> FairAgentError:
        """One error, of the first problem's kind, with all of them; `file` is the experiment's, or what it is of."""
        count = f"{len(self.found)} problem{'s' * (len(self.found) != 1)}"
        listed = ["- " + str(error).replace("\n", "\n  ") for error in self.found]
        return type(self.found[0])("\n".join([f"experiment {file}: {count}, nothing was run", *listed]))

    def check(self, file: Path | str) -> None:
        """Raise that error; nothing where there is no problem."""
        if self.found:
            raise self.error(file)
