"""What an experiment file's keys may hold, which topics it takes, and the list of everything that is wrong with it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, ParamSpec, Self, TypeVar

from pydantic import BeforeValidator, Field

from fairagent.errors import FairAgentError
from fairagent.settings import Section
from fairagent.types import Topic
from fairagent.types.common import counted


class TopicSample(Section):
    """Topics drawn by the experiment's seed."""

    sample: int = Field(ge=1)
    """How many: of each class of questions, or group of topics, its share."""


def _topics(value: Any) -> Any:
    """`value` with ids as texts; one message for a wrong form."""
    if value in ("all", "tune", "test") or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
        return value
    if isinstance(value, list | tuple) and value and all(isinstance(id, str | int) for id in value):
        return tuple(str(id) for id in value)
    if isinstance(value, Mapping | TopicSample):
        return value
    raise ValueError(
        "expected `all`, `tune` or `test`, the number of topics to take from the beginning, {sample: NUMBER}, or a "
        "list of ids"
    )


def _text(value: Any) -> Any:
    """A number that YAML has read where a name is meant."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


Name = Annotated[str, BeforeValidator(_text), Field(max_length=60, pattern=r"^[^\s](?:[^\n\r\t]*[^\s])?$")]
Values = Annotated[dict[str, Any], BeforeValidator(lambda value: {} if value is None else value)]
Topics = Annotated[str | int | tuple[str, ...] | TopicSample, BeforeValidator(_topics)]


class Published(Section):
    """Numbers of a paper that nothing here measures; they stand beside the results as they are."""

    why: str = Field(min_length=1)
    """Why they are not measured here."""
    values: dict[Name, dict[Name, float]]
    """Row of the paper's table -> column -> value."""


class FileSection(Section):
    """A section of an experiment file that names files, relative to that file, in its fields `paths`."""

    paths: ClassVar[tuple[str, ...]] = ("path",)

    def relative_to(self, folder: Path) -> Self:
        """With paths from anywhere."""
        return self.model_copy(update={name: str((folder / getattr(self, name)).absolute()) for name in self.paths})


# --- topics ---------------------------------------------------------------------------------------------------------


def half(collection: str, topic: str) -> Literal["tune", "test"]:
    """Which half a topic is in: by a hash of the collection's name and the topic's id, so for ever."""
    return "tune" if _hash(f"{collection}/{topic}")[-1] % 2 == 0 else "test"


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def sample_of(topics: Mapping[str, Topic], ids: Sequence[str], count: int, seed: int) -> tuple[str, ...]:
    """`count` of the `ids` in their order, of each group of the `topics` its share; see `sampled`."""
    chosen = sampled({id: topics[id].group for id in ids}, count, seed)
    return tuple(id for id in ids if id in chosen)


def sampled(classes: Mapping[str, str], count: int, seed: int) -> frozenset[str]:
    """`count` of the topics (topic -> class), of each class its share; within a class those of the smallest hash."""
    ordered: dict[str, list[str]] = {}
    for topic in sorted(classes, key=lambda topic: _hash(f"{seed}/{topic}")):
        ordered.setdefault(classes[topic], []).append(topic)
    count = min(count, len(classes))
    quotas = {name: count * len(topics) // len(classes) for name, topics in ordered.items()}
    left = sorted(ordered, key=lambda name: (-(count * len(ordered[name]) % len(classes)), name))
    for name in left[: count - sum(quotas.values())]:
        quotas[name] += 1
    return frozenset(topic for name, topics in ordered.items() for topic in topics[: quotas[name]])


# --- problems -------------------------------------------------------------------------------------------------------

P = ParamSpec("P")
T = TypeVar("T")


class Problems:
    """A growing list of `errors`, with the systems that have a message (`of`); `check` raises them together."""

    def __init__(self) -> None:
        self.errors: list[FairAgentError] = []
        self.of: dict[str, list[str]] = {}

    def attempt(self, where: str, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """What `work` gives; None, and its error noted with its place (if any), where it raises one of ours."""
        return self.attempt_for("", where, work, *args, **kwargs)

    def attempt_for(self, system: str, where: str, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """The same for one system, which the place need not name."""
        try:
            return work(*args, **kwargs)
        except FairAgentError as error:
            self.add(type(error), f"{where}: {error}" if where else str(error), system)
            return None

    def add(self, type: type[FairAgentError], message: str, system: str = "") -> None:
        """Note one problem, unless it is there already: systems share faults as they share settings."""
        if system:
            self.of.setdefault(message, []).append(system)
        if message not in map(str, self.errors):
            self.errors.append(type(message))

    def by_system(self, names: Iterable[str]) -> dict[str, list[FairAgentError]]:
        """System -> what keeps it alone from running: what was noted for it, or begins with its place."""
        of_system: dict[str, list[FairAgentError]] = {name: [] for name in names}
        for error in self.errors:
            place = place_in(str(error), of_system)
            for name in {*self.of.get(str(error), ()), *([place[0]] if place else [])} & of_system.keys():
                of_system[name].append(error)
        return of_system

    def error(self, file: Path | str) -> FairAgentError:
        """One error, of the first problem's type, with all of them; `file` is the experiment's, or what it is of."""
        count = counted(len(self.errors), "problem")
        listed = ["- " + str(error).replace("\n", "\n  ") for error in self.errors]
        return type(self.errors[0])("\n".join([f"experiment {file}: {count}, nothing was run", *listed]))

    def check(self, file: Path | str) -> None:
        """Raise that error; nothing where there is no problem."""
        if self.errors:
            raise self.error(file)


def place_in(message: str, names: Iterable[str]) -> tuple[str, str] | None:
    """The system in whose place a message begins, and the rest of it; None where it begins otherwise.

    >>> place_in("systems.GPT.4: no key", ["GPT", "GPT.4"]), place_in("topics: none", ["GPT"])
    (('GPT.4', 'no key'), None)
    """
    # A name may begin with another and a dot.
    for name in sorted(names, key=len, reverse=True):
        for mark in (": ", "."):
            if message.startswith(place := f"systems.{name}{mark}"):
                return name, message.removeprefix(place)
    return None
