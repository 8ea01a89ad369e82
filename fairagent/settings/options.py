"""`SearchOptions`: what one search may ask for, whichever door it comes through.

Python's keywords, the command line's options, the studio's API and the tools for agents are all made of this model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Self, TypedDict

from pydantic import Field, model_validator

from fairagent.errors import SettingsError
from fairagent.settings.parts import Part, part_keys
from fairagent.settings.section import Label, Section, validate
from fairagent.settings.tree import Settings, Unknown, lay
from fairagent.types import Dial

Value = bool | int | float | str
Share = Annotated[float, Field(ge=0, le=1)]


class SearchOptions(Section):
    """What one search asks for, laid over the settings; what is not given stays as these say."""

    n: int | None = Field(
        None, ge=1, description="The ranking's length in documents, and the cut-off at which exposure is measured."
    )
    fairness: float | None = Field(
        None,
        ge=0,
        description="What a gap of 1 to the targets costs, in units of mean relevance (0 to 1): 0 orders by relevance "
        "alone, larger values are fairer and less relevant. For re-rankers with this dial, as `exposure`, the default.",
    )
    keep: float | None = Field(
        None,
        ge=0,
        le=1,
        description="In the place of `fairness`: the share of the relevance to keep (0 to 1), for the fairest list "
        "that keeps it.",
    )
    gap: float | None = Field(
        None,
        ge=0,
        description="In the place of `fairness`: the gap that is small enough, for the most relevant list within it.",
    )
    unknown: Unknown | None = Field(
        None,
        description="What documents without a label should get of the exposure. share: what they have in the engine's "
        "own list. ignore: they do not count. A number: a share of your own (0 to 1).",
    )
    shares: dict[str, dict[Label, Share]] | None = Field(
        None,
        description="Dimension -> group -> the share of the exposure that it should get (0 to 1); those of a dimension "
        "add up to 1. Dimensions that are not named keep their target.",
    )
    where: dict[str, Value | Annotated[tuple[Value, ...], Field(min_length=1)]] | None = Field(
        None,
        description="Column of the documents, or dimension of groups -> the value that a document must have, or a list "
        "of values of which it must have one; of several columns each. A text also stands for the number that it "
        "reads as.",
    )

    def __hash__(self) -> int:
        return hash(self.model_dump_json())

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """The options of these values; SettingsError with every fault."""
        return validate(cls, values, "the options of a search")

    @model_validator(mode="after")
    def _one_dial(self) -> Self:
        check_one_dial(Dial(self.keep, self.gap, self.fairness))
        return self

    @property
    def dial(self) -> Dial | None:
        """Which list of the frontier is asked for; None where that is left to the settings."""
        dial = Dial(self.keep, self.gap, self.fairness)
        return None if dial == Dial() else dial

    @property
    def given(self) -> dict[str, Any]:
        """Those that are not left to the settings.

        >>> SearchOptions(n=5, fairness=None).given
        {'n': 5}
        """
        return self.model_dump(exclude_none=True)

    def over(self, settings: Settings, dimensions: Sequence[str] = ()) -> Settings:
        """The settings of a search in a collection with these `dimensions`; SettingsError where they do not fit.

        `where` is no setting: it changes what the engine looks at.

        >>> SearchOptions(n=5, fairness=2).over(Settings()).rerank.parts[-1].fairness
        2.0
        """
        layer = {name: value for name, value in self.given.items() if name in ("n", "unknown")}
        if self.dial is not None:
            expect_dial(settings.rerank, next(name for name in self.given if name in Dial._fields))
            layer["rerank"] = self.dial._asdict()
        if self.shares is not None:
            below = settings.target
            # A target for all dimensions stays that of those without shares of their own.
            others = dict.fromkeys(dimensions, below) if isinstance(below, Part) else below or {}
            layer["target"] = {**others, **self.shares}
        return validate(Settings, lay(settings.given, layer), "the options of a search") if layer else settings


class OptionValues(TypedDict, total=False):
    """`SearchOptions` as the keywords of a call."""

    n: int | None
    fairness: float | None
    keep: float | None
    gap: float | None
    unknown: Unknown | None
    shares: Mapping[str, Mapping[str, float]] | None
    where: Mapping[str, Value | Sequence[Value]] | None


def check_one_dial(dial: Dial) -> None:
    """Raise ValueError where more than one is set."""
    if sum(one is not None for one in dial) > 1:
        raise ValueError("fairness, keep and gap are three ways to choose one list; give one of them")


def expect_dial(rerank: Part, name: str = "fairness") -> None:
    """Raise SettingsError, saying what to do, where no part of the re-ranker has the dial `name`."""
    parts = getattr(rerank, "parts", (rerank,))
    if not any(name in part_keys("rerank", part) for part in parts):
        raise SettingsError(
            f"{name}: the re-ranker `{rerank}` has no such dial; search with `rerank: [graph, exposure]`, the default"
        )
