"""Building what a model makes of every document: with a fingerprint of what it was made from, and resumably.

Encoding is slow (on a CPU a hundred documents a second), so a build that was broken off goes on where it stopped.

A table on disk that is filled row by row: a .npy file of its full size from the start, zeros where nothing is yet.

It is written and not mapped: where the disk is full, writing a map ends the process, and writing a file is an error.
"""

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import compress, islice
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from fairagent.errors import BackendUnavailable, DataError, IndexMismatch
from fairagent.retrieve.base import full_text
from fairagent.retrieve.bm25.manifest import LARGEST_MANIFEST, UPDATE, Indexable
from fairagent.retrieve.catalog import DIGESTS, Catalog, IdTable, digest
from fairagent.retrieve.encoders import FLOAT32, Embeddings
from fairagent.retrieve.forecast import FIRST, Forecast, forecast_of, next_size
from fairagent.storage.arrays import read_array, write_array
from fairagent.storage.digests import RECORD, differences
from fairagent.storage.files import write_whole
from fairagent.storage.folders import is_there, workshop
from fairagent.storage.readers import file_text, parse_json

FORMAT = 2
"""2: embeddings are 16-bit floats."""
PROBE = "probe.npy"
PROBE_TEXT = "A fair ranking shows every group its share of the relevant documents."
"""Encoded with the collection: a model that gives another vector for it is another model."""
DONE, FRESH = "done.txt", "fresh.npy"
"""How many documents are done, whatever else there is; and the numbers of those that are encoded, until all are."""


@dataclass(frozen=True, slots=True)
class EncodedManifest:
    """What an index was made from and by; `dimension` is the length of a vector.

    `dtype` is the type of the numbers that the model computed with: one index is of one type.
    """

    collection: str
    fingerprint: str
    documents: int
    model: str
    dimension: int
    format: int = FORMAT
    dtype: str = FLOAT32

    FILE: ClassVar[str]
    """The manifest's file."""
    WHAT: ClassVar[str]
    """What messages call the index."""
    BUILDER: ClassVar[str]
    """The function that makes it."""

    @classmethod
    def read(cls, folder: Path) -> Self:
        """The manifest in `folder`; raises BackendUnavailable where there is none."""
        if not is_there(folder, cls.FILE):
            makers = f"`fairagent index` or {cls.BUILDER}"
            raise BackendUnavailable(f"no {cls.WHAT} at {folder}; make them with {makers}")
        try:
            return cls(**parse_json(file_text(folder / cls.FILE, LARGEST_MANIFEST)))
        except (ValueError, TypeError):
            raise IndexMismatch(
                f"{folder / cls.FILE} cannot be read; build the {cls.WHAT} again: {remedy(folder)}"
            ) from None

    def check(self, collection: Indexable | None, folder: Path) -> None:
        """Raise IndexMismatch, naming every difference, where the index was made from something else.

        Without a `collection` only the format is compared.
        """
        wanted: dict[str, object] = {"format": FORMAT}
        if collection is not None:
            wanted = {"fingerprint": collection.fingerprint(), **wanted}
        have = asdict(self)
        differ = [f"{key}: {self.WHAT} {have[key]}, now {value}" for key, value in wanted.items() if have[key] != value]
        if differ:
            name = self.collection if collection is None else collection.name
            update = f"{UPDATE}, or " if collection is not None and self.outdated(collection) else ""
            raise IndexMismatch(
                f"the {self.WHAT} at {folder} do not belong to collection {name!r} as it is now "
                f"({'; '.join(differ)}); {update}build them again: {remedy(folder)}"
            )

    def outdated(self, collection: Indexable) -> bool:
        """Whether they were made of the collection's documents as they were before."""
        stale = self.fingerprint != collection.fingerprint()
        return stale and (self.collection, self.format) == (collection.name, FORMAT)

    def check_model(self, folder: Path, model: str, probe: Embeddings, vector: Embeddings) -> None:
        """Raise what keeps the index in `folder` from being searched with `model`.

        `probe` is the stored vector of the test text and `vector` the model's: two models may share a name.
        BackendUnavailable where the index is not finished, IndexMismatch where another model has made it.
        """
        if opened(type(self), folder, lambda: read_done(folder)) < self.documents:
            raise BackendUnavailable(f"the {self.WHAT} at {folder} are not finished; call {self.BUILDER} again")
        if not same_vector(probe, vector):
            raise IndexMismatch(
                f"the {self.WHAT} at {folder} were made with {self.model!r}, and {model!r} makes others; "
                f"use that model, or build them again"
            )


class Shaped(Protocol):
    """An array, dense or sparse."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its first length is the number of texts."""
        ...


M = TypeVar("M", bound=EncodedManifest)
V = TypeVar("V", bound=Shaped, contravariant=True)
T = TypeVar("T")


class Store(Protocol[V]):
    """How vectors are kept in a folder while they are made; a number of one takes `width` bytes, 0: not known."""

    @property
    def width(self) -> int:
        """Bytes of a number."""
        ...

    def create(self, folder: Path, documents: int, dimension: int) -> None:
        """Prepare an empty folder."""
        ...

    def take_over(self, folder: Path, earlier: Path, numbers: NDArray[np.intp]) -> None:
        """Keep for each document (n,) the vector that it has in the folder `earlier` under this number, if not -1."""
        ...

    def add(self, folder: Path, numbers: NDArray[np.intp], vectors: V) -> None:
        """Keep the vectors of the documents with these numbers; they may be there already, from a broken-off try."""
        ...

    def finish(self, folder: Path, fresh: NDArray[np.intp]) -> None:
        """Make of what was kept what is searched; `fresh` are the numbers of what was not taken over."""
        ...


def no_progress(done: int) -> None:
    """Nobody is told how many documents are done."""


def no_forecast(forecast: Forecast) -> None:
    """Nobody is told what it will take."""


def no_preparation(documents: int) -> None:
    """Nothing has to be opened before so many documents are encoded."""


@dataclass(frozen=True, slots=True)
class Work(Generic[V]):
    """What encodes documents, and who is told of it.

    `encode` makes vectors (n, d) of texts (n,); before the first ones `ready` opens what it takes for so many
    documents. `progress` is told how many of all documents are done, `forecast`, after the `first` block of so many,
    what all of them take.
    """

    encode: Callable[[Sequence[str]], V]
    ready: Callable[[int], None] = no_preparation
    progress: Callable[[int], None] = no_progress
    forecast: Callable[[Forecast], None] = no_forecast
    dtype: str = FLOAT32
    first: int = FIRST
    clock: Callable[[], float] = time.monotonic


@dataclass(frozen=True, slots=True)
class EncodedBuild(Generic[M, V]):
    """How an index is built: of which kind, by which model, and the most documents of a block.

    What is done is marked block by block, so that a build that is broken off goes on from there; how large blocks are
    goes by the time that they take (`fairagent.retrieve.forecast`).
    """

    kind: type[M]
    store: Store[V]
    model: str
    probe: Embeddings
    most: int
    work: Work[V]

    def run(self, collection: Indexable, folder: Path) -> M:
        """Encode title and text of every document of `collection` into `folder`, which appears when all are done.

        What the same model has made of the same text is taken over from `folder`. Broken off, the work so far stays in
        `<folder>.partial`; called again for the same documents and model it goes on from there. What was at `folder` is
        replaced at the end. Raises DataError with every fault of the document files, UsageError where something else is
        at `folder` or in the way beside it, BackendUnavailable where another process is at it, and where the disk is
        full or may not be written to.
        """
        kind = self.kind
        # Before the documents are read: what changes in the meantime must not pass for what was encoded.
        fingerprint = collection.fingerprint()
        catalog, ids = Catalog(), []
        for document in collection.documents():
            # What is encoded is the title and the text.
            catalog.add(document.id, digest(replace(document, extra={})))
            ids.append(document.id)
        if not ids:
            raise DataError(f"collection {collection.name!r} has no documents")
        made = self.model, len(self.probe)
        manifest = kind(collection.name, fingerprint, len(ids), *made, dtype=self.work.dtype)

        with workshop(folder, (kind.FILE, RECORD)) as shop:
            if not self._begun(shop.new, manifest):
                shop.begin()
                catalog.save(shop.new)
                write_array(shop.new / PROBE, self.probe)
                self.store.create(shop.new, len(ids), len(self.probe))
                earlier = self._earlier(folder, ids, catalog)
                if (earlier >= 0).any():
                    self.store.take_over(shop.new, folder, earlier)
                fresh = np.flatnonzero(earlier < 0)
                write_array(shop.new / FRESH, fresh)
                mark_done(shop.new, len(ids) - len(fresh))
                shop.force()
                # Last, since it says that all the others are there.
                write_whole(shop.new / kind.FILE, json.dumps(asdict(manifest), indent=2) + "\n")
            # There unless all was done.
            fresh = read_array(shop.new / FRESH) if (shop.new / FRESH).is_file() else np.zeros(0, dtype=np.intp)
            left = len(ids) - read_done(shop.new)
            self._encode(collection, shop.new, fresh[len(fresh) - left :])
            self.store.finish(shop.new, fresh)
            (shop.new / FRESH).unlink(missing_ok=True)
            shop.put()
        return manifest

    def _begun(self, partial: Path, manifest: M) -> bool:
        """Whether `partial` holds the beginning of exactly this work, or all of it."""
        try:
            there = (partial / FRESH).is_file() or read_done(partial) == manifest.documents
            return there and self._made_alike(partial) and self.kind.read(partial) == manifest
        except (BackendUnavailable, IndexMismatch, OSError, ValueError):
            return False

    def _made_alike(self, folder: Path) -> bool:
        """Whether what is in `folder` was made by the same model."""
        made = self.kind.read(folder)
        alike = (made.model, made.dtype) == (self.model, self.work.dtype)
        return alike and same_vector(read_array(folder / PROBE), self.probe)

    def _earlier(self, folder: Path, ids: Sequence[str], catalog: Catalog) -> NDArray[np.intp]:
        """The number that each document has in `folder`; -1 for one with another text, or where nothing is of use."""
        nothing = np.full(len(ids), -1, dtype=np.intp)
        try:
            manifest = self.kind.read(folder)
            whole = manifest.format == FORMAT and differences(folder, whole=True) == []
            if not (whole and self._made_alike(folder) and (folder / DIGESTS).is_file()):
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
        work, done, at = self.work, read_done(partial), 0
        wanted = np.zeros(done + len(fresh), dtype=np.bool_)
        wanted[fresh] = True
        texts = map(full_text, compress(collection.documents(), wanted.tolist()))
        work.ready(len(fresh))
        size = min(work.first, self.most)
        while block := list(islice(texts, size)):
            started = work.clock()
            vectors = work.encode(block)
            numbers = fresh[at : at + len(block)]
            self.store.add(partial, numbers, vectors)
            at += len(block)
            mark_done(partial, done + at)
            seconds = work.clock() - started
            if at == len(block):
                work.forecast(forecast_of(self.model, len(fresh), block, seconds, self._bytes(done + len(fresh))))
            work.progress(done + at)
            size = next_size(size, seconds, self.most)

    def _bytes(self, documents: int) -> int:
        """How many bytes the embeddings of so many documents take; of sparse ones nobody knows before."""
        return self.store.width * len(self.probe) * documents


def expect_renewable(kind: type[EncodedManifest], folder: Path) -> None:
    """Raise IndexMismatch where what is in `folder` is damaged, or says nothing of the texts that it was made of."""
    if faults := differences(folder, whole=True):
        raise IndexMismatch(f"the {kind.WHAT} at {folder}: damaged; {remedy(folder)}", faults)
    if not (folder / DIGESTS).is_file():
        raise IndexMismatch(
            f"the {kind.WHAT} at {folder} are from a version that kept no digests of texts, so that nobody can tell "
            f"which have changed; {remedy(folder)}"
        )


def same_vector(probe: Embeddings, vector: Embeddings) -> bool:
    """Whether two vectors of the test text are one model's, up to the rounding of another machine."""
    if vector.shape != probe.shape or not np.isfinite(probe).all():
        return False
    return bool(np.allclose(vector, probe, rtol=0, atol=1e-3 * np.abs(probe).max()))


def opened(kind: type[EncodedManifest], folder: Path, load: Callable[[], T]) -> T:
    """What `load` reads from the files in `folder`; IndexMismatch where they are damaged."""
    try:
        return load()
    except (OSError, ValueError, EOFError) as error:
        raise IndexMismatch(
            f"the {kind.WHAT} at {folder} are damaged ({error}); build them again: {remedy(folder)}"
        ) from None


def remedy(folder: Path) -> str:
    """How something beside an index is built anew."""
    return f"remove {folder}, then `fairagent index` makes it again"


def read_done(folder: Path) -> int:
    """How many documents in `folder` are encoded."""
    return int((folder / DONE).read_text(encoding="utf-8"))


def mark_done(folder: Path, done: int) -> None:
    """Note how many documents are encoded, once that is on the disk."""
    write_whole(folder / DONE, str(done))


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
