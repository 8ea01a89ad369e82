"""FairFilter with scripted models: who is asked what, who stays, and what becomes of documents without a verdict."""

from __future__ import annotations

import json
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judges import STEPS, Data, documents_in, judge, says, step_of, verdicts

from fairagent.answer.filtering import (
    LONGEST_TEXT,
    LONGEST_TITLE,
    FairFilter,
    Page,
    batches,
    call_ids,
    filter_alarms,
    page_of,
    removal_warnings,
)
from fairagent.errors import BudgetExceeded, FatalModelError, ModelError, ReplyRefused, TransientModelError
from fairagent.guests.testing import Scripted, ScriptedModel
from fairagent.llm import ModelRequest
from fairagent.llm.prompts import Prompts
from fairagent.llm.request import check_room, longest_reply
from fairagent.settings import ModelSettings
from fairagent.types import UNKNOWN, Document, Group, Removal, Verdict
from fairagent.types.common import UNFINISHED

PROMPTS = Prompts()


def documents(*texts: str) -> list[Document]:
    return [Document(f"d{place}", text, f"Title {place}") for place, text in enumerate(texts)]


def never(document: Data) -> bool:
    return False


def always(document: Data) -> bool:
    return True


def test_a_document_stays_if_it_passes_either_step():
    model = judge(PROMPTS, fair=says("fair"), useful=says("useful"))
    given = documents("neither", "useful", "fair", "fair and useful", "neither")
    filtered = FairFilter(model, PROMPTS, batch=1).filter("lawyers", given)
    assert filtered.documents == (given[1], given[2], given[3])
    assert filtered.verdicts == (
        Verdict("d0", False, False, False, "by fairness_filter; by utility_filter"),
        Verdict("d1", True, False, True, "by fairness_filter; by utility_filter"),
        Verdict("d2", True, True, None, "by fairness_filter"),
        Verdict("d3", True, True, None, "by fairness_filter"),
        Verdict("d4", False, False, False, "by fairness_filter; by utility_filter"),
    )
    assert len(model.requests) == 8


def test_the_second_step_sees_only_what_failed_the_first_or_is_left_out():
    given = documents("fair", "bad", "fair", "fair", "worse")
    for utility, second in ((True, [(STEPS[1], ["bad"]), (STEPS[1], ["worse"])]), (False, [])):
        model = judge(PROMPTS, fair=says("fair"), useful=never)
        filtered = FairFilter(model, PROMPTS, batch=2, utility=utility).filter("lawyers", given)
        asked = sorted((step_of(r, PROMPTS), [d["text"] for d in documents_in(r)]) for r in model.requests)
        first = [(STEPS[0], texts) for texts in (["fair", "bad"], ["fair", "fair"], ["worse"])]
        assert asked == [*first, *second]
        assert [d.id for d in filtered.documents] == ["d0", "d2", "d3"]
    assert {v.useful for v in filtered.verdicts} == {None}


@pytest.mark.parametrize("batch", [3, 99])
@pytest.mark.parametrize("workers", [1, 10])
def test_batches_and_workers_change_no_verdict(batch: int, workers: int):
    texts = [f"{'fair' * (n % 2)} {'useful' * (n % 3 == 0)} {n}" for n in range(10)]
    model = judge(PROMPTS, fair=says("fair"), useful=says("useful"))
    filtered = FairFilter(model, PROMPTS, batch, workers).filter("lawyers", documents(*texts))
    assert [d.text for d in filtered.documents] == [text for n, text in enumerate(texts) if n % 2 or n % 3 == 0]
    assert [v.id for v in filtered.verdicts] == [f"d{n}" for n in range(10)]
    assert len(model.requests) <= 2 * -(-10 // batch)


def test_ten_documents_take_the_time_of_two_calls():
    # Nobody answers before ten ask: were fewer calls in flight at a time, the barrier would break.
    stages = {step: threading.Barrier(10, timeout=250) for step in STEPS}

    def answer(request: ModelRequest) -> Scripted:
        stages[step_of(request, PROMPTS)].wait()
        return verdicts(documents_in(request), never)

    model = ScriptedModel(answer)
    filtered = FairFilter(model, PROMPTS, batch=1, workers=10).filter("lawyers", documents(*map(str, range(10))))
    assert filtered.documents == ()
    assert len(model.requests) == 20


def test_a_repeated_run_asks_the_same_and_another_query_or_neighbor_does_not():
    def requests(query: str, *texts: str, batch: int = 2) -> list[ModelRequest]:
        model = judge(PROMPTS, always, always)
        FairFilter(model, PROMPTS, batch, workers=1).filter(query, documents(*texts))
        return model.requests

    def ids(query: str, *texts: str, batch: int = 2) -> list[str]:
        return [data["id"] for request in requests(query, *texts, batch=batch) for data in documents_in(request)]

    assert requests("lawyers", "a", "b") == requests("lawyers", "a", "b")
    assert requests("lawyers", "a")[0].temperature == 0.0
    first = ids("lawyers", "a", "b")
    assert len(set(first)) == 2
    assert ids("lawyers", "a", "b") == first
    assert not set(ids("judges", "a", "b")) & set(first)
    assert not set(ids("lawyers", "a", "c")) & set(first)
    assert not set(ids("lawyers", "a", "b", batch=1)) & set(first)
    assert len(set(ids("lawyers", "a", "a"))) == 2


ERRORS = [ReplyRefused("declined"), TransientModelError("overloaded")]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize(("on_error", "kept"), [("keep", True), ("drop", False), ("fail", None)])
def test_without_a_verdict_the_policy_decides_in_both_steps_and_the_note_says_so(
    error: ModelError, on_error: str, kept: bool | None
):
    def answer(request: ModelRequest) -> Scripted:
        (document,) = documents_in(request)
        fails = "odd" if step_of(request, PROMPTS) == STEPS[0] else "unfair"
        return error if document["text"] == fails else verdicts([document], says("fine"))

    made = FairFilter(ScriptedModel(answer), PROMPTS, batch=1, on_error=on_error)
    if kept is None:
        for text in ("odd", "unfair"):
            with pytest.raises(type(error)):
                made.filter("q", documents("fine", text))
        return
    _, *others = made.filter("q", documents("fine", "odd", "unfair")).verdicts
    assert [(v.kept, v.fair, v.useful) for v in others] == [(kept, None, None), (kept, False, None)]
    assert all(f"not judged: {error}; {'kept all the same' if kept else 'dropped'}" in v.note for v in others)


@pytest.mark.parametrize("on_error", ["keep", "drop", "fail"])
@pytest.mark.parametrize("error", [FatalModelError("no key"), BudgetExceeded("10 calls")])
def test_what_no_call_can_survive_is_raised_and_the_rest_is_not_asked(error: Exception, on_error: str):
    def answer(request: ModelRequest) -> Scripted:
        raise error

    model = ScriptedModel(answer)
    with pytest.raises(type(error)):
        FairFilter(model, PROMPTS, workers=1, on_error=on_error).filter("q", documents(*map(str, range(50))))
    assert len(model.requests) < 50


@pytest.mark.parametrize(("on_error", "kept"), [("keep", 4), ("drop", 2)])
def test_a_used_up_budget_may_leave_documents_without_a_verdict_which_is_an_alarm(on_error: str, kept: int):
    def answer(request: ModelRequest) -> Scripted:
        if len(model.requests) > 1:
            raise BudgetExceeded("1 call")
        return verdicts(documents_in(request), always)

    model = ScriptedModel(answer)
    filtered = FairFilter(model, PROMPTS, 2, 1, on_error=on_error, on_budget="serve").filter("q", documents(*"abcd"))
    assert [one.complete for one in filtered.verdicts] == [True, True, False, False]
    assert len(filtered.documents) == kept
    (alarm,) = filter_alarms(filtered.verdicts)
    assert str(alarm) == f"{UNFINISHED}: no verdict on 2 of 4 documents, of which {kept - 2} were kept"
    # So is one that stays without a verdict of the second step alone.
    stays, goes = (Verdict("d", one, False, None) for one in (True, False))
    assert [one.what for one in filter_alarms([stays, Verdict("e", True, True, None)])] == [UNFINISHED]
    assert UNFINISHED not in [one.what for one in filter_alarms([goes, Verdict("e", True, False, True)])]


def test_twenty_documents_are_one_call_and_two_where_some_are_unfair():
    given = documents(*(f"{'bad' * (n == 3)} {'word ' * 400}" for n in range(20)))
    for unfair, calls in ((False, 1), (True, 2)):
        model = judge(PROMPTS, lambda document, unfair=unfair: not unfair or "bad" not in document["text"], never)
        assert len(FairFilter(model, PROMPTS).filter("q", given).documents) == 20 - unfair
        assert len(model.requests) == calls
    # A verdict takes 80 tokens, so the reply of one about 20 documents may have 1,600.
    assert longest_reply(ModelSettings(), model.requests[0].max_tokens, model.requests[0].judged) == 1600


@pytest.mark.parametrize(("context", "calls"), [(2048, 10), (4096, 3), (8192, 1), (None, 1)])
def test_batches_fit_the_context(context: int | None, calls: int):
    limits, model = ModelSettings(name="m", context=context), judge(PROMPTS, always, always)
    FairFilter(model, PROMPTS, limits=limits).filter("lawyers", documents(*["word " * 200] * 20))
    for request in model.requests:
        check_room(limits, request)
    assert len(model.requests) == calls


def test_one_text_that_spoils_its_batch_does_not_cost_its_neighbors_their_verdicts():
    def answer(request: ModelRequest) -> Scripted:
        shown = documents_in(request)
        return ERRORS[0] if any(d["text"] == "odd" for d in shown) else verdicts(shown, says("fair"))

    given = documents("fair", "odd", "bad")
    filtered = FairFilter(ScriptedModel(answer), PROMPTS, batch=3, utility=False).filter("q", given)
    assert [(v.kept, v.fair) for v in filtered.verdicts] == [(True, True), (True, None), (False, False)]
    # An overloaded server is not asked about each of them again.
    model = ScriptedModel(lambda _: ERRORS[1])
    assert len(FairFilter(model, PROMPTS, batch=5).filter("q", documents(*"abcde")).documents) == 5
    assert len(model.requests) == 1


@pytest.mark.parametrize("reply", ["true", '{"verdicts": [{"pass": "True"}]}'])
def test_a_reply_of_another_form_is_no_verdict(reply: str):
    model = ScriptedModel(lambda _: reply)
    (verdict,) = FairFilter(model, PROMPTS).filter("q", documents("a")).verdicts
    assert (verdict.kept, verdict.fair) == (True, None)
    assert len(model.requests) > 1


def test_the_papers_two_questions_are_about_one_document_and_read_as_its_code_reads():
    replies = ['{"pass": "TRUE"}', "no object", 'So: {"Pass": True} {"Pass": False}', "neither", ReplyRefused("no")]
    replies += ['{"Pass": false}']
    model = ScriptedModel(replies)
    given = [Document("a", "fair", "Title"), Document("b", "needed"), Document("c", "odd"), Document("d", "x")]
    filtered = FairFilter(model, PROMPTS, workers=1, compat="authors").filter("who?", given[:2])
    assert [(one.kept, one.fair, one.useful) for one in filtered.verdicts] == [(True, True, None), (True, False, True)]
    # What cannot be read has not passed, whatever on_error says of failed calls; a refusal cannot be read.
    filtered = FairFilter(model, PROMPTS, workers=1, utility=False, compat="authors").filter("who?", given[2:])
    assert [(one.kept, one.fair) for one in filtered.verdicts] == [(False, False), (False, False)]
    assert filtered.verdicts[1].note == "nothing to read: no"
    asked = [request.messages for request in model.requests]
    assert {len(messages) for messages in asked} == {1}
    assert '"Title\\nfair"' in asked[0][0][1]
    assert [request.prompt for request in model.requests] == [
        *("paper_fairness_filter", "paper_fairness_filter", "paper_utility_filter"),
        *("paper_fairness_filter", "paper_fairness_filter"),
    ]
    assert {(request.reply, request.whole, request.temperature) for request in model.requests} == {(None, False, 0.0)}


PAGES = st.lists(st.builds(Page, st.just("d"), st.text(max_size=5), st.text(max_size=20)), max_size=6)


def test_long_and_hidden_text_is_cut_and_noted():
    page = page_of(Document("d", "\u200b" + "x" * 10_000 + "\ue000", "t" * 400 + "\u202e"))
    assert (len(page.text), len(page.title)) == (LONGEST_TEXT, LONGEST_TITLE)
    assert page.note == (
        "hidden characters taken out: 3; title cut to 300 of 400 characters; text cut to 8,000 of 10,000 characters"
    )


@settings(max_examples=30)
@given(PAGES)
def test_ids_are_distinct_repeatable_and_those_of_their_call(pages: list[Page]):
    ids = call_ids("fairness_filter", ["q"], pages)
    assert len(set(ids)) == len(pages)
    assert all(len(id) == 12 and set(id) <= set("0123456789abcdef") for id in ids)
    assert call_ids("fairness_filter", ["q"], pages) == ids
    # No text can name the id that it gets.
    assert not set(ids) & set(call_ids("fairness_filter", ["q"], [Page("1", "", " ".join(ids)), *pages[1:]]))
    for other in (call_ids("utility_filter", ["q"], pages), call_ids("fairness_filter", ["r"], pages)):
        assert not set(other) & set(ids)


@given(st.lists(st.integers(0, LONGEST_TEXT), max_size=12), st.integers(1, 5))
def test_batches_keep_the_order_and_both_limits(lengths: list[int], most: int):
    pages = [Page(str(place), "", '"' * length) for place, length in enumerate(lengths)]
    parts = list(batches(pages, most))
    assert [page for part in parts for page in part] == pages
    for part in parts:
        assert 1 <= len(part) <= most
        assert sum(len(json.dumps([page.title, page.text])) for page in part) <= 40_000


def removal(label: str, seen: float, removed: float, dimension: str = "gender") -> Removal:
    return Removal(Group(dimension, label), seen, removed)


def test_a_group_that_loses_more_than_chance_explains_is_named():
    run = [removal(UNKNOWN, 40, 8), removal("female", 100, 45), removal("male", 200, 40)]
    (warning,) = removal_warnings(run)
    assert warning == (
        "the filter removed 45% of the documents of female (gender), 45 of 100, but 20% of all others, 48 of 240 "
        "(p < 0.001)"
    )
    # Fisher's p is .0253: below .05, but not below .05 / 4.
    pair = [removal("a", 20, 10), removal("b", 60, 13)]
    assert len(removal_warnings(pair)) == 1
    assert removal_warnings([*pair, removal("c", 1, 0), removal("d", 1, 0), removal("e", 1, 0)]) == ()


@pytest.mark.parametrize(
    "run",
    [
        [removal("female", 100, 20), removal("male", 200, 40)],
        [removal("female", 5, 3), removal("male", 5, 1)],
        [removal(UNKNOWN, 100, 90), removal("female", 100, 10), removal("male", 100, 10)],
    ],
    ids=["alike", "one query", "unknown is no group"],
)
def test_nothing_is_said_without_reason(run: list[Removal]):
    assert removal_warnings(run) == ()


def test_a_text_cannot_name_the_id_it_gets():
    for neighbor in ("", "a neighbor"):
        text = "a text"
        for _ in range(5):
            pages = [Page("1", "", text), Page("2", "", neighbor)]
            ids = call_ids("fairness_filter", ["q"], pages)
            assert not any(id in text for id in ids)
            text = f"a text that names {' and '.join(ids)}"
