"""Texts with label names in Parquet files. The only file that imports pyarrow."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from labelsense.data.formats.base import Examples, Format, with_texts
from labelsense.data.formats.source import FormatError, Source, writing
from labelsense.data.formats.texts import LABEL_KEYS, TEXT_KEYS, Row, in_batches, row_of

ROWS = 1024  # converted at once


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ImportError('Parquet files need pyarrow: pip install "labelsense[parquet]".') from None
    return pyarrow, pyarrow.parquet


class Parquet(Format):
    """A Parquet file with a column of texts and one of label lists.

    Columns are found by name as in JSON lines: "text" (or "title", "body", "description") and "labels" (or "tags"),
    strings and lists of strings. It must be a file: Parquet cannot be read from a pipe.
    """

    name = "parquet"
    suffixes = (".parquet",)

    def sniff(self, head: bytes) -> bool:
        return head.startswith(b"PAR1")

    def stream(self, source: Source, rows: int) -> Iterator[Examples]:
        if source.path is None or source.compressed:
            raise FormatError(f"{source.name}: a Parquet file is read from disk, and it is not compressed once more.")
        return in_batches(self._rows(source), rows)

    @staticmethod
    def _rows(source: Source) -> Iterator[Row]:
        pyarrow, parquet = _pyarrow()
        number = 0
        try:
            with parquet.ParquetFile(source.path) as file:
                columns = [key for key in ("text", *TEXT_KEYS, *LABEL_KEYS) if key in file.schema_arrow.names]
                for batch in file.iter_batches(ROWS, columns=columns):
                    for record in batch.to_pylist():
                        number += 1
                        yield row_of(record)
        except pyarrow.ArrowException as error:
            raise FormatError(f"{source.name}: expected a Parquet file ({error}).") from None
        except ValueError as error:
            raise FormatError(f"{source.name}, row {number}: {error}") from None

    def write(self, path: Path, batches: Iterator[Examples]) -> None:
        pyarrow, parquet = _pyarrow()
        with contextlib.ExitStack() as stack:
            file = stack.enter_context(writing(path))
            writer = None
            for texts, names in with_texts(batches, self.name):
                columns = {"text": pyarrow.array(texts, pyarrow.string())}
                if names is not None:
                    columns["labels"] = pyarrow.array(names, pyarrow.list_(pyarrow.string()))
                table = pyarrow.table(columns)
                if writer is None:
                    writer = stack.enter_context(parquet.ParquetWriter(file, table.schema))
                writer.write_table(table)
