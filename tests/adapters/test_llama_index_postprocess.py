"""FairFilter and the exposure re-ranker behind somebody else's retriever."""

from __future__ import annotations

import asyncio
from typing import Any

from llama_index.core.schema import MetadataMode, NodeRelationship, RelatedNodeInfo
from scripted import by_letter

from adapters.words import node
from fairagent.guests.llama_index import DebiasPostprocessor, ExposurePostprocessor, FairFilterPostprocessor
from fairagent.types import Debiased, Document, Filtered, Verdict

HALF = {"gender": {"female": 0.5, "male": 0.5}}
BY_KEY = {"gender": "author_gender"}
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


# --- debiasing ----------------------------------------------------------------------------------------------------


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


# --- the filter ---------------------------------------------------------------------------------------------------


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


# --- the re-ranker ------------------------------------------------------------------------------------------------


def test_groups_from_metadata_get_their_share() -> None:
    nodes = found("m1 m2 m3 m4 m5 m6 f1 f2")
    after = ExposurePostprocessor(groups=BY_KEY, target=HALF, n=4, fairness=20)
    chosen = after.postprocess_nodes(nodes, query_str="q")
    assert len(chosen) == 4
    assert sorted(id[0] for id in ids(chosen)) == ["f", "f", "m", "m"]
    assert [node.score for node in chosen] == [1.0, 0.75, 0.5, 0.25]
    # The nodes given are as they were.
    assert [node.score for node in nodes] == [8, 7, 6, 5, 4, 3, 2, 1]
    assert chosen[0].node is nodes[0].node
    assert ids(asyncio.run(after.apostprocess_nodes(nodes, query_str="q"))) == ids(chosen)


def test_nodes_without_a_label_keep_their_share() -> None:
    nodes = found("u1 m1 u2 m2 u3 f1 f2")
    for fairness in (0.5, 10.0):
        chosen = ExposurePostprocessor(groups=BY_KEY, target=HALF, n=4, fairness=fairness).postprocess_nodes(nodes)
        assert sum(id[0] == "u" for id in ids(chosen)) == 2
    none = ExposurePostprocessor(groups=BY_KEY, target=HALF, n=4, unknown=0.0, fairness=2).postprocess_nodes(nodes)
    assert sorted(id[0] for id in ids(none)) == ["f", "f", "m", "m"]
    nobody = found("u1 u2 u3")
    assert ids(ExposurePostprocessor(groups=BY_KEY, target=HALF).postprocess_nodes(nobody)) == ["u1", "u2", "u3"]


def test_the_parts_of_a_document_have_its_groups() -> None:
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="f1")}
    nodes = found("m1 m2 m3")
    for n in range(2):
        nodes.append(node(f"part{n}", score=0.5))
        nodes[-1].node.relationships = source
    groups = by_letter(["m1", "m2", "m3", "f1"])
    after = ExposurePostprocessor(groups=groups, target="uniform", n=4, fairness=20)
    chosen = ids(after.postprocess_nodes(nodes))
    assert {"part0", "part1"} <= set(chosen)
    by_url = [node(f"n{id}", score=1, url=id) for id in ("m1", "f1")]
    after = ExposurePostprocessor(
        groups=by_letter(["m1", "f1"]), n=1, target={"female": 1.0}, id_key="url", fairness=20
    )
    assert ids(after.postprocess_nodes(by_url)) == ["nf1"]
