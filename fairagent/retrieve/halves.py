"""16-bit floats, as embeddings are stored, as 32-bit floats."""

import numpy as np
from numpy.typing import NDArray

from fairagent.retrieve.encoder import Embeddings


def floats(rows: NDArray[np.float16]) -> Embeddings:
    """The same numbers as 32-bit floats."""
    return rows.astype(np.float32)
