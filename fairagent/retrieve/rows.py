"""A table on disk that is filled row by row: a .npy file of its full size from the start, zeros where nothing is yet.

It is written and not mapped: where the disk is full, writing a map ends the process, and writing a file is an error.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from fairagent.intake.arrays import read_array


def create_rows(path: Path, dtype: DTypeLike, shape: tuple[int, int]) -> None:
    """A table of zeros."""
    descr = np.lib.format.dtype_to_descr(np.dtype(dtype))
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})
        file.truncate(file.tell() + np.dtype(dtype).itemsize * shape[0] * shape[1])


def write_rows(path: Path, numbers: NDArray[np.intp], rows: NDArray[Any]) -> None:
    """Write `rows` (n, d) at these numbers (n,), which rise, and force them to the disk."""
    table = read_array(path, mapped=True)
    written = np.ascontiguousarray(rows, table.dtype)
    start = path.stat().st_size - table.nbytes
    # Those that follow one another are written at once.
    breaks = np.flatnonzero(np.diff(numbers) != 1) + 1
    with path.open("r+b") as file:
        for at, part in zip([0, *breaks.tolist()], np.split(written, breaks), strict=True):
            if len(part):
                file.seek(start + int(numbers[at]) * table.strides[0])
                file.write(part.data)
        file.flush()
        os.fsync(file.fileno())
