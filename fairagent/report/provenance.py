"""Where a run comes from, in few lines: what sets its systems apart, and what they share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Provenance:
    """`own` is what each system has otherwise than some other one, `shared` what all have alike, by dotted keys.

    `rest` is what is not of a system.
    """

    rest: Mapping[str, object]
    own: Mapping[str, Mapping[str, object]]
    shared: Mapping[str, object]

    @classmethod
    def of(cls, recorded: Mapping[str, object]) -> Provenance:
        """What was recorded of a run.

        >>> found = Provenance.of({"seed": 1, "systems": {"A": {"n": 5, "loop": {"kind": "x"}}, "B": {"n": 5}}})
        >>> found.rest, found.own, found.shared
        ({'seed': 1}, {'A': {'loop.kind': 'x'}, 'B': {}}, {'n': 5})
        """
        systems = recorded.get("systems")
        rest = {key: value for key, value in recorded.items() if key != "systems"}
        if not isinstance(systems, Mapping):
            return cls(recorded, {}, {})
        flat = {name: dict(_flat(settings)) for name, settings in systems.items()}
        first, *others = flat.values() or [{}]
        shared = {key: value for key, value in first.items() if all(_has(one, key, value) for one in others)}
        if not others:
            return cls(rest, flat, {})
        own = {name: {k: v for k, v in settings.items() if k not in shared} for name, settings in flat.items()}
        return cls(rest, own, shared)


def _has(settings: Mapping[str, object], key: str, value: object) -> bool:
    return key in settings and settings[key] == value


def _flat(value: Any, place: str = "") -> Iterator[tuple[str, object]]:
    """Every value under its place, `loop.kind`; lists stay whole."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(inner, f"{place}.{key}" if place else str(key))
    else:
        yield place, value
