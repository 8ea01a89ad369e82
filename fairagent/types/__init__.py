"""The values that the parts of fairagent exchange: queries, rankings, exposures, traces, answers.

Ranks start at 1. Shares are fractions in [0, 1]. Scores are the engine's own; higher is better.
"""

from typing import TYPE_CHECKING, Any

from fairagent.types.answer import (
    Answer,
    AnswerResult,
    Attribution,
    ContextExposures,
    Debiased,
    Filtered,
    Removal,
    Revision,
    Verdict,
)
from fairagent.types.change import ExposureChange
from fairagent.types.common import Alarm, Usage
from fairagent.types.search import (
    NO_LABEL,
    UNKNOWN,
    Dial,
    Document,
    Draw,
    Exposure,
    ExposureRow,
    Group,
    Hit,
    Proposals,
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

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

__all__ = [
    "NO_LABEL",
    "UNKNOWN",
    "Alarm",
    "Answer",
    "AnswerResult",
    "Attribution",
    "ContextExposures",
    "Debiased",
    "Dial",
    "Document",
    "Draw",
    "Exposure",
    "ExposureChange",
    "ExposureRow",
    "Filtered",
    "FloatArray",
    "Group",
    "Hit",
    "Proposals",
    "Query",
    "Ranking",
    "Refinement",
    "Removal",
    "Revision",
    "SearchResult",
    "Step",
    "Term",
    "Topic",
    "Trace",
    "Usage",
    "Verdict",
    "exposure_rows",
]


def __getattr__(name: str) -> Any:
    # Nobody waits for numpy who only wants a value's type.
    if name != "FloatArray":
        raise AttributeError(f"module 'fairagent.types' has no attribute {name!r}")
    import numpy as np
    from numpy.typing import NDArray

    return NDArray[np.float64]
