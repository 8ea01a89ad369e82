"""FairFilter against its authors' code with scripted replies: how a reply is read, who stays, how many calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from judges import STEPS, documents_in, prompts_asking, step_of

from fairagent.filter import FairFilter
from fairagent.filter.authors import parse_verdict
from fairagent.llm import ModelRequest
from fairagent.prompts import Prompts
from fairagent.testing import Scripted, ScriptedModel
from fairagent.types import Document

pytestmark = pytest.mark.shared


@pytest.fixture(scope="module")
def golden(shared: Path) -> dict[str, Any]:
    path = shared / "golden" / "seed_systems" / "fairfilter.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    assert (len(found["parse"]), len(found["decisions"])) == (16, 9)
    return found


@pytest.fixture
def prompts(tmp_path: Path) -> Prompts:
    user = 'Query: {{ query }}\n{{ documents|tojson }}\nAnswer with {"Pass": true} or {"Pass": false}.'
    return prompts_asking(tmp_path, STEPS, user)


def authors_filter(model: ScriptedModel, prompts: Prompts) -> FairFilter:
    return FairFilter(model, prompts, workers=1, compat="authors")


def test_parse_table(golden: dict[str, Any]) -> None:
    for case in golden["parse"]:
        assert parse_verdict(case["reply"]) is case["authors_pass"], case["reply"]


def test_decisions_and_their_calls(golden: dict[str, Any], prompts: Prompts) -> None:
    for case in golden["decisions"]:

        def answer(request: ModelRequest, case: dict[str, Any] = case) -> Scripted:
            return str(case["fairness_reply" if step_of(request, prompts) == STEPS[0] else "relevance_reply"])

        model = ScriptedModel(answer)
        (verdict,) = authors_filter(model, prompts).filter("q", [Document("d", "text")]).verdicts
        assert (verdict.kept, len(model.requests)) == (case["kept"], case["llm_calls"]), case


def test_batch(golden: dict[str, Any], prompts: Prompts) -> None:
    batch = golden["batch"]
    model = ScriptedModel(batch["replies"])
    filtered = authors_filter(model, prompts).filter("q", [Document(text, text) for text in batch["docs"]])
    assert [document.text for document in filtered.documents] == batch["kept"]
    assert len(model.requests) == len(batch["replies"])
    assert [d["text"] for request in model.requests for d in documents_in(request)] == [*"ABBCCDD"]


def test_unusual_replies_are_read_without_an_error() -> None:
    assert not parse_verdict('{"pass":' + "[" * 100_000 + "}")
    assert not parse_verdict('{"pass": null}')
