"""The write-ahead log of updates: what was acknowledged is in it, or in the model file, or in both.

A journal is a file of lines. Each has a checksum of eight hexadecimal digits, a blank, and JSON: first
``{"journal": ID, "start": N}``, then one update per line, ``{"n": N + 1, ...}`` and so on. A process that was killed
leaves at most one line that is not whole, the last, which nobody was told of. The model file says which updates it has,
by the ID and a number, and is replaced whole: so each is learned once, whenever the process ends.
"""

from __future__ import annotations

import json
import os
import secrets
import threading
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from labelsense.errors import FormatError

Entry = dict[str, Any]


class Journal:
    """The updates that a model file may not have yet.

    Parameters
    ----------
    path : Path
        The file, which is made if it is not there. It is locked as long as it is open: a second process is refused.

    Attributes
    ----------
    id : str
        Which journal it is: a number in another one means nothing here.
    start : int
        The number of the last update that is no longer in it.
    last : int
        The number of the last update.

    Examples
    --------
    >>> import os, tempfile
    >>> from pathlib import Path
    >>> from labelsense.serve.journal import Journal
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     journal = Journal(Path(folder) / "model.journal")
    ...     numbers = journal.append([{"learn": "a"}, {"learn": "b"}])
    ...     later = [entry["learn"] for entry in journal.after(1)]
    ...     journal.close()
    >>> numbers, later
    ([1, 2], ['b'])
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._file = open(path, "a+b", buffering=0)  # noqa: SIM115 - open as long as the journal is
        try:
            self._lock_file()
            self._read()
        except BaseException:
            self._file.close()
            raise

    @property
    def last(self) -> int:
        """The number of the last update."""
        return self.start + len(self._entries)

    def after(self, position: int) -> list[Entry]:
        """Return the updates with larger numbers, in order."""
        with self._lock:
            return self._entries[max(0, position - self.start) :]

    def append(self, updates: Sequence[Entry]) -> list[int]:
        """Write updates and wait until the disk has them; return their numbers. After an error none is there."""
        with self._lock:
            entries = [{"n": self.last + 1 + i, **update} for i, update in enumerate(updates)]
            end = os.fstat(self._file.fileno()).st_size
            try:
                self._write(b"".join(map(_line, entries)))
            except BaseException:
                os.ftruncate(self._file.fileno(), end)
                raise
            self._entries += entries
            return [entry["n"] for entry in entries]

    def trim(self, saved: int) -> None:
        """Empty the file, if a model file that is on disk has all updates."""
        with self._lock:
            if self._entries and saved >= self.last:
                self._begin(self.id, self.last)

    def close(self) -> None:
        """Close the file, and so unlock it."""
        self._file.close()

    def _begin(self, id: str, start: int) -> None:
        """Begin anew. A process that is killed meanwhile leaves an empty file: a new journal, without updates."""
        os.ftruncate(self._file.fileno(), 0)
        self._write(_line({"journal": id, "start": start}))
        self.id, self.start = id, start
        self._entries: list[Entry] = []

    def _write(self, content: bytes) -> None:
        view = memoryview(content)
        while view:
            view = view[self._file.write(view) :]
        os.fsync(self._file.fileno())

    def _lock_file(self) -> None:
        import fcntl  # which not every system has

        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FormatError(f"{self.path} is in use: another server learns for this model.") from None

    def _read(self) -> None:
        self._file.seek(0)
        *lines, _ = self._file.read().split(b"\n")  # what comes after the last end of a line is not whole
        records = [_parse(line) for line in lines]
        whole = next((i for i, record in enumerate(records) if record is None), len(records))
        if any(record is not None for record in records[whole:]):
            raise FormatError(f"{self.path} is damaged at line {whole + 1}. Move it away to go on without its updates.")
        if not whole:  # new, or cut off when it was begun
            self._begin(secrets.token_hex(8), 0)
            _sync_folder(self.path.parent)
            return
        header, *entries = (record for record in records[:whole] if record is not None)
        start, numbers = header.get("start"), [entry.get("n") for entry in entries]
        if type(start) is not int or numbers != list(range(start + 1, start + 1 + len(entries))):
            raise FormatError(f"{self.path} does not number its updates. Move it away to go on without them.")
        self.id, self.start, self._entries = str(header.get("journal")), start, entries
        os.ftruncate(self._file.fileno(), sum(len(line) + 1 for line in lines[:whole]))


def _line(record: Entry) -> bytes:
    content = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(content), content)


def _parse(line: bytes) -> Entry | None:
    """Return the record of a line, None if it is not whole."""
    checksum, _, content = line.partition(b" ")
    if not content or checksum != b"%08x" % zlib.crc32(content):
        return None
    try:
        record = json.loads(content)
    except (ValueError, RecursionError):  # no line of ours
        return None
    return record if isinstance(record, dict) else None


def _sync_folder(folder: Path) -> None:
    """Wait until the disk knows that there is a new file."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
