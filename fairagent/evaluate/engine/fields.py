"""The types of an experiment file's keys: names, chosen topics, settings of systems."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import BeforeValidator, Field

from fairagent.settings import Section


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


def _empty_for_none(value: Any) -> Any:
    return {} if value is None else value


def _text(value: Any) -> Any:
    """A number that YAML has read where a name is meant."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


Name = Annotated[str, BeforeValidator(_text), Field(max_length=60, pattern=r"^[^\s](?:[^\n\r\t]*[^\s])?$")]
Values = Annotated[dict[str, Any], BeforeValidator(_empty_for_none)]
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

    def beside(self, folder: Path) -> Self:
        """With paths from anywhere."""
        return self.model_copy(update={name: str((folder / getattr(self, name)).absolute()) for name in self.paths})
