"""The public interface for parts, measures and kinds of experiments of your own.

Write a class with the method of a protocol, and a `Part` (a section of the settings with a `kind`) whose `build` makes
it; an entry point lets settings name it. docs/extending.md has a re-ranker, a refiner, an engine, a measure and a kind
of experiment. A package that needs names of a later version than the oldest says so (`EXTEND_VERSION`), and is refused
by an older fairagent.
"""

from fairagent.answer.answering import Attributor
from fairagent.answer.citations import OnText
from fairagent.answer.filtering import Filter
from fairagent.answer.generators import Generator
from fairagent.collection import Collection, GroupTable, load_collection
from fairagent.collection.rows import Bounds
from fairagent.collection.targets import TargetKind
from fairagent.errors import (
    BackendUnavailable,
    BudgetExceeded,
    DataError,
    FairAgentError,
    PartError,
    SettingsError,
    UsageError,
)
from fairagent.evaluate.kind import ExperimentKind, MeasureInfo, Opened
from fairagent.evaluate.outcome import Outcome
from fairagent.evaluate.plan import System, build_systems
from fairagent.evaluate.tables import Column, Table
from fairagent.llm import Message, Model, Reply, ask
from fairagent.llm.prompts import Prompts
from fairagent.measures import JudgedRanking, Measure
from fairagent.measures.parse import MeasureFamily
from fairagent.retrieve.base import Retriever, placed
from fairagent.retrieve.site import Site
from fairagent.search.loop.base import Loop, LoopResult, Search
from fairagent.search.refine import AskingConfig, AskingRefiner, Refiner, RefineState, template_variables
from fairagent.search.rerank.base import PairScorer, Pool, Reranker, ordered
from fairagent.settings import Part, SearchOptions, Section, Settings
from fairagent.settings.parts import Progress
from fairagent.settings.plugins import EXTEND_VERSION
from fairagent.types import (
    Answer,
    Attribution,
    Document,
    Exposure,
    Filtered,
    Group,
    Hit,
    Query,
    Ranking,
    Refinement,
    SearchResult,
    Term,
    Topic,
    Usage,
    Verdict,
)

__all__ = [
    "EXTEND_VERSION", "Answer", "AskingConfig", "AskingRefiner", "Attribution", "Attributor", "BackendUnavailable",
    "Bounds", "BudgetExceeded", "Collection", "Column", "DataError", "Document", "ExperimentKind", "Exposure",
    "FairAgentError", "Filter", "Filtered", "Generator", "Group", "GroupTable", "Hit", "JudgedRanking", "Loop",
    "LoopResult", "Measure", "MeasureFamily", "MeasureInfo", "Message", "Model", "OnText", "Opened", "Outcome",
    "PairScorer", "Part", "PartError", "Pool", "Progress", "Prompts", "Query", "Ranking", "RefineState",
    "Refinement", "Refiner", "Reply", "Reranker", "Retriever", "Search", "SearchOptions", "SearchResult", "Section",
    "Settings", "SettingsError", "Site", "System", "Table", "TargetKind", "Term", "Topic", "Usage", "UsageError",
    "Verdict", "ask", "build_systems", "load_collection", "ordered", "placed", "template_variables",
]  # fmt: skip
