"""Texts with label names in Parquet files. The only file that imports pyarrow."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from labelsense.data.formats.base import Examples, listed, with_texts
from labelsense.data.formats.fields import KEYS, Records, Row, in_batches
from labelsense.data.formats.source import Source, damaged, writing
from labelsense.errors import FormatError

ROWS = 1024  # converted at once


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ImportError('Parquet files need pyarrow: pip install "labelsense[parquet]".') from None
    return pyarrow, pyarrow.parquet


class Parquet(Records):
    """A Parquet file with a column of texts and one of label lists.

    :mod:`labelsense.data.formats.fields` says in which columns the text, the labels and the id of a document are
    sought. It must be a file: Parquet cannot be read from a pipe.
    """

    name = "parquet"
    suffixes = (".parquet",)

    def sniff(self, head: bytes) -> bool:
        return head.startswith(b"PAR1")

    def stream(self, source: Source, rows: int) -> Iterator[Examples]:
        if source.path is None or source.compressed:
            raise FormatError(f"{source.name}: a Parquet file is read from disk, and it is not compressed once more.")
        return in_batches(self._rows(source), rows)

    def _rows(self, source: Source) -> Iterator[Row]:
        _, parquet = _pyarrow()
        number = 0
        with damaged(source.name, "a Parquet file"), parquet.ParquetFile(source.path) as file:
            for batch in file.iter_batches(ROWS, columns=self._columns(source, file)):
                for record in batch.to_pylist():
                    number += 1
                    try:
                        row = self.row(record)
                    except ValueError as error:
                        raise FormatError(f"{source.name}, row {number}: {error}") from None
                    yield row

    def _columns(self, source: Source, file: Any) -> list[str]:
        """Return the columns to read: those of the schema, and the fields that hold the text."""
        known = set(file.schema_arrow.names)
        inner = {file.schema.column(i).path for i in range(len(file.schema))}
        for name in self.text_fields or ():
            if name not in known | inner:
                raise FormatError(
                    f"{source.name}: expected a column {listed(self.text_names(), 'and')}, got {sorted(known)}"
                )
        return sorted(KEYS & known | set(self.text_fields or ()))

    def write(self, path: Path, batches: Iterator[Examples]) -> None:
        pyarrow, parquet = _pyarrow()
        with contextlib.ExitStack() as stack:
            file = stack.enter_context(writing(path))
            writer = None
            for texts, names, ids in with_texts(batches, self.name):
                columns = {"text": pyarrow.array(texts, pyarrow.string())}
                if names is not None:
                    columns["labels"] = pyarrow.array(names, pyarrow.list_(pyarrow.string()))
                if ids is not None:
                    columns["document_id"] = pyarrow.array(ids, pyarrow.string())
                table = pyarrow.table(columns)
                if writer is None:
                    writer = stack.enter_context(parquet.ParquetWriter(file, table.schema))
                writer.write_table(table)
