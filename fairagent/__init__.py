"""Search and RAG that give groups (of people, places, sources ...) their fair share of exposure.

Start with `open_agent(collection).search(query)`. Importing the package loads nothing heavy: each public name is
fetched from its module when it is first used.
"""

from __future__ import annotations

from importlib import import_module

from fairagent.types.common import Recorded

# As `typing` has it, whose import takes longer than all of this.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fairagent.collection import Collection, GroupTable, Target, load_collection, make_target
    from fairagent.collection.demo import write_demo, write_people
    from fairagent.errors import (
        BackendUnavailable,
        BudgetExceeded,
        DataError,
        FairAgentError,
        ModelError,
        SettingsError,
        UsageError,
    )
    from fairagent.retrieve.bm25.search import BM25Retriever
    from fairagent.search.agent import FairAgent
    from fairagent.search.hits import FairHits, fair_rerank
    from fairagent.search.pipeline import build_index, open_agent, open_in_memory
    from fairagent.settings import Settings, load_settings
    from fairagent.types import Answer, AnswerResult, Document, Hit, Query, Ranking, SearchResult, Term, Topic, Trace

_HOMES = {
    "search.hits": "FairHits fair_rerank",
    "search.agent": "FairAgent",
    "collection": "Collection GroupTable Target load_collection make_target",
    "collection.demo": "write_demo write_people",
    "errors": "BackendUnavailable BudgetExceeded DataError FairAgentError ModelError SettingsError UsageError",
    "search.pipeline": "build_index open_agent open_in_memory",
    "retrieve.bm25.search": "BM25Retriever",
    "settings": "Settings load_settings",
    "types": "Answer AnswerResult Document Hit Query Ranking SearchResult Term Topic Trace",
}
_HOME_OF = {name: f"fairagent.{module}" for module, names in _HOMES.items() for name in names.split()}

__all__ = [
    "Answer", "AnswerResult", "BM25Retriever", "BackendUnavailable", "BudgetExceeded", "Collection", "DataError",
    "Document", "FairAgent", "FairAgentError", "FairHits", "GroupTable", "Hit", "ModelError", "Query", "Ranking",
    "SearchResult", "Settings", "SettingsError", "Target", "Term", "Topic", "Trace", "UsageError", "build_index",
    "fair_rerank", "load_collection", "load_settings", "make_target", "open_agent", "open_in_memory", "write_demo",
    "write_people",
]  # fmt: skip


class _Report:
    """What results become in notebooks, as JSON and as tables; loaded when one is asked for it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(f"fairagent.report.{'page' if name == 'html_of' else 'record'}"), name)


Recorded.writer = _Report()


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'fairagent' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
