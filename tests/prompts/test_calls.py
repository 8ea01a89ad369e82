"""What parts tell of their worst case: as many calls and tokens as they then really take, and never fewer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import pytest
from search.test_refine import state

from fairagent.answer.answering import LONGEST_ANSWER, JudgeAttributor
from fairagent.answer.context import fit
from fairagent.answer.filtering import LONGEST_TEXT, LONGEST_TITLE, FairFilter
from fairagent.answer.generators import LlmGenerator
from fairagent.guests.testing import ScriptedModel
from fairagent.llm import ModelRequest
from fairagent.llm.budget import ledger
from fairagent.llm.prompts import Calls, Case, Prompts, together
from fairagent.llm.request import estimate_tokens
from fairagent.papers.debias_rag.stage import LONGEST_REWRITTEN, Rewriter
from fairagent.search.refine import MOST_KEYWORDS, LlmRefiner
from fairagent.settings import Settings
from fairagent.settings.parts import SLOTS, part_class, read_part, shipped
from fairagent.types import Answer, Document, Term

QUERIES = ("famous lawyers", "Who was the first lawyer?")
GROUP = ("North America", "region")
PROMPTS = cache(Prompts)
LONG = Document("d", "x" * (LONGEST_TEXT + 9), "x" * (LONGEST_TITLE + 9))


def case(queries: Iterable[str] = QUERIES, **settings: Any) -> Case:
    chosen = Settings(**settings)
    return Case(chosen, PROMPTS(chosen.prompts), tuple(queries), GROUP)


def worst(slot: str, part: Any, **settings: Any) -> Calls:
    """The worst case of one part under settings that have it."""
    given = case(**{slot: part}, **settings)
    return together(given.settings.model, getattr(given.settings, slot).worst_case(given))


def read(model: ScriptedModel) -> int:
    """The tokens of all that a scripted model was asked."""
    return sum(estimate_tokens(*(text for _, text in request.messages)) for request in model.requests)


def verdicts(passed: bool) -> Callable[[ModelRequest], str]:
    def answer(request: ModelRequest) -> str:
        line = next(line for line in request.messages[-1][1].splitlines() if line.startswith('[{"id"'))
        found = [{"id": one["id"], "pass": passed, "reason": ""} for one in json.loads(line)]
        return json.dumps({"verdicts": found})

    return answer


def close(calls: Calls, model: ScriptedModel) -> None:
    """That so many calls were told, and hardly more tokens than were read: queries are counted apart."""
    assert calls.calls == len(model.requests)
    assert read(model) <= calls.input_tokens <= read(model) + len(model.requests)


def test_who_asks_with_a_template_tells_a_worst_case_and_nobody_else() -> None:
    given = case(iterations=3)
    told = {}
    for slot in SLOTS:
        for kind, home in shipped(slot).items():
            if home.startswith("fairagent."):
                needed = {"splade": {"model": "m"}, "cross-encoder": {"scorer": "s"}, "run-file": {"path": "p"}}
                needed |= {one: {"index": "i"} for one in ("opensearch", "lucene")}
                needed |= {one: {"index": "i", "encoder": "e"} for one in ("lucene-impact", "lucene-hnsw")}
                more = {"chain": {"parts": ["mmr"]}, "given": {"shares": {"a": 1}}, "debias-rag": {"rewrites": 1}}
                part = read_part(slot, {"kind": kind, **needed.get(kind, {}), **more.get(kind, {})})
                assert isinstance(part, part_class(slot, kind))
                calls = list(part.worst_case(given))
                assert bool(calls) == bool(part.templates), kind
                told[slot, kind] = bool(calls)
    asking = {" ".join(key) for key, asks in told.items() if asks}
    of_search = {"refine llm", "refine grounded", "rerank listwise"}
    assert asking == of_search | {"filter fair", "debias debias-rag", "generate llm", "attribute judge"}


@pytest.mark.parametrize("source", ["", "few-shot", "reasoning"])
def test_refining(source: str) -> None:
    given = case(refine="llm", iterations=3, prompts=source, model={"max_tokens": 100})
    calls = together(given.settings.model, given.settings.refine.worst_case(given))
    prompts = PROMPTS(source)
    values = {"dimension": "region", "group": "North America", "share": "10.0%", "target": "50.0%"}
    read = 0
    for query in QUERIES:
        for iteration in range(3):
            given_up = ["keywords"] * (MOST_KEYWORDS * iteration)
            shown = prompts.render("refine_query", **values, query=query, keywords=["keywords"] * 20, tried=given_up)
            read += estimate_tokens(*(text for _, text in shown))
    assert calls == Calls(given.settings.model, 6, read, 6 * 100)


def test_a_real_refinement_reads_no_more_and_a_grounded_one_is_shown_more() -> None:
    words = tuple(Term("keywords"[: 1 + n % 8], 0.1) for n in range(30))
    model = ScriptedModel(lambda request: '{"keywords": []}')
    refiner = LlmRefiner(model, PROMPTS(""))
    for iteration in range(3):
        refiner.refine(
            state(query=QUERIES[0], terms=words, tried=[f"word {n}" for n in range(MOST_KEYWORDS * iteration)])
        )
    given = case(QUERIES[:1], refine="llm", iterations=3)
    (calls,) = given.settings.refine.worst_case(given)
    assert (calls.calls, len(model.requests)) == (3, 3)
    assert read(model) <= calls.input_tokens
    plain, grounded = worst("refine", "llm", iterations=2), worst("refine", "grounded", iterations=2)
    assert (plain.calls, grounded.calls) == (4, 4)
    fewer = worst("refine", {"kind": "grounded", "terms": 3}, iterations=2)
    assert max(plain.input_tokens, fewer.input_tokens) < grounded.input_tokens


@pytest.mark.parametrize(("batch", "utility"), [(1, True), (1, False), (5, True), (3, False)])
def test_filtering(batch: int, utility: bool) -> None:
    part = {"kind": "fair", "batch": batch, "utility": utility}
    calls = worst("filter", part, context={"documents": 7})
    model = ScriptedModel(verdicts(False))
    with ledger() as spent:
        for query in QUERIES:
            FairFilter(model, PROMPTS(""), batch, utility=utility).filter(query, [LONG] * 7)
    close(calls, model)
    assert spent.usage.calls == calls.calls
    longest = PROMPTS("")["fairness_filter"].longest_reply(400)
    assert calls.output_tokens == calls.calls * longest


@pytest.mark.parametrize(("k", "rewrites"), [(3, 3), (5, 1)])
def test_debiasing(k: int, rewrites: int) -> None:
    calls = worst("debias", {"kind": "debias-rag", "k": k, "rewrites": rewrites})
    model = ScriptedModel(lambda request: json.dumps({"rewrites": ["x"] * rewrites}))
    for query in QUERIES:
        for _ in range(k):
            Rewriter(model, PROMPTS(""), rewrites).rewrite(query, "x" * LONGEST_REWRITTEN)
    close(calls, model)


@pytest.mark.parametrize("part", [{}, {"length": 100, "language": "German"}])
@pytest.mark.parametrize("context", [{}, {"documents": 7, "tokens": 500}])
def test_generating(part: dict[str, Any], context: dict[str, Any]) -> None:
    calls = worst("generate", {"kind": "llm", **part}, context=context)
    chosen = Settings(context=context).context
    model = ScriptedModel(lambda request: "Nothing is known.")
    documents, _ = fit([LONG] * chosen.documents, chosen.tokens)
    for query in QUERIES:
        LlmGenerator(model, PROMPTS(""), **part).answer(query, documents)
    assert calls.calls == len(model.requests) == 2
    # Every document is counted with a number of as many digits as the last one has.
    assert read(model) <= calls.input_tokens <= read(model) + 2 + 2 * chosen.documents
    assert calls.output_tokens == 2 * 400


def test_attributing() -> None:
    calls = worst("attribute", "judge", context={"documents": 7})
    model = ScriptedModel(verdicts(True))
    for query in QUERIES:
        answer = Answer("x" * (LONGEST_ANSWER + 9), (), ())
        JudgeAttributor(model, PROMPTS("")).attribute(query, answer, [LONG] * 7)
    close(calls, model)
