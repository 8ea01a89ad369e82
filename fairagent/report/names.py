"""How numbers and measures are written on the page.

Where a run comes from, in few lines: of each system, what is set otherwise than by default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_jsonable_python

from fairagent.measures.parse import label_of, labels_of
from fairagent.settings import Settings
from fairagent.settings.parts import SLOTS, part_class

MINUS = "\N{MINUS SIGN}"


def short_names(measures: Sequence[str]) -> dict[str, str]:
    """Each measure's definition -> its short name; in full where two would read the same.

    >>> short_names(["nDCG(discount=log2-max2)@20*AWRF(log=e)@20", "AWRF(log=e)@20"])
    {'nDCG(discount=log2-max2)@20*AWRF(log=e)@20': 'nDCG@20·AWRF@20', 'AWRF(log=e)@20': 'AWRF@20'}
    """
    return {measure: label.replace("*", "·") for measure, label in labels_of(measures).items()}


def is_product(measure: str) -> bool:
    """Whether `measure` is the product of two measures."""
    return "*" in label_of(measure)


def is_kind(measure: str, kind: str) -> bool:
    """Whether `measure` is of that name, and no product of two."""
    return not is_product(measure) and label_of(measure).startswith((f"{kind}@", f"{kind}("))


def signed(value: float, digits: int = 3) -> str:
    """A difference with its sign.

    >>> signed(0.1742), signed(-0.0004), signed(-0.25)
    ('+0.174', '0.000', '−0.250')
    """
    text = f"{abs(value):.{digits}f}"
    if not float(text):
        return text
    return f"{'+' if value > 0 else MINUS}{text}"


def p_text(p: float | None) -> str:
    """A p-value, to three decimals.

    >>> p_text(0.0004), p_text(0.0316), p_text(None)
    ('<0.001', '0.032', '–')
    """
    if p is None:
        return "–"
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def p_phrase(p: float | None) -> str:
    """A p-value in a sentence.

    >>> p_phrase(0.0004), p_phrase(0.0316)
    ('p < 0.001', 'p = 0.032')
    """
    text = p_text(p)
    return f"p < {text[1:]}" if text.startswith("<") else f"p = {text}"


def money(cost: float | None) -> str:
    """US dollars; small sums to the hundredth of a cent.

    >>> money(0.0), money(0.00213), money(12.5), money(None)
    ('$0', '$0.0021', '$12.50', 'unknown')
    """
    if cost is None:
        return "unknown"
    return "$0" if cost == 0 else f"${cost:,.4f}" if cost < 1 else f"${cost:,.2f}"


def listed(names: Sequence[str]) -> str:
    """Some names in a sentence.

    >>> listed(["gender", "region", "age"]), listed(["gender"])
    ('gender, region and age', 'gender')
    """
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def shortened(text: str, longest: int) -> str:
    """`text` in at most `longest` letters.

    >>> shortened("Oceania", 7), shortened("Northern America", 10)
    ('Oceania', 'Northern …')
    """
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


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
