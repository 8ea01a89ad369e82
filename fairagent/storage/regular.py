"""Opening files where they are regular ones: what somebody else's folder holds may be anything.

Archives carry links, FIFOs and devices. A link in a folder of runs or prompts can lead to any file of whoever unpacks
it, and opening a FIFO waits for somebody who never comes. So a file is looked at before it is opened, opened without
waiting, and looked at again; what is none is named in the error.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from fairagent.errors import NotRegular, UsageError

ASIDE = os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
"""Flags of every file that is written: neither wait nor follow a link, and give it to no child."""
EVERYBODY = 0o666
OWNER = 0o600
"""Rights of what is private: prompts and replies hold documents and queries."""
_KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
}


def expect_regular(path: Path, status: os.stat_result, alone: bool = False) -> None:
    """Raise NotRegular where `status`, that of `path`, is not that of a regular file; `alone`: with no second name."""
    if not stat.S_ISREG(status.st_mode):
        what = _KINDS.get(stat.S_IFMT(status.st_mode), "a device")
        raise NotRegular(f"{path} is {what} and no regular file; move it away, or put the file itself there")
    if alone and status.st_nlink > 1:
        raise NotRegular(f"{path} is a file with a second name (a hard link), which would change too; put a copy there")


PIPES = (Path("/dev/fd"), Path("/proc/self/fd"))
"""Where the shell names what it has connected with this process."""


def open_to_read(path: Path, within: Path | None = None, pipes: bool = False) -> BufferedReader:
    """A regular file to read, at once; links are followed, but not out of the folder `within`.

    With `pipes` it may be one that the shell has made: `<(command)`. Raises NotRegular for anything else, OSError where
    it cannot be read.
    """
    if pipes and path.parent in PIPES:
        return path.open("rb")
    expect_regular(path, path.stat())
    if within is not None and not path.resolve().is_relative_to(within.resolve()):
        raise NotRegular(f"{path} is a link that leads out of {within}; put the file itself there")
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        expect_regular(path, status)
        # Somebody may have exchanged it since.
        if within is not None and not _is(path.resolve(), within.resolve(), status):
            raise NotRegular(f"{path} was exchanged while it was opened")
        return os.fdopen(descriptor, "rb")
    except BaseException:
        # Ctrl-C may come when the file is made already, which has then closed it.
        with suppress(OSError):
            os.close(descriptor)
        raise


def open_private(path: Path) -> BufferedReader:
    """A regular file of this user that nobody else can read or change, to read, at once; no link is followed.

    Raises NotRegular for anything else than a file, UsageError where it is another user's, or others have rights to it,
    OSError where it cannot be read.
    """
    expect_regular(path, path.lstat())
    descriptor = os.open(path, os.O_RDONLY | ASIDE)
    try:
        status = os.fstat(descriptor)
        expect_regular(path, status)
        if status.st_uid != os.geteuid():
            raise UsageError(f"{path} belongs to another user ({status.st_uid}), who can change it; make a copy of it")
        if status.st_mode & 0o077:
            raise UsageError(f"others than its owner have rights to {path}, which holds secrets: chmod 600 {path}")
        return os.fdopen(descriptor, "rb")
    except BaseException:
        with suppress(OSError):
            os.close(descriptor)
        raise


def _is(path: Path, within: Path, status: os.stat_result) -> bool:
    return path.is_relative_to(within) and os.path.samestat(path.lstat(), status)


@contextmanager
def folder_to_write(folder: Path, within: Path | None = None) -> Iterator[int]:
    """A descriptor of `folder`; below `within` folders that are missing are made, and no link is followed."""
    base = folder if within is None else within
    descriptor = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in folder.relative_to(base).parts:
            base /= name
            try:
                os.mkdir(name, dir_fd=descriptor)
            except FileExistsError:
                if not stat.S_ISDIR(os.lstat(name, dir_fd=descriptor).st_mode):
                    raise NotRegular(f"{base} is no folder, but a link or a file; move it away") from None
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | ASIDE, dir_fd=descriptor)
            # In this order: Ctrl-C may come in between.
            outer, descriptor = descriptor, inner
            os.close(outer)
        yield descriptor
    finally:
        os.close(descriptor)


def rights(path: Path, at: int, private: bool) -> int | None:
    """The rights that `path`, in the folder of the descriptor `at`, keeps; None where there is no such file yet."""
    try:
        status = os.lstat(path.name, dir_fd=at)
    except FileNotFoundError:
        return None
    expect_regular(path, status)
    return stat.S_IMODE(status.st_mode) & (OWNER if private else 0o777)


def new_rights(at: int, private: bool) -> int:
    """Those of a new file in the folder of this descriptor: who may not look into it may not read the file either."""
    return OWNER if private else os.fstat(at).st_mode & EVERYBODY | OWNER


def open_to_write(path: Path, flags: int, private: bool = False) -> int:
    """A descriptor of the regular file at `path`, opened with `flags`, made where these say so.

    Raises NotRegular for a link, a file with a second name, or anything else, which is not touched; OSError where it
    cannot be written. A `private` file is its owner's alone from now on.
    """
    with folder_to_write(path.parent) as at:
        rights(path, at, private)
        descriptor = os.open(path.name, flags | ASIDE, new_rights(at, private), dir_fd=at)
    try:
        status = os.fstat(descriptor)
        expect_regular(path, status, alone=True)
        if private and status.st_mode & 0o077:
            os.fchmod(descriptor, OWNER)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def new_file(path: Path, replacing: bool = True, private: bool = False) -> BinaryIO:
    """A new file to write, and to read, at `path`, in the place of a regular file that is there if `replacing`.

    Others see it grow: for the files of a folder that is put in its place as a whole (`workshop`), and what is never
    replaced. Raises NotRegular where something else is there, FileExistsError where anything is and `replacing` is not.
    """
    with folder_to_write(path.parent) as at:
        # Removed and not emptied: it may be mapped, or have a second name.
        if replacing and rights(path, at, private) is not None:
            os.unlink(path.name, dir_fd=at)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | ASIDE
        return os.fdopen(os.open(path.name, flags, new_rights(at, private), dir_fd=at), "w+b")
