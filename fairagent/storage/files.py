"""Atomic writes, removed folders, locks, and file names."""

import json
import os
import re
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from secrets import token_hex
from typing import IO

from filelock import FileLock, Timeout

from fairagent.errors import BackendUnavailable, NotRegular
from fairagent.storage.cancellation import check_cancelled, is_cancelled
from fairagent.storage.readers import file_text, parse_json
from fairagent.storage.regular import (
    ASIDE,
    OWNER,
    folder_to_write,
    new_rights,
    open_to_write,
    rights,
)

LOCK = "lock"
POLL = 0.02
"""Seconds between two looks at a lock that somebody else has."""
_ODD = re.compile(r"[^A-Za-z0-9._+-]+")
_BEGUN = re.compile(r"\.(.+)\.[0-9a-f]{16}\.new")


def write_whole(path: Path, text: str, within: Path | None = None, private: bool = False) -> None:
    """Put `text` (UTF-8) at `path` at once; see `whole_file`."""
    with whole_file(path, within, private) as file:
        file.write(text.encode())


@contextmanager
def whole_file(path: Path, within: Path | None = None, private: bool = False) -> Iterator[IO[bytes]]:
    """A file to write that gets to `path` at once: whoever looks, now or after a crash, sees the old one or the new.

    It is written in the same folder under a name that nobody can foresee, forced to the disk, and renamed; the folder
    is forced as well. It has the rights of the old file; a new one those of its folder, without anybody's to run it; a
    `private` one is its owner's alone. Below the folder `within`, which may be a stranger's, no link is followed.

    Raises NotRegular where a link, a FIFO, a device or a folder is at `path`, which is left as it is;
    BackendUnavailable where the disk is full or may not be written to: the old file is still there then.
    """
    with explained(path):
        (within or path.parent).mkdir(parents=True, exist_ok=True)
    with explained(path), folder_to_write(path.parent, within) as at:
        own_rights = rights(path, at, private)
        _tidy(path.name, at)
        new, descriptor = _begun(path.name, new_rights(at, private) if own_rights is None else OWNER, at)
        try:
            with os.fdopen(descriptor, "wb") as file:
                yield file
                file.flush()
                if own_rights is not None:
                    os.fchmod(file.fileno(), own_rights)
                os.fsync(file.fileno())
                os.replace(new, path.name, src_dir_fd=at, dst_dir_fd=at)
        except BaseException:
            with suppress(OSError):
                os.unlink(new, dir_fd=at)
            raise
        os.fsync(at)


def _begun(name: str, mode: int, at: int) -> tuple[str, int]:
    """A file to be renamed to `name`: its own name, and a descriptor that has it locked while it is written."""
    while True:
        new = f".{name}.{token_hex(8)}.new"
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | ASIDE, mode, dir_fd=at)
        with suppress(OSError):  # there are disks without locks, and nobody tidies those
            flock(descriptor, LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return new, descriptor
        os.close(descriptor)  # somebody has tidied before it was locked


def is_left_over(name: str, of: str = "") -> bool:
    """Whether it is the name of a file that `whole_file` has begun (as `of`), and a killed process may have left."""
    begun = _BEGUN.fullmatch(name)
    return begun is not None and of in ("", begun[1])


def _tidy(name: str, at: int) -> None:
    """Remove what killed processes have begun to write as `name`: files that no process has locked."""
    for left in (one for one in os.listdir(at) if is_left_over(one, name)):
        with suppress(OSError):
            descriptor = os.open(left, os.O_RDONLY | ASIDE, dir_fd=at)
            try:
                flock(descriptor, LOCK_EX | LOCK_NB)
                os.unlink(left, dir_fd=at)
            finally:
                os.close(descriptor)


def force(path: Path) -> None:
    """Force to the disk what a file holds, or which files are in a folder, which a link may lead to."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_folder(path: Path, ignore_errors: bool = True) -> None:
    """Remove a folder with all that is in it, as `shutil.rmtree` does; Ctrl-C comes out as such.

    Interrupted after it has closed a folder, `rmtree` closes it once more, and raises the OSError of that instead.
    """
    try:
        shutil.rmtree(path, ignore_errors)
    except OSError as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            raise error.__context__ from None
        raise


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn the operating system's error about writing `path` into a message with the way out."""
    try:
        yield
    except NotRegular:
        raise
    except OSError as error:
        raise cannot_write(path, error.strerror or str(error)) from None


def cannot_write(path: Path, reason: str, left: str = "what is done so far stays") -> BackendUnavailable:
    """The error of a full disk, or of one that may not be written to, with what it has `left`."""
    return BackendUnavailable(
        f"{path} cannot be written ({reason}); {left}: make room or mend the permissions, then repeat the command"
    )


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Work in `folder` alone; BackendUnavailable, naming process and host, where another process does.

    The operating system drops the lock with the process, however that ends: a file that a killed process left is taken
    over, unless it names another host, where nobody here can look.
    """
    path = folder / LOCK
    lock = FileLock(path, timeout=0)
    with explained(path):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire()
        except Timeout:
            raise _taken(path) from None
    try:
        if _holder(path)[1] not in (None, socket.gethostname()):
            raise _taken(path)
        with explained(path), os.fdopen(open_to_write(path, os.O_WRONLY | os.O_TRUNC), "w", encoding="utf-8") as file:
            json.dump({"pid": os.getpid(), "host": socket.gethostname()}, file)
        try:
            yield
        finally:
            # What stays is taken over by whoever comes next.
            with suppress(OSError):
                path.unlink()
    finally:
        lock.release()


def is_worked_in(folder: Path) -> bool:
    """Whether a process works in `folder` (`locked`), as far as can be seen from here: one on another host does."""
    process, host = _holder(folder / LOCK)
    if process is None or host != socket.gethostname():
        return process is not None
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it is somebody else's
    return True


@contextmanager
def one_at_a_time(path: Path, seconds: float) -> Iterator[None]:
    """Wait, up to `seconds`, until no other thread or process is in a block of this `path`, which is a file's.

    The file is there as long as the block lasts. The operating system drops the lock with the process, so that nobody
    waits for one that was killed. Where there are no locks, or nothing can be written, nobody waits at all. Waiting can
    be cancelled.
    """
    lock = FileLock(path, timeout=seconds)
    with suppress(OSError):
        lock.acquire(poll_interval=POLL, cancel_check=is_cancelled)
    try:
        check_cancelled()
        yield
    finally:
        if lock.is_locked:
            # Before the lock is dropped: whoever waits for it finds that it is no file's any more, and makes a new one.
            with suppress(OSError):
                path.unlink()
            lock.release()


def _holder(path: Path) -> tuple[int, str] | tuple[None, None]:
    """Process and host that the lock file names; None where it names none (its owner died while writing it)."""
    try:
        named = parse_json(file_text(path, 1000))
        return int(named["pid"]), str(named["host"])
    except (OSError, ValueError, KeyError, TypeError):
        return None, None


def _taken(path: Path) -> BackendUnavailable:
    process, host = _holder(path)
    who = f"process {process} on {host}" if host else "another process"
    return BackendUnavailable(
        f"{who} is working in {path.parent}; wait for it, or name another folder. "
        f"If that process is certainly gone, remove {path}"
    )


def file_name(system: str) -> str:
    """The system's name as the name of a file and the tag of a TREC run.

    >>> file_name("agent, FA*IR (0.1)")
    'agent_FA_IR_0.1'
    """
    return _ODD.sub("_", system).strip("_.") or "system"
