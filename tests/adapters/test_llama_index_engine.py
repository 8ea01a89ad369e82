"""Any LlamaIndex retriever as the engine of the loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from llama_index.core.schema import Document as LlamaDocument
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from scripted import by_letter

from adapters.words import Echo, Listed, node, vector_index
from fairagent.errors import BackendUnavailable, ModelError
from fairagent.guests.llama_index import FairRetriever, LlamaIndexRetriever, fair_agent, fair_query_engine
from fairagent.guests.terms import local_bm25
from fairagent.types import Query, Term

HALF = {"gender": {"female": 0.5, "male": 0.5}}
BY_KEY = {"gender": "author_gender"}


def part(id: str, of: str, text: str, score: float) -> Any:
    made = node(id, text, score, title=f"Title of {of}")
    made.node.relationships = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=of)}
    return made


def people(n: int = 8) -> list[TextNode]:
    """Men are trial lawyers; women are lawyers and barristers."""
    men = [TextNode(id_=f"m{i}", text=f"a trial lawyer {i}", metadata={"author_gender": "male"}) for i in range(n)]
    women = [
        TextNode(id_=f"f{i}", text=f"a barrister and lawyer {i}", metadata={"author_gender": "female"})
        for i in range(n)
    ]
    return men + women


# --- the engine ---------------------------------------------------------------------------------------------------


def test_it_returns_the_retrievers_documents_in_its_order() -> None:
    retriever = vector_index(people()).as_retriever(similarity_top_k=10)
    expected = retriever.retrieve("trial lawyer")
    found = LlamaIndexRetriever(retriever).search(Query("trial lawyer"), 7)
    assert list(found.ids) == [one.node_id for one in expected[:7]]
    assert found.scores.tolist() == [one.score for one in expected[:7]]


def test_keywords_are_added_to_the_text_of_the_query() -> None:
    listed = Listed([node("a")])
    LlamaIndexRetriever(listed).search(Query("lawyers", terms=(Term("she", 0.3), Term("court"))), 5)
    assert listed.asked == ["lawyers she court"]


def test_given_documents_are_scored_by_their_words_whatever_was_asked_before() -> None:
    texts = {"a": "a lawyer, a lawyer", "b": "a judge of Bonn", "c": "lawyer"}
    engine = LlamaIndexRetriever(Listed([node(id, text) for id, text in texts.items()]))
    engine.search(Query("x"), 3)
    query = Query("lawyer", terms=(Term("judge", 0.5),))
    scores = engine.score(query, ["c", "b", "a"])
    assert scores.tolist() == local_bm25(query, [f" {texts[id]}" for id in "cba"]).tolist()
    assert (scores > 0).all()
    engine.search(Query("y"), 3)
    assert engine.score(query, ["c", "b", "a"]).tolist() == scores.tolist()
    assert engine.score(query, []).shape == (0,)


def test_parts_of_a_document_are_one_document_in_the_place_of_the_first() -> None:
    nodes = [
        part("a1", "a", "wine", 3),
        part("b1", "b", "beer", 2),
        part("a2", "a", "law", 1),
        part("c1", "c", "law", 0),
    ]
    engine = LlamaIndexRetriever(Listed(nodes))
    found = engine.search(Query("q"), 2)
    assert (found.ids, found.scores.tolist()) == (("a", "b"), [3, 2])
    assert engine.document("a").text == "wine\n\nlaw"
    assert engine.document("a").title == "Title of a"
    best = engine.passages(Query("law"), ["a", "b"])
    assert [(one.id, one.text) for one in best] == [("a", "law"), ("b", "beer")]
    # The title belongs to every part; the best part counts.
    assert engine.score(Query("law"), ["a", "b", "c"]).argsort(kind="stable").tolist()[0] == 1


@pytest.mark.parametrize("scores", [[None, None], [1.0, None], [float("nan"), 0.0], [0.1, 0.2], [float("inf"), 1.0]])
def test_missing_or_rising_scores_fall_evenly(scores: list[Any]) -> None:
    listed = Listed([node(id, score=score) for id, score in zip("ab", scores, strict=True)])
    found = LlamaIndexRetriever(listed).search(Query("q"), 5)
    assert (found.ids, found.scores.tolist()) == (("a", "b"), [1.0, 0.5])


def test_a_retriever_that_fails_is_named_with_its_query_and_reason() -> None:
    with pytest.raises(BackendUnavailable, match=r"retriever Listed failed for 'q': KeyError: 'vector'") as caught:
        LlamaIndexRetriever(Listed(error=KeyError("vector"))).search(Query("q"), 5)
    assert isinstance(caught.value.__cause__, KeyError)
    with pytest.raises(ModelError, match="as it is"):
        LlamaIndexRetriever(Listed(error=ModelError("as it is"))).search(Query("q"), 5)


# --- the agent over it --------------------------------------------------------------------------------------------


def test_the_whole_loop_over_a_vector_index() -> None:
    retriever = vector_index(people()).as_retriever(similarity_top_k=13)
    told = {"loop": "fair-qr", "refine": {"terms": 1}, "rerank": {"fairness": 4, "unlabeled": 1}}
    agent = fair_agent(retriever, BY_KEY, target=HALF, n=6, **told)
    result = agent.search("trial lawyer")
    assert [step.source for step in result.trace.steps][:2] == ["query", "feedback"]
    assert [term.text for term in result.trace.steps[1].added] == ["barrister"]
    first, last = result.trace.steps[0].gap, result.trace.gap
    assert last < first
    assert [hit.groups for hit in result.hits[:1]] in ([{"gender": {"male": 1.0}}], [{"gender": {"female": 1.0}}])
    engine = fair_query_engine(agent, Echo())
    assert tuple(one.node_id for one in engine.query("trial lawyer").source_nodes) == result.ranking.ids


def test_long_documents_are_split_by_llama_index_and_counted_once() -> None:
    text = {"f1": "law " * 40, "m1": "law wine " * 40, "m2": "wine " * 40}
    documents = [LlamaDocument(id_=id, text=words, metadata={"title": id}) for id, words in text.items()]
    from llama_index.core import VectorStoreIndex
    from llama_index.core.node_parser import SentenceSplitter

    from .words import WordEmbedding

    index = VectorStoreIndex.from_documents(
        documents, embed_model=WordEmbedding(), transformations=[SentenceSplitter(chunk_size=20, chunk_overlap=0)]
    )
    agent = fair_agent(index.as_retriever(similarity_top_k=30), by_letter(text), n=3, refine="none", target="uniform")
    result = agent.search("law")
    assert sorted(result.ranking.ids) == ["f1", "m1", "m2"]
    nodes = FairRetriever(agent).retrieve("law")
    assert all(len(node.text.split()) <= 20 for node in nodes)


# --- the same settings as everywhere --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rerank",
    [
        {"kind": "mmr", "by": "groups", "relevance": 0.1},
        {"kind": "mmr", "relevance": 0},
        [{"kind": "mmr"}, {"kind": "exposure", "fairness": 4}],
        {"kind": "fa-star-ir", "group": {"gender": "female"}},
        "original",
    ],
)
def test_baselines_over_a_vector_index(rerank: Any, tmp_path: Path) -> None:
    retriever = vector_index(people()).as_retriever(similarity_top_k=16)
    plain = fair_agent(retriever, BY_KEY, target=HALF, n=6, profile="engine")
    made = fair_agent(retriever, BY_KEY, target=HALF, n=6, profile="engine", rerank=rerank)
    result, before = made.search("trial lawyer"), plain.search("trial lawyer")
    assert before.ranking.ids == LlamaIndexRetriever(retriever).search(Query("trial lawyer"), 6).ids
    assert before.trace.steps[0].ranking.ids == result.trace.steps[0].ranking.ids
    assert result.ranking.ids != before.ranking.ids
    assert (result.trace.profile, result.trace.stopped) == ("engine", "")
    # The same words in a file.
    file = tmp_path / "settings.yaml"
    file.write_text(yaml.safe_dump({"profile": "engine", "n": 6, "target": HALF, "rerank": rerank}), encoding="utf-8")
    again = fair_agent(retriever, BY_KEY, settings=file)
    assert again.search("trial lawyer").ranking.ids == result.ranking.ids
