"""`fairagent prompts`: what a person who edits templates sees, and what a program reads."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from fairagent.guests.testing import LoopbackServer
from fairagent.llm.prompts import Prompts, shipped_folder
from fairagent.llm.prompts.template import specimens
from fairagent.search.refine import REFINERS
from fairagent.studio.tryout import READERS

from .conftest import Call, Small

WORDS = ["--set", "expansion.documents=50"]
UNIFORM = ["--set", "n=6", "--set", "target=uniform"]
KEYWORDS = '{"keywords": ["she", "judges", "qwertz", "lawyer", "see x.org"]}'


def test_the_list_names_every_template_and_variant_and_none_has_a_fault(call: Call) -> None:
    result = call.well("prompts", "list")
    for id in Prompts().ids:
        assert f"{id} version {Prompts()[id].head.version}" in result.stdout
        assert Prompts()[id].head.purpose in result.stdout
    assert "few-shot, reasoning" in result.stdout
    found = call.record("prompts", "list")
    assert [prompt["id"] for prompt in found["prompts"]] == list(Prompts().ids)
    assert found["prompts"][0]["sha256"] == Prompts()["answer"].sha256
    assert found["variants"] == ["few-shot", "reasoning"]
    checked = call("prompts", "check")
    count = len(list(shipped_folder().rglob("*.j2")))
    assert (checked.exit_code, checked.stderr, checked.stdout) == (0, "", f"{count} templates, no error\n")


def test_check_names_every_fault_and_exits_with_4(call: Call) -> None:
    call("prompts", "eject", "mine", "refine_query", "answer")
    refine, answer = Path("mine/refine_query.j2"), Path("mine/answer.j2")
    lines = refine.read_text(encoding="utf-8").count("\n")
    refine.write_text(refine.read_text(encoding="utf-8") + "{{ qeury }}{{ 7 * 7 }}\n", encoding="utf-8")
    answer.write_text(answer.read_text(encoding="utf-8").replace("\nversion:", "\nverison:"), encoding="utf-8")
    for arguments in (["--prompts", "mine"], ["--set", "prompts=mine"]):
        result = call("prompts", "check", *arguments)
        assert result.exit_code == 4
        assert result.stdout == ""
        assert f"{refine}:{lines + 1}: Mul is not available in a prompt" in result.stderr
        assert f"{answer}:3: verison: unknown key; did you mean 'version'?" in result.stderr
        assert f"{answer}:1: version: is missing" in result.stderr
        assert f"{refine}:{lines + 1}: unknown variable 'qeury'" in result.stderr
        assert result.stderr.endswith("4 errors in 2 files\n")
    found = call("prompts", "check", "--prompts", "mine", "--json")
    assert found.exit_code == 4
    faults = json.loads(found.stdout)["faults"]
    assert {"file": str(refine), "line": lines + 1} == {key: faults[-1][key] for key in ("file", "line")}
    assert [fault["line"] for fault in faults] == [1, 3, lines + 1, lines + 1]


def test_eject_copies_and_overwrites_nothing(call: Call) -> None:
    call.well("prompts", "eject", "mine", "refine_query")
    copy = Path("mine/refine_query.j2")
    assert copy.read_bytes() == (shipped_folder() / "refine_query.j2").read_bytes()
    copy.write_text("my own", encoding="utf-8")
    assert "mine already holds refine_query.j2; nothing was copied" in call.refused(2, "prompts", "eject", "mine")
    assert [path.name for path in Path("mine").iterdir()] == ["refine_query.j2"]
    assert copy.read_text(encoding="utf-8") == "my own"


def asked(call: Call, small: Small, name: str, *arguments: str) -> dict[str, object]:
    result = call.well("prompts", "try", name, *arguments, "--json", *small.options)
    found: dict[str, object] = json.loads(result.stdout)
    return found


def data_of(found: dict[str, object]) -> dict[str, object]:
    """The JSON object in the user's message."""
    text = found["messages"][1]["text"]
    data: dict[str, object] = json.loads(text[text.index("{") : text.rindex("}\n\nGive") + 1])
    return data


def test_try_fills_a_template_from_the_loop(call: Call, small: Small) -> None:
    found = asked(call, small, "refine_query", "--query", "lawyer", "--dimension", "gender", *WORDS, *UNIFORM)
    assert found["about"] == "'lawyer' aims at female (gender): 0.0% of the exposure, target 50.0%"
    data = data_of(found)
    assert (data["query"], data["dimension"], data["group_shown_too_little"]) == ("lawyer", "gender", "female")
    assert data["share_of_the_group_now"] == "0.0%"
    assert len(data["words_added_for_the_topic"]) == 20
    text = "".join(message["text"] for message in found["messages"])
    assert found["tokens"] == -(-len(text.encode()) // 4)
    assert found["reply"] is None


def test_send_shows_what_becomes_of_each_keyword(call: Call, small: Small, server: LoopbackServer) -> None:
    server.script = [KEYWORDS]
    asked_for = ["--query", "lawyer", "--dimension", "gender", "--send"]
    arguments = [*asked_for, "--set", "model.name=tiny", "--set", "n=6", *WORDS]
    result = call.well("prompts", "try", "refine_query", *arguments, *small.options)
    (request,) = server.requests
    assert '"group_shown_too_little": "female"' in request["messages"][1]["content"]
    lines = [line.split() for line in result.stdout.splitlines()]
    assert KEYWORDS in result.stdout
    assert ["she", "8", "added,", "weight", "0.1"] in lines
    assert ["judges", "8", "added,", "weight", "0.1"] in lines
    assert ["qwertz", "0", "dropped:", "not", "in", "the", "index"] in lines
    assert ["lawyer", "refused:", "nothing", "new"] in lines
    assert ["see", "x.org", "refused:", "an", "address"] in lines
    assert re.search(r"the gap is 0\.\d{4}, was 0\.1552: discarded", result.stdout)
    assert "1 model call, 11 tokens in, 7 out" in result.stdout
    # What was asked once is known.
    again = asked(call, small, "refine_query", *arguments)
    assert len(server.requests) == 1
    assert again["reply"]["rows"][0] == {"what": "she", "value": "8", "effect": "added, weight 0.1"}


@pytest.mark.parametrize("name", ["fairness_filter", "utility_filter", "attribute"])
def test_templates_that_read_get_the_first_documents(call: Call, small: Small, name: str) -> None:
    found = asked(call, small, name, "--query", "roses", "--documents", "2", "--answer", "Roses are [1] red.")
    user = found["messages"][1]["text"]
    shown = json.loads(user[user.index('[{"id"') : user.index("}]") + 2])
    assert [document["title"] for document in shown] == ["Page 24", "Page 25"]
    assert "d24, d25" in found["about"]
    assert ("Roses are" in user) == (name == "attribute")


def test_try_fills_every_other_template_with_examples(call: Call, small: Small) -> None:
    for name in sorted(specimens().keys() - {*REFINERS, *READERS}):
        result = call.well("prompts", "try", name, "--query", "a lawyer of Oz", *small.options)
        assert "with examples" in result.output
        assert ("a lawyer of Oz" in result.output) == ("query" in specimens()[name])
