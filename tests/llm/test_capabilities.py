"""What is asked of a server, and what it teaches by refusing."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from fairagent.llm import ModelRequest, Reply
from fairagent.llm.capabilities import FORMS, OVERRUN, Capabilities, json_schema
from fairagent.llm.reply import list_within, one_for_each, one_of, text_like, text_within

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


def test_what_is_learned_twice_counts_once():
    """Two threads may have sent the same before the first of them was answered."""
    capabilities = Capabilities()
    shaped = capabilities.shape(WANTED, ASKED)
    for _ in range(2):
        assert capabilities.learn(shaped, "response_format is not supported") == "no response_format json_schema"
    assert capabilities.shape(WANTED, ASKED)["response_format"] == {"type": "json_object"}


@pytest.mark.parametrize(
    "said",
    [
        "",
        "the prompt is too long",
        "max_tokens must be at most 100",
        "temperature: Input should be less than 1",
        "boom",
    ],
)
def test_other_refusals_teach_nothing(said):
    capabilities = Capabilities()
    assert capabilities.learn(capabilities.shape(WANTED, ASKED), said) is None
    assert capabilities.lacks(ModelRequest((), Verdicts, seed=1)) == ()


class Named(Reply):
    id: str
    why: Annotated[str, text_within(20)]


class Bounded(Reply):
    """A form with every bound that there is."""

    words: Annotated[list[Annotated[str, text_like("^[^a]{1,3}$", 3)]], list_within(2)]
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


def test_a_server_without_chances_is_not_asked_for_them_again() -> None:
    capabilities = Capabilities()
    wanted = WANTED | {"logprobs": True, "top_logprobs": 20}
    asked = replace(ASKED, choices="AB")
    assert capabilities.shape(wanted, asked)["top_logprobs"] == 20
    said = "You are not allowed to request logprobs from this model"
    assert capabilities.learn(capabilities.shape(wanted, asked), said) == "no logprobs"
    assert not {"logprobs", "top_logprobs"} & capabilities.shape(wanted, asked).keys()
    assert "no logprobs" in capabilities.lacks(asked)
    assert capabilities.lacks(ASKED) == ()


class Letters(Reply):
    letters: str


LETTERS = ModelRequest((("user", "Hello"),), Letters, narrowed={"letters": one_of(["ABC", "CBA"])})


def test_a_bounded_reply_has_no_more_tokens_than_characters():
    capabilities = Capabilities()
    # Lines of 2, 19 and 1 characters, their ends included.
    assert capabilities.shape(WANTED, LETTERS)["max_tokens"] == 22
    assert capabilities.shape({**WANTED, "max_tokens": 9}, LETTERS)["max_tokens"] == 9
    # Verdicts without an end, and free text, have what the settings allow.
    assert capabilities.shape(WANTED, ASKED)["max_tokens"] == 400
    assert capabilities.shape(WANTED, replace(ASKED, reply=None))["max_tokens"] == 400


def test_bounds_that_a_reply_has_overrun_shorten_no_other():
    capabilities = Capabilities()
    assert not capabilities.overrun({"max_tokens": 400}, LETTERS)
    assert not capabilities.overrun({"max_tokens": 22}, ASKED)
    assert capabilities.overrun({"max_completion_tokens": 22}, LETTERS)
    assert capabilities.shape(WANTED, LETTERS)["max_tokens"] == 400
    assert capabilities.lacks(LETTERS) == (OVERRUN,)
    assert capabilities.lacks(replace(ASKED, reply=None)) == ()
