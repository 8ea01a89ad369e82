"""The values that the parts of fairagent exchange: queries, rankings, exposures, traces, answers.

Ranks start at 1. Shares are fractions in [0, 1]. Scores are the engine's own; higher is better.
"""

# ruff: noqa: F403
from typing import TYPE_CHECKING, Any

from fairagent.types.answer import *
from fairagent.types.change import ExposureChange as ExposureChange
from fairagent.types.common import *
from fairagent.types.search import *

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]


def __getattr__(name: str) -> Any:
    # Nobody waits for numpy who only wants a value's type.
    if name != "FloatArray":
        raise AttributeError(f"module 'fairagent.types' has no attribute {name!r}")
    import numpy as np
    from numpy.typing import NDArray

    return NDArray[np.float64]
