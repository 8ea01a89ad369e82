"""What is counted of a model's replies (evaluations/prompts): the first to each request, kept in a file."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from fairagent.errors import ReplyInvalid
from fairagent.guests.testing import ScriptedModel
from fairagent.llm import ModelReply, ModelRequest, Reply, ask
from fairagent.llm.prompts import Prompts
from fairagent.llm.prompts.template import specimens

FILE = Path(__file__).resolve().parents[2] / "evaluations" / "prompts" / "exchanges.py"


@pytest.fixture(scope="module")
def counting() -> Iterator[SimpleNamespace]:
    with pytest.MonkeyPatch.context() as patch:
        # Its dataclasses look their annotations up there.
        patch.setitem(sys.modules, "exchanges", ModuleType("exchanges"))
        yield SimpleNamespace(**runpy.run_path(str(FILE), run_name="exchanges"))


class Order(Reply):
    order: str


def request(number: int, id: str = "choose_sentence") -> ModelRequest:
    messages = Prompts().render(id, **specimens()[id])
    return ModelRequest((*messages[:-1], ("user", f"{messages[-1][1]}\n{number}")), Order)


def test_every_template_is_told_by_its_lines(counting: SimpleNamespace, tmp_path: Path) -> None:
    exchanges = counting.Exchanges(tmp_path / "kept.jsonl", "tiny")
    prompts = Prompts()
    for id, values in specimens().items():
        for given in (values, {**values, **dict.fromkeys(prompts[id].head.variables.optional)}):
            assert exchanges.template(ModelRequest(prompts.render(id, **given))) == id


def test_first_replies_alone_are_counted_and_asked_for_once(counting: SimpleNamespace, tmp_path: Path) -> None:
    file = tmp_path / "kept.jsonl"
    exchanges = counting.Exchanges(file, "tiny")
    said = ['{"order": "AB"}', '{"order": "..."}', "AB", '{"order": "BA"}']
    watched = counting.Watched(ScriptedModel(said), exchanges)
    for number in range(3):
        # The third is corrected, and the correction is no first reply.
        ask(watched, request(number), Order)
    cut_off = SimpleNamespace(complete=lambda asked: ModelReply('{"order": "AB"}', 5, 7, calls=2))
    counting.Watched(cut_off, exchanges).complete(request(3))
    assert exchanges.count("choose_sentence") == {"ok": 1, "echo": 1, "invalid": 1, "truncated": 1}
    # Two of four have the form.
    assert "| `choose_sentence` | 4 | 2 | 50% | 1 | 1 | 1 | 0 |" in "\n".join(exchanges.table())
    again = counting.Exchanges(file, "tiny")
    assert again.count("choose_sentence") == exchanges.count("choose_sentence")

    def recorder(model: object) -> object:
        return counting.Recorder(model, again, "choose_sentence", 6, 60)

    first = recorder(ScriptedModel(['{"order": "AB"}', "AB"]))
    for model in (first, recorder(ScriptedModel([]))):
        assert model.complete(request(4)).text == '{"order": "AB"}'
        with pytest.raises(ReplyInvalid) as raised:
            model.complete(request(5))
        # Nobody is asked to correct it.
        assert raised.value.final
    with pytest.raises(counting.Enough):
        model.complete(request(6))
