"""NumPy's files (.npy): never unpickled, and no memory is taken for what the file does not hold."""

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from fairagent.intake.malformed import Malformed

KINDS = "biufSU"
"""Numbers, truth values, bytes and texts: what our files hold."""
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def read_array(path: Path, mapped: bool = False) -> NDArray[Any]:
    """The array in a file, in memory or `mapped` (as a plain array: numpy's memmap class slows every access down).

    Raises Malformed where the file is none of NumPy's, holds Python objects or records, or has not the size that its
    header says; OSError where it cannot be read.
    """
    shape, dtype, begin = _header(path)
    expected, size = begin + math.prod(shape) * dtype.itemsize, path.stat().st_size
    if size != expected:
        raise Malformed(f"{path.name} has {size:,} bytes, where its header says {expected:,}")
    return np.asarray(np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False))


def _header(path: Path) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """Shape, type, and the place of the first value."""
    with path.open("rb") as file:
        try:
            version = npy.read_magic(file)
            if version not in _HEADERS:
                raise ValueError(f"format {version}")
            shape, _, dtype = _HEADERS[version](file)
        # NumPy reads the header as a Python literal, with whatever that raises.
        except (ValueError, EOFError, SyntaxError, TypeError, RecursionError, MemoryError, OverflowError) as error:
            raise Malformed(f"{path.name} is no array of NumPy's ({str(error).splitlines()[0]})") from None
        if dtype.kind not in KINDS or not dtype.itemsize or any(length < 0 for length in shape):
            raise Malformed(f"{path.name} holds {dtype.name} in the shape {shape}, which no file of ours does")
        return shape, dtype, file.tell()
