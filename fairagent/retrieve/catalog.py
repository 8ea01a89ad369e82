"""What an index stores of its documents: ids in the order of the collection, and strings by number, as .npy files."""

from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import DataError
from fairagent.retrieve.base import unknown_ids
from fairagent.storage.arrays import read_array, write_array
from fairagent.storage.files import new_file
from fairagent.types import FloatArray, Ranking

MAX_ID_BYTES = 255


def mapped(path: Path) -> NDArray[Any]:
    """The array in a .npy file, mapped; raises what `read_array` does."""
    return read_array(path, mapped=True)


def starts_of(sizes: Sequence[int] | NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Where each of several lists of these sizes (n,) starts when they follow one another, and the end, (n + 1,)."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])


class ArrayWriter:
    """A .npy file that is written piece by piece, inside `with`; with a `width` its rows have so many numbers."""

    def __init__(self, path: Path, dtype: Any, width: int = 0) -> None:
        self._file, self._dtype = new_file(path), np.dtype(dtype)
        self._length, self._row = 0, (width,) if width else ()
        self._write_header()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with self._file:
            self._file.seek(0)
            self._write_header()

    def _write_header(self) -> None:
        # NumPy leaves room in it for any length.
        descr, shape = np.lib.format.dtype_to_descr(self._dtype), (self._length, *self._row)
        header = {"descr": descr, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(self._file, header)

    def add(self, values: NDArray[Any]) -> None:
        self._file.write(np.ascontiguousarray(values, self._dtype).data)
        self._length += len(values)


class Strings:
    """Strings by number: one block of UTF-8 bytes and where each string starts in it."""

    def __init__(self, folder: Path, name: str) -> None:
        """Map what `save` wrote; raises OSError or ValueError where sizes do not fit."""
        self._block, self._starts = mapped(folder / f"{name}.bytes.npy"), mapped(folder / f"{name}.starts.npy")
        if not len(self._starts) or self._starts[0] or self._starts[-1] != len(self._block):
            raise ValueError(f"{name}.bytes.npy has {len(self._block):,} bytes, and {name}.starts.npy does not fit")

    @staticmethod
    def save(folder: Path, name: str, strings: Iterable[bytes]) -> None:
        """Write `<name>.bytes.npy` and `<name>.starts.npy` into `folder`, as the strings (UTF-8) come."""
        sizes = array("q")
        with ArrayWriter(folder / f"{name}.bytes.npy", np.uint8) as block:
            for string in strings:
                sizes.append(len(string))
                block.add(np.frombuffer(string, np.uint8))
        write_array(folder / f"{name}.starts.npy", starts_of(np.frombuffer(sizes, np.int64)))

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, number: int) -> str:
        """The string of this number; ValueError where it is damaged."""
        start, stop = self._starts[number : number + 2].tolist()
        if not 0 <= start <= stop <= len(self._block):
            raise ValueError(f"string {number} would be from byte {start} to {stop} of {len(self._block)}")
        return str(self._block[start:stop].tobytes().decode())


class IdTable:
    """Document ids by number, and numbers by id (binary search): about 12 bytes a document of 8-byte ids."""

    def __init__(self, names: NDArray[np.bytes_], order: NDArray[np.uint32]) -> None:
        self._names, self._order, self._sorted = names, order, names[order]

    @staticmethod
    def save(folder: Path, ids: Sequence[bytes]) -> None:
        """Write the ids (from `encode_id`) in the order of their numbers; raises DataError where one is repeated."""
        names = np.array(ids, dtype=np.bytes_)
        order = np.argsort(names, kind="stable").astype(np.uint32)
        same = np.flatnonzero(names[order][1:] == names[order][:-1])
        if len(same):
            raise DataError(f"{len(same)} document ids occur twice, {ids[order[same[0]]].decode()!r} first")
        write_array(folder / "ids.npy", names)
        write_array(folder / "ids.order.npy", order)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Map what `save` wrote; raises OSError or ValueError where it is damaged."""
        try:
            table = cls(mapped(folder / "ids.npy"), mapped(folder / "ids.order.npy"))
        except IndexError as error:
            raise ValueError(f"ids.order.npy: {error}") from None
        if len(table._sorted) != len(table) or (table._sorted[1:] <= table._sorted[:-1]).any():
            raise ValueError("the ids are not in their order")
        return table

    def __len__(self) -> int:
        return len(self._names)

    def names(self, numbers: NDArray[np.intp]) -> NDArray[np.bytes_]:
        """The ids of the documents with these numbers, as UTF-8 bytes."""
        return self._names[numbers]

    def texts(self, numbers: NDArray[np.intp] | None = None) -> list[str]:
        """The same as text; None: all ids."""
        return [name.decode() for name in (self._names if numbers is None else self._names[numbers]).tolist()]

    def numbers(self, ids: Sequence[str]) -> NDArray[np.intp]:
        """The numbers of the documents with these ids, -1 for an id that is not there."""
        if not len(ids) or not len(self):
            return np.full(len(ids), -1, dtype=np.intp)
        # Half of a surrogate pair and NUL (numpy's padding) are in no id: they become bytes that are in none either.
        wanted = np.array([name.encode("utf-8", "surrogatepass").replace(b"\0", b"\xff") for name in ids])
        at = np.searchsorted(self._sorted, wanted)
        at[at == len(self)] = 0
        # As signed numbers first: among unsigned ones -1 would be 4,294,967,295.
        return np.where(self._sorted[at] == wanted, self._order[at].astype(np.intp), -1)

    def moved(self, numbers: NDArray[np.intp], of: Self) -> NDArray[np.intp]:
        """The numbers here, rising, of the documents that have these `numbers` in another table."""
        if of is self or np.array_equal(of._names, self._names):
            return numbers
        here = self.numbers(of.texts(numbers))
        return np.sort(here[here >= 0])

    def known(self, ids: Sequence[str]) -> NDArray[np.intp]:
        """The numbers of the documents with these ids; raises DataError naming ids that are not there."""
        numbers = self.numbers(ids)
        missing = [ids[i] for i in np.flatnonzero(numbers < 0).tolist()]
        if missing:
            raise unknown_ids(missing, "the index")
        return numbers

    def best(self, scores: FloatArray, n: int, among: NDArray[np.intp] | None = None) -> Ranking:
        """The best `n` of all documents with `scores` (N,) above 0, or of those `among` them; ties by id."""
        numbers = np.flatnonzero(scores > 0) if among is None else among[scores[among] > 0]
        if len(numbers) > n:
            # Sorting the few that can be among the best is much cheaper than sorting all; ties at the cut stay in.
            numbers = numbers[scores[numbers] >= np.partition(scores[numbers], -n)[-n]]
        return ranked(self._names[numbers], scores[numbers], n)


def both(numbers: NDArray[np.intp], among: NDArray[np.intp] | None) -> NDArray[np.intp]:
    """Those of these rising numbers that are also in `among` (None: all)."""
    return numbers if among is None else np.intersect1d(numbers, among, assume_unique=True)


def ranked(ids: NDArray[np.bytes_], scores: FloatArray, n: int) -> Ranking:
    """The best `n` of documents by their scores, ties by id."""
    order = np.lexsort((ids, -scores))[:n]
    return Ranking(tuple(id.decode() for id in ids[order].tolist()), scores[order])


def encode_id(id: str) -> bytes:
    """A document id as an index stores it; raises DataError where it is empty, too long or no text."""
    try:
        name = id.encode()
    except UnicodeEncodeError:
        name = b""
    if not 0 < len(name) <= MAX_ID_BYTES or b"\0" in name:
        shown = repr(id) if len(id) <= 60 else f"{id[:60]!r}..."
        raise DataError(f"a document id is 1 to {MAX_ID_BYTES} bytes of UTF-8 without NUL, not {shown}")
    return name


def encoded(id: str, text: str) -> bytes:
    """A text of the document `id` as UTF-8; raises DataError where it holds half of a surrogate pair."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        near = text[max(0, error.start - 20) : error.start + 20]
        raise DataError(f"document {id!r}: half of a surrogate pair (no valid Unicode), near {near!r}") from None
