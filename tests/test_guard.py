"""No test reaches beyond this machine."""

from __future__ import annotations

import socket

import pytest

from fairagent.llm import ModelRequest
from fairagent.llm.openai import OpenAIModel
from fairagent.settings import ModelSettings

ELSEWHERE = "192.0.2.1"
"""An address of documentation (RFC 5737): nobody has it."""


def test_a_connection_that_leaves_this_machine_fails_its_test() -> None:
    with socket.socket() as used, pytest.raises(pytest.fail.Exception, match=ELSEWHERE):
        used.connect((ELSEWHERE, 80))


@pytest.mark.usefixtures("no_variables")
def test_a_real_call_of_a_model_fails_its_test() -> None:
    model = OpenAIModel(ModelSettings(name="tiny", base_url=f"http://{ELSEWHERE}/v1"), {"OPENAI_API_KEY": "k"})
    with pytest.raises(pytest.fail.Exception, match=ELSEWHERE):
        model.complete(ModelRequest((("user", "Anyone?"),)))
    model.close()
