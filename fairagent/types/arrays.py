"""Types of arrays, apart from the other types: naming these loads numpy."""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
