"""A data file in parts: a folder of files of one format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from labelsense.data.formats.base import Examples, Format
from labelsense.data.formats.fields import Records
from labelsense.data.formats.source import Source, strip_compression
from labelsense.errors import FormatError


class Parts(Format):
    """A folder of files of one format, such as part-0.jsonl.gz, part-1.jsonl.gz: read as one, in the order of names.

    The ends of the names tell the format; each may be compressed. Files whose names begin with a dot or an underscore
    are left out.
    """

    name = "parts"

    def __init__(self, formats: Sequence[Format]) -> None:
        self._formats = formats
        self.suffixes = ()
        self.ends = tuple(end for format in formats for end in format.suffixes if end != ".txt")

    def with_text_fields(self, names: Sequence[str]) -> Format:
        return Parts([format.with_text_fields(names) for format in self._formats if isinstance(format, Records)])

    def sniff(self, head: bytes) -> bool:
        return False  # a folder has no bytes

    def stream(self, source: Source, rows: int) -> Iterator[Examples]:
        if source.path is None or not source.is_folder:
            raise FormatError(f"{source.name}: expected a folder with parts of one data file, got a file.")
        paths = sorted(path for path in source.path.iterdir() if path.is_file() and path.name[0] not in "._")
        formats = {path: self._format_of(path) for path in paths}
        names = {format.name for format in formats.values()}
        if len(names) != 1:
            raise FormatError(
                f"{source.name}: expected files of one format, got {', '.join(sorted(names)) or 'no files'}."
            )
        return formats[paths[0]].stream_parts(paths, rows)

    def _format_of(self, path: Path) -> Format:
        name = strip_compression(path.name.lower())
        for format in self._formats:
            if name.endswith(tuple(end for end in format.suffixes if end != ".txt")):
                return format
        raise FormatError(f"{path}: expected a name that ends in {', '.join(self.ends)}.")
