"""The calls of the Prompts page: what they check, fill, try and keep."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from studio_server import Studio, asking, desk_of, running

from fairagent.evaluate.judging import judged_value
from fairagent.guests.testing import LoopbackServer
from fairagent.guests.testing.server import Request
from fairagent.llm.prompts import Prompts, shipped_folder, variants
from fairagent.llm.prompts.template import specimens
from fairagent.llm.request import estimate_tokens
from fairagent.measures import NDCG
from fairagent.search.agent import FairAgent
from fairagent.studio.desk import Choices, SearchRequest
from fairagent.studio.prompts import no_effect, pairs_of

ID = "refine_query"
SHIPPED = (shipped_folder() / f"{ID}.j2").read_text(encoding="utf-8")
EDITED = SHIPPED.replace("version: 4", "version: 5").replace("[user]\n", "[user]\nNAME WOMEN.\n", 1)
USER = next(number for number, line in enumerate(SHIPPED.split("\n"), 1) if line == "[user]")


def replied(request: Request) -> str:
    """To the edited template a word that all women's pages have, to the shipped one a word that none has."""
    edited = "NAME WOMEN." in request["messages"][-1]["content"]
    return json.dumps({"keywords": ["judges"] if edited else ["qwertz"]})


@pytest.fixture(scope="module")
def model() -> Iterator[LoopbackServer]:
    with LoopbackServer(replied) as model:
        yield model


@pytest.fixture(scope="module")
def trying(folder: Path, own: Path, model: LoopbackServer) -> Iterator[Studio]:
    """A studio with a model."""
    with running(asking(folder, model.url), prompts=own) as studio:
        yield studio


def post(studio: Studio, path: str, status: int = 200, **body: Any) -> Any:
    return studio.post(f"/api/prompts/{path}", {"id": ID, **body}, status)


def test_the_templates_are_those_that_are_shipped(trying: Studio, own: Path) -> None:
    found = trying.get("/api/prompts")
    assert [one["id"] for one in found["templates"]] == list(Prompts().ids)
    assert (found["folder"], found["used"], found["model"]) == (str(own), "shipped", "tiny")
    of = {one["id"]: one for one in found["templates"]}
    assert of[ID] == {"id": ID, "purpose": Prompts()[ID].head.purpose, "own": False, "refines": True, "reads": False}
    assert of["answer"]["reads"]
    # One that asks as a paper does.
    id = "paper_fairness_filter"
    found = trying.get(f"/api/prompts/{id}")
    assert [one["name"] for one in found["versions"]] == ["shipped"]
    text = found["versions"][0]["template"]
    assert text == (shipped_folder() / "papers" / f"{id}.j2").read_text(encoding="utf-8")
    checked = post(trying, "check", id=id, template=text)
    assert checked["faults"] == []
    assert [message["role"] for message in checked["messages"]] == ["user"]


def test_a_template_has_its_versions_and_its_variables_explained(trying: Studio) -> None:
    found = trying.get(f"/api/prompts/{ID}")
    assert [one["name"] for one in found["versions"]] == ["shipped", *variants()]
    assert found["versions"][0]["template"] == SHIPPED
    few = (shipped_folder() / "variants" / "few-shot" / f"{ID}.j2").read_text(encoding="utf-8")
    assert found["versions"][1]["template"] == few
    assert (found["own"]["template"], found["own"]["sha256"]) == (None, "")
    by_name = {one["name"]: one for one in found["variables"]}
    meaning = "The name of the group that gets too little exposure."
    assert by_name["group"] == {"name": "group", "required": True, "meaning": meaning, "example": '"female"'}
    assert not by_name["tried"]["required"]


def test_a_draft_is_checked_with_lines_and_filled_with_examples(trying: Studio) -> None:
    found = post(trying, "check", template=EDITED)
    assert found["faults"] == []
    expected = Prompts(drafts={ID: EDITED}).render(ID, **specimens()[ID])
    assert [(one["role"], one["text"]) for one in found["messages"]] == list(expected)
    assert found["messages"][-1]["text"].startswith("NAME WOMEN.")
    assert found["tokens"] == estimate_tokens(*(text for _, text in expected))
    assert "+NAME WOMEN." in found["diff"]
    assert "-version: 4" in found["diff"]
    lines = EDITED.split("\n")
    lines.insert(USER, "{{ nobody }}")
    found = post(trying, "check", template="\n".join(lines))
    (fault,) = found["faults"]
    assert fault["line"] == USER + 1
    assert fault["message"].startswith("unknown variable 'nobody'")
    assert found["messages"] == []
    assert "+{{ nobody }}" in found["diff"]


def test_a_draft_is_filled_from_a_search_or_it_is_said_why_not(trying: Studio, model: LoopbackServer) -> None:
    before = len(model.requests)
    for given in ({"query": "lawyer"}, {"topic": "T1"}):
        found = post(trying, "check", template=EDITED, **given)
        assert found["about"] == "'lawyer' aims at female (gender): 0.0% of the exposure, target 50.0%"
        assert '"query": "lawyer"' in found["messages"][-1]["text"]
        assert "aims at male" in post(trying, "check", template=EDITED, group="male", **given)["about"]
    assert len(model.requests) == before
    found = post(trying, "check", template=EDITED, query="lawyer", group="nobody")
    assert found["about"] == "not filled: no group 'nobody'; there are: female, male"
    assert found["faults"] == []
    assert found["diff"]


def test_hidden_characters_are_named_by_their_lines_and_stay(trying: Studio, own: Path) -> None:
    text = SHIPPED.replace("[user]\n", "[user]\nlaw\u200byer\n", 1)
    assert post(trying, "check", template=text)["hidden"] == [USER + 1]
    assert post(trying, "check", template=SHIPPED)["hidden"] == []
    answer = (shipped_folder() / "answer.j2").read_text(encoding="utf-8") + "law\u200byer\u202e\n"
    assert post(trying, "save", id="answer", template=answer)["own"]["template"] == answer
    assert (own / "answer.j2").read_text(encoding="utf-8") == answer


def test_both_templates_are_tried_on_each_topic(trying: Studio) -> None:
    body = {"id": ID, "template": EDITED, "topics": ["T1"]}
    *told, (last, found) = trying.events("/api/prompts/try", body)
    assert (last, {kind for kind, _ in told}) == ("result", {"tried"})
    assert [one for _, one in told] == found["tried"]
    shipped, edited = found["tried"]
    assert [(one["topic"], one["query"]) for one in found["tried"]] == [("T1", "lawyer")] * 2
    assert (shipped["side"], edited["side"]) == ("shipped", "edited")
    assert shipped["replies"] == ['{"keywords": ["qwertz"]}']
    assert shipped["rows"] == [{"what": "qwertz", "value": "0", "effect": "dropped: not in the index"}]
    assert (edited["rows"][0]["what"], edited["rows"][0]["value"]) == ("judges", "8")
    agent = trying.desk._opened(trying.desk.site).agent(Choices())
    assert isinstance(agent, FairAgent)
    engine = agent.retriever.search(trying.desk.query_of(SearchRequest(query="lawyer")), 100)
    assert [hit["engine_rank"] for hit in edited["hits"]] == [engine.ids.index(hit["id"]) + 1 for hit in edited["hits"]]
    assert (found["of"], found["ended"]) == (2, None)
    was, now = shipped["gap"]["after"], edited["gap"]["after"]
    assert found["gaps"] == {"topics": 1, "shipped": was, "edited": now, "lower": now < was, "higher": now > was}
    assert edited["gap"]["before"] == shipped["gap"]["before"]


def test_a_template_of_another_kind_shows_its_reply(folder: Path, own: Path) -> None:
    text = (shipped_folder() / "answer.j2").read_text(encoding="utf-8")
    with LoopbackServer(["Nobody knows. <b>x</b>"]) as model, running(asking(folder, model.url), prompts=own) as studio:
        found = post(studio, "try", id="answer", template=text, query="lawyer", documents=2)
    assert [one["replies"] for one in found["tried"]] == [["Nobody knows. <b>x</b>"]] * 2
    assert found["gaps"] is None
    assert "documents: d00, d02" in found["tried"][0]["about"]


def test_without_a_model_trying_says_that_one_is_needed(studio: Studio) -> None:
    assert studio.get("/api/prompts")["model"] is None
    said = post(studio, "try", 400, template=EDITED, query="lawyer")
    assert "--set model.name=NAME" in said["error"]
    assert "topics" in post(studio, "try", 400, template=EDITED, topics=["T1"] * 11)["error"]
    assert post(studio, "check", template=EDITED, query="lawyer")["messages"]


def test_a_template_is_saved(trying: Studio, own: Path) -> None:
    path = own / f"{ID}.j2"
    saved = post(trying, "save", template=EDITED, was="")["own"]
    assert path.read_text(encoding="utf-8") == EDITED
    assert Prompts(own)[ID].sha256 == saved["sha256"]
    assert trying.get(f"/api/prompts/{ID}")["own"] == saved
    assert post(trying, "save", template=EDITED + "\n", was=saved["sha256"])["own"]["template"] == EDITED + "\n"
    assert trying.get("/api/prompts")["templates"][Prompts().ids.index(ID)]["own"]


def test_the_settings_own_folder_is_the_users(folder: Path, tmp_path: Path) -> None:
    (tmp_path / f"{ID}.j2").write_text(EDITED, encoding="utf-8")
    with running(desk_of(folder, cache="", prompts=str(tmp_path))) as studio:
        found = studio.get("/api/prompts")
        assert (found["folder"], found["used"]) == (str(tmp_path), str(tmp_path))
        assert studio.get(f"/api/prompts/{ID}")["own"]["template"] == EDITED
    with running(desk_of(folder, cache="", prompts="few-shot")) as studio:
        assert studio.get("/api/prompts")["folder"] == "my-prompts"


TOPICS = {"T1": "lawyer", "T2": "court town", "T3": "judges before a case"}


def judged(folder: Path, root: Path) -> Path:
    """The studio's collection with judgments and three topics, as a file beside it."""
    qrels, topics = root / "qrels.tsv", root / "topics.jsonl"
    qrels.write_text("".join(f"{id} 0 d{n:02d} 1\n" for id in TOPICS for n in (1, 20, 22)), encoding="utf-8")
    lines = (json.dumps({"id": id, "title": query}) + "\n" for id, query in TOPICS.items())
    topics.write_text("".join(lines), encoding="utf-8")
    text = (folder / "collection.yaml").read_text(encoding="utf-8").replace("path: topics.jsonl", f"path: {topics}")
    (folder / "asked.yaml").write_text(f"{text}qrels: {{path: {qrels}, format: trec}}\n", encoding="utf-8")
    return folder / "asked.yaml"


@pytest.fixture(scope="module")
def judged_studio(folder: Path, tmp_path_factory: pytest.TempPathFactory, model: LoopbackServer) -> Iterator[Studio]:
    """A studio with a model, whose collection has judgments and three topics."""
    root = tmp_path_factory.mktemp("judged")
    desk = asking(folder, model.url, collection=str(judged(folder, root)), loop="none")
    with running(desk, prompts=root / "mine") as studio:
        yield studio


def test_ndcg_is_there_where_topics_are_judged_and_means_are_those_of_the_topics(judged_studio: Studio) -> None:
    found = post(judged_studio, "try", template=EDITED, topics=["T1", "T2"])
    of = {(one["topic"], one["side"]): one["ndcg"] for one in found["tried"]}
    collection = judged_studio.desk.collection
    for one in found["tried"]:
        ids = [hit["id"] for hit in one["hits"]]
        assert one["ndcg"]["measure"] == "nDCG@10"
        assert one["ndcg"]["after"] == judged_value(NDCG(10), collection, one["topic"], ids)
    means = {side: (of["T1", side]["after"] + of["T2", side]["after"]) / 2 for side in ("shipped", "edited")}
    assert found["ndcg"]["topics"] == 2
    assert {side: found["ndcg"][side] for side in means} == pytest.approx(means)
    # A query that is nobody's topic has no judgments.
    alone = post(judged_studio, "try", template=EDITED, query="lawyer")
    assert alone["ndcg"] is None
    assert all(one["ndcg"] is None for one in alone["tried"])


def test_a_text_without_effect_is_said_to_have_none_and_why(judged_studio: Studio) -> None:
    topics = ["T1", "T2"]
    same = post(judged_studio, "try", template=SHIPPED.replace("version: 4", "version: 5"), topics=topics)
    assert same["no_effect"] == "This text changes nothing on all 2 topics: both prompts are equal."
    asked = SHIPPED.replace("[user]\n", "[user]\nPlease.\n", 1)
    assert "the replies are equal." in post(judged_studio, "try", template=asked, topics=topics)["no_effect"]
    assert "refine_query" in same["unused"]
    assert "loop: none" in same["unused"]
    other = post(judged_studio, "try", template=EDITED, query="lawyer")
    left, right = ([hit["id"] for hit in one["hits"]] for one in other["tried"])
    assert (other["no_effect"], left == right) == ("", False)


def test_two_texts_of_ones_own_are_tried_against_each_other(judged_studio: Studio, model: LoopbackServer) -> None:
    before = len(model.requests)
    found = post(judged_studio, "try", template=SHIPPED, against=EDITED, query="lawyer")
    assert [one["side"] for one in found["tried"]] == ["against", "edited"]
    first, second = (request["messages"][-1]["content"] for request in model.requests[before:])
    assert first.startswith("NAME WOMEN.")
    assert not second.startswith("NAME WOMEN.")
    assert found["gaps"].keys() == {"topics", "against", "edited", "lower", "higher"}
    assert "error" in post(judged_studio, "try", 400, template=SHIPPED, against="{{ nobody }}", query="lawyer")


def trial(side: str, ids: str = "ab", **more: Any) -> dict[str, Any]:
    told = {"topic": "T1", "query": "q", "side": side, "about": "", "prompt": side, "replies": [side], "rows": [side]}
    return {**told, **({"hits": [{"id": id} for id in ids]} if ids else {}), **more}


@pytest.mark.parametrize(
    ("left", "right", "said"),
    [
        ({}, {"ids": "ba"}, ""),
        ({}, {}, "other replies come to the same documents in the same order"),
        ({"ids": ""}, {"ids": ""}, ""),
        ({"ids": "", "replies": ["x"]}, {"ids": "", "replies": ["x"]}, "on this query: the replies are equal"),
        ({"replies": [], "about": "too few"}, {"replies": []}, "no model was called on this query (too few)"),
    ],
)
def test_why_a_text_changes_nothing(left: dict[str, Any], right: dict[str, Any], said: str) -> None:
    found = no_effect(pairs_of([trial("a", **left), trial("b", **right)], ["a", "b"]))
    assert said in found
    assert bool(said) == bool(found)


def test_what_failed_on_one_side_is_no_pair() -> None:
    assert pairs_of([trial("a"), trial("b", error="no")], ["a", "b"]) == []
    assert no_effect([]) == ""
