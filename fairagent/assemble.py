"""Putting an agent together from settings: the one place that knows all parts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairagent.agent import FairAgent
from fairagent.collection import Collection, load_collection
from fairagent.errors import UsageError
from fairagent.exposure import dimensions_of
from fairagent.measures import parse_discount
from fairagent.refine.base import Refiner
from fairagent.refine.feedback import FeedbackRefiner
from fairagent.refine.none import NoRefiner
from fairagent.rerank.base import Reranker
from fairagent.rerank.exposure import ExposureReranker
from fairagent.rerank.relevance import FusedReranker, OriginalReranker
from fairagent.retrieve.base import Retriever
from fairagent.retrieve.lucene import LuceneRetriever
from fairagent.settings import Settings, load_settings, merge


def open_agent(
    collection: Collection | Path | str = "",
    index: Path | str = "",
    settings: Settings | Path | str | None = None,
    **overrides: Any,
) -> FairAgent:
    """An agent for a collection and its Lucene index.

    `collection` is a collection or its settings file, `index` the index's folder; both default to the settings.
    `settings` are settings or their file; `overrides` beat them, section by section:
    `open_agent("c.yaml", n=10, reranking={"kind": "fused"})`.

    Raises SettingsError, DataError (every fault of the collection's files), IndexMismatch, BackendUnavailable.
    """
    chosen = resolve(settings, overrides)
    loaded = collection if isinstance(collection, Collection) else load_collection(collection_path(collection, chosen))
    dimensions_of(loaded, chosen)
    for dimension in chosen.dimensions:
        loaded.groups.labels(dimension)
    retriever = open_retriever(loaded, index_folder(loaded, chosen, index), chosen)
    return FairAgent(loaded, retriever, make_refiner(chosen, retriever), make_reranker(chosen, retriever), chosen)


def resolve(settings: Settings | Path | str | None, overrides: Mapping[str, Any]) -> Settings:
    """Settings from a file, the environment and the call; or from a value, which beats both, and the call."""
    if isinstance(settings, Settings):
        chosen = merge(settings.model_dump(exclude_unset=True), overrides, levels=2)
        return load_settings(overrides=chosen, environ={})
    return load_settings(Path(settings) if settings else None, overrides)


def collection_path(given: Path | str, settings: Settings) -> Path:
    """The collection's settings file, from the call or the settings."""
    path = str(given) or settings.collection
    if not path:
        raise UsageError(
            "no collection: name its settings file (--collection FILE, FAIRAGENT_COLLECTION, or `collection:` in the "
            "settings); `fairagent demo` makes one to try"
        )
    return Path(path)


def index_folder(collection: Collection, settings: Settings, given: Path | str = "") -> Path:
    """Where the collection's index is: from the call, the settings, or indexes/<name>."""
    return Path(str(given) or settings.index or Path("indexes") / collection.name)


def open_retriever(collection: Collection, folder: Path, settings: Settings) -> LuceneRetriever:
    """BM25 over the collection's index, which must have been built from it as it is now."""
    retrieval = settings.retrieval
    return LuceneRetriever(folder, collection, retrieval.analyzer, retrieval.k1, retrieval.b, retrieval.memory)


def make_refiner(settings: Settings, retriever: LuceneRetriever) -> Refiner:
    """The refiner that the settings name."""
    if settings.refiner == "none":
        return NoRefiner()
    if settings.refiner == "llm":
        from fairagent.llm.openai import OpenAIModel
        from fairagent.prompts import Prompts
        from fairagent.refine.llm import LlmRefiner

        return LlmRefiner(OpenAIModel.from_settings(settings.model), Prompts(settings.prompts), settings.keyword_weight)
    feedback = settings.feedback
    return FeedbackRefiner(retriever, feedback.documents, feedback.terms, feedback.weight)


def make_reranker(settings: Settings, retriever: Retriever) -> Reranker:
    """The re-ranker that the settings name."""
    chosen = settings.reranking
    if chosen.kind == "original":
        return OriginalReranker(retriever)
    if chosen.kind == "fused":
        return FusedReranker(retriever, chosen.refined)
    return ExposureReranker(chosen.fairness, chosen.unlabeled, parse_discount(settings.discount))
