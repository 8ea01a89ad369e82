"""The values that the parts of fairagent exchange: queries, rankings, exposures, traces, answers.

Ranks start at 1. Shares are fractions in [0, 1]. Scores are the engine's own; higher is better.
"""

from fairagent.alarms import Alarm
from fairagent.types.answer import Answer, AnswerResult, Attribution, Debiased, Filtered, Removal, Verdict
from fairagent.types.search import (
    NO_LABEL,
    UNKNOWN,
    Document,
    Draw,
    Exposed,
    Exposure,
    ExposureRow,
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
    exposure_rows,
)
from fairagent.usage import Usage

__all__ = [
    "NO_LABEL",
    "UNKNOWN",
    "Alarm",
    "Answer",
    "AnswerResult",
    "Attribution",
    "Debiased",
    "Document",
    "Draw",
    "Exposed",
    "Exposure",
    "ExposureRow",
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
    "exposure_rows",
]
