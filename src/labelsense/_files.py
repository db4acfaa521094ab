"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import glob
import logging
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

logger = logging.getLogger("labelsense")

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
ABANDONED = 24 * 3600  # seconds after which a temporary file belongs to a process that was killed


def check_writable(path: str | os.PathLike[str]) -> None:
    """Refuse a path that :func:`replacing` could not write to: call it before work whose result goes there.

    Raises an OSError of the kind that opening the file would raise (IsADirectoryError, FileNotFoundError,
    PermissionError), which names the file. A disk may still be full later.
    """
    path = Path(path)
    if path.is_dir():
        raise _named(errno.EISDIR, path)
    target = _target(path)
    if not target.parent.is_dir():
        raise _named(errno.ENOTDIR if target.parent.exists() else errno.ENOENT, path)
    special = _is_special(path)
    if not os.access(path if special else target.parent, os.W_OK if special else os.W_OK | os.X_OK):
        raise _named(errno.EACCES, path)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary name; what is written to it is synced and takes the place of ``path``.

    If anything goes wrong before, ``path`` is as it was and nothing is left behind. A process that is killed leaves
    the temporary file, whose name starts with a dot, beside ``path``; it is removed by a later call, a day on. The new
    file has the mode of the old one, and its owner where that is allowed. A symbolic link stays one: its target is
    replaced. A device or a pipe is written to, once everything is there; a pipe needs a reader.
    """
    path = Path(path)
    check_writable(path)
    with _naming(path, None):
        temporary = _make_temporary(path)
    try:
        with _naming(path, temporary):
            yield temporary
        with _naming(path, temporary):
            if _is_special(path):
                _copy(temporary, path)
                temporary.unlink()
            else:
                _take_place(temporary, _target(path))
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        raise


def _target(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _is_special(path: Path) -> bool:
    return path.exists() and not path.is_file()


def _make_temporary(path: Path) -> Path:
    if _is_special(path):
        handle, name = tempfile.mkstemp()
        os.close(handle)
        return Path(name)
    target = _target(path)
    _remove_abandoned(target)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    mode = 0o600 if target.exists() else 0o666  # what is private stays so while it is written
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
    return temporary


def _remove_abandoned(target: Path) -> None:
    for name in target.parent.glob(f".{glob.escape(target.name)}.*.tmp"):
        with contextlib.suppress(OSError):
            if name.stat().st_mtime < time.time() - ABANDONED:
                name.unlink()


def _take_place(temporary: Path, target: Path) -> None:
    _sync(temporary)
    if target.exists():
        old = target.stat()
        with contextlib.suppress(PermissionError):
            os.chown(temporary, old.st_uid, old.st_gid)
        os.chmod(temporary, stat.S_IMODE(old.st_mode))
    os.replace(temporary, target)
    with contextlib.suppress(OSError):  # not every system syncs folders; the file is in its place
        _sync(target.parent)


def _copy(temporary: Path, path: Path) -> None:
    # Without O_NONBLOCK, a pipe that nobody reads would wait for ever.
    handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    os.set_blocking(handle, True)
    with open(temporary, "rb") as source, open(handle, "wb") as out:
        shutil.copyfileobj(source, out)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _named(number: int, path: Path) -> OSError:
    return OSError(number, os.strerror(number), os.fspath(path))


@contextmanager
def _naming(path: Path, temporary: Path | None) -> Iterator[None]:
    """Let errors of the temporary file, and of a full disk, name the file that was to be written.

    Errors of other files pass as they are: what is written may be read from one at the same time.
    """
    try:
        yield
    except OSError as error:
        ours = temporary is None or error.filename == os.fspath(temporary)
        if error.errno is not None and (ours or (error.filename is None and error.errno in FULL)):
            raise _named(error.errno, path) from error
        raise


@contextmanager
def locking(path: str | os.PathLike[str]) -> Iterator[None]:
    """Keep others that lock the same file waiting while it is read, changed and replaced.

    The lock is on the file itself and ends with the process. A file that was replaced while we waited for it is no
    longer the one that others lock: then the new one is locked.
    """
    import fcntl  # which not every system has

    while True:
        with open(path, "rb") as file:
            for _ in range(20):  # a second
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    time.sleep(0.05)
            else:
                logger.warning("%s is being changed by another process: waiting for it", os.fspath(path))
                fcntl.flock(file, fcntl.LOCK_EX)
            if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                yield
                return
