"""The JSON API: what it says is what the agent found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from studio_server import HOSTILE, Studio, desk_of, running, without_target, write_collection

from fairagent import build_index, load_collection, open_agent
from fairagent.report.record import answer_record, result_record
from fairagent.retrieve.bm25.search import BM25Retriever
from fairagent.search.agent import FairAgent
from fairagent.settings import SearchOptions
from fairagent.settings.parts import kinds
from fairagent.studio.contents import OF_HITS
from fairagent.studio.desk import WORDS, Choices, FinishedRuns, ListRequest
from fairagent.types import Query
from fairagent.types.clean import printable


def post(studio: Studio, path: str, body: Any, status: int = 200) -> Any:
    with studio.client() as client:
        reply = client.post(path, json=body)
    assert reply.status_code == status, reply.text
    return reply.json()


def events(studio: Studio, path: str, body: Any) -> list[tuple[str, Any]]:
    with studio.client() as client:
        reply = client.post(path, json=body, headers={"accept": "text/event-stream"})
    assert reply.headers["content-type"].startswith("text/event-stream")
    parts = [part.split("\n") for part in reply.text.removesuffix("\n\n").split("\n\n")]
    return [(kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for kind, data in parts]


def without_seconds(record: Any) -> Any:
    """Without the clock."""
    return {name: value for name, value in record.items() if name != "seconds"}


def test_a_search_is_the_agents_with_the_engines_list_beside_it(studio: Studio) -> None:
    asked = {"query": "lawyer", "settings": {"depth": 30}}
    found = post(studio, "/api/search", asked | {"trace": True})
    settings = studio.desk.settings.given | {"depth": 30}
    result = open_agent(settings=None, **settings).search("lawyer")
    expected = json.loads(json.dumps(without_seconds(result_record(result))))
    kept = {name: found[name] for name in expected if name != "hits"}
    assert kept == {name: value for name, value in expected.items() if name != "hits"}
    assert [hit["id"] for hit in found["hits"]] == list(result.ranking.ids)
    engine = list(result.trace.steps[0].ranking.ids)
    assert [hit["id"] for hit in found["engine_hits"]] == engine[:10]
    assert [hit["engine_rank"] for hit in found["hits"]] == [engine.index(id) + 1 for id in result.ranking.ids]
    ranks = {id: rank for rank, id in enumerate(result.ranking.ids, start=1)}
    assert [hit["agent_rank"] for hit in found["engine_hits"]] == [ranks.get(id) for id in engine[:10]]
    assert found["exposure"]["before"] != found["exposure"]["after"]
    # Without a trace the same list, and a quarter of its length.
    small = post(studio, "/api/search", asked)
    for name in ("exposure", "gap", "changes", "targets"):
        assert small[name] == found[name]
    assert small["hits"][0] == {key: value for key, value in found["hits"][0].items() if key in small["hits"][0]}
    assert 4 * len(json.dumps(small)) < len(json.dumps(found))
    assert not small.keys() & {"steps", "engine_hits", "frontier"}


def test_steps_are_told_before_the_result(studio: Studio) -> None:
    body = {"query": "lawyer", "settings": {"loop": "fair-qr"}, "trace": True}
    *steps, (last, found) = events(studio, "/api/search", body)
    assert last == "result"
    assert [kind for kind, _ in steps] == ["step"] * len(found["steps"])
    assert [step for _, step in steps] == found["steps"]
    assert len(steps) >= 2


def test_an_answer_is_told_in_pieces_and_then_whole(studio: Studio) -> None:
    *told, (last, found) = events(studio, "/api/answer", {"query": "lawyer"})
    assert last == "result"
    pieces = "".join(said["text"] for kind, said in told if kind == "text")
    assert pieces == found["answer"]
    assert found["cited"]
    cited = [said for kind, said in told if kind == "cited"]
    assert cited[-1]["cited"] == found["cited"]
    assert cited[-1]["exposure"] == found["citations"]["exposure"]["cited"]
    assert cited[-1]["gap"] == pytest.approx(found["citations"]["gap"]["cited"])
    whole = post(studio, "/api/answer", {"query": "lawyer"})
    assert whole["answer"] == found["answer"]
    result = open_agent(settings=None, **studio.desk.settings.given).answer("lawyer")
    context = json.loads(json.dumps(answer_record(result)["context"]))
    assert whole["context"] == [{**one, "title": printable(one["title"])} for one in context]


def test_the_exposure_of_a_given_list_by_hand(studio: Studio) -> None:
    """Ranks 1 to 3 weigh 1, 1, 1/log2(3) = .6309: a woman, a man, nobody; half the share each."""
    body = {"ids": ["d20", "d00", "x"], "settings": {"target": "population"}}
    found = post(studio, "/api/exposure", body)
    (gender,) = found["exposure"]
    assert [(one["label"], one["share"], one["target"]) for one in gender["groups"]] == [
        ("female", pytest.approx(0.5), 0.5),
        ("male", pytest.approx(0.5), 0.5),
    ]
    assert gender["unknown"] == pytest.approx(0.6309 / 2.6309, abs=1e-4)
    assert found["gap"] == pytest.approx(0, abs=1e-9)
    assert found["unlabeled"] == ["x"]
    (note,) = found["notes"]
    assert note.startswith("1 of 3 documents of `ids` are not in the index at ")
    assert note.endswith(" (33 %): 'x'")
    assert found["targets"] == {"gender": "population"}
    with studio.client() as client:
        reply = client.post("/api/exposure", json={"ids": ["x", "y"]})
    assert "none of the 2 documents of `ids` is in the index" in reply.json()["error"]


def test_an_estimated_target_of_a_list_without_a_query_is_said(studio: Studio) -> None:
    body = {"ids": ["d20", "d00"], "settings": {"target": "trec-estimated"}}
    alone = post(studio, "/api/exposure", body)
    asked = post(studio, "/api/exposure", body | {"query": "lawyer"})
    assert "estimated from the list itself" in alone["notes"][0]
    assert asked["notes"] == []
    # trec-estimated is half the population: the engine's list has more men than this one, where each has half.
    assert alone["exposure"][0]["groups"][0]["target"] != asked["exposure"][0]["groups"][0]["target"]


def test_topics_and_documents(studio: Studio) -> None:
    found = post(studio, "/api/search", {"topic": "T1"})
    assert found["query"] == {"text": "lawyer", "topic": "T1"}
    with studio.client() as client:
        document = client.get("/api/document", params={"id": "d01"}).json()
        about = client.get("/api/about").json()
    assert document["title"] == printable(HOSTILE)
    assert document["text"].startswith("A lawyer")
    assert about["dimensions"] == {"gender": ["female", "male"]}
    assert about["topics"] == [{"id": "T1", "query": "lawyer"}]
    controls = {one["name"]: one for one in about["controls"]}
    assert set(controls) == set(Choices.model_fields)
    assert len(controls) == len(about["controls"])
    assert [one["name"] for one in about["controls"] if one["label"]] == list(WORDS)
    assert all(set(controls[name]["words"]) == set(controls[name].get("enum", [])) for name in WORDS)
    assert (controls["n"]["value"], controls["n"]["minimum"], controls["n"]["maximum"]) == (10, 1, 100)
    assert controls["engine"]["value"] == "bm25"
    assert controls["loop"]["enum"] == ["widen", "fair-qr", "none"]


@pytest.mark.parametrize("name", ["engine", "target", "loop", "rerank", "filter", "generate"])
def test_what_may_be_chosen_exists(name: str) -> None:
    (choices, _) = Choices.model_json_schema()["properties"][name]["anyOf"]
    assert set(choices["enum"]) <= set(kinds(name))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        *(
            ({"settings": settings}, f"settings.{next(iter(settings))}: unknown key; ")
            for settings in ({"prompts": "/etc"}, {"collection": "x"}, {"index": "/"}, {"cache": "/"}, {"model": {}})
        ),
        ({"settings": {"engine": "run-file"}}, "settings.engine: no value 'run-file'; "),
        ({"settings": {"n": 101}}, "settings.n: expected 100 or less (got 101)"),
        ({"settings": {"depth": 10**9}}, "settings.depth: expected 2000 or less"),
        ({"settings": {"divergence": "jss"}}, "settings.divergence: no value 'jss'; did you mean 'js'?"),
        ({"fairnes": 1}, "fairnes: unknown key; did you mean 'fairness'?"),
        ({"query": 5}, "query: expected text (got 5)"),
    ],
)
def test_no_request_chooses_files_servers_or_the_size_of_things(studio: Studio, body: Any, said: str) -> None:
    with studio.client() as client:
        reply = client.post("/api/search", json={"query": "lawyer", **body})
        lost = client.post("/api/serch", json={})
    assert reply.status_code == 400
    assert reply.json()["error"].startswith(said)
    assert (lost.status_code, "did you mean '/api/search'?" in lost.json()["error"]) == (404, True)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"query": "  "}, "the query is empty"),
        ({"topic": "T2"}, "no topic 'T2'; did you mean 'T1'?"),
        ({"query": "lawyer", "settings": {"dimensions": ["age"]}}, "age"),
        ({"query": "lawyer", "settings": {"generate": "llm"}}, "model"),
    ],
)
def test_what_is_wrong_is_said(studio: Studio, body: Any, said: str) -> None:
    with studio.client() as client:
        reply = client.post("/api/answer", json=body)
    assert reply.status_code in (400, 503)
    assert said in reply.json()["error"]
    kind, record = events(studio, "/api/answer", body)[-1]
    assert kind == "error"
    assert said in record["error"]


def test_where_nobody_chose_a_target_the_page_is_told_what_each_choice_would_mean(folder: Path, tmp_path: Path) -> None:
    alone = without_target(folder, tmp_path / "alone")
    with running(desk_of(alone, target=None)) as studio, studio.client() as client:
        for path, body in (("search", {"query": "lawyer"}), ("exposure", {"ids": ["d00"]})):
            reply = client.post(f"/api/{path}", json=body)
            assert reply.status_code == 400, path
            error = reply.json()["error"]
            assert all(choice in error for choice in ("uniform", "corpus", "estimated", "female", "male")), error
        chosen = post(studio, "/api/search", {"query": "lawyer", "settings": {"target": "corpus"}})
    shares = {group["label"]: group["target"] for group in chosen["exposure"]["after"][0]["groups"]}
    assert shares == pytest.approx({"female": 1 / 3, "male": 2 / 3})


@pytest.mark.parametrize("ids", [["d00", "d00"], [f"d{n}" for n in range(1001)]])
def test_lists_are_bounded_and_have_each_document_once(studio: Studio, ids: list[str]) -> None:
    with studio.client() as client:
        reply = client.post("/api/exposure", json={"ids": ids})
    assert reply.status_code == 400
    assert "each of them once" in reply.json()["error"]


LISTED = {"query": "lawyer", "settings": {"loop": "none"}}
SEARCH = LISTED | {"trace": True}


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
