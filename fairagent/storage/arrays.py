"""NumPy's files (.npy): never unpickled, and no memory is taken for what the file does not hold."""

import math
import re
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from fairagent.storage.files import new_file, open_to_read
from fairagent.storage.readers import Malformed

# NumPy reads it as a Python literal. Before 3.11.8 and 3.12.2 Python loses its place when two threads read one at a
# time (SystemError: AST constructor recursion depth mismatch), and a literal can be much that is no header.
_HEADER = re.compile(r"\{'descr': '([^']+)', 'fortran_order': (True|False), 'shape': \(([0-9, ]*)\)(?:, )?\}")


def read_array(path: Path, mapped: bool = False) -> NDArray[Any]:
    """The array in a file, in memory or `mapped` (as a plain array: numpy's memmap class slows every access down).

    Raises Malformed where the file is none of NumPy's, holds Python objects or records, or has not the size that its
    header says; OSError where it cannot be read.
    """
    with open_to_read(path) as file:
        try:
            version = npy.read_magic(file)
            length = int.from_bytes(file.read({(1, 0): 2, (2, 0): 4}[version]), "little")
            if length > 1000:
                raise ValueError(f"a header of {length:,} bytes")
            text = file.read(length).decode("ascii").strip()
            if not (header := _HEADER.fullmatch(text)):
                raise ValueError(f"the header is {text[:100]!r}")
            dtype = np.dtype(header[1])
            shape = tuple(int(one) for one in header[3].split(",") if one.strip())
        except (ValueError, LookupError, TypeError) as error:
            raise Malformed(f"{path.name} is no array of NumPy's ({type(error).__name__}: {error})") from None
        begin = file.tell()
    if dtype.kind not in "biufSU" or not dtype.itemsize:
        raise Malformed(f"{path.name} holds {dtype} in the shape {shape}, which no file of ours does")
    order: Literal["C", "F"] = "F" if header[2] == "True" else "C"
    expected, size = begin + math.prod(shape) * dtype.itemsize, path.stat().st_size
    if size != expected:
        raise Malformed(f"{path.name} has {size:,} bytes, where its header says {expected:,}")
    if mapped and size > begin:  # nothing cannot be mapped
        return np.asarray(np.memmap(path, dtype, "r", begin, shape, order))
    return np.fromfile(path, dtype, offset=begin).reshape(shape, order=order)


def write_array(path: Path, values: NDArray[Any]) -> None:
    """Write the file as `np.save` would.

    An array that is mapped from the file that it replaces stays as it is. Of a full disk this says what the system
    says, and Ctrl-C comes out as such, where `np.save` raises other errors.
    """
    values = np.ascontiguousarray(values)
    with new_file(path) as file:
        npy.write_array_header_1_0(file, npy.header_data_from_array_1_0(values))
        file.write(values.data)
