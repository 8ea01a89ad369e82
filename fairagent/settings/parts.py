"""`Part`, the table of all kinds of parts, and how settings name them.

A part is a `Part`: a section of the settings that is identified by its `kind`, declares the prompts it uses, and builds
what does the work. Built-in kinds stand in `BUILT_IN`; other packages add theirs through entry points, e.g.

    [project.entry-points."fairagent.rerankers"]
    shuffle = "my_package:Shuffle"

Nothing is imported before a kind is used, so a broken plugin takes down only those who use it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import BeforeValidator, Field, SerializeAsAny, ValidationError, WithJsonSchema
from pydantic_core import InitErrorDetails, PydanticCustomError

from fairagent.settings import plugins
from fairagent.settings.faults import UNKNOWN_KEY, nearest, no_such, worded
from fairagent.settings.section import Section
from fairagent.types.common import Check

Progress = Callable[[str, int], None]
"""Told what is being built, and how many documents of it are done."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for a part: its name in messages, the entry point group of plugins, and the default kind."""

    what: str
    group: str
    default: str


SLOTS = {
    "engine": Slot("engine", "fairagent.engines", "auto"),
    "target": Slot("target", "fairagent.targets", "trec-estimated"),
    "loop": Slot("loop", "fairagent.loops", "widen"),
    "refine": Slot("refiner", "fairagent.refiners", "feedback"),
    "rerank": Slot("re-ranker", "fairagent.rerankers", "exposure"),
    "filter": Slot("filter", "fairagent.filters", "none"),
    "debias": Slot("debiasing", "fairagent.debiasers", "none"),
    "generate": Slot("generator", "fairagent.generators", "extractive"),
    "attribute": Slot("attributor", "fairagent.attributors", "citations"),
}

NONE = "fairagent.settings.parts:Without"
BUILT_IN: dict[str, dict[str, str]] = {
    "engine": {
        "auto": "fairagent.retrieve.fused:AutoConfig",
        "bm25": "fairagent.retrieve.bm25.part:BM25Config",
        "rm3": "fairagent.retrieve.relevance_model:RM3Config",
        "dense": "fairagent.retrieve.vectors:DenseConfig",
        "fused": "fairagent.retrieve.fused:FusedConfig",
        "run-file": "fairagent.retrieve.run_file:RunFileConfig",
        "oracle": "fairagent.retrieve.run_file:OracleConfig",
        "adversarial": "fairagent.retrieve.run_file:AdversarialConfig",
        "none": "fairagent.retrieve.run_file:EmptyConfig",
    },
    "target": {
        "population": "fairagent.collection.targets:PopulationTarget",
        "uniform": "fairagent.collection.targets:UniformTarget",
        "corpus": "fairagent.collection.targets:CorpusTarget",
        "estimated": "fairagent.collection.targets:EstimatedTarget",
        "trec-estimated": "fairagent.collection.targets:TrecEstimatedTarget",
        "qrels": "fairagent.collection.targets:QrelsTarget",
        "trec": "fairagent.collection.targets:TrecTarget",
        "given": "fairagent.collection.targets:GivenTarget",
    },
    "loop": {
        "widen": "fairagent.search.loop.config:WidenConfig",
        "fair-qr": "fairagent.search.loop.config:FairQRConfig",
        "none": NONE,
    },
    "refine": {
        "feedback": "fairagent.search.refine:FeedbackConfig",
        "llm": "fairagent.search.refine:LlmConfig",
        "grounded": "fairagent.search.refine:GroundedConfig",
        "none": NONE,
    },
    "rerank": {
        "original": "fairagent.search.rerank.relevance:OriginalConfig",
        "fused": "fairagent.search.rerank.relevance:FusedRerankConfig",
        "exposure": "fairagent.search.rerank.exposure:ExposureConfig",
        "graph": "fairagent.search.rerank.similarity:GraphConfig",
        "mmr": "fairagent.search.rerank.similarity:MMRConfig",
        "plackett-luce": "fairagent.search.rerank.relevance:PlackettLuceConfig",
        "listwise": "fairagent.search.rerank.listwise:ListwiseConfig",
        "amortized": "fairagent.search.rerank.amortized:AmortizedConfig",
        "chain": "fairagent.search.rerank.relevance:ChainConfig",
        "none": NONE,
    },
    "filter": {"fair": "fairagent.answer.filtering:FairFilterConfig", "none": NONE},
    "debias": {"none": NONE},
    "generate": {
        "extractive": "fairagent.answer.generators:ExtractiveConfig",
        "llm": "fairagent.answer.generators:LlmGeneratorConfig",
    },
    "attribute": {
        "citations": "fairagent.answer.answering:CitationConfig",
        "judge": "fairagent.answer.answering:JudgeConfig",
        "shapley": "fairagent.answer.shapley:ShapleyConfig",
        "none": NONE,
    },
}
"""Slot -> kind -> where its class is: a new part is a class in a file of its own, and a line here."""


class Part(Section):
    """A part of a pipeline as settings describe it; `build` makes what does the work.

    `site` (a `fairagent.retrieve.site.Site`) is what it is built from: the collection, the other settings, the
    models. A part may hold others, as a chain of re-rankers does; by default it passes every call on to these.
    """

    template: ClassVar[str] = ""
    """The id of the prompt template that it asks a language model with; "" where it asks with none, or several."""
    searches: ClassVar[bool] = True
    """Of an engine, whether it searches a collection's documents."""
    on_server: ClassVar[bool] = False
    """Of an engine, whether its index is on a server, where it is loaded only if somebody says so."""
    at_random: ClassVar[bool] = False
    """Of a re-ranker, whether what it gives is one draw, so that nothing else can be drawn from it."""
    of_groups: ClassVar[bool] = False
    """Whether it looks at the groups of documents, whatever its settings are."""
    kind: str

    def model_post_init(self, context: Any, /) -> None:
        """Count the kind as set: what was set, laid over other settings, is still of this kind."""
        self.model_fields_set.add("kind")

    def __str__(self) -> str:
        return self.kind

    @property
    def inner(self) -> tuple[Part, ...]:
        """The parts that it holds itself."""
        values = (getattr(self, name) for name in type(self).model_fields)
        several = (value if isinstance(value, tuple) else (value,) for value in values)
        return tuple(one for some in several for one in some if isinstance(one, Part))

    def uses(self, settings: Any) -> tuple[Part, ...]:
        """The parts in other slots of the `settings` that it uses for its work, in their order.

        Only so they are prepared and checked with it, count in estimates, and their prompts in fingerprints.
        """
        return ()

    def idle(self, settings: Any) -> bool:
        """Whether it does nothing under these `settings`, so that the pipeline goes without it."""
        return False

    def asks_with(self, settings: Any) -> tuple[str, ...]:
        """The ids of the prompt templates that it, or a part that it uses, asks with."""
        used = (id for part in self.uses(settings) for id in part.asks_with(settings))
        return tuple(dict.fromkeys((*self.templates, *used)))

    @property
    def sees_groups(self) -> bool:
        """Whether it, or a part that it holds, looks at the groups of documents."""
        return self.of_groups or any(part.sees_groups for part in self.inner)

    @property
    def tells_words(self) -> bool:
        """Whether it is an engine, or holds one, that tells the terms of its documents from an index of its own."""
        return any(part.tells_words for part in self.inner)

    @property
    def foreign(self) -> tuple[Part, ...]:
        """The engines, it or those that it holds, whose index is not fairagent's, and is searched where it is."""
        return tuple(part for inner in self.inner for part in inner.foreign)

    @property
    def templates(self) -> tuple[str, ...]:
        """The ids of the prompt templates that it asks a language model with, in the order of asking."""
        own = (self.template,) if self.template else ()
        return (*own, *(id for part in self.inner for id in part.templates))

    @property
    def files(self) -> Mapping[str, Path]:
        """Field -> file that the outcome depends on: runs remember the content and not the place."""
        inner = enumerate(self.inner)
        return {f"{number}.{name}": path for number, part in inner for name, path in part.files.items()}

    def named_documents(self, topics: Collection[str]) -> dict[str, Collection[str]]:
        """Ids of documents that it brings along for these topics, by what names them; DataError where none can be read.

        They should be the collection's.
        """
        return {what: ids for part in self.inner for what, ids in part.named_documents(topics).items()}

    def relative_to(self, folder: Path) -> Self:
        """With paths that are relative to `folder`, a settings file's, as paths from anywhere."""
        return self._with_inner(lambda part: part.relative_to(folder))

    def resolved(self, site: Any, preparing: bool = False) -> Part:
        """What the part comes to with this collection; `preparing`: once its indexes are made."""
        return self._with_inner(lambda part: part.resolved(site, preparing))

    def _with_inner(self, change: Callable[[Part], Part]) -> Self:
        """With each part that it holds changed."""

        def changed(value: Any) -> Any:
            if isinstance(value, tuple):
                return tuple(map(changed, value))
            return change(value) if isinstance(value, Part) else value

        if not self.inner:
            return self
        return self.model_copy(update={name: changed(getattr(self, name)) for name in type(self).model_fields})

    def check(self, site: Any) -> None:
        """Raise what keeps it from working with this collection, its index and what is on this machine."""
        for part in self.inner:
            part.check(site)

    def with_parts_of(self, site: Any) -> Any:
        """The site with what an engine brings of its own, such as the groups that its documents carry."""
        for part in self.inner:
            site = part.with_parts_of(site)
        return site

    def diagnose(self, site: Any) -> Iterator[Check]:
        """What `fairagent doctor` says of an index that is not fairagent's own, a line each."""
        for part in self.inner:
            yield from part.diagnose(site)

    def learned_from(self) -> Iterator[tuple[str, Sequence[str]]]:
        """(name, texts) of what it was given beforehand and no test may ask; raises what reading them does."""
        for part in self.inner:
            yield from part.learned_from()

    def expect_scores(self, needing: str) -> None:
        """Raise DataError where it is an engine whose lists have no scores, which `needing` needs."""

    def prepare(self, site: Any, progress: Progress) -> None:
        """Build the indexes that it needs and that are not there."""
        for part in self.inner:
            part.prepare(site, progress)

    def build(self, site: Any) -> Any:
        """What does the work: a `Retriever`, `Refiner`, `Reranker`, ... ; None for the kind `none`."""
        raise NotImplementedError

    def worst_case(self, case: Any) -> Iterator[Any]:
        """The most calls of a language model (`fairagent.llm.prompts.Calls`) that it makes in `case`."""
        for part in (*self.inner, *self.uses(case.settings)):
            yield from part.worst_case(case)


class Without(Part):
    """No such part."""

    kind: str = "none"

    def idle(self, settings: Any) -> bool:
        return True

    def build(self, site: Any) -> None:
        """Nothing."""

    def worst_case(self, case: Any) -> Iterator[Any]:
        return iter(())


def kinds(slot: str) -> tuple[str, ...]:
    """The kinds that may stand in a slot: the built-in ones, then those of other packages."""
    return plugins.names(BUILT_IN[slot], SLOTS[slot].group)


def shipped(slot: str) -> dict[str, str]:
    """Kind -> `module:Class` of the parts for a slot that fairagent brings, its add-ons' among them."""
    return plugins.ours(BUILT_IN[slot], SLOTS[slot].group)


def part_class(slot: str, kind: str) -> type[Part]:
    """The class of a kind; ValueError where there is none, or where the package that brings it is at fault."""
    what = SLOTS[slot].what
    part: type[Part] | None = plugins.load(what, kind, BUILT_IN[slot], SLOTS[slot].group, Part, "fairagent.extend.Part")
    if part is None:
        raise ValueError(no_such(f"{what} of kind", kind, kinds(slot)))
    return part


def part_keys(slot: str, value: Any) -> frozenset[str]:
    """The keys that a part may have, or one that settings describe in the long form; none where that is at fault."""
    if isinstance(value, Part):
        return frozenset(type(value).model_fields)
    try:
        kind = value.get("kind", SLOTS[slot].default) if isinstance(value, Mapping) else ""
        return frozenset(part_class(slot, str(kind)).model_fields)
    except ValueError:
        return frozenset()


def described(slot: str, value: Any) -> Any:
    """A part's settings in their long form: `mmr` is `{kind: mmr}`, a list of re-rankers a chain of them."""
    if isinstance(value, str):
        return {"kind": value}
    if slot == "rerank" and isinstance(value, list | tuple):
        return {"kind": "chain", "parts": list(value)}
    return value


def read_part(slot: str, value: Any) -> Part:
    """The part that settings describe; ValueError or ValidationError with every fault."""
    if isinstance(value, Part):
        return value
    values, what = described(slot, value), SLOTS[slot].what
    if not isinstance(values, Mapping):
        raise ValueError(f"expected a kind of {what}, or `kind:` and its keys")
    kind = values.get("kind", SLOTS[slot].default)
    if not isinstance(kind, str):
        raise ValueError(f"`kind` is a name; {nearest('', kinds(slot))}")
    try:
        loaded = part_class(slot, kind)
    except ValueError as error:
        # The message has the kind itself.
        raise PydanticCustomError(UNKNOWN_KEY, str(error)) from error
    try:
        return loaded.model_validate({**values, "kind": kind})
    except ValidationError as error:
        faults: list[InitErrorDetails] = []
        for fault in error.errors(include_url=False):
            loc, message = fault["loc"], worded(fault)
            type_: Any = UNKNOWN_KEY if fault["type"] == UNKNOWN_KEY else "part"
            if fault["type"] == "extra_forbidden" and len(loc) == 1:
                key, type_ = str(loc[0]), UNKNOWN_KEY
                others = [one for one in shipped(slot) if one != kind and key in part_class(slot, one).model_fields]
                known = [name for name in loaded.model_fields if name != "kind"]
                hint = f"{', '.join(others)} {'has' if len(others) == 1 else 'have'} it" if others else ""
                hint = hint or (nearest(key, known) if known else "it has none")
                message = f"unknown key of {what} {kind!r}; {hint}"
            faults.append({"type": PydanticCustomError(type_, message), "loc": loc, "input": fault["input"]})
        raise ValidationError.from_exception_data(what, faults) from None


_Part = SerializeAsAny[Part]
Engine = Annotated[_Part, BeforeValidator(partial(read_part, "engine")), WithJsonSchema({"slot": "engine"})]
Loop = Annotated[_Part, BeforeValidator(partial(read_part, "loop")), WithJsonSchema({"slot": "loop"})]
Refine = Annotated[_Part, BeforeValidator(partial(read_part, "refine")), WithJsonSchema({"slot": "refine"})]
Rerank = Annotated[_Part, BeforeValidator(partial(read_part, "rerank")), WithJsonSchema({"slot": "rerank"})]
Filter = Annotated[_Part, BeforeValidator(partial(read_part, "filter")), WithJsonSchema({"slot": "filter"})]
Debias = Annotated[_Part, BeforeValidator(partial(read_part, "debias")), WithJsonSchema({"slot": "debias"})]
Generate = Annotated[_Part, BeforeValidator(partial(read_part, "generate")), WithJsonSchema({"slot": "generate"})]
Attribute = Annotated[_Part, BeforeValidator(partial(read_part, "attribute")), WithJsonSchema({"slot": "attribute"})]
"""A field for a part, as e.g. `engine: Engine = default("engine")`."""


def default(slot: str, described: Any = None) -> Any:
    """The default of a field: what is `described`, or the slot's own kind."""
    shown = {"slot": slot, "default": described or SLOTS[slot].default}
    return Field(default_factory=partial(read_part, slot, described or {}), json_schema_extra=shown)
