"""LlamaIndex: its retrievers as engines, fair retrievers and post-processors in its pipelines."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from llama_index.core.schema import MetadataMode, NodeRelationship, RelatedNodeInfo, TextNode
from scripted import Engine, Proposals, agent, by_letter

from adapters.words import Echo, Listed, node, vector_index
from fairagent.errors import BackendUnavailable, ModelError, UsageError
from fairagent.guests.llama_index import (
    DebiasPostprocessor,
    ExposurePostprocessor,
    FairFilterPostprocessor,
    FairRetriever,
    LlamaIndexRetriever,
    fair_agent,
    fair_query_engine,
)
from fairagent.guests.terms import local_bm25
from fairagent.types import Debiased, Document, Filtered, Query, SearchResult, Term, Verdict

HALF = {"gender": {"female": 0.5, "male": 0.5}}
BY_KEY = {"gender": "author_gender"}


def part(id: str, of: str, text: str, score: float) -> Any:
    made = node(id, text, score, title=f"Title of {of}")
    made.node.relationships = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=of)}
    return made


def people(n: int = 8) -> list[TextNode]:
    """Men are trial lawyers; women are lawyers and barristers."""
    texts = {"male": "a trial lawyer", "female": "a barrister and lawyer"}
    return [
        TextNode(id_=f"{gender[0]}{i}", text=f"{text} {i}", metadata={"author_gender": gender})
        for gender, text in texts.items()
        for i in range(n)
    ]


def test_given_documents_are_scored_by_their_words_whatever_was_asked_before() -> None:
    texts = {"a": "a lawyer, a lawyer", "b": "a judge of Bonn", "c": "lawyer"}
    listed = Listed([node(id, text) for id, text in texts.items()])
    engine, query = LlamaIndexRetriever(listed), Query("lawyer", terms=(Term("judge", 0.5),))
    engine.search(query, 3)
    # Keywords are added to the text of the query.
    assert listed.asked == ["lawyer judge"]
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


@pytest.mark.parametrize(
    "rerank",
    [
        [{"kind": "mmr", "relevance": 0}, {"kind": "exposure", "fairness": 4}],
        {"kind": "fa-star-ir", "group": {"gender": "female"}},
        "original",
    ],
)
def test_baselines_over_a_vector_index(rerank: Any, tmp_path: Path) -> None:
    retriever = vector_index(people()).as_retriever(similarity_top_k=16)
    plain = fair_agent(retriever, BY_KEY, target=HALF, n=6, profile="engine").search("trial lawyer")
    assert plain.ranking.ids == LlamaIndexRetriever(retriever).search(Query("trial lawyer"), 6).ids
    # The settings are those of everywhere, in a file.
    file = tmp_path / "settings.yaml"
    file.write_text(yaml.safe_dump({"profile": "engine", "n": 6, "target": HALF, "rerank": rerank}), encoding="utf-8")
    result = fair_agent(retriever, BY_KEY, settings=file).search("trial lawyer")
    assert plain.trace.steps[0].ranking.ids == result.trace.steps[0].ranking.ids
    assert result.ranking.ids != plain.ranking.ids
    assert (result.trace.profile, result.trace.stopped) == ("engine", "")


GENDER = {"f": "female", "m": "male"}


def found(line: str) -> list[Any]:
    """Nodes best first, scored n ... 1, the gender of each by its first letter."""
    ids = line.split()
    return [node(id, score=len(ids) - i, author_gender=GENDER.get(id[0])) for i, id in enumerate(ids)]


def ids(nodes: Any) -> list[str]:
    return [node.node_id for node in nodes]


class Only:
    """A filter that keeps documents whose text holds a word, and remembers what it was given."""

    def __init__(self, word: str) -> None:
        self.word, self.given = word, []

    def filter(self, query: str, documents: Any) -> Filtered:
        self.given.append((query, tuple(documents)))
        verdicts = tuple(Verdict(one.id, self.word in one.text, True, None) for one in documents)
        return Filtered(tuple(one for one in documents if self.word in one.text), verdicts)


class Made:
    """A debiasing that puts a context of its own before the last document."""

    def apply(self, query: str, documents: Any) -> Debiased:
        made = Document("fair:a", f"{query} made", "not from the collection")
        return Debiased("", ("a",), ("fair:a",), (made, *documents[-1:]), (0.9, 0.5)[: 1 + len(documents)])


def test_debiasing_keeps_nodes_and_adds_its_own_which_say_so() -> None:
    # Two passages of a document may have the same id.
    nodes = [node("a", "x", 3.0), node("a", "y", 1.0)]
    seen: list[Debiased] = []
    after = DebiasPostprocessor(debiasing=Made(), on_debiased=seen.append)
    first, last = after.postprocess_nodes(nodes, query_str="q")
    assert (first.node_id, first.text, first.score) == ("fair:a", "q made", 0.9)
    assert first.metadata == {"title": "not from the collection", "synthesized": True}
    assert "not from the collection" in first.node.get_content(MetadataMode.LLM)
    assert (last.node, last.score) == (nodes[1].node, 0.5)
    assert len(seen) == 1
    assert ids(after.postprocess_nodes([], query_str="q")) == ["fair:a"]


def test_the_filter_keeps_order_scores_and_nodes() -> None:
    nodes = [node("a", "x y", 3.0, title="A"), node("b", "y", None), node("c", "x", 1.0)]
    seen: list[Filtered] = []
    rule = Only("x")
    kept = FairFilterPostprocessor(filter=rule, on_filtered=seen.append).postprocess_nodes(nodes, query_str="q")
    assert kept == [nodes[0], nodes[2]]
    assert [(query, documents[0]) for query, documents in rule.given] == [
        ("q", Document("a", "x y", "A", {"title": "A"}))
    ]
    assert [verdict.id for verdict in seen[0].verdicts] == ["a", "b", "c"]


def test_groups_from_metadata_get_their_share() -> None:
    nodes = found("m1 m2 m3 m4 m5 m6 f1 f2")
    after = ExposurePostprocessor(groups=BY_KEY, target=HALF, n=4, fairness=20)
    chosen = after.postprocess_nodes(nodes, query_str="q")
    assert sorted(id[0] for id in ids(chosen)) == ["f", "f", "m", "m"]
    assert [node.score for node in chosen] == [1.0, 0.75, 0.5, 0.25]
    # The nodes given are as they were.
    assert [node.score for node in nodes] == [8, 7, 6, 5, 4, 3, 2, 1]
    assert chosen[0].node is nodes[0].node
    assert ids(asyncio.run(after.apostprocess_nodes(nodes, query_str="q"))) == ids(chosen)


def test_the_parts_of_a_document_have_its_groups() -> None:
    nodes = [*found("m1 m2 m3"), part("part0", "f1", "x", 0.5), part("part1", "f1", "x", 0.5)]
    groups = by_letter(["m1", "m2", "m3", "f1"])
    after = ExposurePostprocessor(groups=groups, target="uniform", n=4, fairness=20)
    assert {"part0", "part1"} <= set(ids(after.postprocess_nodes(nodes)))
    by_url = [node(f"n{id}", score=1, url=id) for id in ("m1", "f1")]
    after = ExposurePostprocessor(groups=groups, n=1, target={"female": 1.0, "male": 0.0}, id_key="url", fairness=20)
    assert ids(after.postprocess_nodes(by_url)) == ["nf1"]


ROOT = Path(__file__).resolve().parents[2]
LISTS = {"q": "m1 m2 m3 f1 f2", "q she": "f1 f2 m1 m2", "nothing": ""}


class Library(Engine):
    """An engine that keeps texts."""

    def document(self, id: str) -> Document:
        return Document(id, f"This is {id}.", f"Title of {id}", {"url": f"https://example.org/{id}", "rank": "its own"})


class Passages(Library):
    """An engine whose documents are long."""

    def passages(self, query: Query, ids: Any) -> list[Document]:
        return [Document(id, f"The part of {id} about {query.text}.") for id in ids]


def fair(engine: type[Engine] = Library) -> Any:
    return agent(engine(LISTS), Proposals("she"), iterations=1)


def test_the_query_engine_answers_from_the_ranking_of_the_search() -> None:
    expected = fair().search("q").ranking
    assert expected.ids != ("m1", "m2", "m3", "f1")

    async def asked() -> tuple[Any, int]:
        beats = 0

        async def beat() -> None:
            nonlocal beats
            while True:
                beats += 1
                await asyncio.sleep(0)

        heart = asyncio.create_task(beat())
        response = await fair_query_engine(fair(), Echo()).aquery("q")
        heart.cancel()
        return response, beats

    later, beats = asyncio.run(asked())
    assert beats > 1, "the event loop goes on meanwhile"
    for response in (fair_query_engine(fair(), Echo()).query("q"), later):
        assert tuple(node.node_id for node in response.source_nodes) == expected.ids
        assert [node.score for node in response.source_nodes] == expected.scores.tolist()
        # The model read them in that order, with their titles and without their groups.
        texts = [str(response).index(f"title: Title of {id}\n\nThis is {id}.") for id in expected.ids]
        assert texts == sorted(texts)
        assert all(word not in str(response) for word in ("female", "example.org"))


def test_a_node_says_who_it_is() -> None:
    results: list[SearchResult] = []
    nodes = FairRetriever(fair(), results.append).retrieve("q")
    first, hit = nodes[0].node, results[0].hits[0]
    assert first.metadata == {
        "url": f"https://example.org/{hit.id}",
        "title": f"Title of {hit.id}",
        "rank": 1,
        "score": hit.score,
        "groups": {"gender": dict(hit.groups["gender"])},
    }
    assert first.get_content(MetadataMode.EMBED) == f"title: Title of {hit.id}\n\nThis is {hit.id}."
    # Of a long document it is the best passage.
    [passage, *_] = FairRetriever(fair(Passages)).retrieve("q")
    assert (passage.text, passage.metadata["title"]) == (f"The part of {hit.id} about q.", f"Title of {hit.id}")
    with pytest.raises(UsageError, match="Engine keeps no texts"):
        FairRetriever(fair(Engine))


def test_a_filter_stands_before_the_model() -> None:
    response = fair_query_engine(fair(), Echo(), Only(" f")).query("q")
    assert [node.node_id for node in response.source_nodes] == ["f1", "f2"]
    assert "This is m1" not in str(response)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["llama_index_query_engine", "llama_index_vector_index"])
def test_the_examples_run_with_the_network_closed(name: str, tmp_path: Path) -> None:
    closed = "import socket; socket.socket.connect = None; import runpy; "
    code = f"{closed}runpy.run_path({str(ROOT / 'examples' / f'{name}.py')!r}, run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) >= 6
