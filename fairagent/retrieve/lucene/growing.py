"""Arrays on disk that grow while an index is built, and can be cut back to what was committed.

Each file is a .npy file from its first byte on: the header, which says the length, is written last, in space that was
kept for it. So nothing is copied at the end, and memory holds only what was added since the last flush.
"""

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

HEADER = 128
"""Bytes of the header of a one-dimensional array of numbers, whatever its length (numpy leaves room for digits)."""


class GrowingArray:
    """The one-dimensional array in `<path>`, of which `size` elements are on disk."""

    def __init__(self, path: Path, dtype: DTypeLike, size: int = 0) -> None:
        """Take up the file at its first `size` elements; what lies beyond is cut off. 0 starts a new one."""
        self.path, self.dtype, self.size = path, np.dtype(dtype), size
        self._file = path.open("r+b" if size else "w+b")
        self._file.truncate(HEADER + size * self.dtype.itemsize)
        self._file.seek(0, io.SEEK_END)

    def append(self, values: Any) -> None:
        """Add values at the end."""
        added = np.ascontiguousarray(values, self.dtype)
        self._file.write(added.data)
        self.size += added.size

    def flush(self) -> None:
        """Put everything on disk, so that it survives a power cut."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def finish(self) -> None:
        """Write the header and close the file."""
        self._file.seek(0)
        head = {"descr": np.lib.format.dtype_to_descr(self.dtype), "fortran_order": False, "shape": (self.size,)}
        np.lib.format.write_array_header_1_0(self._file, head)
        assert self._file.tell() == HEADER
        self._file.close()

    def close(self) -> None:
        """Close the file as it is."""
        self._file.close()

    def read(self) -> NDArray[Any]:
        """All values so far, mapped from disk."""
        self._file.flush()
        if not self.size:
            return np.zeros(0, self.dtype)
        return np.asarray(np.memmap(self.path, self.dtype, "r", HEADER, (self.size,)))


class GrowingArrays:
    """Several growing arrays in one folder, by file name."""

    def __init__(self, folder: Path, dtypes: Mapping[str, DTypeLike], sizes: Mapping[str, int] | None = None) -> None:
        """Take up the arrays at `sizes`; without sizes start new ones."""
        self._arrays = {
            name: GrowingArray(folder / name, dtype, sizes[name] if sizes else 0) for name, dtype in dtypes.items()
        }

    def __getitem__(self, name: str) -> GrowingArray:
        return self._arrays[name]

    @property
    def sizes(self) -> dict[str, int]:
        """The length of each array."""
        return {name: array.size for name, array in self._arrays.items()}

    def flush(self) -> None:
        """Put everything on disk."""
        for array in self._arrays.values():
            array.flush()

    def finish(self) -> None:
        """Make each file a complete .npy file."""
        for array in self._arrays.values():
            array.finish()

    def close(self) -> None:
        """Close the files as they are."""
        for array in self._arrays.values():
            array.close()
