"""What is wrong with a value is said in our words, with the place, the value and the names that there are."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import Field, ValidationError

from fairagent.settings.faults import fault_lines
from fairagent.settings.section import Section


class Inner(Section):
    weight: float = Field(1.0, gt=0, lt=1)
    name: str = ""


class Outer(Section):
    n: int = Field(1, ge=1, le=100)
    on: bool = True
    kind: Literal["exposure", "mmr"] = "mmr"
    unknown: Literal["share", "ignore"] | float = "share"
    where: dict[str, bool | int | str | tuple[str, ...]] = Field(default={})
    some: tuple[str, ...] = Field((), max_length=2)
    inner: Inner = Inner()
    needed: int


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"n": "x"}, "n: expected a whole number (got 'x')"),
        ({"n": None}, "n: expected a whole number (got nothing)"),
        ({"n": 0.5}, "n: expected a whole number (got 0.5)"),
        ({"n": 0}, "n: expected 1 or more (got 0)"),
        ({"n": 101}, "n: expected 100 or less (got 101)"),
        ({"on": "perhaps"}, "on: expected true or false (got 'perhaps')"),
        ({"kind": "exposur"}, "kind: no value 'exposur'; did you mean 'exposure'? There are: exposure, mmr"),
        ({"kind": 3}, "kind: expected one of exposure, mmr (got 3)"),
        ({"unknown": "SHAR"}, "unknown: no value 'SHAR'; did you mean 'share'? There are: share, ignore, or a number"),
        ({"where": [1]}, "where: expected keys with values (key: value) (got [1])"),
        ({"where": {"a": None}}, "where.a: expected true or false, a whole number, text or a list (got nothing)"),
        ({"some": "abc"}, "some: expected a list (got 'abc')"),
        ({"some": ["a", "b", "c"]}, "some: expected a list of at most 2 entries (got ['a', 'b', 'c'])"),
        ({"some": ["a", 1]}, "some[1]: expected text (got 1)"),
        ({"inner": [1]}, "inner: expected keys with values (key: value) (got [1])"),
        ({"inner": {"weight": 1}}, "inner.weight: expected less than 1 (got 1)"),
        ({"inner": {"weigth": 1}}, "inner.weigth: unknown key; did you mean 'weight'? There are: name, weight"),
        ({"inner": {"xx": 1}}, "inner.xx: unknown key; there are: name, weight"),
        ({"inner": {"none": 1}}, "inner.none: unknown key; did you mean 'name'? There are: name, weight"),
        ({"needed": ...}, "needed: is missing"),
    ],
)
def test_every_fault_is_in_our_words(values: dict[str, Any], said: str) -> None:
    given = {key: value for key, value in {"needed": 1, **values}.items() if value is not ...}
    with pytest.raises(ValidationError) as caught:
        Outer.model_validate(given)
    assert fault_lines(Outer, caught.value.errors()) == [said]
