"""Indexing a collection into a folder, and the manifest that says what the index was built from."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

from fairagent.digests import RECORD, differences
from fairagent.errors import BackendUnavailable, DataError, IndexMismatch, UsageError
from fairagent.files import write_whole
from fairagent.folders import Workshop, is_there, workshop
from fairagent.intake.json_text import parse_json
from fairagent.intake.text import file_text
from fairagent.retrieve.java import java_class, using_java
from fairagent.retrieve.lucene.analysis import Analyzer
from fairagent.retrieve.lucene.build import LUCENE, SHARD_MEMORY, LuceneBuild, explained
from fairagent.retrieve.lucene.forward import SCRATCH, write_forward
from fairagent.retrieve.lucene.vectors import TermVectors
from fairagent.types import Document

LARGEST_MANIFEST = 1 << 24
"""Bytes."""
FORMAT = 2
MANIFEST = "fairagent.json"
REMEDY = "build it again with `fairagent index --force`"
UPDATE = "`fairagent index` brings it up to date"
COMMIT_EVERY = 50_000
"""The most documents between two commits (long ones are committed more often): some seconds of work to lose."""


class Indexable(Protocol):
    """What can be indexed: a name, a stream of documents and a hash of where they come from."""

    @property
    def name(self) -> str:
        """What messages call it."""
        ...

    def documents(self) -> Iterator[Document]:
        """Every document once, in a fixed order."""
        ...

    def fingerprint(self) -> str:
        """A hash that changes whenever the documents do."""
        ...


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an index was built from; any difference makes it another index."""

    collection: str
    fingerprint: str
    documents: int
    analyzer: str
    pyserini: str
    format: int = FORMAT

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """The manifest in `folder`; raises BackendUnavailable where there is no (finished) index."""
        if not is_there(folder, MANIFEST):
            raise BackendUnavailable(f"no index at {folder}; build it with `fairagent index`")
        try:
            return cls(**parse_json(file_text(folder / MANIFEST, LARGEST_MANIFEST)))
        except (ValueError, TypeError):
            raise IndexMismatch(f"{folder / MANIFEST} cannot be read; build the index again") from None

    def check(self, collection: Indexable | None, analyzer: str, folder: Path) -> None:
        """Raise IndexMismatch, naming every difference, where the index was built from or by something else.

        Without a `collection` only what it was built by is compared.
        """
        differ = self._differing(collection, analyzer)
        if differ:
            name = self.collection if collection is None else collection.name
            said = "; ".join(f"{key}: index {have}, now {now}" for key, (have, now) in differ.items())
            update = f"{UPDATE}, or " if collection is not None and self.outdated(collection, analyzer) else ""
            raise IndexMismatch(
                f"the index at {folder} does not belong to collection {name!r} as it is now ({said}); {update}{REMEDY}"
            )

    def outdated(self, collection: Indexable, analyzer: str) -> bool:
        """Whether all that has changed since the index was built of this collection is its documents."""
        return self.collection == collection.name and [*self._differing(collection, analyzer)] == ["fingerprint"]

    def _differing(self, collection: Indexable | None, analyzer: str) -> dict[str, tuple[object, object]]:
        """What the index has and what is wanted, where that is not the same."""
        wanted: dict[str, object] = {"pyserini": version("pyserini"), "format": FORMAT}
        if collection is not None:
            wanted = {"fingerprint": collection.fingerprint(), "analyzer": analyzer, **wanted}
        have = asdict(self)
        return {key: (have[key], value) for key, value in wanted.items() if have[key] != value}


def build_index(
    collection: Indexable,
    folder: Path,
    analyzer: str = "english",
    progress: Callable[[int], None] = lambda done: None,
    commit_every: int = COMMIT_EVERY,
    resume: bool = True,
    workers: int = 0,
    terms: bool = True,
) -> Manifest:
    """Index every document of `collection` into `folder`, which appears only when the index is complete.

    `progress` is called with the number of documents done. `workers` threads of Java index shards at the same time
    (0: one a core, as far as Java's memory goes); the index does not depend on how many. `terms` says whether it gets
    the forward index, which feedback, topic words and text MMR read; `add_terms` adds it later. An index that was at
    `folder` is replaced at the very end. Raises DataError with every fault of the document files (nothing is left
    behind then), UsageError where something else is at `folder` or in the way at `<folder>.partial`,
    BackendUnavailable where another process or thread is building it, where the disk is full or may not be written
    to, and where Java gives up.

    After each shard, of at most `commit_every` documents, what is done is safe in `<folder>.partial`. A build that ends
    early, by Ctrl-C, kill -9 or a full disk, leaves that behind, and the next one of the same documents goes on from
    there (unless `resume` is False) to the same index; documents before it are read again, but not analyzed. A build
    that ends before its first commit leaves nothing, or after a kill nothing of use.
    """
    if commit_every < 1:
        raise UsageError(f"an index is committed every {commit_every} documents; expected 1 or more")
    if workers < 0:
        raise UsageError(f"an index is built by {workers} workers; expected 1 or more, or 0 for one a core")
    chosen = Analyzer(analyzer)
    # Before the documents are read: what changes in the meantime must not pass for what was indexed.
    fingerprint = collection.fingerprint()
    origin = {"fingerprint": fingerprint, "analyzer": analyzer, "pyserini": version("pyserini"), "format": FORMAT}
    # Java resolves relative paths against the folder in which it was started.
    with workshop(folder.absolute(), (MANIFEST, RECORD)) as shop, explained(shop.path):
        # Of what an update or a forward index had come to, nothing else is of use.
        for path in shop.new.iterdir():
            if path.name == SCRATCH:
                shutil.rmtree(path)
            elif path.name != LUCENE:
                path.unlink()
        build = LuceneBuild(shop.new, chosen.java, origin, workers or workers_here(), commit_every)
        try:
            build.take_up(resume)
            documents = build.run(collection, progress)
            if terms:
                write_forward(shop.new, documents, chosen)
            manifest = Manifest(collection.name, fingerprint, documents, analyzer, version("pyserini"))
            write_whole(shop.new / MANIFEST, json.dumps(asdict(manifest), indent=2) + "\n")
            build.finish()
            shop.put()
        except BaseException as error:
            build.abandon()
            if not build.committed or isinstance(error, DataError):
                shop.clear()
            raise
    return manifest


def add_terms(collection: Indexable, folder: Path, progress: Callable[[int], None] = lambda done: None) -> None:
    """Give the index in `folder`, which was built from `collection`, its forward index; Lucene's is left as it is.

    `progress` is called with the number of documents looked at. The index with terms takes the place of the one without
    when it is complete. Raises what `build_index` does, IndexMismatch where the index is of something else.
    """
    folder = folder.absolute()
    manifest = Manifest.read(folder)
    manifest.check(collection, manifest.analyzer, folder)
    chosen = Analyzer(manifest.analyzer)
    with workshop(folder, (MANIFEST, RECORD)) as shop, explained(shop.path):
        try:
            take_over(folder, shop, [path.name for path in folder.iterdir() if path.name != RECORD])
            write_forward(shop.new, manifest.documents, chosen, progress)
            shop.put()
        except BaseException:
            shop.clear()
            raise


def has_terms(folder: Path) -> bool:
    """Whether the index in `folder` has a forward index."""
    return TermVectors.there(folder)


def take_over(folder: Path, shop: Workshop, names: Iterable[str]) -> None:
    """Begin with these files and folders of the index in `folder`, which are not to be written into: they are the same.

    Every byte of the index is compared; raises IndexMismatch where it is damaged.
    """
    if faults := differences(folder, whole=True):
        raise IndexMismatch(f"the index at {folder}: damaged; {REMEDY}", faults)
    shop.begin()
    for name in names:
        if (folder / name).is_dir():
            shutil.copytree(folder / name, shop.new / name, copy_function=_same)
        else:
            _same(str(folder / name), str(shop.new / name))


def _same(source: str, target: str) -> None:
    """One file at two places; a copy where the disk cannot have that."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def workers_here() -> int:
    """One a core, as many as Java's memory holds the shards of."""
    with using_java():
        memory: int = java_class("java.lang.Runtime").getRuntime().maxMemory()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, memory // SHARD_MEMORY))
