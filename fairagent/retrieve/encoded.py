"""Building what a model makes of every document: with a fingerprint of what it was made from, and resumably.

Encoding is slow (on a CPU a hundred documents a second), so a build that was broken off goes on where it stopped. The
embeddings of a collection are one array of 16-bit floats, a row a document.
"""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import compress, islice
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from fairagent.errors import BackendUnavailable, DataError, IndexMismatch
from fairagent.retrieve.base import full_text, ignore
from fairagent.retrieve.catalog import DIGESTS, Catalog, IdTable, digest, write_header
from fairagent.retrieve.encoders import Embeddings, Encoder
from fairagent.retrieve.manifest import Indexable, IndexManifest
from fairagent.storage.arrays import read_array, write_array
from fairagent.storage.digests import RECORD, differences
from fairagent.storage.files import write_whole
from fairagent.storage.folders import workshop
from fairagent.storage.regular import new_file, open_to_write

PROBE = "probe.npy"
PROBE_TEXT = "A fair ranking shows every group its share of the relevant documents."
"""Encoded with the collection: a model that gives another vector for it is another model."""
DONE, FRESH = "done.txt", "fresh.npy"
"""How many documents are done, whatever else there is; and the numbers of those that are encoded, until all are."""
VECTORS = "vectors.npy"
CHUNK = 4096
"""The most documents between two marks that a broken-off build can go on from. Within them encoders batch by length."""
COPIED = 1 << 15
"""Rows that are taken over at once."""


@dataclass(frozen=True, slots=True)
class EncodedManifest(IndexManifest):
    """What an index was made from and by; `dimension` is the length of a vector.

    `dtype` is the type of the numbers that the model computed with; earlier versions had others.
    """

    collection: str
    fingerprint: str
    documents: int
    model: str
    dimension: int
    format: int = 2
    dtype: str = "float32"

    FORMAT: ClassVar[int] = 2
    """2: embeddings are 16-bit floats."""

    def check_model(self, folder: Path, model: str, vector: Embeddings) -> None:
        """Raise what keeps the index in `folder` from being searched with `model`, whose vector of the test text it is.

        BackendUnavailable: the index is not finished; IndexMismatch: another model, maybe of the same name, made it.
        """
        with self.reading(folder):
            done, probe = read_done(folder), read_array(folder / PROBE)
        if done < self.documents:
            raise BackendUnavailable(f"the {self.WHAT} at {folder} are not finished; {self.MAKE}")
        if not same_vector(probe, vector):
            raise IndexMismatch(
                f"the {self.WHAT} at {folder} were made with {self.model!r}, and {model!r} makes others; "
                f"use that model, or build them again"
            )

    @classmethod
    def current(cls, folder: Path, collection: Indexable, renew: bool) -> bool:
        """Whether there is an index, and, with `renew`, none of the documents as they were before."""
        return cls.exists(folder) and not (renew and cls.read(folder).outdated(collection))

    @classmethod
    def expect_renewable(cls, folder: Path) -> None:
        """Raise IndexMismatch where what is in `folder` is damaged, or without digests of the texts."""
        cls.expect_every_byte(folder)
        if not (folder / DIGESTS).is_file():
            raise IndexMismatch(
                f"the {cls.WHAT} at {folder} are from a version without digests of texts, so that nothing shows which "
                f"have changed; {cls.remedy(folder)}"
            )


@dataclass(frozen=True, slots=True)
class DenseManifest(EncodedManifest):
    """What embeddings were made from and by."""

    FILE: ClassVar[str] = "fairagent-dense.json"
    WHAT: ClassVar[str] = "embeddings"
    MAKE: ClassVar[str] = "make them with `fairagent index` or build_dense_index"


FIRST, FEWEST = 64, 16
"""Documents of the first block, and of the smallest."""
SHORT, LONG = 5.0, 10.0
"""Seconds between which a block should take: so much is lost at most where the work is broken off."""
V = TypeVar("V")
M = TypeVar("M", bound=EncodedManifest)


@dataclass(frozen=True, slots=True)
class Work(Generic[V]):
    """What encodes documents: `encode` makes vectors (n, d) of texts (n,), once `ready` was called for so many of them.

    `progress` gets how many of all documents are done; the first block has `first` of them.
    """

    encode: Callable[[Sequence[str]], V]
    ready: Callable[[int], None] = ignore
    progress: Callable[[int], None] = ignore
    first: int = FIRST
    clock: Callable[[], float] = time.monotonic


class EncodedBuild(Generic[M, V]):
    """How an index is built: with a class of manifests, by a model that encodes the test text as `probe`, in blocks.

    What is done is marked block by block, so that a build that is broken off goes on from there; how large blocks are
    goes by the time that they take (`next_size`). A subclass stores vectors in a folder.
    """

    width = 0
    """Bytes of a number on the disk; 0: not known before."""

    def __init__(self, manifest: type[M], model: str, probe: Embeddings, work: Work[V], most: int) -> None:
        """`most` is the most documents of a block."""
        self._manifest, self._model, self._probe, self._work, self._most = manifest, model, probe, work, most

    def create(self, folder: Path, documents: int, dimension: int) -> None:
        """Prepare an empty folder."""
        raise NotImplementedError

    def take_over(self, folder: Path, earlier: Path, numbers: NDArray[np.intp]) -> None:
        """Copy for each document (n,) the vector that it has in the folder `earlier` under this number, if not -1."""
        raise NotImplementedError

    def add(self, folder: Path, numbers: NDArray[np.intp], vectors: V) -> None:
        """Store the vectors of the documents with these numbers; a try that was broken off may have before."""
        raise NotImplementedError

    def finish(self, folder: Path, fresh: NDArray[np.intp]) -> None:
        """Make what is searched of what was stored; `fresh` are the numbers of what was not taken over."""

    def run(self, collection: Indexable, folder: Path) -> M:
        """Encode title and text of every document of `collection` into `folder`, which appears when all are done.

        What the same model has made of the same text is taken over from what was at `folder`, which is replaced at the
        end. Broken off, the work so far stays in `<folder>.partial`, and the next call goes on from there. Raises
        DataError with every fault of the document files, UsageError where something else is at `folder` or in the way
        beside it, BackendUnavailable where another process is at it, and where the disk is full or read-only.
        """
        # Before the documents are read: what changes in the meantime must not pass for what was encoded.
        fingerprint = collection.fingerprint()
        catalog, ids = Catalog(), []
        for document in collection.documents():
            # What is encoded is the title and the text.
            catalog.add(document.id, digest(replace(document, extra={})))
            ids.append(document.id)
        if not ids:
            raise DataError(f"collection {collection.name!r} has no documents")
        size = len(self._probe)
        manifest = self._manifest(collection.name, fingerprint, len(ids), self._model, size)

        with workshop(folder, (manifest.FILE, RECORD)) as shop:
            if not self._begun(shop.new, manifest):
                shop.begin()
                catalog.save(shop.new)
                write_array(shop.new / PROBE, self._probe)
                self.create(shop.new, len(ids), size)
                earlier = self._earlier(folder, ids, catalog)
                if (earlier >= 0).any():
                    self.take_over(shop.new, folder, earlier)
                fresh = np.flatnonzero(earlier < 0)
                write_array(shop.new / FRESH, fresh)
                mark_done(shop.new, len(ids) - len(fresh))
                shop.force()
                # Last, since it says that all the others are there.
                manifest.save(shop.new)
            # There unless all was done.
            fresh = read_array(shop.new / FRESH) if (shop.new / FRESH).is_file() else np.zeros(0, dtype=np.intp)
            left = len(ids) - read_done(shop.new)
            self._encode(collection, shop.new, fresh[len(fresh) - left :])
            self.finish(shop.new, fresh)
            (shop.new / FRESH).unlink(missing_ok=True)
            shop.put()
        return manifest

    def _begun(self, partial: Path, manifest: M) -> bool:
        """Whether `partial` holds the beginning of exactly this work, or all of it."""
        try:
            there = (partial / FRESH).is_file() or read_done(partial) == manifest.documents
            return there and self._same_model(partial) and self._manifest.read(partial) == manifest
        except (BackendUnavailable, IndexMismatch, OSError, ValueError):
            return False

    def _same_model(self, folder: Path) -> bool:
        """Whether what is in `folder` was made by the same model."""
        made = self._manifest.read(folder).model
        return made == self._model and same_vector(read_array(folder / PROBE), self._probe)

    def _earlier(self, folder: Path, ids: Sequence[str], catalog: Catalog) -> NDArray[np.intp]:
        """The number that each document has in `folder`; -1 for one with another text, or where nothing is of use."""
        nothing = np.full(len(ids), -1, dtype=np.intp)
        try:
            whole = self._same_model(folder) and differences(folder, whole=True) == []
            if not (whole and (folder / DIGESTS).is_file()):
                return nothing
            numbers = IdTable.load(folder).numbers(ids)
            same = (read_array(folder / DIGESTS)[numbers] == catalog.digests()).all(axis=1)
        except (BackendUnavailable, IndexMismatch, OSError, ValueError):
            return nothing
        return np.where(same, numbers, -1)

    def _encode(self, collection: Indexable, partial: Path, fresh: NDArray[np.intp]) -> None:
        """Encode the documents with these numbers, the last that are left."""
        if not len(fresh):
            return
        work, done, at = self._work, read_done(partial), 0
        wanted = np.zeros(done + len(fresh), dtype=np.bool_)
        wanted[fresh] = True
        texts = map(full_text, compress(collection.documents(), wanted.tolist()))
        work.ready(len(fresh))
        size = min(work.first, self._most)
        while block := list(islice(texts, size)):
            started = work.clock()
            vectors = work.encode(block)
            self.add(partial, fresh[at : at + len(block)], vectors)
            at += len(block)
            mark_done(partial, done + at)
            work.progress(done + at)
            size = next_size(size, work.clock() - started, self._most)


def next_size(size: int, seconds: float, most: int) -> int:
    """Documents of the block after one of this `size` that took so many seconds: twice as many, as many, or half.

    >>> next_size(64, 1.2, 1024), next_size(512, 7.0, 1024), next_size(512, 12.0, 1024), next_size(16, 60.0, 1024)
    (128, 512, 256, 16)
    """
    if seconds < SHORT:
        return min(2 * size, most)
    return max(min(size, FEWEST), size // 2) if seconds > LONG else size


def build_dense_index(
    collection: Indexable,
    folder: Path,
    encoder: Encoder,
    progress: Callable[[int], None] = ignore,
    work: Work[Embeddings] | None = None,
) -> DenseManifest:
    """Encode title and text of every document of `collection` into `folder`, which appears only when all are done.

    Embeddings at `folder` that this model made are taken over for documents whose texts are the same. `progress` is
    called with the number of documents done. `work` does in the place of both what `encoder` does with documents. See
    `EncodedBuild.run` for what happens when it is broken off and what it raises.
    """
    probe = encoder.documents([PROBE_TEXT])[0]
    work = work or Work(encoder.documents, progress=progress)
    return _DenseBuild(DenseManifest, encoder.name, probe, work, CHUNK).run(collection, folder)


class _DenseBuild(EncodedBuild[DenseManifest, Embeddings]):
    """An array with a row for every document; those not done yet are zeros."""

    width = 2

    def create(self, folder: Path, documents: int, dimension: int) -> None:
        create_rows(folder / VECTORS, np.float16, (documents, dimension))

    def take_over(self, folder: Path, earlier: Path, numbers: NDArray[np.intp]) -> None:
        old = read_array(earlier / VECTORS, mapped=True)
        for start in range(0, len(numbers), COPIED):
            same = start + np.flatnonzero(numbers[start : start + COPIED] >= 0)
            write_rows(folder / VECTORS, same, old[numbers[same]])

    def add(self, folder: Path, numbers: NDArray[np.intp], vectors: Embeddings) -> None:
        write_rows(folder / VECTORS, numbers, vectors)


def same_vector(probe: Embeddings, vector: Embeddings) -> bool:
    """Whether two vectors of the test text are one model's, up to the rounding of another machine."""
    same = vector.shape == probe.shape and np.isfinite(probe).all()
    return bool(same and np.allclose(vector, probe, rtol=0, atol=1e-3 * np.abs(probe).max()))


def read_done(folder: Path) -> int:
    """How many documents in `folder` are encoded."""
    return int((folder / DONE).read_text(encoding="utf-8"))


def mark_done(folder: Path, done: int) -> None:
    """Note how many documents are encoded, once that is on the disk."""
    write_whole(folder / DONE, str(done))


def create_rows(path: Path, dtype: DTypeLike, shape: tuple[int, int]) -> None:
    """A table of zeros, of its full size from the start.

    It is written and not mapped: where the disk is full, writing a map ends the process, and writing a file is an
    error.
    """
    with new_file(path) as file:
        write_header(file, np.dtype(dtype), shape)
        file.truncate(file.tell() + np.dtype(dtype).itemsize * shape[0] * shape[1])


def write_rows(path: Path, numbers: NDArray[np.intp], rows: NDArray[Any]) -> None:
    """Write `rows` (n, d) at these numbers (n,), which rise, and force them to the disk."""
    table = read_array(path, mapped=True)
    written = np.ascontiguousarray(rows, table.dtype)
    start = path.stat().st_size - table.nbytes
    # Those that follow one another are written at once.
    breaks = np.flatnonzero(np.diff(numbers) != 1) + 1
    with os.fdopen(open_to_write(path, os.O_RDWR), "r+b") as file:
        for at, part in zip([0, *breaks.tolist()], np.split(written, breaks), strict=True):
            if len(part):
                file.seek(start + int(numbers[at]) * table.strides[0])
                file.write(part.data)
        file.flush()
        os.fsync(file.fileno())


WIDER = 13
"""Bits that the fraction of a 32-bit float has more."""
SIGN_ONCE = np.int32(-0x70002000)
"""The bits of a 16-bit float in their new places (0x8fffe000): the sign, which the widening has copied, once."""
RAISED = np.float32(2.0**112)
"""The exponents of the two count from 127 and from 15: so much is lost where the bits alone are moved."""
FINITE = 65536.0
"""What infinity, the first number after the largest one, comes out as."""


def floats(rows: NDArray[np.float16]) -> Embeddings:
    """The same numbers as 32-bit floats, bit for bit but for the payload of NaN.

    numpy's own conversion takes five times as long for a few hundred rows, which stay in a processor's cache.
    """
    bits = np.ascontiguousarray(rows).view(np.int16).astype(np.int32)
    np.left_shift(bits, WIDER, out=bits)
    np.bitwise_and(bits, SIGN_ONCE, out=bits)
    numbers = bits.view(np.float32)
    numbers *= RAISED
    if numbers.size and (numbers.max() >= FINITE or numbers.min() <= -FINITE):
        return np.asarray(rows, dtype=np.float32)
    return numbers
