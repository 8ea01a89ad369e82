"""Systems that rank exactly as another does: a table in which they stand has to say so, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairagent.settings import Settings

SIGN = "="
"""Marks systems whose rankings equal those of another."""
ORIGINAL = "re-ranking by the user's own query gives the engine's list back"
SAME = "both come to the same settings"


@dataclass(frozen=True, slots=True)
class Equal:
    """`system` ranks as `other` does, a system before it, on all topics; `why` is empty where it is not known."""

    system: str
    other: str
    why: str = ""

    def __str__(self) -> str:
        """A line for below a table."""
        since = f", since {self.why}" if self.why else ""
        return f"{SIGN} {self.system}: the rankings of {self.other} on all topics{since}"


def equal_systems(
    rankings: Mapping[str, Sequence[Sequence[str]]], settings: Mapping[str, Settings]
) -> tuple[Equal, ...]:
    """The systems whose rankings are those of one before them: system -> the ids of each topic, best first.

    The first system that ranks so is the one named. Empty where there are no topics.

    >>> ranked = {"BM25": [["a", "b"]], "fair": [["b", "a"]], "FAIR-QR": [["a", "b"]]}
    >>> [str(one) for one in equal_systems(ranked, {})]
    ['= FAIR-QR: the rankings of BM25 on all topics']
    """
    first: dict[tuple[tuple[str, ...], ...], str] = {}
    found = []
    for system, of_topics in rankings.items():
        other = first.setdefault(tuple(map(tuple, of_topics)), system)
        if other != system and len(of_topics):
            both = system in settings and other in settings
            found.append(Equal(system, other, _why(settings[system], settings[other]) if both else ""))
    return tuple(found)


def _why(own: Settings, other: Settings) -> str:
    """Why two systems rank alike, where their settings tell."""
    if own.given == other.given:
        return SAME
    # The union of all lists holds the first one, so at full depth nothing that a loop did remains.
    original = own.rerank.kind == "original" and not getattr(own.loop, "rerank_depth", 0)
    plain = not other.loops and other.rerank.kind in ("none", "original")
    return ORIGINAL if original and plain and own.engine == other.engine else ""
