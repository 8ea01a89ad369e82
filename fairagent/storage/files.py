"""Files that are regular, appear whole or grow line by line, and are written by one process at a time.

Archives carry links, FIFOs and devices. A link in a stranger's folder can lead to any file of whoever unpacks it, and
opening a FIFO waits for somebody who never comes. So a file is looked at before it is opened, opened without waiting,
and looked at again; what is none is named in the error.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import socket
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, LOCK_NB, flock
from io import BufferedReader
from pathlib import Path
from secrets import token_hex
from typing import IO, BinaryIO, Self

from filelock import FileLock, Timeout

from fairagent.errors import BackendUnavailable, NotRegular, UsageError
from fairagent.storage.threads import check_cancelled, is_cancelled

ASIDE = os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
"""Flags of every file that is written: neither wait nor follow a link, and give it to no child."""
OWNER = 0o600
"""Rights of what is private: prompts and replies hold documents and queries."""
LOCK = "lock"
PIPES = (Path("/dev/fd"), Path("/proc/self/fd"))
"""Where the shell names what it has connected with this process."""
_TAIL = len(',"sha256":"0123456789abcdef"}')
_BEGUN = re.compile(r"\.(.+)\.[0-9a-f]{16}\.new")


def expect_regular(path: Path, status: os.stat_result, alone: bool = False) -> None:
    """Raise NotRegular where `status`, that of `path`, is not that of a regular file; `alone`: with no second name."""
    if not stat.S_ISREG(status.st_mode):
        kinds = {stat.S_IFLNK: "a link", stat.S_IFDIR: "a folder", stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket"}
        what = kinds.get(stat.S_IFMT(status.st_mode), "a device")
        raise NotRegular(f"{path} is {what} and no regular file; move it away, or put the file itself there")
    if alone and status.st_nlink > 1:
        raise NotRegular(f"{path} is a file with a second name (a hard link), which would change too; put a copy there")


@contextmanager
def _closed_on_error(descriptor: int) -> Iterator[None]:
    try:
        yield
    except BaseException:
        # Ctrl-C may come when a file object is made already, which has then closed it.
        with suppress(OSError):
            os.close(descriptor)
        raise


def open_to_read(path: Path, within: Path | None = None, pipes: bool = False, private: bool = False) -> BufferedReader:
    """A regular file to read, at once; links are followed, but not out of the folder `within`.

    With `pipes` it may be one that the shell has made: `<(command)`. A `private` one is no link, is this user's, and
    nobody else can read or change it. Raises NotRegular for anything else than a file, UsageError where others have
    rights to a private one, OSError where it cannot be read.
    """
    if pipes and path.parent in PIPES:
        return path.open("rb")
    expect_regular(path, path.lstat() if private else path.stat())
    if within is not None and not path.resolve().is_relative_to(within.resolve()):
        raise NotRegular(f"{path} is a link that leads out of {within}; put the file itself there")
    descriptor = os.open(path, os.O_RDONLY | (ASIDE if private else ASIDE & ~os.O_NOFOLLOW))
    with _closed_on_error(descriptor):
        status = os.fstat(descriptor)
        expect_regular(path, status)
        if private and status.st_uid != os.geteuid():
            raise UsageError(f"{path} belongs to another user ({status.st_uid}), who can change it; make a copy of it")
        if private and status.st_mode & 0o077:
            raise UsageError(f"others than its owner have rights to {path}, which holds secrets: chmod 600 {path}")
        if within is not None:
            target = path.resolve()
            if not (target.is_relative_to(within.resolve()) and os.path.samestat(target.lstat(), status)):
                raise NotRegular(f"{path} was exchanged while it was opened")
        return os.fdopen(descriptor, "rb")


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


def _rights(path: Path, at: int, private: bool) -> tuple[int | None, int]:
    """The rights that `path`, in the folder `at`, keeps (None: there is no such file), and those of a new file."""
    # Who may not look into the folder may not read a new file either.
    new = OWNER if private else os.fstat(at).st_mode & 0o666 | OWNER
    try:
        status = os.lstat(path.name, dir_fd=at)
    except FileNotFoundError:
        return None, new
    expect_regular(path, status)
    return stat.S_IMODE(status.st_mode) & (OWNER if private else 0o777), new


def open_to_write(path: Path, flags: int, private: bool = False) -> int:
    """A descriptor of the regular file at `path`, opened with `flags`, made where these say so.

    Raises NotRegular for a link, a file with a second name, or anything else, which is not touched; OSError where it
    cannot be written. A `private` file is its owner's alone from now on.
    """
    with folder_to_write(path.parent) as at:
        descriptor = os.open(path.name, flags | ASIDE, _rights(path, at, private)[1], dir_fd=at)
    with _closed_on_error(descriptor):
        status = os.fstat(descriptor)
        expect_regular(path, status, alone=True)
        if private and status.st_mode & 0o077:
            os.fchmod(descriptor, OWNER)
    return descriptor


def new_file(path: Path, replacing: bool = True) -> BinaryIO:
    """A new file to write, and to read, at `path`, in the place of a regular file that is there if `replacing`.

    Others see it grow: for the files of a folder that is put in its place as a whole (`workshop`), and what is never
    replaced. Raises NotRegular where something else is there, FileExistsError where anything is and `replacing` is not.
    """
    with folder_to_write(path.parent) as at:
        # Removed and not emptied: it may be mapped, or have a second name.
        if replacing and _rights(path, at, private=False)[0] is not None:
            os.unlink(path.name, dir_fd=at)
        flags, rights = os.O_RDWR | os.O_CREAT | os.O_EXCL | ASIDE, os.fstat(at).st_mode & 0o666 | OWNER
        return os.fdopen(os.open(path.name, flags, rights, dir_fd=at), "w+b")


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
        old_rights, new_rights = _rights(path, at, private)
        _tidy(path.name, at)
        new, descriptor = _begun(path.name, new_rights if old_rights is None else OWNER, at)
        try:
            with os.fdopen(descriptor, "wb") as file:
                yield file
                file.flush()
                if old_rights is not None:
                    os.fchmod(file.fileno(), old_rights)
                os.fsync(file.fileno())
                os.replace(new, path.name, src_dir_fd=at, dst_dir_fd=at)
        except BaseException:
            with suppress(OSError):
                os.unlink(new, dir_fd=at)
            raise
        os.fsync(at)


def _begun(name: str, mode: int, at: int) -> tuple[str, int]:
    """A file to be renamed to `name`, and a descriptor that has it locked while it is written."""
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
    """`shutil.rmtree`, of which Ctrl-C comes out as such: it raises the OSError of a folder that it closes twice."""
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


def checksum(text: str | bytes, key: str = "") -> str:
    """16 hex digits of the SHA-256 of a text and of the key that it belongs to."""
    content = text.encode() if isinstance(text, str) else text
    return hashlib.sha256(key.encode() + b"\n" + content).hexdigest()[:16]


def sealed(line: str, key: str = "") -> str:
    """A JSON object on one line, with a checksum as its last key; `key` is what the line has to belong to.

    >>> sealed('{"a":1}')
    '{"a":1,"sha256":"7395dc66860499cb"}'
    """
    return f'{line[:-1]},"sha256":"{checksum(line, key)}"}}'


def unsealed(line: bytes, key: str = "") -> bytes:
    """The object that was sealed; ValueError where the line is another one, or belongs to something else."""
    plain = line.rstrip(b"\n")
    body = plain[:-_TAIL] + b"}"
    if plain[-_TAIL:] != f',"sha256":"{checksum(body, key)}"}}'.encode():
        raise ValueError("its checksum is not that of its contents")
    return body


class LineFile:
    """A file of JSON objects at `path`, a line each with a checksum, to be added to; to be used as a context.

    A line is there as a whole or not at all: a torn last one is taken away first. Threads may share it. `forced`: each
    line is forced to the disk, so that it outlasts a power cut; a `private` file is its owner's alone. Raises
    NotRegular where something else is at `path`.
    """

    def __init__(self, path: Path, forced: bool = True, private: bool = False) -> None:
        self.path, self._forced, self._private, self._descriptor = path, forced, private, -1
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        with explained(self.path):
            self._descriptor = open_to_write(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, self._private)
            # Looked at first: what another process adds meanwhile is no torn line.
            size = os.fstat(self._descriptor).st_size
            whole = sum(map(len, whole_lines(self.path)))
            if whole < size:
                os.ftruncate(self._descriptor, whole)
            force(self.path.parent)
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            # Its number may be another file's from now on: a thread that nobody waits for finds it closed.
            closed, self._descriptor = self._descriptor, -1
            os.close(closed)

    def write(self, line: str, key: str = "") -> None:
        """Write one line, sealed with `key`; BackendUnavailable where that cannot be."""
        rest = sealed(line, key).encode() + b"\n"
        with self._lock, explained(self.path):
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
            if self._forced:
                os.fsync(self._descriptor)


def whole_lines(path: Path, within: Path | None = None) -> Iterator[bytes]:
    """Every line that ends as lines do, with its end; none where there is no file. Errors as `open_to_read`."""
    if path.exists():
        with open_to_read(path, within) as file:
            yield from (line for line in file if line.endswith(b"\n"))


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Work in `folder` alone; BackendUnavailable, naming process and host, where another process does.

    The operating system drops the lock with the process, however that ends: a file that a killed process left is taken
    over, unless it names another host, where nobody here can look.
    """
    path = folder / LOCK
    lock = FileLock(path, timeout=0)
    with explained(path), suppress(Timeout):
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    try:
        process, host = _holder(path)
        if not lock.is_locked or host not in (None, socket.gethostname()):
            who = f"process {process} on {host}" if host else "another process"
            raise BackendUnavailable(
                f"{who} is working in {path.parent}; wait for it, or name another folder. "
                f"If that process is certainly gone, remove {path}"
            )
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
    if process is not None and host == socket.gethostname():
        with suppress(PermissionError):  # it is somebody else's
            try:
                os.kill(process, 0)
            except ProcessLookupError:
                return False
    return process is not None


@contextmanager
def one_at_a_time(path: Path, seconds: float) -> Iterator[None]:
    """Wait, up to `seconds`, until no other thread or process is in a block of this `path`, which is a file's.

    The file is there as long as the block lasts, and nobody waits for a process that was killed. Where there are no
    locks, or nothing can be written, nobody waits at all. Waiting can be cancelled.
    """
    lock = FileLock(path, timeout=seconds)
    with suppress(OSError):
        lock.acquire(poll_interval=0.02, cancel_check=is_cancelled)
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
        with open_to_read(path) as file:
            named = json.loads(file.read(1000))
        return int(named["pid"]), str(named["host"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError, NotRegular):
        return None, None


def file_name(system: str) -> str:
    """The system's name as the name of a file and the tag of a TREC run.

    >>> file_name("agent, FA*IR (0.1)")
    'agent_FA_IR_0.1'
    """
    return re.sub(r"[^A-Za-z0-9._+-]+", "_", system).strip("_.") or "system"
