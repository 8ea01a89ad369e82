"""Settings: one checked tree; a call's argument beats the environment, which beats the file, which beats the default.

`Section` is the base of every part of the tree, wherever the part is defined (a collection file uses it too).
Whatever is wrong is reported at once, each fault with its place and, for an unknown key, the nearest valid one.
"""

from __future__ import annotations

import difflib
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from fairagent.errors import SettingsError

ENV_PREFIX = "FAIRAGENT_"


class Section(BaseModel):
    """A part of the settings tree: unknown keys, nan and infinity are refused, values cannot change afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


class Retrieval(Section):
    """How the collection is indexed and searched."""

    analyzer: str = "english"
    """How texts become index terms: english, english-krovetz, english-nostem, whitespace, or a language code."""
    k1: float = Field(0.9, ge=0)
    """BM25: how fast repeated words stop counting more."""
    b: float = Field(0.4, ge=0, le=1)
    """BM25: how much long documents are held back."""
    memory: str = Field("2g", pattern=r"^\d+[kmgKMG]$")
    """The largest heap of the Java process that runs Lucene."""


class Expansion(Section):
    """Topic words from the first documents (RM3), added before the loop looks at any group."""

    documents: int = Field(50, ge=0)
    """How many of the first documents are read; 0 leaves the user's query alone."""
    terms: int = Field(200, ge=1)
    """How many words are added."""
    weight: float = Field(0.7, ge=0, lt=1)
    """Their share of the whole query's weight."""


class Feedback(Section):
    """The refiner `feedback`: words of the under-exposed group's documents."""

    documents: int = Field(50, ge=1)
    """How many of the group's documents are read."""
    terms: int = Field(20, ge=1)
    """How many words a refinement adds."""
    weight: float = Field(0.15, gt=0)
    """Their weight together, the user's query being 1."""


class Reranking(Section):
    """How the candidates are ordered at the end."""

    kind: Literal["original", "fused", "exposure"] = "exposure"
    """By the user's query (FAIR-QR), by it and the refined evidence, or by relevance and what groups lack."""
    refined: float = Field(0.5, ge=0, le=1)
    """fused: the weight of the refined queries' evidence."""
    fairness: float = Field(0.5, ge=0)
    """exposure: what a divergence of 1 nat costs, in units of mean relevance."""
    unlabeled: float = Field(1.0, ge=0)
    """exposure: what a document without a label loses, in units of relevance (0 to 1), for each dimension."""


class Sampling(Section):
    """Whether each request gets a ranking of its own, drawn at random from the re-ranked candidates (Plackett-Luce)."""

    alpha: float | None = Field(None, ge=0)
    """How closely draws keep to the final scores: 0 not at all, 8 almost exactly. Not set: nothing is drawn."""
    pool: int = Field(100, ge=1)
    """How many re-ranked candidates are drawn from; never fewer than `n`."""
    seed: int = Field(0, ge=0)
    """Another seed gives other draws; one seed gives the same ones to the same requests in the same order."""


class ModelSettings(Section):
    """The language model behind all that asks one; the key comes from OPENAI_API_KEY and is no setting."""

    name: str = ""
    """The model's name at its server."""
    base_url: str = ""
    """The server's address; empty is OPENAI_BASE_URL, or OpenAI where that is not set either."""
    temperature: float = Field(0.3, ge=0, le=2)
    """As in FAIR-QR."""
    max_tokens: int = Field(400, ge=1)
    """The longest reply."""
    timeout: float = Field(60.0, gt=0)
    """Seconds that one attempt may take."""
    deadline: float = Field(300.0, gt=0)
    """Seconds after which a request is not tried again."""
    log_prompts: bool = False
    """Whether the debug logs of openai may hold what models are asked."""
    attempts: int = Field(5, ge=1)
    """How often a request is tried in all before it is given up."""


class Price(Section):
    """What a language model costs, in US dollars for a million tokens."""

    input: float = Field(ge=0)
    """For what it reads."""
    output: float = Field(ge=0)
    """For what it writes."""

    def dollars(self, input_tokens: int, output_tokens: int) -> float:
        """The cost of so many tokens.

        >>> Price(input=2, output=10).dollars(1000, 100)
        0.003
        """
        return (input_tokens * self.input + output_tokens * self.output) / 1e6


class BudgetSettings(Section):
    """The most that all calls of a run may take together; what is not set is not limited."""

    calls: int | None = Field(None, ge=0)
    """Requests that leave, failed ones included."""
    tokens: int | None = Field(None, ge=0)
    """Tokens read and written."""
    dollars: float | None = Field(None, ge=0)
    """US dollars; the model's price has to be known."""
    seconds: float | None = Field(None, gt=0)
    """From the beginning of the run; a call that has begun is waited for."""


class Filtering(Section):
    """What is taken out of the ranking before an answer is written from it."""

    kind: Literal["none", "fair"] = "none"
    """Nothing, or with FairFilter what would bring bias into an answer that does not need it (asks the model)."""
    batch: int = Field(1, ge=1)
    """Documents that are judged in one call; 1, the paper's, is the safest."""
    workers: int = Field(8, ge=1)
    """Calls at a time."""
    utility: bool = True
    """Whether a biased document stays if the answer needs it; no is the paper's variant "Prompt"."""
    on_error: Literal["keep", "drop", "fail"] = "keep"
    """What becomes of a document that the model gives no usable verdict on."""


class Debiasing(Section):
    """What becomes of the filtered documents before an answer is written from them."""

    kind: Literal["none", "debias-rag"] = "none"
    """Nothing, or DebiasRAG: relevant contexts unlike a library of biased passages, some of them counterfactuals."""
    library: str = ""
    """The avoid library: a file of JSON lines with id, text and class. It has to be given."""
    lexicon: str = ""
    """The attribute lexicon (YAML); empty is the shipped one."""
    encoder: str = ""
    """The embedding model's folder or name; empty is the packaged one."""
    k: int = Field(3, ge=1)
    """How many contexts are kept, and how many passages of the library are avoided."""
    tau: float = Field(0.9, ge=-1, le=1)
    """A candidate nearer than this to an avoided passage (cosine) is dropped."""
    theta: tuple[float, float] = (0.5, 0.5)
    """The weights of relevance and of distance from what is avoided that the first query finds; they add up to 1."""
    rate: float = Field(1.0, ge=0)
    """The gradient step's size that is tried first; 0 leaves theta as it is."""
    streaming: bool = True
    """Whether a query finds the weights that the last one left; in experiments none does, so that order is nothing."""
    exempt_synthesized: bool = False
    """Whether counterfactual contexts, which are near the passages they are made from, are never dropped."""
    rewrites: int = Field(0, ge=0, le=10)
    """How many rewrites of each counterfactual the model is asked for; 0: its words are swapped, and no model asked."""
    scorer: str = ""
    """The local causal model that chooses the most fluent rewrite; empty takes the first."""


class ContextSettings(Section):
    """The documents that an answer is written from."""

    documents: int = Field(10, ge=1)
    """How many of the ranking's first documents; the filter may take some of them out."""
    order: Literal["rank", "reversed", "ends"] = "rank"
    """llm: the best first, the best last, or the best at both ends. Their numbers are those of the rank order."""
    tokens: int = Field(3000, ge=100, le=10_000)
    """About how long all texts together may be; longer ones are cut, and none is left out."""


class Answering(Section):
    """Who writes the answer."""

    kind: Literal["extractive", "llm"] = "extractive"
    """The best sentences of the documents as they stand, or the language model."""
    sentences: int = Field(10, ge=1)
    """extractive: how many at most, one a document."""
    length: int = Field(0, ge=0)
    """llm: how many words at most; 0 is as many as the question needs."""
    language: str = ""
    """llm: the answer's language; empty is that of the question."""
    citations: Literal["remove", "error"] = "remove"
    """llm: what becomes of the citation of a document that there is not."""


class AttributionSettings(Section):
    """How it is found out which documents the answer rests on."""

    kind: Literal["none", "citations", "nli", "judge", "embeddings"] = "citations"
    """By the answer's citations, by entailment (a local model), by asking the model, or by likeness of sentences."""
    encoder: str = ""
    """nli, embeddings: the local model's folder or name; empty is the packaged one (embeddings)."""
    threshold: float = Field(0.6, ge=-1, le=1)
    """embeddings: how alike two sentences have to be (cosine)."""


def _target(value: Any) -> Any:
    """`value`, if it has the form of a target: one message for a wrong one, not one for each branch of a union."""
    if isinstance(value, str):
        return value
    for of_dimension in value.values() if isinstance(value, Mapping) else [None]:
        shares = of_dimension.values() if isinstance(of_dimension, Mapping) else []
        if not isinstance(of_dimension, str | Mapping) or any(isinstance(share, str) for share in shares):
            raise ValueError(
                "expected the name of a target, or for each dimension a name or shares, "
                "e.g. {gender: {female: 0.5, male: 0.5}}"
            )
    return value


class Settings(Section):
    """Everything that can be set.

    A call's arguments beat FAIRAGENT_... variables, these the file, and the file the defaults.
    """

    collection: str = ""
    """The collection's settings file."""
    index: str = ""
    """The index's folder; empty is indexes/<name of the collection> in the current folder."""
    dimensions: tuple[str, ...] = ()
    """The dimensions to be fair in; empty is every dimension of the collection."""
    target: Annotated[str | dict[str, str | dict[str, float]], BeforeValidator(_target)] = "trec-estimated"
    """population, uniform, corpus, estimated, trec-estimated, or (oracles) qrels, trec; or for each dimension one of
    these or your own shares, e.g. {gender: {female: 0.5, male: 0.5}}."""
    n: int = Field(20, ge=1)
    """The ranking's length, and the cut-off at which exposure is measured."""
    depth: int = Field(500, ge=1)
    """How many documents each query retrieves; never fewer than `n`."""
    iterations: int = Field(5, ge=0)
    """How many refined queries are tried at most."""
    threshold: float = Field(0.0, ge=0)
    """The loop ends at a gap of this or less."""
    divergence: Literal["kl", "kl-reverse", "js", "tv"] = "kl"
    """How the gap between exposure and target is measured."""
    discount: str = "log2-max2"
    """The weight of a rank: log2-max2 (TREC Fair), log2-plus1, uniform, geometric(p), step(k), ends(k, middle)."""
    candidates: Literal["best", "last", "union"] = "best"
    """Which lists the re-ranker sees: the last accepted one, the last one tried, or all accepted ones."""
    refiner: Literal["feedback", "llm", "grounded", "none"] = "feedback"
    """Who proposes keywords for the under-exposed group: its documents, a language model, or a model shown them."""
    keyword_weight: float = Field(1.0, gt=0)
    """llm, grounded: the weight of one proposed keyword, a word of the user's query being 1."""
    drift: float = Field(0.3, gt=0)
    """llm, grounded: the most that the keywords of one refinement weigh together, the user's query being 1."""
    prompts: str = ""
    """Other prompt templates than the default: a shipped variant (few-shot, reasoning), or a folder of your own, in
    which each file replaces the shipped one of that name."""
    retrieval: Retrieval = Retrieval()
    expansion: Expansion = Expansion()
    feedback: Feedback = Feedback()
    reranking: Reranking = Reranking()
    sampling: Sampling = Sampling()
    filtering: Filtering = Filtering()
    debiasing: Debiasing = Debiasing()
    context: ContextSettings = ContextSettings()
    answering: Answering = Answering()
    attribution: AttributionSettings = AttributionSettings()
    model: ModelSettings = ModelSettings()
    cache: str = ".fairagent/replies"
    """The folder in which models' replies are kept, so that none is paid for twice; empty: they are not kept."""
    budget: BudgetSettings = BudgetSettings()
    prices: dict[str, Price] = Field(default={})
    """Name of a language model -> its price."""


S = TypeVar("S", bound=Section)


def load_settings(
    file: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Settings:
    """The settings of a run; raises SettingsError naming every fault of file, environment and call."""
    layers = [read_yaml(file) if file else {}, from_environment(environ), overrides or {}]
    origin = " + ".join(["settings", *([str(file)] if file else []), *_variables(environ)])
    # Sections are laid over each other, what stands in them is not: half of a target's shares would make no sense.
    return validate(Settings, merge(*layers, levels=2), origin)


def validate(model: type[S], values: Mapping[str, Any], origin: str) -> S:
    """Build `model` from `values`; raise one SettingsError that names every fault and `origin`."""
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        faults = [_explain(model, fault) for fault in error.errors(include_url=False)]
        raise SettingsError("\n".join([f"{origin}: {len(faults)} fault(s)", *faults])) from None


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML mapping; raise SettingsError where the file is missing, not YAML or not a mapping."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise SettingsError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: cannot be read ({error})") from None
    values = _yaml(text, str(path))
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise SettingsError(f"{path}: expected 'key: value' lines, found {type(values).__name__}")
    return values


def from_environment(environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Settings given as variables, whose values are YAML; SettingsError where one is not.

    >>> from_environment({"FAIRAGENT_N": "10", "FAIRAGENT_RERANKING__KIND": "fused", "HOME": "/root"})
    {'n': 10, 'reranking': {'kind': 'fused'}}
    """
    layers: list[dict[str, Any]] = []
    for name in _variables(environ):
        value = _yaml(environ[name], name)
        for part in reversed(name[len(ENV_PREFIX) :].lower().split("__")):
            value = {part: value}
        layers.append(value)
    return merge(*layers)


def merge(*layers: Mapping[str, Any], levels: float = math.inf) -> dict[str, Any]:
    """Lay nested mappings over each other; later layers win, key by key down to `levels`, below that as a whole."""
    merged: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            below = merged.get(key)
            nested = levels > 1 and isinstance(value, Mapping) and isinstance(below, Mapping)
            merged[key] = merge(below, value, levels=levels - 1) if nested else value  # type: ignore[arg-type]
    return merged


def _variables(environ: Mapping[str, str]) -> list[str]:
    return sorted(name for name in environ if name.startswith(ENV_PREFIX))


def _yaml(text: str, origin: str) -> Any:
    try:
        return yaml.safe_load(text)
    # Besides its own errors, PyYAML lets through those of the values it makes, such as a date in month 13.
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise SettingsError(f"{origin}: not valid YAML: {' '.join(str(error).split())}") from None


def _explain(model: type[BaseModel], fault: Any) -> str:
    place = ".".join(str(part) for part in fault["loc"]) or "(top)"
    if fault["type"] != "extra_forbidden":
        given = "" if isinstance(fault["input"], Mapping) else f" (got {fault['input']!r})"
        return f"  {place}: {fault['msg']}{given}"
    names = _field_names(model, fault["loc"][:-1])
    near = difflib.get_close_matches(str(fault["loc"][-1]), names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(names) or 'nothing'}"
    return f"  {place}: unknown key; {hint}"


def _field_names(model: type[BaseModel], loc: tuple[str | int, ...]) -> list[str]:
    """The keys that are valid at `loc`, found by walking through the field annotations."""
    candidates: list[Any] = [model]
    for part in loc:
        found: list[Any] = []
        for candidate in candidates:
            field = candidate.model_fields.get(part)
            # A part that is no field is a mapping key, a list index or a union's tag: stay on the level.
            found.extend(_models_in(field.annotation) if field else [candidate])
        candidates = found
    return sorted({name for candidate in candidates for name in candidate.model_fields})


def _models_in(annotation: Any) -> list[Any]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in getattr(annotation, "__args__", ()) for model in _models_in(part)]
