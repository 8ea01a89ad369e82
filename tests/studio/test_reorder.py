"""What a search has found in another order: at once, from what is kept, as the agent itself would."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from studio_server import Studio, desk_of, running, write_collection

from fairagent import build_index, load_collection, open_agent
from fairagent.retrieve.bm25.search import BM25Retriever
from fairagent.search.agent import FairAgent
from fairagent.settings import SearchOptions
from fairagent.studio.contents import OF_HITS
from fairagent.studio.desk import Choices, FinishedRuns, ListRequest
from fairagent.types import Query

LISTED = {"query": "lawyer", "settings": {"loop": "none"}}
SEARCH = LISTED | {"trace": True}


def post(studio: Studio, path: str, body: Any, status: int = 200) -> Any:
    with studio.client() as client:
        reply = client.post(path, json=body)
    assert reply.status_code == status, reply.text
    return reply.json()


def female(record: Any) -> float:
    share: float = record["exposure"]["after"][0]["groups"][0]["share"]
    return share


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that the engine is asked for from now on."""
    asked: list[str] = []
    search = BM25Retriever.search

    def counted(engine: BM25Retriever, query: Query, n: int) -> Any:
        asked.append(query.text)
        return search(engine, query, n)

    monkeypatch.setattr(BM25Retriever, "search", counted)
    return asked


@pytest.fixture
def found(studio: Studio) -> Any:
    return post(studio, "/api/search", SEARCH)


def test_a_kept_search_is_ordered_anew_without_another(studio: Studio, found: Any, searches: list[str]) -> None:
    orders = {fairness: post(studio, "/api/reorder", SEARCH | {"fairness": fairness}) for fairness in (0, 1, 10)}
    assert searches == []
    assert [hit["id"] for hit in orders[1]["hits"]] == [hit["id"] for hit in found["hits"]]
    assert female(orders[0]) < female(orders[1]) <= female(orders[10])
    kept = [orders[fairness]["relevance_kept"] for fairness in (0, 1, 10)]
    assert kept[0] == 1
    assert kept == sorted(kept, reverse=True)
    assert not {"steps", "seconds", "usage"} & set(orders[0])
    assert set(orders[0]) < set(found)


def test_the_frontier_has_the_lists_that_its_shares_ask_for(studio: Studio, found: Any, searches: list[str]) -> None:
    lists = found["frontier"]["lists"]
    assert len(lists) > 1
    assert lists[found["frontier"]["served"]]["ids"] == [hit["id"] for hit in found["hits"]]
    gaps, kept = [one["gap"] for one in lists], [one["kept"] for one in lists]
    assert gaps == sorted(gaps, reverse=True)
    assert kept == sorted(kept, reverse=True)
    # The engine's own list is the most relevant one here.
    assert found["frontier"]["own"] == {"kept": 1.0, "gap": pytest.approx(found["gap"]["before"])}
    for one in lists:
        asked = post(studio, "/api/reorder", SEARCH | {"keep": one["keep"]})
        assert [hit["id"] for hit in asked["hits"]] == one["ids"]
        assert (asked["exposure"]["after"], asked["changes"]) == (one["exposure"], one["changes"])
        assert asked["relevance_kept"] == pytest.approx(one["kept"])
        assert [{**found["frontier"]["hits"][id], "rank": rank} for rank, id in enumerate(one["ids"], 1)] == [
            {name: hit[name] for name in (*OF_HITS, "engine_rank", "rank")} for hit in asked["hits"]
        ]
    assert searches == []


def test_it_is_the_order_of_the_agent(studio: Studio, found: Any) -> None:
    values = {"fairness": 3.0, "n": 6, "unknown": "ignore", "shares": {"gender": {"female": 0.75, "male": 0.25}}}
    record = post(studio, "/api/reorder", SEARCH | values)
    agent = open_agent(**{**studio.desk.settings.given, "loop": "none"})
    assert isinstance(agent, FairAgent)
    expected = agent.reorder(agent.find("lawyer", 10), SearchOptions.of(values))
    assert [hit["id"] for hit in record["hits"]] == list(expected.ranking.ids)
    assert record["changes"] == json.loads(
        json.dumps([{**change, "text": change["text"]} for change in record["changes"]])
    )
    assert [one["text"] for one in record["changes"]] == list(map(str, expected.trace.changes))
    assert len(record["engine_hits"]) == 6
    assert record["order"] == {"n": 6, "most": 100, "unknown": "ignore"}
    assert record["exposure"]["after"][0]["groups"][0]["target"] == 0.75
    assert record["exposure"]["after"][0]["unknown_target"] is None


def test_what_is_kept_to_some_documents_stays_so(studio: Studio, searches: list[str]) -> None:
    women = {"where": {"gender": ["female"]}}
    found = post(studio, "/api/search", SEARCH | women)
    before = len(searches)
    record = post(studio, "/api/reorder", SEARCH | women | {"fairness": 0, "n": 4})
    assert len(searches) == before
    assert {label for hit in record["hits"] for label in hit["groups"]["gender"]} == {"female"}
    assert {hit["id"] for hit in record["hits"]} <= {hit["id"] for hit in found["engine_hits"]}
    with studio.client() as client:
        reply = client.post("/api/reorder", json=SEARCH | {"where": {"city": "Oslo"}})
    assert reply.status_code == 400
    assert "city" in reply.json()["error"]


def test_a_search_that_was_never_made_is_made_now(studio: Studio, searches: list[str]) -> None:
    body = {"query": "court town", "settings": {"loop": "none"}, "fairness": 0}
    first = post(studio, "/api/reorder", body)
    assert searches == ["court town"]
    assert post(studio, "/api/reorder", body)["hits"] == first["hits"]
    assert searches == ["court town"]


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"keep": 0.9, "gap": 0.1}, "give one of them"),
        ({"n": 101}, "n"),
        ({"shares": {"gender": {"female": 0.2}}}, "gender"),
        ({"shares": {"age": {"old": 1}}}, "age"),
        ({"fairness": 1, "settings": {"rerank": "none", "loop": "none"}}, "fairness"),
    ],
    ids=lambda value: json.dumps(value) if isinstance(value, dict) else "",
)
def test_an_order_that_cannot_be_is_named(studio: Studio, more: Any, named: str) -> None:
    status = 500 if more.get("shares") == {"gender": {"female": 0.2}} else 400
    with studio.client() as client:
        reply = client.post("/api/reorder", json=SEARCH | more)
    assert reply.status_code in (400, status), reply.text
    assert named in reply.json()["error"]


def test_drawn_rankings_have_no_one_order(folder: Path) -> None:
    with running(desk_of(folder, sampling={"alpha": 1.0, "pool": 20})) as studio:
        post(studio, "/api/search", SEARCH)
        said = post(studio, "/api/reorder", SEARCH | {"fairness": 1}, status=400)
    assert "drawn" in said["error"]


def test_a_collection_without_groups_has_no_dial(folder: Path, tmp_path: Path) -> None:
    plain = write_collection(tmp_path / "plain")
    text = (plain / "collection.yaml").read_text(encoding="utf-8")
    (plain / "collection.yaml").write_text(text.partition("groups:")[0], encoding="utf-8")
    with running(desk_of(plain, target=None, profile="engine")) as studio:
        found = post(studio, "/api/search", {"query": "lawyer", "trace": True})
        shorter = post(studio, "/api/reorder", {"query": "lawyer", "n": 2})
    assert (found["frontier"], found["exposure"]["after"]) == (None, [])
    assert [hit["id"] for hit in shorter["hits"]] == [hit["id"] for hit in found["hits"]][:2]


def test_an_index_that_is_replaced_is_searched_anew(tmp_path: Path, searches: list[str]) -> None:
    folder = write_collection(tmp_path / "some")
    desk = desk_of(folder)
    with running(desk) as studio:
        post(studio, "/api/search", SEARCH)
        post(studio, "/api/reorder", SEARCH | {"fairness": 0})
        before = len(searches)
        pages = (folder / "docs.jsonl").read_text(encoding="utf-8").splitlines()
        (folder / "docs.jsonl").write_text("\n".join(pages[1:]) + "\n", encoding="utf-8")
        build_index(load_collection(folder / "collection.yaml"), folder / "index", engine="bm25")
        desk.live._looked = float("-inf")  # nobody waits half a second
        record = post(studio, "/api/reorder", SEARCH | {"fairness": 0, "n": 24})
        assert len(searches) > before
        assert len(record["hits"]) == 23
        assert "d00" not in {hit["id"] for hit in record["hits"]}


def test_settings_tell_searches_apart(folder: Path) -> None:
    desk = desk_of(folder)
    try:
        desk.search(ListRequest.model_validate(LISTED))
        (opened,) = [desk._opened(desk.site)]
        desk.search(ListRequest.model_validate({"query": "lawyer", "settings": {"loop": "none", "n": 5}}))
        desk.reorder(ListRequest.model_validate(LISTED | {"fairness": 2}))
        assert len(opened.finished.runs) == 2
    finally:
        desk.close()


def test_only_the_last_searches_are_kept() -> None:
    kept = FinishedRuns(most=2)
    for text in ("a", "b", "a", "c"):
        kept.keep((Query(text), Choices(), SearchOptions()), object())  # type: ignore[arg-type]
    # "b" was looked at longest ago when "c" came.
    assert [query.text for query, _, _ in kept.runs] == ["a", "c"]
