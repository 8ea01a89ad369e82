"""Replies that are not what was asked for; each test is named after its case in the reliability list."""

from __future__ import annotations

import json

import pytest

from fairagent.errors import ReplyInvalid
from fairagent.guests.testing import ScriptedModel
from fairagent.llm import ModelRequest, Reply, ask


class Colors(Reply):
    colors: list[str]
    bright: bool


ASKED = ModelRequest((("system", "Name colors."), ("user", "Two, please, as JSON.")))
GOOD = '{"colors": ["red", "blue"], "bright": true}'
RED_AND_BLUE = Colors(colors=["red", "blue"], bright=True)


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{GOOD}\n```",
        f"```\n{GOOD}\n```\nIs there anything else?",
        f"Of course! Here is the JSON that you asked for:\n\n{GOOD}",
        f"<think>Perhaps {{green}}? No.</think>{GOOD}",
        f"\ufeff  {GOOD}\n",
    ],
)
def test_15_what_stands_around_the_object_is_skipped(text):
    model = ScriptedModel([text])
    assert ask(model, ASKED, Colors)[0] == RED_AND_BLUE
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"colors": ["red", "blue"], "bright": true,}', "trailing comma"),
        ("{'colors': ['red'], 'bright': True}", "JSON"),
        ("red and blue", "no JSON object"),
        ('{"colors": ["red", "blue"], "bright": tr', "no JSON object"),
    ],
)
def test_15_what_is_no_json_is_corrected_once(text, fault):
    model = ScriptedModel([text, GOOD])
    assert ask(model, ASKED, Colors)[0] == RED_AND_BLUE
    assert len(model.requests) == 2
    assert fault in model.requests[1].messages[-1][1]


FAULTS = {
    '{"colors": ["red"], "bright": true, "why": "because"}': "why: Extra inputs are not permitted",
    '{"colors": "red", "bright": true}': "colors: Input should be a valid array",
    '{"colors": ["red", 7], "bright": true}': "colors.1: Input should be a valid string",
    '{"colors": ["red"], "bright": "True"}': "bright: Input should be a valid boolean",
    '{"colors": ["red"], "bright": 1}': "bright: Input should be a valid boolean",
    '{"colors": ["red"], "bright": null}': "bright: Input should be a valid boolean",
    '{"colors": ["red"]}': "bright: Field required",
}


@pytest.mark.parametrize(("text", "fault"), FAULTS.items())
def test_16_a_wrong_value_is_corrected_by_its_fault(text, fault):
    model = ScriptedModel([text, text, GOOD])
    assert ask(model, ASKED, Colors)[0] == RED_AND_BLUE
    assert [fault in request.messages[-1][1] for request in model.requests] == [False, True, True]


def test_16_after_two_corrections_it_is_an_error_with_the_text():
    bad = json.dumps({"colors": ["red" * 5000], "bright": "True"})
    model = ScriptedModel([bad] * 9)
    with pytest.raises(ReplyInvalid, match="bright: Input should be a valid boolean") as caught:
        ask(model, ASKED, Colors)
    assert len(model.requests) == 3
    assert caught.value.raw == bad[:2000]
    assert caught.value.usage.calls == 3
    assert len(str(caught.value)) < 500


def test_20_a_correction_does_not_grow():
    huge = json.dumps({"colors": ["red" * 5000], "bright": "True", **{f"key{i}" * 100: i for i in range(50)}})
    script = ["first " * 1000, huge, GOOD]
    model = ScriptedModel(script)
    ask(model, ASKED, Colors)
    first, second, third = (request.messages for request in model.requests)
    for corrected in (second, third):
        assert [role for role, _ in corrected] == ["system", "user"]
        assert corrected[0] == first[0]
        assert corrected[1][1].startswith(first[1][1])
        assert len(corrected[1][1]) < len(first[1][1]) + 1500
    # Each of them tells of the last fault alone.
    assert "no JSON object" in second[1][1]
    assert "no JSON object" not in third[1][1]
    assert "first first" not in second[1][1]
