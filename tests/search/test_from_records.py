"""`FairAgent.from_records`: one line from rows to a fair ranking, by the engine that an index on disk has."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import Any

import pytest

from fairagent import BM25Retriever, Collection, FairAgent, Query, build_index, load_collection, open_agent

ROWS: list[dict[str, Any]] = [
    {"id": f"d{n:02}", "text": f"The judge{'s' * (n % 2)} of court {n}. {'Law. ' * (n % 5)}", "gender": gender}
    for n, gender in enumerate(["male"] * 9 + ["female", ""] * 6)
]

pytestmark = pytest.mark.usefixtures("no_variables")


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


@pytest.mark.vectors
@pytest.mark.parametrize(("engine", "named"), [("auto", "fused (bm25 + light)"), ("bm25", "bm25")])
def test_scores_are_those_of_an_index_on_disk(tmp_path: Path, temporary: Path, engine: str, named: str) -> None:
    (tmp_path / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    file, groups = tmp_path / "collection.yaml", "{path: docs.jsonl, dimensions: {gender: {}}}"
    file.write_text(f"name: same\ndocuments: {{path: docs.jsonl}}\ngroups: {groups}\n", encoding="utf-8")
    collection = load_collection(file)
    build_index(collection, tmp_path / "index")
    options: dict[str, Any] = {"engine": engine, "target": "uniform", "n": 5}
    kept = open_agent(collection, tmp_path / "index", **options).search("judges and law")
    found = FairAgent.from_records(ROWS, groups="gender", **options).search("judges and law")
    assert found.ranking.ids == kept.ranking.ids
    assert found.ranking.scores.tolist() == kept.ranking.scores.tolist()
    assert found.trace.engine == kept.trace.engine == named
    assert found.trace.gap == kept.trace.gap
    plain = FairAgent.from_records(ROWS).search("judges and law").ranking
    own = BM25Retriever(tmp_path / "index", collection).search(Query("judges and law"), 20)
    assert plain.ids == own.ids
    assert plain.scores.tolist() == own.scores.tolist()


def test_the_index_is_removed_with_the_agent(temporary: Path) -> None:
    agent = FairAgent.from_records(ROWS, groups=["gender"], target="uniform", n=5)
    (folder,) = temporary.glob("fairagent-*")
    assert agent.search("judge").hits[0].groups["gender"]
    assert agent.retriever.document("d03").text == ROWS[3]["text"]  # type: ignore[attr-defined]
    del agent
    gc.collect()
    assert not folder.exists()


@pytest.mark.parametrize("profile", [None, "engine"])
def test_a_query_of_which_nothing_is_known_finds_nothing_and_says_so(profile: str | None) -> None:
    rows = [{"id": f"d{n:02}", "text": f"word{n % 7} about topic{n % 11}", "g": "ab"[n % 2]} for n in range(60)]
    agent = FairAgent.from_records(rows, groups=["g"], target="uniform", **({"profile": profile} if profile else {}))
    for query in ("the and of", "\N{GRINNING FACE}", "qwertz", "\u0e17\u0e19\u0e32\u0e22"):
        result = agent.answer(query)
        assert (result.search.hits, result.answer.text, result.context) == ((), "", ())
        assert any("no word of the query is known" in note for note in result.search.trace.notes)
    served = agent.search("qwertz word3")
    assert {row["id"] for row in rows if "word3" in row["text"]} <= {hit.id for hit in served.hits}
    assert served.trace.notes == ()


def test_rows_without_groups_are_searched_by_the_engine() -> None:
    agent = FairAgent.from_records([{"body": "law and order"}, {"body": "order"}], text="body", id="@row")
    result = agent.search("law")
    assert [(hit.id, hit.title or hit.text) for hit in result.hits] == [("1", "law and order")]
    assert any("numbers of rows" in note for note in agent.collection.notes)
    assert (result.trace.profile, result.trace.exposures) == ("engine", ())


def test_a_collection_in_memory_can_have_an_index_on_disk(tmp_path: Path) -> None:
    collection = Collection.from_records(ROWS, groups="gender")
    build_index(collection, tmp_path / "index")
    again = Collection.from_records(iter(ROWS), groups="gender")
    assert open_agent(again, tmp_path / "index", engine="bm25", target="uniform", n=4).search("judge").ranking.ids
