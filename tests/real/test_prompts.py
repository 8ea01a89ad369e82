"""Every prompt of prompts/ is asked of a real model, through the command or the stage that asks it.

What is asserted: the model was asked with that template, all that it said had the form that was asked for, what was to
come of it came, and the tokens of the replies and in the ledger are those that the server has counted. Never what the
model thinks.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import lamp_files
import numpy as np
import pytest
from cli.conftest import Call, write_collection

from fairagent import write_demo
from fairagent.answer.filtering import FairFilter, parse_verdict
from fairagent.collection import load_collection
from fairagent.errors import FairAgentError
from fairagent.evaluate.questions import answer_to
from fairagent.llm.budget import Ledger, ledger
from fairagent.llm.models import CachingModel
from fairagent.llm.prompts import Prompts
from fairagent.llm.request import Model, ModelReply, ModelRequest
from fairagent.papers.debias_rag.avoid import load_lexicon
from fairagent.papers.debias_rag.benchmarks.bold import PROMPT
from fairagent.papers.debias_rag.benchmarks.items import Pair, StereoSetExample
from fairagent.papers.debias_rag.benchmarks.preference import ChoiceScorer
from fairagent.papers.debias_rag.stage import Rewriter
from fairagent.papers.fairft.graded import Accuracy, Agreement, Asker, GradedKind, GradedQuestion, Grader
from fairagent.papers.utility.trial import ModelWriter
from fairagent.retrieve.bm25.build import build_index
from fairagent.search.pipeline import build, open_site
from fairagent.settings import load_settings
from fairagent.types import Document, Query, Usage

from .conftest import ROOT, Served

pytestmark = [pytest.mark.llm, pytest.mark.slow, pytest.mark.usefixtures("surroundings")]

call = Call()
DOCUMENT = Document("d1", "Lawyers of both cities met in the court.", "A meeting")


@dataclass
class Record:
    """Which templates were filled, how many replies came, what was wrong with the others, and what all took."""

    templates: set[str] = field(default_factory=set)
    replies: int = 0
    faults: list[str] = field(default_factory=list)
    spent: Ledger = field(default_factory=Ledger)


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch) -> Record:
    """What passes the door."""
    record = Record()
    render, counted = Prompts.render, CachingModel._counted

    def watched(prompts: Prompts, id: str, /, **variables: object) -> Any:
        record.templates.add(id)
        return render(prompts, id, **variables)

    def asked(door: CachingModel, request: ModelRequest, ask: Callable[[], ModelReply]) -> ModelReply:
        try:
            reply = counted(door, request, ask)
        except FairAgentError as error:
            record.faults.append(f"{type(error).__name__}: {error}")
            record.spent.add(getattr(error, "usage", Usage()))
            raise
        record.replies += 1
        record.spent.add(reply.usage)
        return reply

    monkeypatch.setattr(Prompts, "render", watched)
    monkeypatch.setattr(CachingModel, "_counted", asked)
    return record


@pytest.fixture
def counted(served: Served, record: Record) -> Iterator[None]:
    """What replies say that they took is what the server counts."""
    before = served.tokens()
    yield
    after = served.tokens()
    assert tokens(record.spent) == (after[0] - before[0], after[1] - before[1])
    assert after[1] > before[1]
    assert not record.spent.usage.estimated


@pytest.fixture
def booked(counted: None, record: Record) -> Iterator[None]:
    """And a ledger around the work has all of it."""
    with ledger() as kept:
        yield
    assert tokens(kept) == tokens(record.spent)


def tokens(kept: Ledger) -> tuple[int, int]:
    return kept.usage.input_tokens, kept.usage.output_tokens


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A collection of 30 short documents: most lawyers are men."""
    folder = tmp_path_factory.mktemp("lawyers")
    file = write_collection(folder)
    build_index(load_collection(file), folder / "index")
    found = ["--collection", str(file), "--index", str(folder / "index"), "--dimension", "gender", "--n", "4"]
    return [*found, *_set("engine=bm25", "profile=offline")]


def _set(*assignments: str) -> list[str]:
    return [part for one in assignments for part in ("--set", one)]


DOING = "loop={kind: widen, actions: %s}"
SEARCHES = {
    "refine_query": ("loop=fair-qr", "refine=llm", "iterations=1"),
    "refine_query_grounded": ("loop=fair-qr", "refine=grounded", "iterations=1"),
    "group_keywords": (DOING % "keywords", "depth=4"),
    "group_passages": (DOING % "passages", "depth=4"),
    "steer_search": ("loop={kind: widen, actions: neighbors, policy: model, turns: 2, calls: 2}", "depth=4"),
    "judge_relevance": ("loop={kind: widen, actions: judge, judge: {documents: 2, groups: 1}}",),
    "fairness_filter": (DOING % "filter", "filter=fair"),
    "rank_documents": ("rerank=[{kind: listwise, window: 3, step: 2, depth: 4}, exposure]",),
}
"""Template -> the settings of a search that asks with it."""


@pytest.mark.parametrize("template", SEARCHES)
@pytest.mark.usefixtures("booked")
def test_searches(template: str, options: list[str], record: Record) -> None:
    found = call.record("search", "lawyer", *options, *_set(*SEARCHES[template]))
    assert len(found["hits"]) == 4
    assert template in record.templates
    assert record.faults == []
    assert found["usage"]["calls"] >= record.replies > 0


@pytest.mark.usefixtures("booked")
def test_the_readmes_search(tmp_path: Path, served: Served, record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    collection = load_collection(write_demo(tmp_path / "fairagent-demo"))
    build_index(collection, tmp_path / "fairagent-demo" / "index")
    monkeypatch.chdir(tmp_path)
    (line,) = re.findall(r"^    fairagent (search .*)$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
    found = call.record(*shlex.split(line.replace("NAME", served.name)))
    assert [step["source"] for step in found["steps"]] == ["query", "keywords"]
    assert found["steps"][1]["objective"].keys() == {"before", "after"}
    assert (found["profile"], record.templates) == ("agent", {"group_keywords"})
    assert found["usage"]["calls"] in (1, 2)


@pytest.mark.usefixtures("booked")
def test_answer_and_attribute(options: list[str], record: Record) -> None:
    chosen = _set("generate=llm", "attribute=judge", "context.documents=2")
    found = call.record("answer", "Who was a lawyer?", *options, *chosen)
    assert found["answer"].strip()
    assert {"answer", "attribute"} <= record.templates
    # The small model may go on until its limit.
    assert [one for one in record.faults if not one.startswith("ReplyTruncated")] == []


@pytest.mark.usefixtures("booked")
def test_an_answer_that_is_streamed_is_its_pieces(options: list[str], record: Record) -> None:
    generate = {"kind": "llm", "on_uncited": "keep"}
    more = {"profile": "offline", "engine": "bm25", "generate": generate, "context": {"documents": 1}, "n": 4}
    settings = load_settings(overrides={"collection": options[1], "index": options[3], **more})
    pieces: list[str] = []
    result = build(open_site(settings=settings)).answer(Query("lawyer"), pieces.append)
    assert len(pieces) > 1
    assert "".join(pieces).strip() == result.answer.text.strip()
    # The small model may go on until its limit; then what has come is the answer.
    assert [one for one in record.faults if not one.startswith("ReplyTruncated")] == []


@pytest.mark.parametrize("template", ["fairness_filter", "utility_filter", "attribute"])
@pytest.mark.usefixtures("booked")
def test_verdicts(template: str, options: list[str], record: Record) -> None:
    call.well("prompts", "try", template, "--query", "lawyer", "--send", "--documents", "2", *options[:6])
    assert (record.templates, record.faults) == ({template}, [])


def ask(model: Model, prompts: Prompts) -> None:
    assert Asker(model, prompts, short=True).ask("Where is the court?", [DOCUMENT]).text


def judge(task: type[GradedKind]) -> Callable[[Model, Prompts], None]:
    def grade(model: Model, prompts: Prompts) -> None:
        found = Grader(task, model, prompts).grade(GradedQuestion("q1", "Is it so?", expected="it is"), "Perhaps so.")
        assert found.judged
        assert found.value in (0, 1)

    return grade


def utility_answer(model: Model, prompts: Prompts) -> None:
    for documents in ([DOCUMENT], []):
        assert ModelWriter(model, prompts, 0.0, 1).answer(Query("Who met?"), documents, 0).text


def paper_answer(model: Model, prompts: Prompts) -> None:
    for documents in ([DOCUMENT], []):
        ModelWriter(model, prompts, 0.0, 1, "authors").answer(Query("Who met?"), documents, 0)


def paper_fairness(model: Model, prompts: Prompts) -> None:
    one = FairFilter(model, prompts, workers=1, utility=False, on_error="fail", compat="authors")
    assert len(one.filter("Who met?", [DOCUMENT]).verdicts) == 1


def paper_utility(model: Model, prompts: Prompts) -> None:
    variables = {"query": "Who met?", "document": DOCUMENT.text}
    request = replace(prompts.request("paper_utility_filter", variables, 0.0), whole=False)
    assert parse_verdict(model.complete(request).text) in (True, False)


def rewrite(model: Model, prompts: Prompts) -> None:
    text, _ = Rewriter(model, prompts, 2).rewrite("nurses", load_lexicon("").swap("She was a nurse."))
    assert text.strip()


def choose(model: Model, prompts: Prompts) -> None:
    pair = Pair("q1", "gender", "She is a nurse.", "He is a nurse.", True)
    sentences = ("He was early.", "She was late.", "The river, the law.")
    example = StereoSetExample("q2", "intersentence", "gender", "nurse", "The nurse came.", *sentences)
    for item in (pair, example):
        scores = ChoiceScorer(model, prompts).score(item).scores
        assert np.isfinite(scores).all()
        assert len(set(scores.tolist())) == len(item.sentences)


def write_on(model: Model, prompts: Prompts) -> None:
    messages = prompts.render(PROMPT, query="The nurse was known for", documents=None)
    assert answer_to(model, prompts[PROMPT], messages).text


STAGES: dict[str, Callable[[Model, Prompts], None]] = {
    "ask": ask,
    "judge_agreement": judge(Agreement),
    "judge_accuracy": judge(Accuracy),
    "utility_answer": utility_answer,
    "paper_utility_answer": paper_answer,
    "paper_fairness_filter": paper_fairness,
    "paper_utility_filter": paper_utility,
    "rewrite_counterfactual": rewrite,
    "choose_sentence": choose,
    "continue_text": write_on,
}


@pytest.mark.parametrize("template", STAGES)
@pytest.mark.usefixtures("booked")
def test_stages(template: str, model: Model, record: Record) -> None:
    STAGES[template](model, Prompts())
    assert (record.templates, record.faults) == ({template}, [])


@pytest.mark.usefixtures("booked")
def test_diagnose(tmp_path: Path, record: Record) -> None:
    passages = [{"id": "a1", "text": "Women cannot drive."}, {"id": "a2", "text": "The bridge is long."}]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(one) + "\n" for one in passages), encoding="utf-8")
    out = tmp_path / "avoid.jsonl"
    result = call("avoid", "diagnose", "--data", str(tmp_path / "data.jsonl"), "--out", str(out))
    assert record.templates == {"diagnose_bias"}
    assert record.faults == []
    # A model that finds nothing leaves no library, and says so.
    assert result.exit_code == 0 or "calls none of 2 passages biased" in result.output
    assert out.exists() == (result.exit_code == 0)


LAMP = """\
kind: lamp
name: profiles
seed: 3
fair_rag: {k: 2, samples: 4, alphas: [8]}
lamp: {task: TASK, questions: dev_questions.json, outputs: dev_outputs.json}
settings: {attribute: none}
systems:
  Okapi: {profile: engine, engine: okapi}
"""


@pytest.mark.parametrize("task", sorted(lamp_files.INPUTS))
@pytest.mark.usefixtures("counted")
def test_labels(task: str, tmp_path: Path, record: Record) -> None:
    lamp_files.write(tmp_path, lamp_files.questions(task, 1, 1), lamp_files.outputs(task, 1))
    file = tmp_path / "experiment.yaml"
    file.write_text(LAMP.replace("TASK", task), encoding="utf-8")
    call.well("labels", str(file), "--workers", "1")
    assert record.templates == {task.lower().replace("-", "_")}
    assert (record.replies, record.faults) == (2, [])


def test_every_prompt_is_asked_here() -> None:
    lamp = {task.lower().replace("-", "_") for task in lamp_files.INPUTS}
    others = {"answer", "attribute", "utility_filter", "diagnose_bias"}
    assert set(Prompts().ids) == {*SEARCHES, *STAGES, *lamp, *others}
