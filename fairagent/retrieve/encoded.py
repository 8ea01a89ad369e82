"""Building what a model makes of every document, with a fingerprint of what it was made from.

Encoding is slow (on a CPU a hundred documents a second), so what the same model has made of the same text before is
taken over, known by the digest of the text. The embeddings of a collection are one array of 16-bit floats, a row a
document.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import BackendUnavailable, DataError, IndexMismatch
from fairagent.retrieve.base import full_text, ignore
from fairagent.retrieve.catalog import ArrayWriter, IdTable, encode_id, encoded
from fairagent.retrieve.encoders import Embeddings, Encoder
from fairagent.retrieve.manifest import Indexable, IndexManifest
from fairagent.storage.arrays import read_array, write_array
from fairagent.storage.digests import RECORD, differences
from fairagent.storage.folders import workshop
from fairagent.types import Document

PROBE = "probe.npy"
PROBE_TEXT = "A fair ranking shows every group its share of the relevant documents."
"""Encoded with the collection: a model that gives another vector for it is another model."""
DIGESTS, DIGEST = "digests.npy", 16
"""The file with the digest of each text, and its bytes."""
VECTORS = "vectors.npy"
CHUNK = 1024
"""Documents that are encoded before progress is told. Within them encoders batch by length."""


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
        """Raise IndexMismatch where another model than `model`, maybe of the same name, made the index in `folder`.

        `vector` is the model's of the test text.
        """
        with self.reading(folder):
            probe = read_array(folder / PROBE)
        if not same_vector(probe, vector):
            raise IndexMismatch(
                f"the {self.WHAT} at {folder} were made with {self.model!r}, and {model!r} makes others; "
                f"use that model, or build them again"
            )


@dataclass(frozen=True, slots=True)
class DenseManifest(EncodedManifest):
    """What embeddings were made from and by."""

    FILE: ClassVar[str] = "fairagent-dense.json"
    WHAT: ClassVar[str] = "embeddings"
    MAKE: ClassVar[str] = "make them with `fairagent index` or build_dense_index"


V = TypeVar("V")
M = TypeVar("M", bound=EncodedManifest)


@dataclass(frozen=True, slots=True)
class Work(Generic[V]):
    """What encodes documents: `encode` makes vectors (n, d) of texts (n,), once `ready` was called for so many of them.

    `progress` gets how many of all documents are done.
    """

    encode: Callable[[Sequence[str]], V]
    ready: Callable[[int], None] = ignore
    progress: Callable[[int], None] = ignore


class EncodedBuild(Generic[M, V]):
    """How an index is built: with a class of manifests, by a model that encodes the test text as `probe`.

    A subclass says how vectors (n, d) are put together and stored.
    """

    def __init__(self, manifest: type[M], model: str, probe: Embeddings, work: Work[V]) -> None:
        self._manifest, self._model, self._probe, self._work = manifest, model, probe, work

    def stored(self, folder: Path) -> Callable[[NDArray[np.intp]], V]:
        """What gives the vectors of the documents with some numbers (n,) in the finished `folder`."""
        raise NotImplementedError

    def stacked(self, first: V, second: V, order: NDArray[np.intp]) -> V:
        """The rows of both, in this order."""
        raise NotImplementedError

    def write(self, folder: Path, vectors: Iterable[V]) -> None:
        """Store the vectors of all documents, which come in blocks."""
        raise NotImplementedError

    def run(self, collection: Indexable, folder: Path, earlier: Path | None = None) -> M:
        """Encode title and text of every document of `collection` into `folder`, which appears when all are done.

        What the same model has made of the same text is taken over from `earlier` (None: from what is at `folder`,
        which is replaced at the end). Raises DataError with every fault of the document files, UsageError where
        something else is at `folder` or in the way beside it, BackendUnavailable where another process is at it, and
        where the disk is full or read-only.
        """
        # Before the documents are read: what changes in the meantime must not pass for what was encoded.
        fingerprint = collection.fingerprint()
        ids, digests = list[bytes](), bytearray()
        for document in collection.documents():
            ids.append(encode_id(document.id))
            digests += text_digest(document)
        if not ids:
            raise DataError(f"collection {collection.name!r} has no documents")
        manifest = self._manifest(collection.name, fingerprint, len(ids), self._model, len(self._probe))
        with workshop(folder, (manifest.FILE, RECORD)) as shop:
            IdTable.save(shop.new, ids)
            made = np.frombuffer(digests, np.uint64).reshape(-1, DIGEST // 8)
            write_array(shop.new / DIGESTS, made)
            write_array(shop.new / PROBE, self._probe)
            self.write(shop.new, self._vectors(collection, earlier or folder, self._known(earlier or folder, made)))
            manifest.save(shop.new)
            shop.put()
        return manifest

    def _vectors(self, collection: Indexable, earlier: Path, known: NDArray[np.intp]) -> Iterator[V]:
        """The vectors of all documents in blocks; `known` (n,) are their numbers in the `earlier` folder, or -1."""
        fresh, work, done = known < 0, self._work, 0
        stored = None if fresh.all() else self.stored(earlier)
        if fresh.any():
            work.ready(int(fresh.sum()))
        documents = collection.documents()
        while block := list(islice(documents, CHUNK)):
            part, new = known[done : done + len(block)], fresh[done : done + len(block)]
            texts = [full_text(document) for document, one in zip(block, new.tolist(), strict=True) if one]
            if stored is None or new.all():
                yield work.encode(texts)
            elif not texts:
                yield stored(part)
            else:
                order = np.argsort(np.concatenate([np.flatnonzero(~new), np.flatnonzero(new)]))
                yield self.stacked(stored(part[~new]), work.encode(texts), order)
            done += len(block)
            work.progress(done)

    def _known(self, earlier: Path, digests: NDArray[np.uint64]) -> NDArray[np.intp]:
        """The number of a document with the same text in the folder `earlier`, -1 where there is none of use, (n,)."""
        nothing = np.full(len(digests), -1, dtype=np.intp)
        try:
            same_model = self._manifest.read(earlier).model == self._model
            if not (same_model and same_vector(read_array(earlier / PROBE), self._probe)):
                return nothing
            if differences(earlier, whole=True) != []:
                return nothing
            there = read_array(earlier / DIGESTS).view(f"S{DIGEST}").ravel()
        except (BackendUnavailable, IndexMismatch, OSError, ValueError):
            return nothing
        order, wanted = np.argsort(there), digests.view(f"S{DIGEST}").ravel()
        at = order[np.minimum(np.searchsorted(there, wanted, sorter=order), len(there) - 1)]
        return np.where(there[at] == wanted, at, -1)


def text_digest(document: Document) -> bytes:
    """16 bytes that change whenever the title or the text of the document does; DataError where these are no text."""
    text = f"{len(document.title)} {len(document.text)} {document.title}{document.text}"
    return blake2b(encoded(document.id, text), digest_size=DIGEST).digest()


def build_dense_index(
    collection: Indexable,
    folder: Path,
    encoder: Encoder,
    progress: Callable[[int], None] = ignore,
    work: Work[Embeddings] | None = None,
    earlier: Path | None = None,
) -> DenseManifest:
    """Encode title and text of every document of `collection` into `folder`, which appears only when all are done.

    `progress` is called with the number of documents done. `work` does in the place of both what `encoder` does with
    documents. See `EncodedBuild.run` for what is taken over from `earlier`, and what it raises.
    """
    probe = encoder.documents([PROBE_TEXT])[0]
    work = work or Work(encoder.documents, progress=progress)
    return DenseBuild(DenseManifest, encoder.name, probe, work).run(collection, folder, earlier)


class DenseBuild(EncodedBuild[DenseManifest, Embeddings]):
    """An array with a row for every document."""

    def stored(self, folder: Path) -> Callable[[NDArray[np.intp]], Embeddings]:
        """See `EncodedBuild`."""
        rows: NDArray[np.float16] = read_array(folder / VECTORS, mapped=True)
        return lambda numbers: floats(rows[numbers])

    def stacked(self, first: Embeddings, second: Embeddings, order: NDArray[np.intp]) -> Embeddings:
        """See `EncodedBuild`."""
        return np.concatenate([first, second])[order]

    def write(self, folder: Path, vectors: Iterable[Embeddings]) -> None:
        """See `EncodedBuild`."""
        with ArrayWriter(folder / VECTORS, np.float16, len(self._probe)) as rows:
            for block in vectors:
                rows.add(block)


def same_vector(probe: Embeddings, vector: Embeddings) -> bool:
    """Whether two vectors of the test text are one model's, up to the rounding of another machine."""
    same = vector.shape == probe.shape and np.isfinite(probe).all()
    return bool(same and np.allclose(vector, probe, rtol=0, atol=1e-3 * np.abs(probe).max()))


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
