"""The public interface for parts of your own: protocols, the values they exchange, and `Part`.

Write a class with the method of a protocol, and a `Part` (a section of the settings with a `kind`) whose `build` makes
it; an entry point lets settings name it. docs/extending.md has a re-ranker, a refiner, an engine, a
measure and a kind of experiment.
"""

from fairagent.attribute.attributor import Attributor
from fairagent.evaluate.engine.kind import ExperimentKind, Measured, Opened
from fairagent.evaluate.engine.outcome import Outcome
from fairagent.evaluate.engine.systems import System, build_systems
from fairagent.evaluate.engine.tables import Table
from fairagent.filter.verdicts import Filter
from fairagent.generate.generator import Generator
from fairagent.llm import Message, Model, ModelReply, ModelRequest
from fairagent.llm.ledger import counted, in_threads, ledger
from fairagent.loop.base import Loop, LoopResult, Search
from fairagent.measures import JudgedRanking, Measure, min_max
from fairagent.prompts import Prompts
from fairagent.prompts.calls import Calls, Case
from fairagent.refine.asking import AskingConfig, AskingRefiner, template_variables
from fairagent.refine.refiner import Refiner, RefineState
from fairagent.rerank.base import Pool, Reranker, ordered
from fairagent.retrieve.base import PassageSource, Retriever, TextSource, Vocabulary
from fairagent.retrieve.dense import EmbeddingSource
from fairagent.retrieve.placed import placed
from fairagent.retrieve.relevance_model import Postings, TermSource
from fairagent.settings.parts import Part, Progress
from fairagent.site import Site
from fairagent.types import (
    Answer,
    Attribution,
    Document,
    Exposure,
    Filtered,
    Group,
    Query,
    Ranking,
    Refinement,
    Step,
    Term,
    Topic,
    Usage,
    Verdict,
)

__all__ = [
    "Answer",
    "AskingConfig",
    "AskingRefiner",
    "Attribution",
    "Attributor",
    "Calls",
    "Case",
    "Document",
    "EmbeddingSource",
    "ExperimentKind",
    "Exposure",
    "Filter",
    "Filtered",
    "Generator",
    "Group",
    "JudgedRanking",
    "Loop",
    "LoopResult",
    "Measure",
    "Measured",
    "Message",
    "Model",
    "ModelReply",
    "ModelRequest",
    "Opened",
    "Outcome",
    "Part",
    "PassageSource",
    "Pool",
    "Postings",
    "Progress",
    "Prompts",
    "Query",
    "Ranking",
    "RefineState",
    "Refinement",
    "Refiner",
    "Reranker",
    "Retriever",
    "Search",
    "Site",
    "Step",
    "System",
    "Table",
    "Term",
    "TermSource",
    "TextSource",
    "Topic",
    "Usage",
    "Verdict",
    "Vocabulary",
    "build_systems",
    "counted",
    "in_threads",
    "ledger",
    "min_max",
    "ordered",
    "placed",
    "template_variables",
]
