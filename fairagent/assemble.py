"""Putting an agent together from settings: the one place that knows all parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairagent.agent import FairAgent
from fairagent.collection import Collection, load_collection
from fairagent.errors import SettingsError, UsageError
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
from fairagent.retrieve.passages import LucenePassages
from fairagent.retrieve.relevance_model import TermSource
from fairagent.settings import Settings, load_settings, merge

if TYPE_CHECKING:
    from fairagent.answer import Answerer
    from fairagent.attribute import Attributor
    from fairagent.debias.stage import DebiasRAG
    from fairagent.filter import Filter
    from fairagent.generate import Generator
    from fairagent.llm import Model
    from fairagent.llm.models import Models
    from fairagent.prompts import Prompts
    from fairagent.refine.asking import AskingRefiner


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
    return make_agent(loaded, retriever, chosen, retriever)


def make_agent(collection: Collection, retriever: Retriever, settings: Settings, terms: TermSource) -> FairAgent:
    """The agent that the settings describe, over an engine that is open; it learns words from `terms`.

    Whatever asks a model asks it through one door: the settings' budget holds for all of it together.
    """
    from fairagent.llm.models import Models

    models = Models.of(settings)
    return FairAgent(
        collection,
        retriever,
        make_refiner(settings, terms, models),
        make_reranker(settings, retriever),
        settings,
        cache(partial(make_answerer, settings, retriever, models)),
    )


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


def open_retriever(collection: Collection, folder: Path, settings: Settings) -> LuceneRetriever | LucenePassages:
    """BM25 over the collection's index, which must have been built from it as it is now.

    Of a collection in passages it ranks documents, by their best passage.
    """
    retrieval = settings.retrieval
    engine = LuceneRetriever(folder, collection, retrieval.analyzer, retrieval.k1, retrieval.b, retrieval.memory)
    return LucenePassages(engine) if collection.chunks else engine


def make_refiner(settings: Settings, terms: TermSource, models: Models | None = None) -> Refiner:
    """The refiner that the settings name; it learns from `terms`, which the engine mostly is.

    `models` (unless told otherwise, those of the settings) opens its model.
    """
    if settings.refiner == "none":
        return NoRefiner()
    if settings.refiner == "feedback":
        return _feedback(settings, terms)
    from fairagent.llm.models import Models

    return asking_refiner((models or Models.of(settings)).open(settings.model), settings, terms)


def asking_refiner(model: Model, settings: Settings, terms: TermSource) -> AskingRefiner:
    """The refiner `grounded`, where the settings name it, else `llm`; it asks `model`."""
    from fairagent.prompts import Prompts
    from fairagent.refine.grounded import GroundedRefiner
    from fairagent.refine.llm import LlmRefiner

    prompts, weight, drift = Prompts(settings.prompts), settings.keyword_weight, settings.drift
    if settings.refiner == "grounded":
        return GroundedRefiner(model, prompts, _feedback(settings, terms), weight, drift)
    return LlmRefiner(model, prompts, weight, drift)


def _feedback(settings: Settings, terms: TermSource) -> FeedbackRefiner:
    feedback = settings.feedback
    return FeedbackRefiner(terms, feedback.documents, feedback.terms, feedback.weight)


def make_reranker(settings: Settings, retriever: Retriever) -> Reranker:
    """The re-ranker that the settings name."""
    chosen = settings.reranking
    if chosen.kind == "original":
        return OriginalReranker(retriever)
    if chosen.kind == "fused":
        return FusedReranker(retriever, chosen.refined)
    return ExposureReranker(chosen.fairness, chosen.unlabeled, parse_discount(settings.discount))


def make_answerer(settings: Settings, retriever: Retriever, models: Models | None = None) -> Answerer:
    """What turns a ranking into an answer, as the settings say; `models` is as in `make_refiner`.

    Raises SettingsError where no model is named that is asked for, BackendUnavailable without a key or a local model.
    """
    # Here and not above: who searches alone needs none of it.
    from fairagent.answer import Answerer
    from fairagent.llm.models import Models
    from fairagent.prompts import Prompts

    opened = models or Models.of(settings)
    prompts = Prompts(settings.prompts)

    def model() -> Model:
        return opened.open(settings.model)

    return Answerer(
        _generator(settings, retriever, model, prompts),
        make_filter(settings, model, prompts),
        make_attributor(settings, model, prompts),
        settings.context.documents,
        settings.context.tokens,
        make_debiasing(settings, model, prompts),
    )


def make_filter(settings: Settings, model: Callable[[], Model], prompts: Prompts) -> Filter | None:
    """The filter that the settings name, if any; it asks what `model` opens."""
    from fairagent.filter import FairFilter

    chosen = settings.filtering
    if chosen.kind == "none":
        return None
    return FairFilter(model(), prompts, chosen.batch, chosen.workers, chosen.utility, chosen.on_error)


def make_debiasing(settings: Settings, model: Callable[[], Model], prompts: Prompts) -> DebiasRAG | None:
    """The debiasing that the settings name, if any; it asks what `model` opens where it rewrites.

    Raises SettingsError where no library is named, DataError with every fault of library and lexicon.
    """
    chosen = settings.debiasing
    if chosen.kind == "none":
        return None
    from fairagent.debias.avoid import AvoidIndex, read_avoid
    from fairagent.debias.lexicon import load_lexicon
    from fairagent.debias.stage import DebiasRAG
    from fairagent.debias.synthesis import Rewriter
    from fairagent.debias.theta import Theta
    from fairagent.likelihood.causal import CausalModel
    from fairagent.retrieve.encoder import BUNDLED, open_encoder

    if not chosen.library:
        raise SettingsError(
            "debiasing.kind is debias-rag, which needs passages to avoid: name their file as "
            "`debiasing: {library: ...}`"
        )
    theta = Theta(chosen.theta, chosen.rate, chosen.streaming)
    lexicon, passages = load_lexicon(chosen.lexicon), read_avoid(chosen.library)
    encoder = open_encoder(chosen.encoder or BUNDLED)
    scorer = CausalModel(chosen.scorer) if chosen.scorer and chosen.rewrites else None
    rewriter = Rewriter(model(), prompts, chosen.rewrites, scorer) if chosen.rewrites else None
    index, exempt = AvoidIndex(passages, lexicon, encoder), chosen.exempt_synthesized
    return DebiasRAG(index, lexicon, encoder, chosen.k, chosen.tau, theta, rewriter, exempt)


def _generator(settings: Settings, retriever: Retriever, model: Callable[[], Model], prompts: Prompts) -> Generator:
    from fairagent.generate import ExtractiveGenerator, LlmGenerator

    chosen = settings.answering
    if chosen.kind == "llm":
        order = settings.context.order
        return LlmGenerator(model(), prompts, order, chosen.citations, chosen.length, chosen.language)
    if isinstance(retriever, TermSource):
        return ExtractiveGenerator(chosen.sentences, retriever.analyze)
    return ExtractiveGenerator(chosen.sentences)


def make_attributor(settings: Settings, model: Callable[[], Model], prompts: Prompts) -> Attributor | None:
    """The attributor that the settings name, if any; it asks what `model` opens."""
    from fairagent.attribute import CitationAttributor, EmbeddingAttributor, JudgeAttributor, NliAttributor
    from fairagent.retrieve.encoder import BUNDLED, open_encoder

    chosen = settings.attribution
    if chosen.kind == "none":
        return None
    if chosen.kind == "citations":
        return CitationAttributor()
    if chosen.kind == "judge":
        return JudgeAttributor(model(), prompts)
    if chosen.kind == "embeddings":
        return EmbeddingAttributor(open_encoder(chosen.encoder or BUNDLED), chosen.threshold)
    if not chosen.encoder:
        raise SettingsError(
            "attribution.kind is nli, which needs a local model for natural language inference: give its folder, or "
            "its name in the Hugging Face cache, as `attribution: {encoder: ...}`"
        )
    return NliAttributor(chosen.encoder)
