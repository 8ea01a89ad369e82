"""Building an index under the eyes of a user: what is there already, what may be replaced, and a progress bar."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from fairagent.cli.terminal import progress_bar
from fairagent.collection import Collection
from fairagent.retrieve.lucene import Manifest, build_index
from fairagent.retrieve.lucene.index import MANIFEST
from fairagent.settings import Retrieval


@dataclass(frozen=True, slots=True)
class Indexed:
    """An index that fits its collection; `seconds` is None where it was there already, `size` is in bytes."""

    folder: Path
    manifest: Manifest
    seconds: float | None
    size: int


def ensure_index(collection: Collection, folder: Path, retrieval: Retrieval, force: bool = False) -> Indexed:
    """The index of `collection` in `folder`, built if there is none or `force` says so.

    Raises IndexMismatch where there is another index (unless forced), and what `build_index` raises.
    """
    if (folder / MANIFEST).is_file() and not force:
        manifest = Manifest.read(folder)
        manifest.check(collection, retrieval.analyzer, folder)
        return Indexed(folder, manifest, None, _size(folder))
    started = perf_counter()
    with progress_bar() as bar:
        # How many passages there will be is not known before.
        total = None if bar.disable or collection.chunks else collection.source.count()
        task = bar.add_task(f"indexing {collection.name}", total=total)
        manifest = build_index(
            collection,
            folder,
            retrieval.analyzer,
            lambda done: bar.update(task, completed=done),
            retrieval.memory,
            resume=not force,
        )
    return Indexed(folder, manifest, perf_counter() - started, _size(folder))


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
