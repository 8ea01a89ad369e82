"""`Settings`, the checked settings of a pipeline, merged from defaults, profiles, file, environment and call.

A call's arguments beat FAIRAGENT_... variables, these the file, and the file the defaults. A layer that names a
`profile` (a set of settings that is shipped, e.g. a paper's system) has that profile's values right below its own.
`SearchOptions` is what one search may ask for, whichever door it comes through: Python's keywords, the command line's
options, the studio's API and the tools for agents are all made of this model.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypedDict

from pydantic import BeforeValidator, Field, SerializeAsAny, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from fairagent.errors import SettingsError
from fairagent.settings import parts
from fairagent.settings.faults import UNKNOWN_KEY, no_such, worded
from fairagent.settings.parts import SLOTS, Part, default, described, part_keys, read_part
from fairagent.settings.section import Label, Section, merge, nested, parse_yaml, read_yaml, validate
from fairagent.types import Dial

FOLDER = Path(__file__).resolve().parents[1] / "profiles"
ENV_PREFIX = "FAIRAGENT_"
TOKEN = "FAIRAGENT_TOKEN"
"""No setting, but the token of `fairagent serve`."""
DEFAULT_RERANK = [{"kind": "graph"}, {"kind": "exposure"}]


def profiles() -> tuple[str, ...]:
    """The names of all profiles."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))


def read_profile(name: str) -> dict[str, Any]:
    """What a profile sets; SettingsError where there is none of this name."""
    if name not in profiles():
        raise SettingsError(no_such("profile", name, profiles()))
    return read_yaml(FOLDER / f"{name}.yaml")


class SelfDebiasSettings(Section):
    """Self-Debias (Schick et al., 2021): what a model rather says when prompted to be biased becomes less likely."""

    kinds: tuple[str, ...] = Field(("gender", "race/color", "religion"), min_length=1)
    """The kinds of bias that it is prompted for, each in a sentence of its own."""
    decay: float = Field(50.0, ge=0)
    """How fast probabilities fall; 0 changes nothing."""
    least: float = Field(0.01, gt=0, le=1)
    """The least share of itself that a probability keeps."""


class ModelSettings(Section):
    """The language model for all parts that call one; its key comes from OPENAI_API_KEY and is not a setting."""

    name: str = ""
    """The model's name at its server."""
    base_url: str = ""
    """The server's address, e.g. http://localhost:8000/v1; empty: OPENAI_BASE_URL, or OpenAI if that is not set."""
    temperature: float = Field(0.3, ge=0, le=2)
    """The sampling temperature; the default is that of FAIR-QR."""
    max_tokens: int = Field(400, ge=1)
    """The longest reply, in tokens; one that judges several documents may have 80 for each."""
    context: int | None = Field(None, ge=1)
    """The longest prompt and reply together that the server takes, in tokens; a longer one is not sent."""
    timeout: float = Field(60.0, gt=0)
    """The longest time of one attempt, from connecting to the last byte, in seconds; of an answer that is streamed, the
    longest wait for more of it."""
    deadline: float = Field(300.0, gt=0)
    """The longest time of a request with all its attempts and waits, in seconds."""
    log_prompts: bool = False
    """Whether the debug logs of the package openai may contain prompts."""
    attempts: int = Field(5, ge=1)
    """The largest number of attempts of a request, the first included."""


class Price(Section):
    """The price of a language model, in US dollars per million tokens."""

    input: float = Field(ge=0)
    """US dollars per million tokens of prompts."""
    output: float = Field(ge=0)
    """US dollars per million tokens of replies."""
    cached: float | None = Field(None, ge=0)
    """US dollars per million tokens of prompts that the server had cached; not set: as other tokens of prompts."""

    def dollars(self, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> float:
        """The cost of so many tokens, `cached_tokens` of them of the input.

        >>> Price(input=2, output=10).dollars(1000, 100), Price(input=2, output=10, cached=0.5).dollars(1000, 100, 800)
        (0.003, 0.0018)
        """
        cheaper = 0.0 if self.cached is None else cached_tokens * (self.input - self.cached)
        return (input_tokens * self.input - cheaper + output_tokens * self.output) / 1e6


def cost_of(price: Price | None, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> float | None:
    """US dollars for so many tokens; None where the price is not known, but nothing costs nothing.

    >>> cost_of(None, 0, 0), cost_of(None, 5, 0), cost_of(Price(input=2, output=10), 1000, 100)
    (0.0, None, 0.003)
    """
    if not input_tokens and not output_tokens:
        return 0.0
    return price.dollars(input_tokens, output_tokens, cached_tokens) if price else None


class BudgetSettings(Section):
    """Limits on all model calls of a run together; what is not set is not limited."""

    calls: int | None = Field(None, ge=0)
    """The number of requests sent, failed ones included."""
    tokens: int | None = Field(None, ge=0)
    """The number of tokens in prompts and replies."""
    dollars: float | None = Field(None, ge=0)
    """The cost in US dollars; the model's price has to be known."""
    seconds: float | None = Field(None, gt=0)
    """The time from the start of the run, in seconds; a call that has started is not cut off."""


class Expansion(Section):
    """Topic words from the first documents (RM3), added before the loop looks at any group."""

    documents: int = Field(0, ge=0)
    """How many of the first documents the words are taken from, e.g. 50; 0: the query is not expanded."""
    terms: int = Field(200, ge=1)
    """How many words are added. More widen the query and slow the search down."""
    weight: float = Field(0.7, ge=0, lt=1)
    """The share of the added words in the weight of the whole query, 0 to below 1. Larger values rely less on the
    user's words."""


class FeedbackSettings(Section):
    """What the first documents have in common, whoever they are about, in the relevance of all (by their vectors)."""

    mix: float = Field(0.5, ge=0, lt=1)
    """The share of the first documents in the query's vector, 0 to below 1; 0: there is no feedback. Larger values lead
    further from the user's words."""
    documents: int = Field(20, ge=1)
    """How many of the first documents the mean is taken of."""
    longest: int = Field(4, ge=0)
    """How many words a query has at most, stop words aside, that is ordered so: short queries name broad topics."""


class Sampling(Section):
    """Whether each request gets a ranking of its own, drawn at random from the re-ranked candidates (Plackett-Luce)."""

    alpha: float | None = Field(None, ge=0)
    """How closely draws keep to the final scores: 0 not at all, 8 almost exactly. Not set: nothing is drawn."""
    pool: int = Field(100, ge=1)
    """How many re-ranked candidates are drawn from; never fewer than `n`."""
    seed: int = Field(0, ge=0)
    """Another seed gives other draws; one seed gives the same ones to the same requests in the same order."""


class ContextSettings(Section):
    """The documents that an answer is written from."""

    documents: int = Field(10, ge=1)
    """How many of the ranking's documents, the first ones or, balanced, of all `n`; the filter may remove some."""
    order: Literal["balanced", "rank", "reversed", "ends"] = "rank"
    """balanced: what the groups still lack of the target weighs for the next document, so that every beginning of the
    context is near it; citation numbers follow this order. Else they follow the ranks, and `generate: llm` is shown the
    best first, last, or at both ends."""
    tokens: int = Field(3000, ge=100, le=10_000)
    """The estimated length of all texts together, in tokens; long texts are cut, and none is left out. Of a balanced
    context the last documents are left out where less than 100 tokens of each would be read."""


class CitationSettings(Section):
    """What the documents that an answer cites give the groups."""

    aim: bool = False
    """Whether the citations are to come near the search's target, as far as support allows: `generate: extractive`
    chooses its sentences for that, and `generate: llm` may write its answer once more, told which sources it has not
    used. A plain answer is written as well, and of the two the one whose citations have the larger J is given."""
    loss: float = Field(0.1, ge=0, lt=1)
    """`generate: extractive`: how much of the best sentences' summed scores may be given up for it, as a share."""
    tolerance: float = Field(0.02, ge=0)
    """`generate: llm`: the gap (in the unit of `divergence`) up to which the citations are left as they are."""


FORMS = "expected the name of a target, or for each dimension a name or shares, e.g. {gender: {female: 0.5, male: 0.5}}"


def _target(value: Any) -> Any:
    """None; or a target by its name or its settings, or one for each dimension; shares stand for the target `given`."""
    if value is None:
        return None
    if isinstance(value, str | Part) or (isinstance(value, Mapping) and isinstance(value.get("kind"), str)):
        return read_part("target", value)
    if not isinstance(value, Mapping):
        raise ValueError(FORMS)
    targets: dict[str, Part] = {}
    faults: list[InitErrorDetails] = []
    for dimension, one in value.items():
        if not isinstance(one, str | Mapping | Part):
            raise ValueError(FORMS)
        if isinstance(one, Mapping) and "kind" not in one:
            if any(isinstance(share, str | Mapping) for share in one.values()):
                raise ValueError(FORMS)
            one = {"kind": "given", "shares": one}
        try:
            targets[str(dimension)] = read_part("target", one)
        except ValidationError as error:
            for fault in error.errors():
                message = PydanticCustomError(fault["type"], worded(fault))
                faults.append({"type": message, "loc": (str(dimension), *fault["loc"]), "input": fault["input"]})
        except ValueError as error:
            message = PydanticCustomError(UNKNOWN_KEY, str(error))
            faults.append({"type": message, "loc": (str(dimension),), "input": one})
    if faults:
        raise ValidationError.from_exception_data("target", faults)
    return targets


Unknown = Literal["share", "ignore"] | Annotated[float, Field(ge=0, le=1)]
"""What documents without a label should get: see `Settings.unknown`."""
Target = Annotated[SerializeAsAny[Part] | dict[str, SerializeAsAny[Part]] | None, BeforeValidator(_target)]
"""None: nobody chose one."""


class Settings(Section):
    """Everything that can be set."""

    profile: str = ""
    """A shipped set of settings that these are laid over: `fairagent config --profile NAME` shows one. None named:
    agent where `model` has a name, else offline."""
    collection: str = ""
    """The collection's settings file."""
    index: str = ""
    """The index's folder; empty is indexes/<name of the collection> in the current folder."""
    analyzer: str = "english"
    """How texts become index terms: english, english-nostem, whitespace, snowball-german (or another language); with
    the extra `lucene` english-krovetz, or the code of a language that Lucene analyzes (de, zh ...)."""
    dimensions: tuple[str, ...] = ()
    """The dimensions to be fair in; empty is every dimension of the collection."""
    target: Target = Field(None, json_schema_extra={"slot": "target"})
    """population, uniform, corpus, estimated, trec-estimated, or (oracles) qrels, trec; or for each dimension one of
    these or your own shares, e.g. {gender: {female: 0.5, male: 0.5}}. Not set: the collection's own, else
    trec-estimated where it has a population, else a search asks for one."""
    unknown: Unknown = "share"
    """What documents without a label should get of the exposure, in each dimension. share: what they have in the first
    `n` of the engine's own list, so that fairness neither hides nor favors them. ignore: they do not count. A number: a
    share of your own (0 to 1)."""
    n: int = Field(20, ge=1)
    """The ranking's length, and the cut-off at which exposure is measured."""
    depth: int = Field(500, ge=1)
    """How many documents each query retrieves; never fewer than `n`. More give the loop and the re-ranker more to
    choose from, and take longer."""
    iterations: int = Field(5, ge=0)
    """`loop: fair-qr`: how many refined queries are tried at most; 0: there is no loop."""
    threshold: float = Field(0.0, ge=0)
    """The loop ends at a gap of this or less, in the unit of `divergence`. Larger values end it sooner."""
    divergence: Literal["js", "kl", "kl-reverse", "tv"] = "js"
    """How the gap between exposure and target is measured: js (Jensen-Shannon, as AWRF), kl, KL(exposure || target),
    kl-reverse, all in nats, or tv (total variation, 0 to 1)."""
    discount: str = "log2-max2"
    """The weight of a rank: log2-max2 (TREC Fair), log2-plus1, uniform, geometric(p), step(k), given(1, w, ...)."""
    candidates: Literal["best", "last", "union"] = "best"
    """`loop: fair-qr`: which lists the re-ranker sees: the last accepted one (best), the last one tried (last), or all
    accepted ones (union)."""
    engine: parts.Engine = default("engine")
    """What searches: auto (BM25 and vector search fused, where that can be had), bm25, rm3, dense, splade, fused ..."""
    encoder: str = Field("light", min_length=1)
    """What makes the vectors of documents and queries where an engine names none itself: light (made of the index in
    seconds, nothing to install), minilm, or any that `engine: dense` knows."""
    expansion: Expansion = Expansion.model_construct()
    feedback: FeedbackSettings = FeedbackSettings.model_construct()
    loop: parts.Loop = default("loop")
    """How a search goes on from its first results: widen (more candidates of groups that lack them), fair-qr (the
    paper's, with `refine`), or none."""
    types: float = Field(0.3, ge=0)
    """The weight of the types of documents (is this query about persons at all?) in their relevance, in units of it (0
    to 1); 0: they do not count. Larger values lift documents of the type that has labels."""
    refine: parts.Refine = default("refine")
    """`loop: fair-qr`: who proposes keywords for the under-exposed group: feedback (its documents), llm (a language
    model), grounded (a model that is shown them); none: there is no loop."""
    rerank: parts.Rerank = default("rerank", DEFAULT_RERANK)
    """How the candidates are ordered at the end: original (the user's query), fused, exposure, mmr, fa-star-ir, ...; a
    list is a chain, each re-ranking what the one before it gives; none: as the engine has them. Keys without a kind,
    e.g. rerank.fairness=1, are those of the last part of the chain that has them."""
    sampling: Sampling = Sampling.model_construct()
    filter: parts.Filter = default("filter")
    """What is removed from the ranking before an answer is written: none, or fair (FairFilter)."""
    debias: parts.Debias = default("debias")
    """How contexts are debiased after the filter: none, or debias-rag."""
    context: ContextSettings = ContextSettings.model_construct()
    citations: CitationSettings = CitationSettings.model_construct()
    generate: parts.Generate = default("generate")
    """Who writes the answer: extractive (the documents' sentences), or llm."""
    attribute: parts.Attribute = default("attribute")
    """How the documents that the answer rests on are determined: citations, nli, judge, or none."""
    prompts: str = ""
    """Other prompt templates than the default: a shipped variant (few-shot, reasoning), or a folder of your own, in
    which each file replaces the shipped one of that name."""
    model: ModelSettings = ModelSettings.model_construct()
    cache: str = ".fairagent/replies"
    """The folder that caches the replies of models, so that none is paid for twice; empty: no cache."""
    budget: BudgetSettings = BudgetSettings.model_construct()
    prices: dict[str, Price] = Field(default={})
    """Name of a language model -> its price."""

    @model_validator(mode="before")
    @classmethod
    def _over_profile(cls, values: Any) -> Any:
        """The profile's values right below those that are given, also where settings are made by hand."""
        return lay(values) if isinstance(values, Mapping) else values

    @property
    def given(self) -> Laid:
        """What was set and is not just a default: a layer for `lay`."""
        return Laid({name: getattr(self, name) for name in type(self).model_fields if name in self.model_fields_set})

    @property
    def loops(self) -> bool:
        """Whether queries are refined."""
        return not self.loop.idle(self)

    @property
    def sees_groups(self) -> bool:
        """Whether a ranking depends on the documents' groups."""
        return self.loops or self.rerank.sees_groups


def load_settings(
    file: Path | None = None, overrides: Mapping[str, Any] | None = None, environ: Mapping[str, str] | None = None
) -> Settings:
    """The settings of a run; raises SettingsError naming every fault of file, environment and call.

    Where none of them names a profile, that of `default_profile` does.
    """
    environ = os.environ if environ is None else environ
    layers = [read_yaml(file) if file else {}, from_environment(environ), overrides or {}]
    variables = sorted(name for name in environ if name.startswith(ENV_PREFIX) and name != TOKEN)
    origin = " + ".join(["settings", *([str(file)] if file else []), *variables])
    default = default_profile(layers)
    if default == "agent":
        return validate(Settings, lay({"profile": default}, *layers), origin)
    # The defaults are those of the profile offline.
    return validate(Settings, lay(*layers, Laid(profile=default) if default else {}), origin)


def default_profile(layers: Sequence[Mapping[str, Any]]) -> str:
    """The profile where no layer names one: agent if a language model is named, else offline.

    "" where a layer names one, or is laid already.

    >>> default_profile([{"model": {"name": "gpt-4o"}}]), default_profile([{"n": 5}])
    ('agent', 'offline')
    """
    if any(isinstance(layer, Laid) or layer.get("profile") for layer in layers):
        return ""
    models = (layer.get("model") for layer in layers)
    named = [one["name"] for one in models if isinstance(one, Mapping) and "name" in one]
    return "agent" if named and named[-1] else "offline"


class Laid(dict[str, Any]):
    """Merged settings, which contain what their profile sets."""


def lay(*layers: Mapping[str, Any]) -> Laid:
    """Lay settings over each other, each layer's profile right below it.

    Sections are laid over each other key by key, but a part of another `kind` takes the place of the one below it as a
    whole. Keys without a `kind` over a chain of re-rankers are those of its last part that has them. Raises
    SettingsError for a profile that there is not.
    """
    merged = Laid()
    for layer in layers:
        profile = "" if isinstance(layer, Laid) else layer.get("profile")
        for values in (read_profile(profile) if isinstance(profile, str) and profile else {}, layer):
            merged |= {key: _laid(key, merged.get(key), value) for key, value in values.items()}
    return merged


def _laid(key: str, below: Any, above: Any) -> Any:
    """One setting over what is below it."""
    if key in SLOTS:
        above = described(key, above)
    if key == "rerank" and below is None:
        below = {"kind": "chain", "parts": DEFAULT_RERANK}
    if isinstance(below, Section) and isinstance(above, Mapping):
        below = below.model_dump(exclude_unset=True)
    if not (isinstance(below, Mapping) and isinstance(above, Mapping)):
        return above
    if key == "target":
        # Of each dimension its own; a target for all dimensions takes the place of whatever there was.
        return above if "kind" in above or "kind" in below else {**below, **above}
    if key in SLOTS and above.get("kind", kind := below.get("kind", SLOTS[key].default)) != kind:
        return above
    chain = below.get("parts")
    if isinstance(chain, list | tuple) and chain and not {"kind", "parts"} & set(above):
        # Each key is that of the last re-ranker of the chain that has it, or else of the last one.
        laid = [described("rerank", part) for part in chain]
        known = [part_keys("rerank", part) for part in laid]
        for name, value in above.items():
            place = max((place for place, keys in enumerate(known) if name in keys), default=len(laid) - 1)
            laid[place] = _laid("rerank", laid[place], {name: value})
        return {**below, "parts": laid}
    # What stands in a section is not laid over: half of a list would make no sense.
    return {**below, **above}


def from_environment(environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Settings given as variables, whose values are YAML; SettingsError where one is not.

    >>> from_environment({"FAIRAGENT_N": "10", "FAIRAGENT_RERANK__KIND": "fused", "HOME": "/root"})
    {'n': 10, 'rerank': {'kind': 'fused'}}
    """
    environ = os.environ if environ is None else environ
    return merge(
        *(
            long_form(name[len(ENV_PREFIX) :].lower().split("__"), environ[name], name)
            for name in sorted(environ)
            if name.startswith(ENV_PREFIX) and name != TOKEN
        )
    )


def long_form(keys: Sequence[str], text: str, origin: str) -> dict[str, Any]:
    """A setting that is given as a YAML text; a part in its long form, so that others can say more of it."""
    value = nested(keys, parse_yaml(text, origin), origin)
    return {name: described(name, part) if name in SLOTS else part for name, part in value.items()}


Value = bool | int | float | str
Share = Annotated[float, Field(ge=0, le=1)]


class SearchOptions(Section):
    """What one search asks for, laid over the settings; what is not given stays as these say."""

    n: int | None = Field(
        None, ge=1, description="The ranking's length in documents, and the cut-off at which exposure is measured."
    )
    fairness: float | None = Field(
        None,
        ge=0,
        description="What a gap of 1 to the targets costs, in units of mean relevance (0 to 1): 0 orders by relevance "
        "alone, larger values are fairer and less relevant. For re-rankers with this dial, as `exposure`, the default.",
    )
    keep: float | None = Field(
        None,
        ge=0,
        le=1,
        description="In the place of `fairness`: the share of the relevance to keep (0 to 1), for the fairest list "
        "that keeps it.",
    )
    gap: float | None = Field(
        None,
        ge=0,
        description="In the place of `fairness`: the gap that is small enough, for the most relevant list within it.",
    )
    unknown: Unknown | None = Field(
        None,
        description="What documents without a label should get of the exposure. share: what they have in the engine's "
        "own list. ignore: they do not count. A number: a share of your own (0 to 1).",
    )
    shares: dict[str, dict[Label, Share]] | None = Field(
        None,
        description="Dimension -> group -> the share of the exposure that it should get (0 to 1); those of a dimension "
        "add up to 1. Dimensions that are not named keep their target.",
    )
    where: dict[str, Value | Annotated[tuple[Value, ...], Field(min_length=1)]] | None = Field(
        None,
        description="Column of the documents, or dimension of groups -> the value that a document must have, or a list "
        "of values of which it must have one; of several columns each. A text also stands for the number that it "
        "reads as.",
    )

    def __hash__(self) -> int:
        return hash(self.model_dump_json())

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """The options of these values; SettingsError with every fault."""
        return validate(cls, values, "the options of a search")

    @model_validator(mode="after")
    def _one_dial(self) -> Self:
        Dial(self.keep, self.gap, self.fairness).check()
        return self

    @property
    def dial(self) -> Dial | None:
        """Which list of the frontier is asked for; None where that is left to the settings."""
        dial = Dial(self.keep, self.gap, self.fairness)
        return None if dial == Dial() else dial

    @property
    def given(self) -> dict[str, Any]:
        """Those that are not left to the settings.

        >>> SearchOptions(n=5, fairness=None).given
        {'n': 5}
        """
        return self.model_dump(exclude_none=True)

    def over(self, settings: Settings, dimensions: Sequence[str] = ()) -> Settings:
        """The settings of a search in a collection with these `dimensions`; SettingsError where they do not fit.

        `where` is no setting: it changes what the engine looks at.

        >>> SearchOptions(n=5, fairness=2).over(Settings()).rerank.parts[-1].fairness
        2.0
        """
        layer = {name: value for name, value in self.given.items() if name in ("n", "unknown")}
        if self.dial is not None:
            name, rerank = next(name for name in self.given if name in Dial._fields), settings.rerank
            if not any(name in type(part).model_fields for part in getattr(rerank, "parts", (rerank,))):
                what = f"{name}: the re-ranker `{rerank}` has no such dial"
                raise SettingsError(f"{what}; search with `rerank: [graph, exposure]`, the default")
            layer["rerank"] = self.dial._asdict()
        if self.shares is not None:
            below = settings.target
            # A target for all dimensions stays that of those without shares of their own.
            others = dict.fromkeys(dimensions, below) if isinstance(below, Part) else below or {}
            layer["target"] = {**others, **self.shares}
        return validate(Settings, lay(settings.given, layer), "the options of a search") if layer else settings


class OptionValues(TypedDict, total=False):
    """`SearchOptions` as the keywords of a call."""

    n: int | None
    fairness: float | None
    keep: float | None
    gap: float | None
    unknown: Unknown | None
    shares: Mapping[str, Mapping[str, float]] | None
    where: Mapping[str, Value | Sequence[Value]] | None
