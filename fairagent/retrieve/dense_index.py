"""Building the embeddings of a collection, and the fingerprint that says what they were made from.

Encoding is slow (on a CPU some tens of documents a second), so a build that was broken off goes on where it stopped.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from fairagent.errors import BackendUnavailable, DataError, IndexMismatch, UsageError
from fairagent.retrieve.encoder import Embeddings, Encoder
from fairagent.retrieve.lucene.index import Indexable
from fairagent.retrieve.lucene.strings import IdTable, encode_id

FORMAT = 1
MANIFEST = "fairagent-dense.json"
VECTORS = "vectors.npy"
PROBE = "probe.npy"
PROBE_TEXT = "A fair ranking shows every group its share of the relevant documents."
"""Encoded with the collection: a model that gives another vector for it is another model."""
DONE = "done.txt"
"""How many documents are encoded; what comes after them in the vectors is zeros."""
CHUNK = 256
"""Documents between two marks that a broken-off build can go on from."""


@dataclass(frozen=True, slots=True)
class DenseManifest:
    """What the embeddings were made from and by; `dimension` is the length of a vector."""

    collection: str
    fingerprint: str
    documents: int
    model: str
    dimension: int
    format: int = FORMAT

    @classmethod
    def read(cls, folder: Path) -> DenseManifest:
        """The manifest in `folder`; raises BackendUnavailable where there are no embeddings."""
        try:
            return cls(**json.loads((folder / MANIFEST).read_text(encoding="utf-8")))
        except (FileNotFoundError, NotADirectoryError):
            raise BackendUnavailable(f"no embeddings at {folder}; make them with build_dense_index") from None
        except (ValueError, TypeError):
            raise IndexMismatch(f"{folder / MANIFEST} cannot be read; build the embeddings again") from None

    def check(self, collection: Indexable | None, folder: Path) -> None:
        """Raise IndexMismatch, naming every difference, where the embeddings were made from something else.

        Without a `collection` only the format is compared.
        """
        wanted: dict[str, object] = {"format": FORMAT}
        if collection is not None:
            wanted = {"fingerprint": collection.fingerprint(), **wanted}
        have = asdict(self)
        differ = [f"{key}: embeddings {have[key]}, now {value}" for key, value in wanted.items() if have[key] != value]
        if differ:
            name = self.collection if collection is None else collection.name
            raise IndexMismatch(
                f"the embeddings at {folder} do not belong to collection {name!r} as it is now "
                f"({'; '.join(differ)}); build them again"
            )


def build_dense_index(
    collection: Indexable,
    folder: Path,
    encoder: Encoder,
    progress: Callable[[int], None] = lambda done: None,
) -> DenseManifest:
    """Encode title and text of every document of `collection` into `folder`, which appears only when all are done.

    `progress` is called with the number of documents done. Broken off, the work so far stays in `<folder>.partial`;
    called again for the same documents and model it goes on from there. What was at `folder` is replaced at the end.
    Raises DataError with every fault of the document files, UsageError where something else is at `folder`.
    """
    if folder.exists() and not (folder / MANIFEST).is_file():
        raise UsageError(f"{folder} is there already and holds no embeddings; name another folder, or remove it")
    # Before the documents are read: what changes in the meantime must not pass for what was encoded.
    fingerprint = collection.fingerprint()
    names = [encode_id(document.id) for document in collection.documents()]
    if not names:
        raise DataError(f"collection {collection.name!r} has no documents")
    probe = encoder.documents([PROBE_TEXT])[0]
    manifest = DenseManifest(collection.name, fingerprint, len(names), encoder.name, len(probe))

    partial = folder.with_name(f"{folder.name}.partial")
    if not _unfinished(partial, manifest, encoder):
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        IdTable.save(partial, names)
        np.save(partial / PROBE, probe)
        np.lib.format.open_memmap(partial / VECTORS, "w+", np.float32, (len(names), len(probe)))
        mark_done(partial, 0)
        (partial / MANIFEST).write_text(json.dumps(asdict(manifest), indent=2) + "\n", encoding="utf-8")
    _encode(collection, partial, encoder, progress)
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)
    return manifest


def same_model(probe: Embeddings, encoder: Encoder) -> bool:
    """Whether `encoder` gives the vector `probe` (up to the rounding of another machine) for the test text."""
    vector = encoder.documents([PROBE_TEXT])[0]
    return vector.shape == probe.shape and bool(np.allclose(vector, probe, rtol=0, atol=1e-3 * np.abs(probe).max()))


def _unfinished(partial: Path, manifest: DenseManifest, encoder: Encoder) -> bool:
    """Whether `partial` holds the beginning of exactly this work."""
    try:
        return DenseManifest.read(partial) == manifest and same_model(np.load(partial / PROBE), encoder)
    except (BackendUnavailable, IndexMismatch):
        return False


def _encode(collection: Indexable, partial: Path, encoder: Encoder, progress: Callable[[int], None]) -> None:
    vectors = np.lib.format.open_memmap(partial / VECTORS, "r+")
    done = read_done(partial)
    texts = (f"{document.title} {document.text}".strip() for document in collection.documents())
    rest = islice(texts, done, None)
    while chunk := list(islice(rest, CHUNK)):
        vectors[done : done + len(chunk)] = encoder.documents(chunk)
        vectors.flush()
        done += len(chunk)
        mark_done(partial, done)
        progress(done)


def read_done(folder: Path) -> int:
    """How many documents in `folder` are encoded."""
    return int((folder / DONE).read_text(encoding="utf-8"))


def mark_done(folder: Path, done: int) -> None:
    """Note how many documents are encoded; the file is whole whenever the process ends."""
    new = folder / f"{DONE}.new"
    new.write_text(str(done), encoding="utf-8")
    new.replace(folder / DONE)
