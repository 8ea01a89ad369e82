"""Vector search: the embeddings of a collection, made once, and their inner products with a query's.

Encoding is slow (on a CPU a hundred documents a second): what the same model has made of the same text before is taken
over, known by the digest of the text.
"""

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import BackendUnavailable, DataError, IndexMismatch
from fairagent.retrieve.base import check_length, engine_time, full_text, ignore
from fairagent.retrieve.catalog import ArrayWriter, IdTable, both, encode_id, encoded, mapped, ranked
from fairagent.retrieve.encoders import Embeddings, Encoder
from fairagent.retrieve.manifest import REMEDY, Indexable, IndexManifest
from fairagent.storage.arrays import read_array, write_array
from fairagent.storage.digests import RECORD, differences
from fairagent.storage.folders import workshop
from fairagent.types import FloatArray, Query, Ranking

if TYPE_CHECKING:
    from fairagent.retrieve.ann import AnnIndex

BLOCK = 1 << 9
"""Documents whose scores are computed at once; so many embeddings stay in a processor's cache."""
VECTORS, PROBE = "vectors.npy", "probe.npy"
PROBE_TEXT = "A fair ranking shows every group its share of the relevant documents."
"""Encoded with the collection: a model that gives another vector for it is another model."""
DIGESTS, DIGEST = "digests.npy", 16
"""The file with the digest of each text, and its bytes."""
CHUNK = 1024
"""Documents that are encoded at once; within them encoders batch by length."""


@runtime_checkable
class EmbeddingSource(Protocol):
    """An engine with embeddings of its documents."""

    def vectors(self, ids: Sequence[str]) -> Embeddings:
        """The embeddings of these documents, (n, d)."""


@runtime_checkable
class VectorEngine(EmbeddingSource, Protocol):
    """An engine that searches by embeddings."""

    def query_vector(self, query: Query) -> Embeddings:
        """The embedding of a query, (d,)."""


@runtime_checkable
class VectorSearch(VectorEngine, Protocol):
    """An engine that finds the documents near any vector, not a query's alone."""

    def nearest(self, vector: Embeddings, n: int) -> Ranking:
        """The `n` documents with the largest products with `vector` (d,)."""


@dataclass(frozen=True, slots=True)
class EncodedManifest(IndexManifest):
    """What an index was made from and by; `dimension` is the length of a vector. A subclass says how it is stored.

    `dtype` is the type of the numbers that the model computed with.
    """

    collection: str
    fingerprint: str
    documents: int
    model: str
    dimension: int
    format: int = 2
    dtype: str = "float32"

    FORMAT: ClassVar[int] = 2

    @staticmethod
    def stored(folder: Path) -> Any:
        """The vectors in a finished folder, a row a document."""
        raise NotImplementedError

    @staticmethod
    def stacked(parts: Sequence[Any]) -> Any:
        """The rows of some vectors, one after the other."""
        raise NotImplementedError

    @staticmethod
    def write(folder: Path, blocks: Iterator[Any], dimension: int) -> None:
        """Store the vectors of all documents, which come in blocks."""
        raise NotImplementedError

    @staticmethod
    def probe(encoder: Any) -> Embeddings:
        """The encoder's vector of the test text, (d,)."""
        return np.asarray(encoder.documents([PROBE_TEXT])[0])

    def check_model(self, folder: Path, encoder: Any) -> None:
        """Raise IndexMismatch where another model than the encoder's, maybe of its name, made the index in `folder`."""
        with self.reading(folder):
            probe = read_array(folder / PROBE)
        if not _same_vector(probe, self.probe(encoder)):
            raise IndexMismatch(
                f"the {self.WHAT} at {folder}: made with {self.model!r}, and {encoder.name!r} makes others; use that "
                "model, or build them again"
            )


@dataclass(frozen=True, slots=True)
class DenseManifest(EncodedManifest):
    """What embeddings were made from and by: an array of 16-bit floats."""

    FILE: ClassVar[str] = "fairagent-dense.json"
    WHAT: ClassVar[str] = "embeddings"
    MAKE: ClassVar[str] = "make them with `fairagent index` or build_dense_index"

    @staticmethod
    def stored(folder: Path) -> NDArray[np.float16]:
        return mapped(folder / VECTORS)

    @staticmethod
    def stacked(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
        return np.concatenate(parts)

    @staticmethod
    def write(folder: Path, blocks: Iterator[Embeddings], dimension: int) -> None:
        with ArrayWriter(folder / VECTORS, np.float16, dimension) as rows:
            for block in blocks:
                rows.add(block)


M = TypeVar("M", bound=EncodedManifest)


def encode_collection(
    kind: type[M],
    collection: Indexable,
    folder: Path,
    encoder: Any,
    progress: Callable[[int], None] = ignore,
    earlier: Path | None = None,
) -> M:
    """Encode title and text of every document of `collection` into `folder`, which appears when all are done.

    `progress` is called with the number of documents done. What the same encoder, by its vector of the test text, has
    made of the same text is taken over from `earlier` (None: from what is at `folder`). Raises what `build_index` does.
    """
    probe = kind.probe(encoder)
    # Before the documents are read: what changes in the meantime must not pass for what was encoded.
    fingerprint = collection.fingerprint()
    ids, digests = list[bytes](), bytearray()
    for document in collection.documents():
        ids.append(encode_id(document.id))
        text = f"{len(document.title)} {len(document.text)} {document.title}{document.text}"
        digests += blake2b(encoded(document.id, text), digest_size=DIGEST).digest()
    if not ids:
        raise DataError(f"collection {collection.name!r} has no documents")
    made = np.frombuffer(digests, np.uint64).reshape(-1, DIGEST // 8)

    def blocks() -> Iterator[Any]:
        known, done, documents = _known(kind, earlier or folder, encoder.name, probe, made), 0, collection.documents()
        stored: Any = None if (known < 0).all() else kind.stored(earlier or folder)
        while block := list(islice(documents, CHUNK)):
            numbers = known[done : done + len(block)]
            old, new = np.flatnonzero(numbers >= 0), np.flatnonzero(numbers < 0)
            parts = [stored[numbers[old]]] if len(old) else []
            if len(new):
                parts.append(encoder.documents([full_text(block[place]) for place in new.tolist()]))
            yield kind.stacked(parts)[np.argsort(np.concatenate([old, new]))]
            done += len(block)
            progress(done)

    manifest = kind(collection.name, fingerprint, len(ids), encoder.name, len(probe))
    with workshop(folder, (kind.FILE, RECORD)) as shop:
        IdTable.save(shop.new, ids)
        write_array(shop.new / DIGESTS, made)
        write_array(shop.new / PROBE, probe)
        kind.write(shop.new, blocks(), len(probe))
        manifest.save(shop.new)
        shop.put()
    return manifest


build_dense_index = partial(encode_collection, DenseManifest)
"""`encode_collection` into an array of 16-bit floats."""


def _known(
    kind: type[M], earlier: Path, model: str, probe: Embeddings, digests: NDArray[np.uint64]
) -> NDArray[np.intp]:
    """The number of a document with the same text in the folder `earlier`, -1 where none can be used, (n,)."""
    nothing = np.full(len(digests), -1, dtype=np.intp)
    try:
        same = kind.read(earlier).model == model and _same_vector(read_array(earlier / PROBE), probe)
        if not same or differences(earlier, whole=True) != []:
            return nothing
        there = read_array(earlier / DIGESTS).view(f"S{DIGEST}").ravel()
    except (BackendUnavailable, IndexMismatch, OSError, ValueError):
        return nothing
    order, wanted = np.argsort(there), digests.view(f"S{DIGEST}").ravel()
    at = order[np.minimum(np.searchsorted(there, wanted, sorter=order), len(there) - 1)]
    return np.where(there[at] == wanted, at, -1)


def _same_vector(probe: Embeddings, vector: Embeddings) -> bool:
    """Whether two vectors of the test text are one model's, up to the rounding of another machine."""
    same = vector.shape == probe.shape and np.isfinite(probe).all()
    return bool(same and np.allclose(vector, probe, rtol=0, atol=1e-3 * np.abs(probe).max()))


class DenseRetriever:
    """Every document by the inner product of its embedding and the query's; ties are ordered by document id.

    A query is encoded as its text and keywords in one line. Every document has a score; a blank query matches nothing,
    nor does one of which the encoder knows nothing (zeros). `stored` (n, d) has the embeddings in the order of `ids`.
    """

    def __init__(
        self, folder: Path, encoder: Encoder, collection: Indexable | None = None, ann: "AnnIndex | None" = None
    ) -> None:
        """Open the index in `folder`; with `collection`, only if the index was built from it as it is now.

        With `ann`, made from the same embeddings, searches look at the documents that it names. Raises
        BackendUnavailable where there is no index, IndexMismatch for a damaged one, or one of something else or by
        another model (what counts is the vector of a test text).
        """
        self._ann = ann
        self._among: NDArray[np.intp] | None = None
        with DenseManifest.opening(folder, collection) as of:
            self.folder, self.manifest = folder, of
            self.ids, self.stored = IdTable.load(folder), DenseManifest.stored(folder)
            if (len(self.ids), *self.stored.shape) != (of.documents, of.documents, of.dimension):
                raise ValueError(f"{VECTORS} has the shape {self.stored.shape} for {len(self.ids)} ids")
        of.check_model(folder, encoder)
        # The query of a search is often scored against a pool afterwards.
        self._query_vector = lru_cache(maxsize=64)(lambda text: encoder.queries([text])[0])

    def __len__(self) -> int:
        return len(self.ids)

    def search(self, query: Query, n: int) -> Ranking:
        """The `n` documents with the largest inner products; through an index those that it finds, never fewer."""
        check_length(n)
        if not (text := str(query)).strip():
            return Ranking((), np.zeros(0))
        with engine_time("vectors"):
            return self.nearest(self._query_vector(text), n)

    def nearest(self, vector: Embeddings, n: int) -> Ranking:
        """The `n` documents with the largest products with `vector` (d,), as `search` finds them; none for zeros."""
        if not vector.any():
            return Ranking((), np.zeros(0))
        n = min(n, len(self) if self._among is None else len(self._among))
        close = self._ann.candidates(vector, n) if self._ann and self._among is None else None
        if close is None or len(close) < n:
            close = self._near(vector, n)
        return ranked(self.ids.names(close), self._scores(close, vector), n)

    def among(self, numbers: NDArray[np.intp]) -> Self:
        """The same engine over the documents with these `numbers`, which rise; an ANN index is not used."""
        restricted = copy(self)
        restricted._among = both(numbers, self._among)
        return restricted

    def _near(self, vector: Embeddings, n: int) -> NDArray[np.intp]:
        """Numbers of documents, rising, that hold the `n` with the largest products with `vector` (d,)."""
        if not n:
            return np.zeros(0, dtype=np.intp)
        with np.errstate(invalid="ignore"):
            blocks = (self._rows(slice(start, start + BLOCK)) for start in range(0, len(self), BLOCK))
            rough = np.concatenate([block @ vector for block in ([self._whole] if self._whole is not None else blocks)])
        self._expect_finite(rough)
        if self._among is not None:
            rough = rough[self._among]
        # Products of 32-bit floats depend on where a row stands in its block: the close ones are computed anew.
        margin = 1e-5 * float(np.abs(rough).max())
        close = np.flatnonzero(rough >= np.partition(rough, -n)[-n] - margin)
        return close if self._among is None else self._among[close]

    def best(self, vector: Embeddings, numbers: NDArray[np.intp], n: int) -> NDArray[np.intp]:
        """The `n` of these documents with the largest products with a query's `vector` (d,), ties by number."""
        return numbers[np.argsort(-self._scores(numbers, vector), kind="stable")[:n]]

    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        """The inner products of the given documents, (n,), equal to those of `search`; 0 for a blank query.

        Raises DataError naming ids that are not in the index.
        """
        numbers = self.ids.known(ids)
        if not len(ids) or not (text := str(query)).strip():
            return np.zeros(len(ids))
        with engine_time("vectors"):
            return self._scores(numbers, self._query_vector(text))

    def vectors(self, ids: Sequence[str]) -> Embeddings:
        return self._rows(self.ids.known(ids))

    def query_vector(self, query: Query) -> Embeddings:
        return np.asarray(self._query_vector(str(query)))

    def _scores(self, numbers: NDArray[np.intp], vector: Embeddings) -> FloatArray:
        # Row by row, so that a score does not depend on what else is scored.
        rows = self._rows(numbers).astype(np.float64)
        with np.errstate(invalid="ignore"):
            scores = np.asarray(np.vecdot(rows, vector.astype(np.float64)))
        self._expect_finite(scores)
        return scores

    def _expect_finite(self, products: NDArray[Any]) -> None:
        if not np.isfinite(products).all():
            raise IndexMismatch(
                f"the embeddings at {self.folder} or the query's hold numbers that are not finite; if it is they, "
                + REMEDY
            )

    @cached_property
    def _whole(self) -> Embeddings | None:
        """All embeddings as 32-bit floats, from the first search on, where these take no more than half a GB."""
        return self.stored.astype(np.float32) if 4 * self.stored.size <= 1 << 29 else None

    def _rows(self, numbers: Any) -> Embeddings:
        return np.asarray(self.stored[numbers], np.float32) if self._whole is None else self._whole[numbers]
