"""What is wrong with a value is said in our words, with the place, the value and the names that there are.

What is gone is refused with what to use instead.
"""

from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import Field, ValidationError
from typer.testing import CliRunner

from fairagent.cli.app import COMMANDS, app
from fairagent.errors import SettingsError, UsageError
from fairagent.evaluate.kind import kind_class
from fairagent.evaluate.kind import kinds as experiments
from fairagent.measures.parse import OWN, parse_measure
from fairagent.settings import load_settings
from fairagent.settings.faults import fault_lines
from fairagent.settings.gone import GONE, gone
from fairagent.settings.parts import SLOTS, kinds
from fairagent.settings.section import Section
from fairagent.storage.packages import EXTRAS


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
        (
            {"unknown": "SHARE"},
            "unknown: no value 'SHARE'; did you mean 'share'? There are: share, ignore, or a number",
        ),
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


@pytest.fixture
def lost(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(GONE, "phlogiston", "use oxygen")
    monkeypatch.setitem(GONE, "prompts phlogiston", "use oxygen")
    return "phlogiston is gone: use oxygen"


def test_what_is_gone_is_refused_with_what_to_use_instead_wherever_it_is_named(lost: str) -> None:
    for values in ({"rerank": "phlogiston"}, {"phlogiston": 1}, {"rerank": {"kind": "mmr", "phlogiston": 1}}):
        with pytest.raises(SettingsError) as caught:
            load_settings(overrides=values, environ={})
        assert lost in str(caught.value)
        assert "unknown" not in str(caught.value)
    for act in (lambda: parse_measure("phlogiston@20"), lambda: kind_class("phlogiston")):
        with pytest.raises(UsageError) as refused:
            act()
        assert str(refused.value).endswith(lost)
    for words in (["phlogiston"], ["prompts", "phlogiston"]):
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 2
        assert "is gone: use oxygen" in done.output
        assert "No such command" not in done.output


def test_nothing_that_is_there_is_said_to_be_gone() -> None:
    there = {*COMMANDS, *experiments(), *OWN, *EXTRAS, *(kind for slot in SLOTS for kind in kinds(slot))}
    assert not there & set(GONE)
    assert gone("mmr") == ""
