"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

logger = logging.getLogger("labelsense")


def check_writable(path: str | os.PathLike[str]) -> None:
    """Refuse a path that :func:`replacing` could not write to: call it before work whose result goes there.

    Raises an OSError of the kind that opening the file would raise, which names the file.
    """
    path = Path(path)
    if path.is_dir():
        problem = errno.EISDIR
    elif not path.parent.is_dir():
        problem = errno.ENOENT
    elif not os.access(path.parent, os.W_OK | os.X_OK):
        problem = errno.EACCES
    else:
        return
    raise OSError(problem, os.strerror(problem), os.fspath(path))


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary name beside ``path``; what is written to it is synced and takes the place of ``path``.

    If anything goes wrong before, ``path`` is as it was and nothing is left behind. A process that is killed leaves
    the temporary file, whose name starts with a dot, and ``path`` as it was.
    """
    path = Path(path)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        _sync(temporary)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        raise
    _sync(path.parent)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


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
