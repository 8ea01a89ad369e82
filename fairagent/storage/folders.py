"""Folders that appear whole: made beside their place and put there by renaming, whatever ends the work.

What is to be at `<folder>` is made in `<folder>.partial`, which nobody else may have anything in:

    .fairagent   says whose it is
    lock         there while a process works in it
    new/         what is being made; folders in the making that are to be in it are beside it
    old/         what was at the place, from the moment when it is moved away until the new one is safely there
    gone/        what is being removed

A process may die at any moment. Before both renamings the old folder is at its place; after the first one both are in
the workshop, complete, and whoever comes next, to read or to build, does the second one; then the new one is there.
What else a process left in the workshop is removed by whoever builds next: no work is gone on with.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import sleep

from fairagent.errors import UsageError
from fairagent.storage.digests import RECORD, record_files
from fairagent.storage.files import LOCK, cannot_write, force, is_worked_in, locked, open_to_write, remove_folder

MARKER = ".fairagent"
LOOKS, BETWEEN = 100, 0.01
"""So often, and so many seconds apart, whoever reads looks for a folder that is just being put in its place."""
_DISK = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.EBUSY),
    errno.EXDEV,
}
"""What the disk, the rights on it or how it is mounted are to blame for."""


class Workshop:
    """Where what is to be at `folder` is made: in `new`; `old` is what was there before, `path` the workshop itself."""

    def __init__(self, folder: Path) -> None:
        # A link that the user has put there stays, and leads to what is new.
        folder = folder.resolve() if folder.is_symlink() else folder
        self.folder, self.path = folder, folder.parent / f"{folder.name}.partial"
        self.new, self.old = self.path / "new", self.path / "old"

    def put(self, recorded: bool = False) -> None:
        """Record what was made (or was `recorded` before), force it to the disk, and put it in its place.

        The old one is whole until then.
        """
        for left in self.new.glob("*.partial"):
            remove_folder(left)
        if not recorded:
            record_files(self.new)
        for path in (*self.new.rglob("*"), self.new):
            force(path)
        if self.folder.exists():
            self.folder.rename(self.old)
        self._move_new()

    def _move_new(self) -> None:
        self.new.rename(self.folder)
        force(self.folder.parent)

    def finish(self) -> None:
        """Move what is missing to its place since a process died while it put it there, and remove what was old."""
        if not self.folder.exists() and self.old.is_dir() and self.new.is_dir():
            self._move_new()
        if self.old.exists():
            self._remove(self.old)

    def empty(self) -> None:
        """Remove what is in it."""
        for part in self.path.iterdir() if self.path.is_dir() else ():
            if part.name not in (MARKER, LOCK):
                self._remove(part)

    def _remove(self, part: Path) -> None:
        """Remove a part so that it goes at once: half of it, if this ends early, would pass for the whole."""
        gone = self.path / "gone"
        if part != gone:
            remove_folder(gone)
            part.rename(gone)
        remove_folder(gone)

    def clear(self) -> None:
        """Do what is still to be done, and remove it; the marker goes after all that it stands for."""
        self.finish()
        self.empty()
        remove_folder(self.path)

    def is_usable(self) -> bool:
        """Whether it is fairagent's: nothing is there, it is marked so, or its maker died before that."""
        names = _files(self.path)
        return not self.path.is_symlink() and (names.get(MARKER, False) or names.keys() <= {LOCK})

    def conclude(self) -> None:
        """Do what a process that died had still to do, alone."""
        with locked(self.path), _explained(self.path):
            self.clear()


@contextmanager
def workshop(folder: Path, markers: tuple[str, ...] = (RECORD,)) -> Iterator[Workshop]:
    """Make what is to be at `folder` in an empty `new`, alone; `put` puts it there, what does not get that far goes.

    Only what is fairagent's is replaced: a folder with one of the files `markers`, or an empty one. Raises UsageError
    where something else is at `folder` or in the way beside it, BackendUnavailable where another process works there,
    and where the disk is full or may not be written to.
    """
    expect_replaceable(folder, markers)
    shop = Workshop(folder)
    if not shop.is_usable():
        raise UsageError(
            f"{shop.path} is there and was not made by this version of fairagent, which would work there; move it "
            "away, or name another folder"
        )
    with _explained(shop.path):
        shop.path.mkdir(parents=True, exist_ok=True)
        os.close(open_to_write(shop.path / MARKER, os.O_WRONLY | os.O_CREAT))
    with locked(shop.path), _explained(shop.path):
        for path in shop.path.iterdir():
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                raise UsageError(f"{path} is a link or no file, and was not made by fairagent; remove {shop.path}")
        shop.finish()
        shop.empty()
        shop.new.mkdir()
        try:
            yield shop
        finally:
            # Ended between the two renamings, the second one is still to be done.
            shop.clear()


def expect_replaceable(folder: Path, markers: tuple[str, ...] = (RECORD,)) -> None:
    """Raise UsageError where there is something at `folder` that is none of fairagent's."""
    names = _files(folder)
    if names and not any(names.get(name) for name in markers):
        raise UsageError(f"{folder} is there and was not made by fairagent; name a new or an empty folder")


def _files(folder: Path) -> dict[str, bool]:
    """The names in a folder, each with whether it is a file, seen in one look: others may move the folder meanwhile.

    What is no folder, or a link to nothing, counts as one nameless thing that is no file.
    """
    try:
        with os.scandir(folder) as entries:
            return {entry.name: entry.is_file() for entry in entries}
    except FileNotFoundError:
        return {"": False} if folder.is_symlink() else {}
    except NotADirectoryError:
        return {"": False}


def is_there(folder: Path, name: str) -> bool:
    """Whether the finished `folder`, with a file `name`, is at its place; a killed process may have left it halfway."""
    recover(folder)
    return (folder / name).is_file()


def recover(folder: Path) -> None:
    """Move to its place what a killed process was about to put there; what else it left is the next builder's."""
    shop = Workshop(folder)
    if folder.exists() or not shop.old.is_dir() or not shop.is_usable():
        return
    # A living process may be between the two renamings.
    for _ in range(LOOKS):
        if folder.exists() or not is_worked_in(shop.path):
            break
        sleep(BETWEEN)
    if not folder.exists():
        shop.conclude()


def tidy(folder: Path) -> None:
    """Remove what killed processes have left beside the folder, and in it; BackendUnavailable where one is at work."""
    for shop in (Workshop(folder), *(Workshop(path.with_suffix("")) for path in folder.glob("*.partial"))):
        if shop.path.is_dir() and shop.is_usable():
            shop.conclude()


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn a full or read-only disk, met while writing below `path`, into a message with the way out."""
    reason = ""
    try:
        yield
        return
    except OSError as error:
        # Numpy's error about a file that it cannot finish has no more than how much it has written.
        short = error.errno is None and str(error).endswith(" written")
        # Whatever else is read on the way has errors of its own.
        elsewhere = error.filename and not Path(error.filename).is_relative_to(path.parent)
        if not short and (error.errno not in _DISK or elsewhere):
            raise
        reason = error.strerror or str(error)
    except Exception as error:
        # faiss and the library that writes models have errors of their own for those of the system.
        of_models = type(error).__module__.startswith("safetensors") and "os error" in str(error)
        if not of_models and not (isinstance(error, RuntimeError) and "write error" in str(error)):
            raise
        reason = str(error).rpartition(": ")[2]
    raise cannot_write(path, reason, "what was there before is as it was")
