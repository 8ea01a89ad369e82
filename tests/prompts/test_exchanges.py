"""What is counted of a model's replies (evaluations/prompts): the first to each request, kept in a file."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from fairagent.errors import ReplyInvalid
from fairagent.guests.testing import ScriptedModel
from fairagent.llm import ModelReply, ModelRequest, Reply, ask
from fairagent.llm.prompts import Prompts
from fairagent.llm.prompts.template import specimens

FILE = Path(__file__).resolve().parents[2] / "evaluations" / "prompts" / "exchanges.py"


@pytest.fixture(scope="module")
def counting() -> ModuleType:
    spec = importlib.util.spec_from_file_location("exchanges", FILE)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    # Its dataclasses look their annotations up there.
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(__import__("sys").modules, "exchanges", module)
        spec.loader.exec_module(module)
        yield module


class Order(Reply):
    order: str


def request(number: int, id: str = "choose_sentence") -> ModelRequest:
    messages = Prompts().render(id, **specimens()[id])
    return ModelRequest((*messages[:-1], ("user", f"{messages[-1][1]}\n{number}")), Order)


def test_every_template_is_told_by_its_lines(counting: ModuleType, tmp_path: Path) -> None:
    exchanges = counting.Exchanges(tmp_path / "kept.jsonl", "tiny")
    prompts = Prompts()
    for id, values in specimens().items():
        optional = prompts[id].head.variables.optional
        for given in (values, {**values, **dict.fromkeys(optional)}):
            assert exchanges.template(ModelRequest(prompts.render(id, **given))) == id


def test_first_replies_alone_are_counted(counting: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "kept.jsonl"
    exchanges = counting.Exchanges(file, "tiny")
    said = ['{"order": "AB"}', '{"order": "..."}', "AB", '{"order": "BA"}']
    watched = counting.Watched(ScriptedModel(said), exchanges)
    for number in range(3):
        # The third is corrected, and the correction is no first reply.
        ask(watched, request(number), Order)
    assert exchanges.count("choose_sentence") == {"ok": 1, "echo": 1, "invalid": 1}

    class CutOff:
        def complete(self, asked: ModelRequest) -> ModelReply:
            return ModelReply('{"order": "AB"}', 5, 7, calls=2)

    counting.Watched(CutOff(), exchanges).complete(request(3))
    assert exchanges.count("choose_sentence")["truncated"] == 1
    row = next(line for line in exchanges.table() if "choose_sentence" in line)
    # Two of four have the form.
    assert row.startswith("| `choose_sentence` | 4 | 2 | 50% | 1 | 1 | 1 | 0 |")
    again = counting.Exchanges(file, "tiny")
    assert again.count("choose_sentence") == exchanges.count("choose_sentence")


def test_what_is_kept_is_not_asked_again(counting: ModuleType, tmp_path: Path) -> None:
    exchanges = counting.Exchanges(tmp_path / "kept.jsonl", "tiny")

    def recorder(model: object, calls: int) -> object:
        return counting.Recorder(model, exchanges, "choose_sentence", calls, 60)

    first = recorder(ScriptedModel(['{"order": "AB"}', "AB"]), 2)
    assert first.complete(request(0)).text == '{"order": "AB"}'
    with pytest.raises(ReplyInvalid) as raised:
        first.complete(request(1))
    # Nobody is asked to correct it.
    assert raised.value.final
    second = recorder(ScriptedModel([]), 2)
    assert second.complete(request(0)).text == '{"order": "AB"}'
    with pytest.raises(ReplyInvalid):
        second.complete(request(1))
    with pytest.raises(counting.Enough):
        second.complete(request(2))
