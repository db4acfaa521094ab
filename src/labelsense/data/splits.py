"""Data files in pieces that different processes can read."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labelsense.data.formats import FORMATS, Examples, detect_format, read_examples
from labelsense.data.formats.base import concatenate
from labelsense.data.formats.source import LINE_BYTES, Source
from labelsense.errors import FormatError

SPLIT_BYTES = 2**25  # of JSON lines


@dataclass(frozen=True)
class Split:
    """A file, or some lines of one: those that begin in a range of its bytes.

    Attributes
    ----------
    path : str
    format : str
        A key of ``FORMATS``.
    text_fields : tuple of str, optional
    start, stop : int, optional
        The range; without it, all.
    """

    path: str
    format: str
    text_fields: tuple[str, ...] | None = None
    start: int | None = None
    stop: int | None = None

    def read(self) -> Examples:
        """Return the rows."""
        if self.start is None or self.stop is None:
            return read_examples(self.path, self.format, self.text_fields)
        kind = FORMATS[self.format]
        if self.text_fields is not None:
            kind = kind.with_text_fields(self.text_fields)
        with Source(self.path, self._lines(self.start, self.stop)) as source:
            return concatenate(list(kind.stream(source, LINE_BYTES)))

    def _lines(self, start: int, stop: int) -> bytes:
        with open(self.path, "rb") as file:
            if start:
                file.seek(start - 1)
                file.readline()  # to the end of the line that began before
            first = file.tell()
            return file.read(stop - first) + file.readline() if first < stop else b""


def split_files(
    paths: Any, format: str | None = None, text_fields: Sequence[str] | None = None, size: int = SPLIT_BYTES
) -> list[Split]:
    """Return files in pieces: JSON lines that are not compressed in pieces of so many bytes, others whole.

    Parameters
    ----------
    paths : path, or sequence of paths
        Files, folders of files, or patterns with ``*``; all of one format. Every process must see them under this name.
    format, text_fields
        As for :func:`~labelsense.data.read_examples`.
    size : int
        Bytes of a piece.
    """
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    files = [os.path.abspath(file) for path in given for file in _files(path)]
    if not files:
        raise FormatError(f"{', '.join(map(str, given))}: there are no such files.")
    kinds = {format or detect_format(file) for file in files}
    if len(kinds) > 1:
        raise FormatError(f"Parts of one data set must be of one format. Got {', '.join(sorted(kinds))}.")
    kind = kinds.pop()
    if kind == "libsvm" and len(files) > 1:
        raise FormatError("Files of libsvm do not tell alone how features are numbered. Convert them to xc first.")
    fields = None if text_fields is None else tuple(text_fields)
    splits = []
    for file in files:
        length = Path(file).stat().st_size
        if kind == "jsonl" and file.endswith((".jsonl", ".ndjson")) and length > size:
            splits += [Split(file, kind, fields, a, min(a + size, length)) for a in range(0, length, size)]
        else:
            splits.append(Split(file, kind, fields))
    return splits


def _files(path: Any) -> list[str]:
    if os.path.isdir(path):
        inner = sorted(Path(path).iterdir())
        return [str(file) for file in inner if file.is_file() and file.name[0] not in "._"]
    return sorted(glob.glob(os.fspath(path))) if "*" in os.fspath(path) else [os.fspath(path)]
