"""The values that the parts of fairagent exchange: queries, rankings, exposures, traces, answers.

Ranks start at 1. Shares are fractions in [0, 1]. Scores are the engine's own; higher is better.
"""

from fairagent.alarms import Alarm
from fairagent.types.answer import Answer, AnswerResult, Attribution, Debiased, Filtered, Removal, Verdict
from fairagent.types.search import (
    UNKNOWN,
    Document,
    Draw,
    Exposure,
    FloatArray,
    Group,
    Hit,
    Query,
    Ranking,
    Refinement,
    SearchResult,
    Step,
    Term,
    Topic,
    Trace,
)
from fairagent.usage import Usage

__all__ = [
    "UNKNOWN",
    "Alarm",
    "Answer",
    "AnswerResult",
    "Attribution",
    "Debiased",
    "Document",
    "Draw",
    "Exposure",
    "Filtered",
    "FloatArray",
    "Group",
    "Hit",
    "Query",
    "Ranking",
    "Refinement",
    "Removal",
    "SearchResult",
    "Step",
    "Term",
    "Topic",
    "Trace",
    "Usage",
    "Verdict",
]
