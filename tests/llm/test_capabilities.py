"""What is asked of a server, and what it teaches by refusing."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from fairagent.llm import ModelRequest, Reply
from fairagent.llm.openai import FORMS, Capabilities, json_schema
from fairagent.llm.reply import list_within, one_for_each, text_like, text_within

WANTED = {"model": "tiny", "messages": [], "temperature": 0.3, "max_tokens": 400, "seed": 1}


class Verdict(Reply):
    """What the model is to think of it."""

    id: str
    passed: bool = Field(alias="pass")
    title: Literal["a", "b"] | None = None


class Verdicts(Reply):
    verdicts: list[Verdict]


ASKED = ModelRequest((("user", "Hello"),), Verdicts)


def test_the_schema_is_closed_complete_and_bare():
    schema = json_schema(ASKED)["schema"]
    assert schema == {
        "$defs": {
            "Verdict": {
                "type": "object",
                "properties": {
                    "id": {"type": "string"},
                    "pass": {"type": "boolean"},
                    "title": {"anyOf": [{"enum": ["a", "b"], "type": "string"}, {"type": "null"}]},
                },
                "required": ["id", "pass", "title"],
                "additionalProperties": False,
            }
        },
        "type": "object",
        "properties": {"verdicts": {"type": "array", "items": {"$ref": "#/$defs/Verdict"}}},
        "required": ["verdicts"],
        "additionalProperties": False,
    }


class Named(Reply):
    id: str
    why: Annotated[str, text_within(20)]


class Bounded(Reply):
    """A form with every bound that there is."""

    words: Annotated[list[Annotated[str, text_like("^[^a]{1,3}$")]], list_within(2)]
    of: list[Named]


BOUNDED = ModelRequest((("user", "Hello"),), Bounded, narrowed={"of": one_for_each(Named, "id", ["x", "y"])})
SAID = "Invalid schema for response_format 'Bounded': 'maxLength' is not permitted."


def schema_in(shaped: dict[str, Any]) -> dict[str, Any]:
    return shaped["response_format"]["json_schema"]["schema"]["properties"]


def named(*ids: str, **why: object) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"id": {"type": "string", "enum": list(ids)}, "why": {"type": "string", **why}},
        "required": ["id", "why"],
        "additionalProperties": False,
    }


def test_the_first_rung_bounds_every_text_and_list_and_names_each_item() -> None:
    within = {"minLength": 1, "maxLength": 20}
    assert schema_in(Capabilities().shape(WANTED, BOUNDED)) == {
        "words": {"type": "array", "items": {"type": "string", "pattern": "^[^a]{1,3}$"}, "maxItems": 2},
        "of": {
            "type": "array",
            "prefixItems": [named("x", **within), named("y", **within)],
            "minItems": 2,
            "maxItems": 2,
        },
    }


def test_a_server_that_takes_no_bounds_gets_the_schema_with_the_enums_alone() -> None:
    capabilities = Capabilities()
    assert capabilities.learn(capabilities.shape(WANTED, BOUNDED), SAID) == f"no response_format {FORMS[0]}"
    shaped = capabilities.shape(WANTED, BOUNDED)
    assert shaped["response_format"]["type"] == "json_schema"
    assert schema_in(shaped) == {
        "words": {"type": "array", "items": {"type": "string"}},
        "of": {"type": "array", "items": named("x", "y")},
    }
    assert capabilities.lacks(BOUNDED) == (f"no response_format {FORMS[0]}",)


def test_each_refusal_is_one_rung_down() -> None:
    capabilities = Capabilities()
    for form in FORMS[:3]:
        shaped = capabilities.shape(WANTED, BOUNDED)
        assert capabilities.learn(shaped, "response_format: not supported") == f"no response_format {form}"
    assert "response_format" not in capabilities.shape(WANTED, BOUNDED)
    # A server without schemas has none with bounds either: that says nothing more.
    assert capabilities.lacks(BOUNDED) == ("no response_format json_schema", "no response_format json_object")
