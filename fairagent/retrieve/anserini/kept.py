"""The ids of an index by their numbers, read once and kept beside: never in the index, which is somebody else's.

They are kept in the user's cache folder, or where the settings say, and hold for one commit of the index.
"""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fairagent.clean import logger
from fairagent.collection.table_buffer import fixed_width
from fairagent.errors import BackendUnavailable, IndexMismatch
from fairagent.files import file_name, write_whole
from fairagent.folders import is_there, workshop
from fairagent.intake.text import file_text
from fairagent.retrieve.anserini import loops
from fairagent.retrieve.bm25.manifest import MANIFEST
from fairagent.retrieve.java import using_java
from fairagent.retrieve.strings import MAX_ID_BYTES, IdTable

COMMIT = "commit.txt"

log = logger(__name__)


def cache_folder() -> Path:
    """Where ids are kept unless settings name a folder: below the user's cache folder."""
    from platformdirs import user_cache_path

    return user_cache_path("fairagent") / "lucene"


def commit_file(folder: Path) -> Path:
    """The file that names the segments of the index's last commit, with an id of its own in it.

    Raises BackendUnavailable where there is no Lucene index in `folder`, with what may be meant.
    """
    # The number after the line is in base 36.
    commits = [path for path in folder.glob("segments_*") if path.name[9:].isalnum()]
    if commits:
        return max(commits, key=lambda path: int(path.name[9:], 36))
    if (folder / MANIFEST).is_file():
        raise BackendUnavailable(f"the index at {folder} is one of fairagent's own, which `engine: bm25` searches")
    raise BackendUnavailable(
        f"no Lucene index at {folder}: name the folder with the file segments_...; for a prebuilt index it is what "
        "pyserini's download_prebuilt_index(NAME) returns"
    )


def kept_ids(
    folder: Path, kept: Path, leaves: Sequence[Any], progress: Callable[[int], None] = lambda done: None
) -> IdTable:
    """The ids of the index in `folder`, whose segments' readers are `leaves`: as they are kept, or read from the index.

    Raises IndexMismatch where documents have no id, or the same one; BackendUnavailable where `kept` cannot be written.
    """
    place = kept / f"{file_name(folder.name)}-{hashlib.sha256(str(folder).encode()).hexdigest()[:12]}"
    commit = hashlib.sha256(commit_file(folder).read_bytes()).hexdigest()
    if is_there(place, COMMIT):
        if file_text(place / COMMIT, 1000) == commit:
            try:
                return IdTable.load(place)
            except (OSError, ValueError) as error:
                log.warning("the ids of %s, kept at %s, are damaged (%s) and read again", folder, place, error)
        else:
            log.warning("the index at %s has changed since its ids were kept at %s; they are read again", folder, place)
    with workshop(place) as shop:
        shop.begin()
        _read(folder, shop.new, leaves, progress)
        write_whole(shop.new / COMMIT, commit)
        shop.put()
    return IdTable.load(place)


def _read(folder: Path, new: Path, leaves: Sequence[Any], progress: Callable[[int], None]) -> None:
    block, lengths, done = new / "ids.bytes", new / "ids.lengths", 0
    for leaf in leaves:
        with using_java():
            documents, by_column = leaf.maxDoc(), loops.ids_by_column(leaf)
            if by_column not in (0, documents):
                raise IndexMismatch(f"{documents - by_column:,} documents of the index at {folder} have no id")
            loops.write_ids(leaf, by_column > 0, block, lengths)
        done += documents
        progress(done)
    sizes = np.frombuffer(lengths.read_bytes(), ">i4")
    if not 0 < sizes.min() <= sizes.max() <= MAX_ID_BYTES:
        raise IndexMismatch(f"the index at {folder} has ids that are empty or longer than {MAX_ID_BYTES} bytes")
    IdTable.save(new, fixed_width(np.frombuffer(block.read_bytes(), np.uint8), sizes, int(sizes.max())))
    for path in (block, lengths):
        path.unlink()
