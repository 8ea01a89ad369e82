"""Where a run comes from, in few lines: of each system, what is set otherwise than by default."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_jsonable_python

from fairagent.settings import Settings
from fairagent.settings.parts import SLOTS, part_class

SETTINGS = "settings"
"""The key of a system's record that its settings stand under."""
UNSET = object()


@dataclass(frozen=True, slots=True)
class Provenance:
    """`own` is what each system has otherwise than by default, by dotted keys; `rest` what is not of a system."""

    rest: Mapping[str, object]
    own: Mapping[str, Mapping[str, object]]

    @classmethod
    def of(cls, recorded: Mapping[str, object]) -> Provenance:
        """What was recorded of a run.

        >>> found = Provenance.of({"seed": 1, "systems": {"A": {"settings": {"n": 5, "loop": {"kind": "none"}}}}})
        >>> found.rest, found.own
        ({'seed': 1}, {'A': {'n': 5, 'loop.kind': 'none'}})
        """
        systems = recorded.get("systems")
        if not isinstance(systems, Mapping):
            return cls(recorded, {})
        rest = {key: value for key, value in recorded.items() if key != "systems"}
        return cls(rest, {name: dict(_differences(record)) for name, record in systems.items()})


def _differences(record: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """The settings that differ from the defaults, each under its place (`loop.kind`), then what else there is."""
    settings = record.get(SETTINGS, {})
    usual = dict(_flat(_defaults(settings)))
    yield from ((key, value) for key, value in _flat(settings) if usual.get(key, UNSET) != value)
    yield from _flat({key: value for key, value in record.items() if key != SETTINGS})


def _defaults(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults of all settings; those of a part are its own kind's, but for the kind where that is another."""
    usual: dict[str, Any] = Settings().model_dump(mode="json")
    for slot in SLOTS:
        # A target may not be set.
        kind, own = ((part or {}).get("kind") for part in (settings.get(slot), usual[slot]))
        if kind != own:
            usual[slot] = _of_kind(slot, str(kind))
    return usual


def _of_kind(slot: str, kind: str) -> dict[str, Any]:
    """The defaults of the fields of a part that have any; none where the package that brings it is not here."""
    try:
        fields = part_class(slot, kind).model_fields
    except ValueError:
        return {}
    usual = {name: one for name, one in fields.items() if name != "kind" and not one.is_required()}
    return {name: to_jsonable_python(one.get_default(call_default_factory=True)) for name, one in usual.items()}


def _flat(value: Any, place: str = "") -> Iterator[tuple[str, object]]:
    """Every value under its place, `loop.kind`; lists stay whole."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(inner, f"{place}.{key}" if place else str(key))
    else:
        yield place, value
