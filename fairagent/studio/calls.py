"""The requests of the studio's API and of agents, with their limits.

Whoever may search may not choose files or servers: of the settings only those stand here that name neither.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from fairagent.llm.prompts.template import LARGEST_TEMPLATE
from fairagent.settings import SearchOptions
from fairagent.types.clean import LONGEST_QUERY

MOST_IDS = 1000
"""Documents in a list whose exposure is measured."""
MOST_SERVED = 100
"""Documents in a ranking."""


class RequestModel(BaseModel):
    """Values of strangers: unknown keys, nan and infinity are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Choices(RequestModel):
    """Settings for one request, laid over those that the server was started with; null leaves those as they are."""

    profile: Literal["offline", "agent", "engine", "fair-qr", "fair-filter", "debias-rag"] | None = None
    n: Annotated[int, Field(ge=1, le=MOST_SERVED)] | None = None
    depth: Annotated[int, Field(ge=1, le=2000)] | None = None
    dimensions: Annotated[tuple[Annotated[str, Field(max_length=200)], ...], Field(max_length=20)] | None = None
    target: Literal["population", "uniform", "corpus", "estimated", "trec-estimated", "qrels", "trec"] | None = None
    divergence: Literal["kl", "kl-reverse", "js", "tv"] | None = None
    engine: Literal["auto", "bm25", "rm3", "dense", "fused"] | None = None
    loop: Literal["widen", "fair-qr", "none"] | None = None
    rerank: Literal["original", "fused", "exposure", "mmr", "graph", "fa-star-ir", "none"] | None = None
    filter: Literal["none", "fair"] | None = None
    generate: Literal["extractive", "llm"] | None = None

    @property
    def overrides(self) -> dict[str, Any]:
        """Those that were chosen, as settings.

        >>> Choices(n=5, loop=None).overrides
        {'n': 5}
        """
        return self.model_dump(exclude_none=True)


Query = Annotated[str, Field(max_length=LONGEST_QUERY, description="What is searched for.")]
Topic = Annotated[str, Field(max_length=500, description="A topic of the collection; its query is used without one.")]


class SearchRequest(RequestModel):
    """A query, or a topic of the collection, and settings for it."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"query": "lawyers", "settings": {"n": 5}}]})

    query: Query = ""
    topic: Topic = ""
    settings: Choices = Choices()


class ListRequest(SearchRequest, SearchOptions):
    """A search, and what this one search asks for beside the settings."""

    # Whole from the start: routes are made of it.
    model_config = ConfigDict(defer_build=False)
    n: Annotated[int, Field(ge=1, le=MOST_SERVED)] | None = Field(
        None, description=SearchOptions.model_fields["n"].description
    )

    @property
    def options(self) -> SearchOptions:
        """What it asks for; SettingsError where that cannot be."""
        return SearchOptions.of(self.model_dump(include=set(SearchOptions.model_fields), exclude_none=True))


class TracedRequest(ListRequest):
    """A search whose reply may tell how its list came about."""

    trace: bool = Field(False, description="Reply also with the steps, the texts, the engine's own list, the frontier.")


Ids = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=500)], ...],
    Field(min_length=1, description="Ids of documents as a search gives them, best first; at least one."),
]


class ExposureRequest(SearchRequest):
    """A list of documents, best first, whose exposure is measured; the query is what targets are estimated from."""

    ids: Ids


MOST_TOPICS = 10
"""Topics on which a template is tried at once: each asks the model twice."""
MOST_DOCUMENTS = 20
"""Documents that a template is filled with."""

Id = Annotated[str, Field(max_length=100, description="A shipped template's id.")]
Text = Annotated[str, Field(max_length=LARGEST_TEMPLATE, description="The template's text, head included.")]


class Draft(RequestModel):
    """A template's text that is in no file yet."""

    id: Id
    template: Text


class FilledDraft(Draft):
    """A draft, and what it is filled with: what a query or a topic finds, examples without one."""

    query: Query = ""
    topic: Topic = ""
    group: Annotated[str, Field(max_length=500, description="The group to refine for; that which lacks most.")] = ""
    documents: Annotated[int, Field(ge=1, le=MOST_DOCUMENTS)] = 3


class TrialRequest(FilledDraft):
    """A draft that is tried against another version: on a query, a topic, or several topics."""

    against: Annotated[
        str, Field(max_length=LARGEST_TEMPLATE, description="The other version's text; the shipped one's without it.")
    ] = ""
    topics: Annotated[tuple[Topic, ...], Field(max_length=MOST_TOPICS)] = ()


class SaveRequest(Draft):
    """A draft for the user's folder, whose file had the SHA-256 `was` when it was read ("": there was none)."""

    was: Annotated[str, Field(max_length=64)] = ""
