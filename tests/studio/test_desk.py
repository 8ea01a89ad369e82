"""The JSON API: what it says is what the agent found, and what a collection holds."""

from __future__ import annotations

import json
import re
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from studio_server import HOSTILE, Studio, asking, desk_of, running, without_groups, without_target, write_collection

from fairagent import Collection, build_index, load_collection, open_agent
from fairagent.guests.testing import LoopbackServer, completion
from fairagent.report.record import answer_record, result_record
from fairagent.retrieve.bm25.search import BM25Retriever
from fairagent.settings import SearchOptions
from fairagent.settings.parts import kinds
from fairagent.studio.contents import OF_HITS, columns, contents_record, example_queries, phrases
from fairagent.studio.desk import WORDS, Choices, FinishedRuns, ListRequest
from fairagent.types import Document, Query
from fairagent.types.clean import printable
from fairagent.types.common import UNFINISHED


def ids(record: Any) -> list[str]:
    return [hit["id"] for hit in record["hits"]]


def test_a_search_is_the_agents_with_the_engines_list_beside_it(studio: Studio) -> None:
    asked = {"query": "lawyer", "settings": {"depth": 30}}
    found = studio.post("/api/search", asked | {"trace": True})
    result = open_agent(settings=None, **studio.desk.settings.given | {"depth": 30}).search("lawyer")
    expected = json.loads(json.dumps(result_record(result)))
    told = expected.keys() - {"hits", "seconds"}
    assert {name: found[name] for name in told} == {name: expected[name] for name in told}
    assert ids(found) == list(result.ranking.ids)
    engine = list(result.trace.steps[0].ranking.ids)
    assert [hit["id"] for hit in found["engine_hits"]] == engine[:10]
    assert [hit["engine_rank"] for hit in found["hits"]] == [engine.index(id) + 1 for id in result.ranking.ids]
    ranks = {id: rank for rank, id in enumerate(result.ranking.ids, start=1)}
    assert [hit["agent_rank"] for hit in found["engine_hits"]] == [ranks.get(id) for id in engine[:10]]
    # Without a trace the same list, and a quarter of its length.
    small = studio.post("/api/search", asked)
    for name in ("exposure", "gap", "changes", "targets"):
        assert small[name] == found[name]
    assert small["hits"][0] == {key: value for key, value in found["hits"][0].items() if key in small["hits"][0]}
    assert 4 * len(json.dumps(small)) < len(json.dumps(found))
    assert not small.keys() & {"steps", "engine_hits", "frontier"}


def test_steps_are_told_before_the_result(studio: Studio) -> None:
    body = {"query": "lawyer", "settings": {"loop": "fair-qr"}, "trace": True}
    *steps, (last, found) = studio.events("/api/search", body)
    assert last == "result"
    assert steps == [("step", step) for step in found["steps"]]
    assert len(steps) >= 2


def test_an_answer_is_told_in_pieces_and_then_whole(studio: Studio) -> None:
    *told, (last, found) = studio.events("/api/answer", {"query": "lawyer"})
    assert last == "result"
    assert "".join(said["text"] for kind, said in told if kind == "text") == found["answer"]
    cited = [said for kind, said in told if kind == "cited"][-1]
    assert (cited["cited"], cited["exposure"]) == (found["cited"], found["citations"]["exposure"]["cited"])
    assert cited["gap"] == pytest.approx(found["citations"]["gap"]["cited"])
    whole = studio.post("/api/answer", {"query": "lawyer"})
    assert whole["answer"] == found["answer"]
    result = open_agent(settings=None, **studio.desk.settings.given).answer("lawyer")
    context = json.loads(json.dumps(answer_record(result)["context"]))
    assert whole["context"] == [{**one, "title": printable(one["title"])} for one in context]


def test_the_exposure_of_a_given_list_by_hand(studio: Studio) -> None:
    """Ranks 1 to 3 weigh 1, 1, 1/log2(3) = .6309: a woman, a man, nobody; half the share each."""
    found = studio.post("/api/exposure", {"ids": ["d20", "d00", "x"], "settings": {"target": "population"}})
    (gender,) = found["exposure"]
    assert [(one["label"], one["target"]) for one in gender["groups"]] == [("female", 0.5), ("male", 0.5)]
    assert [one["share"] for one in gender["groups"]] == pytest.approx([0.5, 0.5])
    assert gender["unknown"] == pytest.approx(0.6309 / 2.6309, abs=1e-4)
    assert found["gap"] == pytest.approx(0, abs=1e-9)
    assert (found["unlabeled"], found["targets"]) == (["x"], {"gender": "population"})
    (note,) = found["notes"]
    assert re.fullmatch(r"1 of 3 documents of `ids` are not in the index at .* \(33 %\): 'x'", note)
    body = {"ids": ["d20", "d00"], "settings": {"target": "trec-estimated"}}
    alone, asked = (studio.post("/api/exposure", body | more) for more in ({}, {"query": "lawyer"}))
    assert "estimated from the list itself" in alone["notes"][0]
    assert asked["notes"] == []
    # trec-estimated is half the population: the engine's list has more men than this one, where each has half.
    assert alone["exposure"][0]["groups"][0]["target"] != asked["exposure"][0]["groups"][0]["target"]


def test_topics_and_documents(studio: Studio) -> None:
    found = studio.post("/api/search", {"topic": "T1"})
    assert found["query"] == {"text": "lawyer", "topic": "T1"}
    document, about = studio.get("/api/document", id="d01"), studio.get("/api/about")
    assert document["title"] == printable(HOSTILE)
    assert document["text"].startswith("A lawyer")
    told = {"dimensions": {"gender": ["female", "male"]}, "topics": [{"id": "T1", "query": "lawyer"}]}
    assert {name: about[name] for name in told} == told
    controls = {one["name"]: one for one in about["controls"]}
    assert (set(controls), len(controls)) == (set(Choices.model_fields), len(about["controls"]))
    assert [one["name"] for one in about["controls"] if one["label"]] == list(WORDS)
    assert all(set(controls[name]["words"]) == set(controls[name].get("enum", [])) for name in WORDS)
    assert (controls["n"]["value"], controls["n"]["minimum"], controls["n"]["maximum"]) == (10, 1, 100)
    assert controls["engine"]["value"] == "bm25"
    for name in ("engine", "target", "loop", "rerank", "filter", "generate"):
        assert set(controls[name]["enum"]) <= set(kinds(name))


WRONG: list[tuple[str, Any, str]] = [
    *(
        ("search", {"settings": settings}, f"settings.{next(iter(settings))}: unknown key; ")
        for settings in ({"prompts": "/etc"}, {"collection": "x"}, {"index": "/"}, {"cache": "/"}, {"model": {}})
    ),
    ("search", {"settings": {"engine": "run-file"}}, "settings.engine: no value 'run-file'; "),
    ("search", {"settings": {"n": 101}}, "settings.n: expected 100 or less (got 101)"),
    ("search", {"settings": {"depth": 10**9}}, "settings.depth: expected 2000 or less"),
    ("search", {"settings": {"divergence": "jss"}}, "settings.divergence: no value 'jss'; did you mean 'js'?"),
    ("search", {"fairnes": 1}, "fairnes: unknown key; did you mean 'fairness'?"),
    ("search", {"query": 5}, "query: expected text (got 5)"),
    ("answer", {"query": "  "}, "the query is empty"),
    ("answer", {"query": "", "topic": "T2"}, "no topic 'T2'; did you mean 'T1'?"),
    ("answer", {"settings": {"dimensions": ["age"]}}, "age"),
    ("answer", {"settings": {"generate": "llm"}}, "model"),
    ("exposure", {"ids": ["x", "y"]}, "none of the 2 documents of `ids` is in the index"),
    ("exposure", {"ids": ["d00", "d00"]}, "each of them once"),
    ("exposure", {"ids": [f"d{n}" for n in range(1001)]}, "each of them once"),
    ("reorder", {"keep": 0.9, "gap": 0.1}, "give one of them"),
    ("reorder", {"n": 101}, "n"),
    ("reorder", {"shares": {"gender": {"female": 0.2}}}, "gender"),
    ("reorder", {"shares": {"age": {"old": 1}}}, "age"),
    ("reorder", {"fairness": 1, "settings": {"rerank": "none", "loop": "none"}}, "fairness"),
    ("reorder", {"where": {"city": "Oslo"}}, "city"),
]


def test_what_cannot_be_is_said_and_no_request_chooses_files_servers_or_the_size_of_things(studio: Studio) -> None:
    with studio.client() as client:
        for call, body, said in WRONG:
            asked = {"query": "lawyer", **body}
            reply = client.post(f"/api/{call}", json=asked)
            assert reply.status_code in (400, 503) or (call, reply.status_code) in (("reorder", 500), ("exposure", 500))
            assert said in reply.json()["error"], body
            if call == "answer":
                kind, record = studio.events("/api/answer", asked)[-1]
                assert kind == "error"
                assert said in record["error"]
    assert "did you mean '/api/search'?" in studio.post("/api/serch", {}, 404)["error"]


def test_where_nobody_chose_a_target_the_page_is_told_what_each_choice_would_mean(folder: Path, tmp_path: Path) -> None:
    with running(desk_of(without_target(folder, tmp_path / "alone"), target=None)) as studio:
        for path, body in (("search", {"query": "lawyer"}), ("exposure", {"ids": ["d00"]})):
            error = studio.post(f"/api/{path}", body, 400)["error"]
            assert all(choice in error for choice in ("uniform", "corpus", "estimated", "female", "male")), error
        chosen = studio.post("/api/search", {"query": "lawyer", "settings": {"target": "corpus"}})
    shares = {group["label"]: group["target"] for group in chosen["exposure"]["after"][0]["groups"]}
    assert shares == pytest.approx({"female": 1 / 3, "male": 2 / 3})


SEARCH = {"query": "lawyer", "settings": {"loop": "none"}, "trace": True}


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
    return studio.post("/api/search", SEARCH)


def test_a_kept_search_is_ordered_anew_without_another(studio: Studio, found: Any, searches: list[str]) -> None:
    low, same, high = (studio.post("/api/reorder", SEARCH | {"fairness": fairness}) for fairness in (0, 1, 10))
    assert searches == []
    assert ids(same) == ids(found)
    women = [one["exposure"]["after"][0]["groups"][0]["share"] for one in (low, same, high)]
    assert women[0] < women[1] <= women[2]
    kept = [one["relevance_kept"] for one in (low, same, high)]
    assert kept[0] == 1
    assert kept == sorted(kept, reverse=True)
    assert not {"steps", "seconds", "usage"} & set(low)
    assert set(low) < set(found)


def test_the_frontier_has_the_lists_that_its_shares_ask_for(studio: Studio, found: Any, searches: list[str]) -> None:
    lists = found["frontier"]["lists"]
    assert len(lists) > 1
    assert lists[found["frontier"]["served"]]["ids"] == ids(found)
    for name in ("gap", "kept"):
        values = [one[name] for one in lists]
        assert values == sorted(values, reverse=True)
    # The engine's own list is the most relevant one here.
    assert found["frontier"]["own"] == {"kept": 1.0, "gap": pytest.approx(found["gap"]["before"])}
    for one in lists:
        asked = studio.post("/api/reorder", SEARCH | {"keep": one["keep"]})
        assert ids(asked) == one["ids"]
        assert (asked["exposure"]["after"], asked["changes"]) == (one["exposure"], one["changes"])
        assert asked["relevance_kept"] == pytest.approx(one["kept"])
        assert [{**found["frontier"]["hits"][id], "rank": rank} for rank, id in enumerate(one["ids"], 1)] == [
            {name: hit[name] for name in (*OF_HITS, "engine_rank", "rank")} for hit in asked["hits"]
        ]
    assert searches == []


def test_it_is_the_order_of_the_agent(studio: Studio, found: Any) -> None:
    values = {"fairness": 3.0, "n": 6, "unknown": "ignore", "shares": {"gender": {"female": 0.75, "male": 0.25}}}
    record = studio.post("/api/reorder", SEARCH | values)
    agent = open_agent(**{**studio.desk.settings.given, "loop": "none"})
    expected = agent.reorder(agent.find("lawyer", 10), SearchOptions.of(values))
    assert ids(record) == list(expected.ranking.ids)
    assert [one["text"] for one in record["changes"]] == list(map(str, expected.trace.changes))
    assert len(record["engine_hits"]) == 6
    assert record["order"] == {"n": 6, "most": 100, "unknown": "ignore"}
    assert record["exposure"]["after"][0]["groups"][0]["target"] == 0.75
    assert record["exposure"]["after"][0]["unknown_target"] is None


def test_what_is_kept_to_some_documents_stays_so(studio: Studio, searches: list[str]) -> None:
    women = {"where": {"gender": ["female"]}}
    found = studio.post("/api/search", SEARCH | women)
    before = len(searches)
    record = studio.post("/api/reorder", SEARCH | women | {"fairness": 0, "n": 4})
    assert len(searches) == before
    assert {label for hit in record["hits"] for label in hit["groups"]["gender"]} == {"female"}
    assert set(ids(record)) <= {hit["id"] for hit in found["engine_hits"]}


def test_a_search_that_was_never_made_is_made_now(studio: Studio, searches: list[str]) -> None:
    body = {"query": "court town", "settings": {"loop": "none"}, "fairness": 0}
    first = studio.post("/api/reorder", body)
    assert searches == ["court town"]
    assert studio.post("/api/reorder", body)["hits"] == first["hits"]
    assert searches == ["court town"]


def test_drawn_rankings_have_no_one_order_and_are_numbered_from_the_first_who_asks(folder: Path) -> None:
    desk = desk_of(folder, cache="", sampling={"alpha": 1.0, "pool": 20})
    desk.warm()
    with running(desk) as studio:
        assert [studio.post("/api/search", SEARCH)["draw"]["request"] for _ in range(2)] == [0, 1]
        assert "drawn" in studio.post("/api/reorder", SEARCH | {"fairness": 1}, 400)["error"]


def test_a_collection_without_groups_has_no_dial(tmp_path: Path) -> None:
    plain = without_groups(write_collection(tmp_path / "plain"))
    with running(desk_of(plain, target=None, profile="engine")) as studio:
        found = studio.post("/api/search", {"query": "lawyer", "trace": True})
        shorter = studio.post("/api/reorder", {"query": "lawyer", "n": 2})
        contents = studio.get("/api/contents")
    assert (found["frontier"], found["exposure"]["after"]) == (None, [])
    assert ids(shorter) == ids(found)[:2]
    assert (contents["dimensions"], contents["documents"]) == ([], 24)


def test_an_index_that_is_replaced_is_searched_anew(tmp_path: Path, searches: list[str]) -> None:
    folder = write_collection(tmp_path / "some")
    desk = desk_of(folder)
    with running(desk) as studio:
        studio.post("/api/search", SEARCH)
        before = len(searches)
        pages = (folder / "docs.jsonl").read_text(encoding="utf-8").splitlines()
        (folder / "docs.jsonl").write_text("\n".join(pages[1:]) + "\n", encoding="utf-8")
        build_index(load_collection(folder / "collection.yaml"), folder / "index", engine="bm25")
        desk.live._looked = float("-inf")  # nobody waits half a second
        record = studio.post("/api/reorder", SEARCH | {"fairness": 0, "n": 24})
        assert len(searches) > before
        assert len(record["hits"]) == 23
        assert "d00" not in ids(record)


def test_settings_tell_searches_apart_and_only_the_last_ones_are_kept(folder: Path) -> None:
    with closing(desk_of(folder)) as desk:
        for n in ({}, {"n": 5}):
            desk.search(ListRequest(query="lawyer", settings=Choices(loop="none", **n)))
        desk.reorder(ListRequest(query="lawyer", settings=Choices(loop="none"), fairness=2))
        assert len(desk._opened(desk.site).finished.runs) == 2
    kept = FinishedRuns(most=2)
    for text in ("a", "b", "a", "c"):
        kept.keep((Query(text), Choices(), SearchOptions()), object())  # type: ignore[arg-type]
    # "b" was looked at longest ago when "c" came.
    assert [query.text for query, _, _ in kept.runs] == ["a", "c"]


def test_a_key_without_the_name_of_a_model_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with closing(desk_of(folder)) as desk:
        assert desk.about()["unasked"].startswith("OPENAI_API_KEY is set, but no model is named")


def test_warming_asks_no_model_and_all_requests_have_one_budget(folder: Path, no_variables: None) -> None:
    with LoopbackServer(["A lawyer pleaded [1]."]) as model:
        with closing(asking(folder, model.url, profile="agent")) as desk:
            desk.warm()
            assert desk.asks_model(Choices(), "search")
            assert not desk.asks_model(Choices(profile="offline"), "answer")
            assert not desk.asks_model(Choices(), "exposure")
            assert model.requests == []
        with running(asking(folder, model.url, generate={"kind": "llm"}, budget={"calls": 1})) as studio:
            assert studio.post("/api/answer", {"query": "lawyer"})["answer"] == "A lawyer pleaded [1]."
            second = studio.post("/api/answer", {"query": "lawyer", "settings": {"n": 5}}, 429)
            assert "budget of 1 calls" in second["error"]
            studio.post("/api/search", {"query": "lawyer"})
        assert len(model.requests) == 1


def test_an_unfinished_filter_is_207_and_a_used_up_budget_429(folder: Path, no_variables: None) -> None:
    filtered = {"loop": {"kind": "widen", "actions": ["filter"]}, "filter": {"kind": "fair"}, "budget": {"calls": 1}}
    with LoopbackServer(lambda request: completion("What a nice question!", finish="length")) as model:
        with running(asking(folder, model.url, **filtered)) as studio:
            assert "budget of 1 calls" in studio.post("/api/search", {"query": "lawyer"}, 429)["error"]
        filtered["filter"]["on_budget"] = "serve"
        with running(asking(folder, model.url, **filtered)) as studio:
            for path in ("/api/search", "/api/answer"):
                record = studio.post(path, {"query": "lawyer"}, 207)
                assert UNFINISHED in str(record["alarms"])


def test_the_shares_are_those_of_all_documents(studio: Studio, tmp_path: Path) -> None:
    found = studio.get("/api/contents")
    assert (found["documents"], found["exact"], found["passages"]) == (24, True, False)
    (gender,) = found["dimensions"]
    shares = {one["label"]: one["share"] for one in gender["groups"]} | {"unknown": gender["unknown"]}
    assert shares == pytest.approx({"female": 8 / 24, "male": 16 / 24, "unknown": 0})
    assert found["examples"] == [{"query": "lawyer", "topic": "T1"}]
    assert found["columns"] == [{"name": "gender", "values": ["female", "male"]}]
    folder = write_collection(tmp_path / "some")
    rows = (folder / "groups.tsv").read_text(encoding="utf-8").splitlines()
    # Of 24 documents 18 have a row, of these 6 an empty cell.
    some = [*rows[:13], *(row.split("\t")[0] + "\t" for row in rows[13:19])]
    (folder / "groups.tsv").write_text("\n".join(some) + "\n", encoding="utf-8")
    collection = load_collection(folder / "collection.yaml")
    (gender,) = contents_record(collection, folder / "index")["dimensions"]
    assert [group["share"] for group in gender["groups"]] == pytest.approx([0, 12 / 24])
    assert gender["unknown"] == pytest.approx(12 / 24)
    about = contents_record(collection, tmp_path / "nowhere")
    assert (about["exact"], about["documents"] > 0) == (False, True)


def test_columns_have_the_values_that_documents_have() -> None:
    rows = [
        {"id": n, "text": "x", "city": "Oslo" if n else "Rome", "no": n, "tags": ["a", "b"], "of": {}}
        for n in range(99)
    ]
    collection = Collection.from_records(rows)
    assert columns(collection, collection.documents()) == [
        {"name": "city", "values": ["Oslo", "Rome"]},
        {"name": "no", "values": []},
        {"name": "tags", "values": ["a", "b"]},
    ]


def test_examples_are_topics_or_phrases_of_the_documents_or_titles(tmp_path: Path) -> None:
    rows = [f"report {n} about the solar panel and more" for n in range(3)]
    rows += [f"an early tide mill, {n}" for n in range(2)] + [f"nothing of it {n}, report" for n in range(30)]
    # "report" is in most of them, "about the" is of a stop word.
    assert list(phrases(Document(str(n), row) for n, row in enumerate(rows)))[:2] == ["solar panel", "early tide"]
    assert list(phrases([Document("a", "alpha", "One"), Document("b", "beta", "Two")])) == ["One", "Two"]
    assert list(phrases([])) == []
    folder = write_collection(tmp_path / "some")
    collection: Collection = replace(load_collection(folder / "collection.yaml"), topics={})
    examples = example_queries(collection, collection.documents())
    assert len(examples) == 3
    said = " ".join(f"{one.title} {one.text}".lower() for one in collection.documents())
    assert all(word in said for one in examples for word in one["query"].lower().split())
    assert {one["topic"] for one in examples} == {""}
    (folder / "docs.jsonl").unlink()
    assert contents_record(collection, folder / "index")["examples"] == []
