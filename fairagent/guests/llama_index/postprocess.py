"""FairFilter, DebiasRAG and the exposure-aware re-ranker as LlamaIndex's node post-processors."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from pydantic import Field, SkipValidation

from fairagent.adapters.groups import GroupsByPlace, fair_order, groups_alone
from fairagent.adapters.llama_index.groups import Keys, MetadataGroups, Shelf, Target, given
from fairagent.adapters.llama_index.nodes import document_id, document_of, made_node, scores_of
from fairagent.collection import Collection, Groups
from fairagent.debias.stage import DebiasRAG
from fairagent.errors import UsageError
from fairagent.filter import Filter
from fairagent.rerank.exposure import FAIRNESS
from fairagent.settings import Unknown
from fairagent.types import Debiased, Filtered, Ranking


class FairFilterPostprocessor(BaseNodePostprocessor):
    """Takes nodes out of a context that would do harm to an answer, such as `FairFilter` finds; order and scores stay.

    `on_filtered` is told the verdicts and what they cost.
    """

    filter: SkipValidation[Filter]
    on_filtered: SkipValidation[Callable[[Filtered], None]] | None = None

    @classmethod
    def class_name(cls) -> str:
        """Its name among LlamaIndex's components."""
        return "FairFilterPostprocessor"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        """The nodes that stay. Raises UsageError without a query, and what the filter raises."""
        if query_bundle is None:
            raise UsageError("FairFilterPostprocessor judges documents for a query, and none was given")
        documents = [document_of(node.node, node.node.node_id) for node in nodes]
        filtered = self.filter.filter(query_bundle.query_str, documents)
        if self.on_filtered:
            self.on_filtered(filtered)
        return [node for node, verdict in zip(nodes, filtered.verdicts, strict=True) if verdict.kept]


class DebiasPostprocessor(BaseNodePostprocessor):
    """The nodes, and counterfactual contexts among them, that `DebiasRAG` chooses for a query, the best first.

    A context that it makes is a node of its own, whose metadata say `synthesized`; it works without any node, too.
    Scores are DebiasRAG's. `on_debiased` is told how the choice came about.
    """

    debiasing: SkipValidation[DebiasRAG]
    on_debiased: SkipValidation[Callable[[Debiased], None]] | None = None

    @classmethod
    def class_name(cls) -> str:
        """Its name among LlamaIndex's components."""
        return "DebiasPostprocessor"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        """The chosen nodes. Raises UsageError without a query, and what the debiasing raises."""
        if query_bundle is None:
            raise UsageError("DebiasPostprocessor chooses contexts for a query, and none was given")
        # Two nodes may have one id.
        documents = [document_of(node.node, str(place)) for place, node in enumerate(nodes)]
        debiased = self.debiasing.apply(query_bundle.query_str, documents)
        if self.on_debiased:
            self.on_debiased(debiased)
        chosen = zip(debiased.documents, debiased.scores, strict=True)
        return [
            NodeWithScore(node=made_node(one) if one.id in debiased.made else nodes[int(one.id)].node, score=score)
            for one, score in chosen
        ]


class ExposurePostprocessor(BaseNodePostprocessor):
    """The `n` nodes that are relevant and together give every group about its target share of the exposure.

    Put it behind a retriever that returns many more nodes than `n`: it can only choose among those
    (`fairagent.rerank.exposure` says how). `groups` are metadata keys ({"author_gender": "gender"}: see
    `MetadataGroups`), the groups of a collection, or the collection. `target` is a target of
    `fairagent.collection.targets` by name, or label -> share for each dimension, which metadata need; a collection
    may have one itself. Scores are the re-ranker's, from 1 down.

    `fairness` and `unknown` are those of `fair_rerank`. Where a node has no score, the order of all nodes stands for
    their scores.
    """

    groups: SkipValidation[Collection | Groups | Keys]
    target: Target | None = None
    n: int = Field(default=10, ge=1)
    fairness: float = Field(default=FAIRNESS, ge=0)
    unknown: Unknown = "share"
    id_key: str = ""
    """The metadata key with the id of a node's document; "": its source node's id, or its own."""

    @classmethod
    def class_name(cls) -> str:
        """Its name among LlamaIndex's components."""
        return "ExposurePostprocessor"

    def model_post_init(self, context: Any, /) -> None:
        """Raises UsageError for groups and a target that do not go together."""
        super().model_post_init(context)
        self._collection(Shelf({}))

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        """The first `n` nodes of the new order. Raises DataError for labels or targets that cannot be used."""
        if not nodes:
            return []
        # Two passages of a document are two nodes: ids name its groups, places the nodes.
        ids = tuple(document_id(node.node, self.id_key) for node in nodes)
        documents = {id: document_of(node.node, id) for id, node in zip(ids, nodes, strict=True)}
        collection = self._collection(Shelf(documents))
        places = Ranking(tuple(map(str, range(len(nodes)))), scores_of(nodes))
        by_place = replace(collection, groups=GroupsByPlace(collection.groups, ids))
        query = query_bundle.query_str if query_bundle else ""
        ranking, _ = fair_order(by_place, places, self.n, self.target, self.fairness, self.unknown, query)
        placed = zip(ranking.ids, ranking.scores.tolist(), strict=True)
        return [NodeWithScore(node=nodes[int(place)].node, score=score) for place, score in placed]

    def _collection(self, shelf: Shelf) -> Collection:
        """What `groups` says, with the nodes' own labels where they are to tell."""
        if not isinstance(self.groups, Mapping):
            return groups_alone(self.groups, {})
        return groups_alone(MetadataGroups(shelf, self.groups, given(self.target, self.groups.values())), {})
