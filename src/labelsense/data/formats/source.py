"""Bytes in and out: compressed or not, from a pipe or a file, and never half a file."""

from __future__ import annotations

import bz2
import contextlib
import errno
import gzip
import io
import logging
import lzma
import re
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from labelsense._blocks import row_blocks
from labelsense._files import replacing
from labelsense.errors import FormatError

logger = logging.getLogger("labelsense.data")  # where what was guessed is said

HEAD = 2**16
PIECE = 2**20  # bytes that are compressed between two looks at Ctrl-C
LINE_BYTES = 2**26  # the longest line, or row of a table, or text of a folder; more than any block that is read at once
TOO_LONG = f"expected lines of at most {LINE_BYTES >> 20} MB, got a longer one. Is it a text file?"
BOM = b"\xef\xbb\xbf"
A_LINE = re.compile(rb"^[ \t]*[^\s#%][^\n]*\n", re.MULTILINE)  # that is more than a comment


class Source:
    """The bytes of a file or of standard input, decompressed; it can look ahead at the first line.

    Attributes
    ----------
    path : Path or None
        None for standard input.
    name : str
        What errors call it.
    head : bytes
        How it begins, without a byte order mark: at least the first line that is no comment, if that is not
        very far.
    compressed : bool

    With ``content``, these are the bytes, which are part of the file of that name.
    """

    def __init__(self, path: Any, content: bytes | None = None) -> None:
        self.path = None if str(path) == "-" else Path(path)
        self.name = "standard input" if self.path is None else str(self.path)
        self.is_folder = self.path is not None and self.path.is_dir()
        raw: Any = io.BytesIO()
        if content is not None:
            raw = io.BytesIO(content)
        elif not self.is_folder:
            raw = sys.stdin.buffer if self.path is None else self.path.open("rb")
        self._owned = self.path is not None
        self._raw = raw if hasattr(raw, "peek") else io.BufferedReader(raw)
        try:
            self._start()
        except BaseException:
            self._close()
            raise

    def _start(self) -> None:
        magic = self._raw.peek(6)[:6]
        self._stream: Any = self._raw
        if magic.startswith(b"\x1f\x8b"):
            self._stream = gzip.GzipFile(fileobj=self._raw)
        elif magic.startswith(b"BZh"):
            self._stream = bz2.BZ2File(self._raw)
        elif magic == b"\xfd7zXZ\x00":
            self._stream = lzma.LZMAFile(self._raw)  # noqa: SIM115 - does not own the file
        self.compressed = self._stream is not self._raw
        self._ahead = b""
        while len(self._ahead) < HEAD and not A_LINE.search(self._ahead) and (block := self._read(HEAD, once=True)):
            self._ahead += block
        self._ahead = self._ahead.removeprefix(BOM)
        self.head = self._ahead

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        if self._owned:
            self._raw.close()

    def error(self, line: int, message: str) -> FormatError:
        """Return an error that names a line, counted from 1."""
        return FormatError(f"{self.name}, line {line}: {message}")

    def position(self) -> float:
        """Return how much of the file has been read, from 0 to 1; 0 where nothing tells."""
        if self.path is None or self.is_folder:
            return 0.0
        return self._raw.tell() / max(1, self.path.stat().st_size)

    def rewind(self) -> None:
        """Start again at the first byte."""
        self._raw.seek(0)
        self._start()

    def make_rewindable(self) -> None:
        """Keep what comes through a pipe in a temporary file."""
        if not self._raw.seekable():
            kept = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the source
            while block := self.read(2**20):
                kept.write(block)
            self._close()
            self._raw, self._owned = kept, True
            self.rewind()

    def read(self, size: int) -> bytes:
        """Return the next bytes, at most ``size``; none at the end."""
        if self._ahead:
            block, self._ahead = self._ahead, b""
            return block
        return self._read(size)

    def _read(self, size: int, once: bool = False) -> bytes:
        try:
            return (self._stream.read1 if once else self._stream.read)(size)
        except EOFError:
            raise FormatError(f"{self.name}: the compressed data end too early. The file is truncated.") from None
        except (zlib.error, lzma.LZMAError, gzip.BadGzipFile, MemoryError) as error:
            raise FormatError(f"{self.name}: the compressed data are damaged ({error}).") from None
        except OSError as error:
            if error.errno is None:  # how bz2 says so
                raise FormatError(f"{self.name}: the compressed data are damaged ({error}).") from None
            raise

    def chunks(self, size: int) -> Iterator[bytes]:
        """Yield whole lines, about ``size`` bytes at a time; the last line ends with a newline even if it has none."""
        parts: list[bytes | memoryview] = []
        waiting, line = 0, 1
        while block := self.read(size):
            end = block.find(b"\n")
            if waiting + (len(block) if end < 0 else end) > LINE_BYTES:
                raise self.error(line, TOO_LONG)
            cut = block.rfind(b"\n") + 1
            if cut:
                line += block.count(b"\n")
                yield b"".join([*parts, memoryview(block)[:cut]])
                parts, waiting = [], 0
            parts.append(block[cut:])
            waiting += len(block) - cut
        if rest := b"".join(parts):
            yield rest + b"\n"

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield each line with its number, without the newline."""
        number = 0
        for chunk in self.chunks(2**20):
            for line in chunk.split(b"\n")[:-1]:
                number += 1
                yield number, line

    def decode(self, number: int, line: bytes) -> str:
        """Return a line as text."""
        try:
            return line.decode()
        except UnicodeDecodeError as error:
            bad = line[error.start : error.start + 1]
            raise self.error(number, f"expected UTF-8, got {bad!r} after {error.start} bytes") from None


@contextlib.contextmanager
def damaged(name: Any, expected: str) -> Iterator[None]:
    """Turn what others' readers make of a damaged file into a FormatError; what the system says of the disk stays."""
    try:
        yield
    except (FormatError, ImportError):
        raise
    except Exception as error:  # there is no list of what they raise
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):  # a place before the start
            raise
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise FormatError(f"{name}: expected {expected} ({reason}).") from None


COMPRESSIONS = (".gz", ".bz2", ".xz")


def strip_compression(name: str) -> str:
    """Return a file name without the suffix of its compression."""
    return next((name.removesuffix(suffix) for suffix in COMPRESSIONS if name.endswith(suffix)), name)


@contextlib.contextmanager
def writing(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that appears when the block ends well, and not at all if it does not; compressed by its suffix."""
    with replacing(path) as temporary, temporary.open("wb") as raw, _compressor(raw, path.suffix) as file:
        yield file


def write_in_pieces(file: IO[bytes], content: bytes) -> None:
    """Write to a file that may be compressed."""
    for piece in row_blocks(len(content), PIECE):
        file.write(content[piece])


def _compressor(raw: IO[bytes], suffix: str) -> Any:
    if suffix == ".gz":  # no name and no time: the same examples give the same bytes
        return gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=6, mtime=0)
    if suffix == ".bz2":
        return bz2.BZ2File(raw, "wb")
    if suffix == ".xz":
        return lzma.LZMAFile(raw, "wb")
    return contextlib.nullcontext(raw)
