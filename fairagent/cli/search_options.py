"""The options of one search on the command line: one for each field of `SearchOptions`, described as there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from fairagent.errors import UsageError
from fairagent.settings import SearchOptions, parse_yaml
from fairagent.settings.section import meanings

MEANINGS = {name: " ".join(text.split()) for name, text in meanings(SearchOptions).items()}

Length = Annotated[int | None, typer.Option("--n", metavar="N", help=f"{MEANINGS['n']} (default: 20)")]
Fairness = Annotated[float | None, typer.Option("--fairness", metavar="PRICE", help=MEANINGS["fairness"])]
Keep = Annotated[float | None, typer.Option("--keep", metavar="SHARE", help=MEANINGS["keep"])]
Gap = Annotated[float | None, typer.Option("--gap", metavar="GAP", help=MEANINGS["gap"])]
Unlabeled = Annotated[str | None, typer.Option("--unknown", metavar="SHARE", help=MEANINGS["unknown"])]
Shares = Annotated[
    str | None,
    typer.Option("--shares", metavar="YAML", help=f"{MEANINGS['shares']} E.g. '{{gender: {{a: 0.5, b: 0.5}}}}'."),
]
Where = Annotated[
    list[str] | None,
    typer.Option("--where", metavar="COLUMN=VALUE", help=f"May be repeated: {MEANINGS['where']}"),
]


@dataclass(frozen=True)
class ListOptions:
    """What one search asks for."""

    n: Length = None
    fairness: Fairness = None
    keep: Keep = None
    gap: Gap = None
    unknown: Unlabeled = None
    shares: Shares = None
    where: Where = None

    @property
    def asked(self) -> SearchOptions:
        """The options of a call; SettingsError for what cannot be, UsageError for a --where that is no COLUMN=VALUE.

        >>> ListOptions(n=5, unknown="0.1", where=["city=Oslo", "city=Rome"]).asked.given
        {'n': 5, 'unknown': 0.1, 'where': {'city': ('Oslo', 'Rome')}}
        """
        wanted: dict[str, list[str]] = {}
        for one in self.where or ():
            column, equals, value = one.partition("=")
            if not equals or not column.strip():
                raise UsageError(f"--where {one}: expected COLUMN=VALUE, e.g. --where city=Oslo")
            wanted.setdefault(column.strip(), []).append(value)
        values: dict[str, Any] = {
            "n": self.n,
            "fairness": self.fairness,
            "keep": self.keep,
            "gap": self.gap,
            "unknown": None if self.unknown is None else parse_yaml(self.unknown, "--unknown"),
            "shares": None if self.shares is None else parse_yaml(self.shares, "--shares"),
            "where": wanted or None,
        }
        return SearchOptions.of(values)
