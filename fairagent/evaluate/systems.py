"""The systems that an experiment may name: one table from a kind to the options it takes and how it is built.

Every system is a `FairAgent`, so that all are run, traced and judged alike. The baselines are agents whose loop does
nothing: the first list of their engine goes straight to their re-ranker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fairagent.agent import FairAgent
from fairagent.assemble import make_refiner, make_reranker
from fairagent.collection import Collection
from fairagent.errors import DataError
from fairagent.evaluate.engines import Engines
from fairagent.evaluate.options import (
    AgentOptions,
    BM25Options,
    CrossEncoderOptions,
    DELTROptions,
    DenseOptions,
    DLFOptions,
    FAStarIROptions,
    JudgedOptions,
    MMROptions,
    Options,
    PlackettLuceOptions,
    RM3Options,
    RunFileOptions,
    SpladeOptions,
)
from fairagent.evaluate.plan import NO_RETRIEVAL
from fairagent.evaluate.training import cross_fitted, training_pools
from fairagent.evaluate.utility.run_file import RunFile, read_run
from fairagent.llm.models import Models
from fairagent.measures import parse_discount
from fairagent.refine.none import NoRefiner
from fairagent.rerank.base import Pool, Reranker
from fairagent.rerank.cross_encoder import CrossEncoderReranker
from fairagent.rerank.deltr import DELTRReranker, fit_deltr, judged_query
from fairagent.rerank.dlf import DLFReranker, fit_dlf
from fairagent.rerank.fa_star_ir import FAStarIRReranker
from fairagent.rerank.features import EmbeddingFeatures
from fairagent.rerank.mmr import MMRReranker
from fairagent.rerank.plackett_luce import PlackettLuceReranker
from fairagent.rerank.protected import Place, most_lacking
from fairagent.rerank.similarity import ByEmbeddings, ByGroups, ByTerms
from fairagent.retrieve.base import Retriever
from fairagent.retrieve.relevance_model import RM3
from fairagent.retrieve.rm3 import RM3Retriever
from fairagent.settings import Settings
from fairagent.types import Ranking


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """What a system is built from; `folder` is that of its index."""

    collection: Collection
    settings: Settings
    engines: Engines
    folder: str
    seed: int
    models: Models


@dataclass(frozen=True, slots=True, eq=False)
class System:
    """What answers topics. `sees_groups` says whether it looks at the documents' groups at all."""

    agent: FairAgent
    sees_groups: bool = True


@dataclass(frozen=True, slots=True)
class Kind:
    """The options of a kind, and what builds a system from them, None where it does not search.

    `indexed` says whether it needs the Lucene index, `only` the section of the file without which it makes no sense.
    """

    options: type[Options]
    build: Callable[[Parts, Any], System] | None
    indexed: bool = True
    only: Literal["", "questions", "utility", "fair_rag"] = ""


@dataclass(frozen=True, slots=True)
class AsRetrieved:
    """No re-ranking."""

    def rerank(self, pool: Pool) -> Ranking:
        """The first `pool.n` candidates."""
        return pool.ranking.top(pool.n)


def baseline(parts: Parts, retriever: Retriever, reranker: Reranker, sees_groups: bool) -> System:
    """`reranker` on the first list of `retriever`."""
    settings = parts.settings
    expansion = settings.expansion.model_copy(update={"documents": 0})
    idle = settings.model_copy(update={"refiner": "none", "iterations": 0, "expansion": expansion})
    return System(FairAgent(parts.collection, retriever, NoRefiner(), reranker, idle), sees_groups)


def _engine(parts: Parts, options: Options) -> Retriever:
    if options.retriever == "dense":
        return parts.engines.dense(parts.folder, parts.settings, options.model)
    if options.retriever == "splade":
        return parts.engines.splade(parts.folder, parts.settings, options.model)
    lucene = parts.engines.lucene(parts.folder, parts.settings)
    if options.retriever == "bm25":
        return lucene
    expansion = parts.settings.expansion
    return RM3Retriever(lucene, RM3(expansion.documents, expansion.terms, expansion.weight))


def _agent(parts: Parts, options: AgentOptions) -> System:
    engine = _engine(parts, options)
    # Feedback reads the words of documents, whichever engine has found these.
    refiner = make_refiner(parts.settings, parts.engines.lucene(parts.folder, parts.settings), parts.models)
    reranker = make_reranker(parts.settings, engine)
    return System(FairAgent(parts.collection, engine, refiner, reranker, parts.settings))


def _plain(parts: Parts, options: Options) -> System:
    return baseline(parts, _engine(parts, options), AsRetrieved(), sees_groups=False)


def _cross_encoder(parts: Parts, options: CrossEncoderOptions) -> System:
    engine = _engine(parts, options)
    reranker = CrossEncoderReranker(engine, parts.engines.scorer(options.scorer), options.depth)
    return baseline(parts, engine, reranker, sees_groups=False)


def _mmr(parts: Parts, options: MMROptions) -> System:
    if options.by == "groups":
        return baseline(parts, _engine(parts, options), MMRReranker(ByGroups(), options.relevance), sees_groups=True)
    if options.by == "embeddings":
        reranker = MMRReranker(
            ByEmbeddings(parts.engines.dense(parts.folder, parts.settings, options.model)), options.relevance
        )
    else:
        reranker = MMRReranker(ByTerms(parts.engines.lucene(parts.folder, parts.settings)), options.relevance)
    return baseline(parts, _engine(parts, options), reranker, sees_groups=False)


def _fa_star_ir(parts: Parts, options: FAStarIROptions) -> System:
    group, discount = options.place(parts.collection, parts.settings), parse_discount(parts.settings.discount)
    reranker = FAStarIRReranker(options.alpha, group, options.compat, discount)
    return baseline(parts, _engine(parts, options), reranker, sees_groups=True)


def _deltr(parts: Parts, options: DELTROptions) -> System:
    named = options.place(parts.collection, parts.settings)

    def fit(pools: Mapping[str, Pool]) -> Reranker:
        group = named or _usually_lacking(pools.values(), parts.settings)
        queries = [judged_query(pool, parts.collection.qrels[topic], group) for topic, pool in pools.items()]
        return DELTRReranker(fit_deltr(queries, options.gamma, options.iterations, seed=parts.seed), group)

    return _fitted(parts, options, fit)


def _dlf(parts: Parts, options: DLFOptions) -> System:
    features = EmbeddingFeatures(parts.engines.dense(parts.folder, parts.settings, options.model))

    def fit(pools: Mapping[str, Pool]) -> Reranker:
        model = fit_dlf(tuple(pools.values()), features, options.hidden, seed=parts.seed)
        return DLFReranker(model, features, options.alpha)

    return _fitted(parts, options, fit)


def _plackett_luce(parts: Parts, options: PlackettLuceOptions) -> System:
    reranker = PlackettLuceReranker(options.alpha, parts.seed)
    return baseline(parts, _engine(parts, options), reranker, sees_groups=False)


def _run_file(parts: Parts, options: RunFileOptions) -> System:
    run = RunFile(read_run(Path(options.path), parts.collection.topics, options.tag))
    return baseline(parts, run, AsRetrieved(), sees_groups=False)


def _fitted(parts: Parts, options: Options, fit: Callable[[Mapping[str, Pool]], Reranker]) -> System:
    engine = _engine(parts, options)
    pools = training_pools(parts.collection, engine, parts.settings)
    return baseline(parts, engine, cross_fitted(pools, fit, parts.seed), sees_groups=True)


def _usually_lacking(pools: Iterable[Pool], settings: Settings) -> Place:
    """The group that lacks most in most pools, on a tie the first; DataError where none ever lacks anything."""
    discount = parse_discount(settings.discount)
    found = Counter(place for pool in pools if (place := most_lacking(pool, discount)))
    if not found:
        raise DataError("DELTR: no group lacks exposure in any training topic; name one with options: {group: ...}")
    return min(found, key=lambda place: (-found[place], place.dimension, place.group))


KINDS: dict[str, Kind] = {
    "agent": Kind(AgentOptions, _agent),
    "bm25": Kind(BM25Options, _plain),
    "rm3": Kind(RM3Options, _plain),
    "dense": Kind(DenseOptions, _plain),
    "splade": Kind(SpladeOptions, _plain),
    "cross-encoder": Kind(CrossEncoderOptions, _cross_encoder),
    "mmr": Kind(MMROptions, _mmr),
    "fa-star-ir": Kind(FAStarIROptions, _fa_star_ir),
    "deltr": Kind(DELTROptions, _deltr),
    "dlf": Kind(DLFOptions, _dlf),
    "plackett-luce": Kind(PlackettLuceOptions, _plackett_luce),
    "run-file": Kind(RunFileOptions, _run_file, indexed=False),
    "oracle": Kind(JudgedOptions, None, indexed=False, only="utility"),
    "adversarial": Kind(JudgedOptions, None, indexed=False, only="utility"),
    "okapi": Kind(BM25Options, None, indexed=False, only="fair_rag"),
    NO_RETRIEVAL: Kind(BM25Options, None, indexed=False, only="questions"),
}
"""Every kind that a file may name in `system:`. A new baseline is a builder above, its options, and a line here."""
