"""The listwise re-ranker: windows and permutations by hand, what faulty replies come to, calls, and the objective."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from scripted import ranking

from fairagent import FairAgent, build_index, load_collection, open_agent, write_demo
from fairagent.errors import BackendUnavailable, BudgetExceeded, FatalModelError, TransientModelError
from fairagent.evaluate.kind import NO_COLLECTION
from fairagent.guests.testing import ScriptedModel
from fairagent.llm import ModelRequest
from fairagent.llm.budget import ledger
from fairagent.llm.prompts import Prompts
from fairagent.search.pipeline import most_calls
from fairagent.search.rerank.base import Pool
from fairagent.search.rerank.listwise import ListwiseReranker, windows
from fairagent.settings import load_settings
from fairagent.types import Document, Query

from .greedy_pools import Texts


def pool(ids: str, n: int = 9, engine: str = "") -> Pool:
    return Pool(Query("who?"), ranking(ids), (), (), n, engine_list=ranking(engine))


def reranker(*replies: object, window: int = 4, step: int = 2, **more: object) -> ListwiseReranker:
    model = ScriptedModel([one if isinstance(one, Exception) else json.dumps({"order": one}) for one in replies])
    return ListwiseReranker(Texts(), model, Prompts(""), window=window, step=step, **more)


def letters(request: ModelRequest) -> str:
    """The documents that a prompt shows, in their order."""
    line = next(line for line in request.messages[-1][1].splitlines() if line.startswith("[{"))
    documents = json.loads(line)
    assert [one["number"] for one in documents] == [*range(1, len(documents) + 1)]
    return "".join(one["text"].removeprefix("title of ")[0] for one in documents)


def test_two_windows_carry_a_document_from_the_end_to_the_top() -> None:
    # a b [c d e f] -> a b f d c e; [a b f d] c e -> f b a d c e.
    asking = reranker([4, 2, 1, 3], [3, 2, 1, 4])
    with ledger() as book:
        result = asking.rerank(pool("abcdef"))
    assert result.ids == tuple("fbadce")
    assert result.scores.tolist() == [6, 5, 4, 3, 2, 1]
    assert [letters(one) for one in asking.model.requests] == ["cdef", "abfd"]
    assert (book.usage.calls, book.usage.notes) == (2, ())
    # What a server that holds bounds is to write: each time as many numbers as there are documents.
    narrowed = asking.model.requests[0].narrowed["order"]
    assert (narrowed["minItems"], narrowed["items"]["enum"]) == (4, [1, 2, 3, 4])


def test_windows_leave_no_document_out() -> None:
    for n, step, expected in ((1, 2, [(0, 1)]), (4, 2, [(0, 4)]), (5, 2, [(1, 5), (0, 3)]), (8, 9, [(4, 8), (0, 4)])):
        assert list(windows(n, 4, step)) == expected


def test_numbers_left_out_repeated_or_made_up_are_mended_and_counted() -> None:
    asking = reranker([3, 3, 9])
    with ledger() as book:
        assert asking.rerank(pool("abcd")).ids == tuple("cabd")
    assert book.usage.notes == ("listwise: the model left out 3 numbers, repeated 1 and made up 1",)


@pytest.mark.parametrize(
    "text",
    [
        "[3] > [1] > [4] > [2]",
        "<think>[1] > [2]?</think>\n[3] > [1] > [4] > [2]",
        "The order is [3, 1, 4, 2].",
        '{"order": [3, 1, 4, 2,]}',
        '{"order": ["3", "1", "4", "2"]}',
        '{"order": [1, 2]} No: {"order": [3, 1, 4, 2], "why": "c is best"}',
    ],
)
def test_replies_are_read_in_the_forms_that_models_give(text: str) -> None:
    asking = ListwiseReranker(Texts(), ScriptedModel([text]), Prompts(""))
    assert asking.rerank(pool("abcd")).ids == tuple("cadb")


def test_only_the_engines_first_are_read_and_what_a_loop_brings_in_stays_in_its_place() -> None:
    asking = reranker([3, 1, 2], depth=3)
    assert asking.rerank(pool("abcde")).ids == tuple("cabde")
    # x has come in behind a, and b was taken out: nothing is asked again.
    asked = asking.rerank(pool("axcde", engine="abcde"))
    assert asked.ids == tuple("cxade")
    assert len(asking.model.requests) == 1
    assert asking.rerank(pool("abcde", n=2)).ids == tuple("ca")
    assert (asking.rerank(pool("")).ids, asking.rerank(pool("z")).ids) == ((), ("z",))


def test_where_a_call_fails_the_order_so_far_stays_or_the_error_is_raised() -> None:
    late = TransientModelError("503")
    asking = reranker([4, 1, 2, 3], late, [4, 1, 2, 3], [1, 2, 3, 4])
    with ledger() as book:
        assert asking.rerank(pool("abcdef")).ids == tuple("abfcde")
    assert book.usage.notes == ("listwise: the order stays as far as it was made: 503",)
    # It is no order to remember.
    assert asking.rerank(pool("abcdef")).ids == tuple("abfcde")
    assert len(asking.model.requests) == 4
    with pytest.raises(TransientModelError):
        reranker(late, on_error="fail").rerank(pool("abcd"))
    with pytest.raises(FatalModelError):
        reranker(FatalModelError("a wrong key")).rerank(pool("abcd"))

    def unpaid(request: ModelRequest) -> str:
        raise BudgetExceeded("used up")

    assert ListwiseReranker(Texts(), ScriptedModel(unpaid), Prompts("")).rerank(pool("abcd")).ids == tuple("abcd")


def test_all_documents_of_a_call_fit_into_a_prompt() -> None:
    class Long(Texts):
        def document(self, id: str) -> Document:
            return Document(id, "ä" * 50_000, id)

    asking = ListwiseReranker(Long(), ScriptedModel(['{"order": []}']), Prompts(""), window=100, length=90_000)
    asking.rerank(pool("abcdefgh"))
    text = asking.model.requests[0].messages[-1][1]
    assert 8 * 400 <= len(text.encode()) < 8 * 400 + 1200


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., FairAgent]:
    folder = tmp_path_factory.mktemp("demo")
    collection = load_collection(write_demo(folder, people=600))
    build_index(collection, folder / "index")

    def agent(**settings: object) -> FairAgent:
        return open_agent(collection, folder / "index", dimensions=["gender"], n=10, **settings)

    return agent


LISTWISE = {"kind": "listwise", "window": 4, "step": 2, "depth": 8}


def test_the_frontier_is_made_from_the_models_order(
    demo: Callable[..., FairAgent], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a price of 0 what is served is the model's order; the trace counts its calls, each window once."""
    model = ScriptedModel(lambda request: json.dumps({"order": [4, 3, 2, 1][: len(letters(request))]}))
    monkeypatch.setattr("fairagent.retrieve.site.Site.model", property(lambda site: model))
    exposure = {"kind": "exposure", "fairness": 0}
    plain = demo(profile="engine", engine="auto").search("lawyers").ranking.ids[:8]
    listed = demo(rerank=[LISTWISE, exposure], types=0).search("lawyers")
    # Windows of places 4-7, 2-5 and 0-3, each turned around. Other documents may stand between these.
    assert len(plain) == 8
    assert [id for id in listed.ranking.ids if id in plain] == [plain[place] for place in (7, 6, 1, 0, 3, 2, 5, 4)]
    assert listed.trace.usage.calls == len(model.requests) == 3
    fair = demo(rerank=[LISTWISE, "exposure"]).search("lawyers")
    assert fair.trace.gap <= listed.trace.gap
    assert fair.trace.usage.calls == 3


def test_estimates_know_how_often_it_asks(demo: Callable[..., FairAgent]) -> None:
    settings = load_settings(overrides={"loop": "none", "rerank": [LISTWISE, "exposure"]}, environ={})
    for collection in (demo().collection, NO_COLLECTION):
        assert sum(one.calls for one in most_calls(collection, settings, ["lawyers", "judges"])) == 6
    with pytest.raises(BackendUnavailable, match="language model"):
        demo(rerank="listwise")
