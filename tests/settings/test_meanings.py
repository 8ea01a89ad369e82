"""What a section's keys mean is the text below them, read from the source when somebody asks."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field, TypeAdapter

from fairagent.settings import Section
from fairagent.settings.section import meanings


class Tree(Section):
    """A tree."""

    shared: ClassVar[str] = "oak"
    """No key."""
    height: float = 1.0
    """How high
    it is."""
    kind: str = "oak"
    """Which one it is."""
    leaves: int = 0


class Palm(Tree):
    kind: str = "palm"
    leaves: int = Field(3, alias="fronds")
    """Those at its top."""


def test_a_key_means_what_stands_below_it() -> None:
    assert meanings(Tree) == {"height": "How high\nit is.", "kind": "Which one it is."}


def test_a_key_that_is_defined_again_has_its_own_text_or_none() -> None:
    assert meanings(Palm) == {"height": "How high\nit is.", "leaves": "Those at its top."}


def test_the_schema_has_them() -> None:
    properties = TypeAdapter(Palm).json_schema()["properties"]
    assert {name: key.get("description") for name, key in properties.items()} == {
        "height": "How high\nit is.",
        "kind": None,
        "fronds": "Those at its top.",
    }
