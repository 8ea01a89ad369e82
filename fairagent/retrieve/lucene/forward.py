"""The arrays beside Lucene's index while it is built: what is in them at a commit, and going on from there.

Memory holds the documents since the last flush, and the number of every distinct term; nothing else grows.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from fairagent.collection.table_buffer import fixed_width
from fairagent.retrieve.lucene.growing import HEADER, GrowingArrays
from fairagent.retrieve.lucene.strings import IdTable
from fairagent.retrieve.lucene.vectors import ARRAYS, TermVectorsWriter, save_document_frequency

SCAFFOLD = {
    "ids.bytes": np.uint8,
    "ids.lengths": np.uint8,
    "vocabulary.bytes": np.uint8,
    "vocabulary.lengths": np.uint32,
}
"""Files that only an unfinished index has: the ids one after another, and the terms in the order of their numbers."""


class ForwardFiles:
    """Collects ids and terms of the documents of an index, in order."""

    def __init__(
        self, folder: Path, analyze: Callable[[str], list[str]], sizes: Mapping[str, int] | None = None
    ) -> None:
        """Take up the arrays in `folder` at `sizes` (what `flush` returned); without sizes start new ones."""
        self.folder = folder
        self._arrays = GrowingArrays(folder, {**ARRAYS, **SCAFFOLD}, sizes)
        self._vectors = TermVectorsWriter(analyze, self._vocabulary() if sizes else ())
        self._ids: list[bytes] = []

    @staticmethod
    def there(folder: Path, sizes: Mapping[str, int]) -> bool:
        """Whether the files in `folder` hold at least what `sizes` says."""
        dtypes = {**ARRAYS, **SCAFFOLD}
        needed = {folder / name: HEADER + sizes[name] * np.dtype(dtype).itemsize for name, dtype in dtypes.items()}
        return all(path.is_file() and path.stat().st_size >= size for path, size in needed.items())

    def add(self, id: bytes, terms: Sequence[str], text: str) -> None:
        """Add the next document."""
        self._vectors.add(terms, text)
        self._ids.append(id)

    def flush(self) -> dict[str, int]:
        """Put on disk what was added, and return the sizes to take the files up at."""
        self._write()
        self._arrays.flush()
        return self._arrays.sizes

    def finish(self) -> None:
        """Write what an index keeps; raises DataError where an id is repeated."""
        self._write()
        lengths = self._arrays["ids.lengths"].read()
        IdTable.save(self.folder, fixed_width(self._arrays["ids.bytes"].read(), lengths, int(lengths.max())))
        save_document_frequency(self.folder, self._arrays["vectors.terms.npy"].read(), self._vectors.terms)
        self._arrays.finish()

    def close(self) -> None:
        """Close the files as they are."""
        self._arrays.close()

    @staticmethod
    def clear(folder: Path) -> None:
        """Remove what only an unfinished index needs."""
        for name in SCAFFOLD:
            (folder / name).unlink()

    def _write(self) -> None:
        new = [term.encode() for term in self._vectors.flush(self._arrays)]
        for name, strings in (("ids", self._ids), ("vocabulary", new)):
            self._arrays[f"{name}.bytes"].append(np.frombuffer(b"".join(strings), np.uint8))
            self._arrays[f"{name}.lengths"].append([len(string) for string in strings])
        self._ids.clear()

    def _vocabulary(self) -> Iterator[str]:
        block, ends = self._arrays["vocabulary.bytes"].read(), np.cumsum(self._arrays["vocabulary.lengths"].read())
        start = 0
        for end in ends.tolist():
            yield block[start:end].tobytes().decode()
            start = end
