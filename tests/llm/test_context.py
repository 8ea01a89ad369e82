from __future__ import annotations

import pytest

from fairagent.errors import ModelError
from fairagent.guests.testing import completion
from fairagent.llm import ModelRequest

from .conftest import MakeModel
from .server import Server

PROMPT = ModelRequest((("user", "word " * 80),))
"""400 bytes: about 100 tokens."""


def test_what_does_not_fit_is_said_with_its_size_and_not_sent(make_model: MakeModel, server: Server) -> None:
    model = make_model(context=149, max_tokens=50)
    with pytest.raises(ModelError, match=r"about 100 tokens and the reply up to 50.*'tiny' is 149 tokens") as raised:
        model.complete(PROMPT)
    assert raised.value.usage.calls == 0
    assert server.requests == []


@pytest.mark.parametrize("context", [150, None])
def test_what_fits_is_sent(make_model: MakeModel, server: Server, context: int | None) -> None:
    server.script = [completion("Red.")]
    assert make_model(context=context, max_tokens=50).complete(PROMPT).text == "Red."
