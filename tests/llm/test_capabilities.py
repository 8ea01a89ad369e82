"""What is asked of a server, and what it teaches by refusing."""

from __future__ import annotations

from typing import Literal

import pytest
from pydantic import Field

from fairagent.llm import ModelRequest, Reply
from fairagent.llm.capabilities import RENAMED, Capabilities, json_schema

WANTED = {"model": "tiny", "messages": [], "temperature": 0.3, "max_tokens": 400, "seed": 1}


class Verdict(Reply):
    """What the model is to think of it."""

    id: str
    passed: bool = Field(alias="pass")
    title: Literal["a", "b"] | None = None


class Verdicts(Reply):
    verdicts: list[Verdict]


def test_the_schema_is_closed_complete_and_bare():
    schema = json_schema(Verdicts)["schema"]
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


def test_it_asks_for_everything_at_first():
    shaped = Capabilities().shape(WANTED, Verdicts)
    assert shaped.pop("response_format")["type"] == "json_schema"
    assert shaped == WANTED
    assert Capabilities().shape(WANTED, None) == WANTED


def test_what_is_learned_twice_counts_once():
    """Two threads may have sent the same before the first of them was answered."""
    capabilities = Capabilities()
    shaped = capabilities.shape(WANTED, Verdicts)
    for _ in range(2):
        assert capabilities.learn(shaped, "response_format is not supported") == "no response_format json_schema"
    assert capabilities.shape(WANTED, Verdicts)["response_format"] == {"type": "json_object"}


def test_only_what_a_request_asks_for_can_be_lacking():
    capabilities = Capabilities()
    shaped = capabilities.shape(WANTED, Verdicts)
    for said in ("response_format is not supported", "unknown field: seed", "max_tokens is not supported"):
        capabilities.learn(shaped, said)
    plain = ModelRequest((("user", "Hello"),))
    assert capabilities.lacks(plain) == (RENAMED,)
    assert capabilities.lacks(ModelRequest(plain.messages, Verdicts, seed=1)) == (
        "no response_format json_schema",
        RENAMED,
        "no seed",
    )


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
    assert capabilities.learn(capabilities.shape(WANTED, Verdicts), said) is None
    assert capabilities.lacks(ModelRequest((), Verdicts, seed=1)) == ()
