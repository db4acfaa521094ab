"""Texts with label names in tables: TSV and CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from labelsense.data.formats.base import Examples, Format, listed, with_texts
from labelsense.data.formats.fields import ID_KEYS, KEYS, LABEL_KEYS, Records, Row, in_batches, split_uris
from labelsense.data.formats.source import LINE_BYTES, TOO_LONG, Source, logger, write_in_pieces, writing

SEPARATOR = "|"  # of labels
IN_BRACKETS = re.compile(r"(<[^<>\t]*>\s*)+")
URI = re.compile(r"<?(\w[\w+.-]*://|urn:)\S+")


class Table(Records):
    """A table with a header, its cells separated by tabs ("tsv") or by commas ("csv"), quoted as the csv module does.

    :mod:`labelsense.data.formats.fields` says in which columns the text, the labels and the id of a document are
    sought; other columns are ignored. The labels of a row are separated by ``|``, and a label that contains it cannot
    be written. Under "subject_uris" they are URIs separated by blanks, as in Annif's corpora.

    A TSV file without a header is read as Annif does: the text, a tab, and the labels, which are URIs separated by
    blanks, ``<...>`` or not, or else names separated by ``|``. Nothing is quoted there. A first line is its header if
    one of its cells is the name of a text column, and, where there are two, the other is a name too.
    """

    def __init__(self, name: str, delimiter: str) -> None:
        self.name = name
        self.suffixes = (f".{name}",)
        self._delimiter = delimiter

    def with_text_fields(self, names: Sequence[str]) -> Format:
        return super().with_text_fields([name.lower() for name in names])

    def sniff(self, head: bytes) -> bool:
        """Take only what can hardly be prose: names without blanks, of a text and of labels or an id."""
        line = head.partition(b"\n")[0].decode(errors="replace").rstrip("\r")
        if self.name == "tsv" and IN_BRACKETS.fullmatch(line.partition("\t")[2].strip()):
            return True
        names = {cell.lower() for cell in self._cells(line)}
        return not (names.isdisjoint(self.text_names()) or names.isdisjoint(LABEL_KEYS + ID_KEYS))

    def stream(self, source: Source, rows: int) -> Iterator[Examples]:
        if self.name == "tsv" and not self._has_header(source):
            logger.info("%s has no header: a line is read as text, tab, labels", source.name)
            return in_batches(_rows_without_header(source), rows)
        return in_batches(self._rows(source), rows)

    def _cells(self, line: str) -> list[str]:
        try:
            return next(csv.reader([line], delimiter=self._delimiter), [])
        except csv.Error:  # a zero byte, before Python 3.11
            return []

    def _has_header(self, source: Source) -> bool:
        if self.text_fields is not None:
            return True
        line = source.head.partition(b"\n")[0].decode(errors="replace")
        names = {cell.strip().lower() for cell in self._cells(line)}
        return not names.isdisjoint(self.text_names()) and (len(names) != 2 or names <= KEYS)

    def _rows(self, source: Source) -> Iterator[Row]:
        records = self._records(source)
        header = [name.strip().lower() for name in next(records, (1, [""]))[1]]
        self._check_header(source, header)
        for number, cells in records:
            if not cells:
                continue
            if len(cells) != len(header):
                raise source.error(number, f"expected {len(header)} columns, got {len(cells)}")
            record: dict[str, Any] = dict(zip(header, cells, strict=True))
            record.update({key: _split(record[key]) for key in LABEL_KEYS if key in record and key != "subject_uris"})
            record.update({key: record[key] or None for key in ID_KEYS if key in record})
            yield self.row(record)

    def _check_header(self, source: Source, header: list[str]) -> None:
        names = self.text_names()
        missing = set(names).difference(header)
        if missing if self.text_fields is not None else len(missing) == len(names):
            word = "or" if self.text_fields is None else "and"
            raise source.error(1, f"expected a header with a column {listed(names, word)}, got {header}")
        for name in {*names, *LABEL_KEYS, *ID_KEYS}:
            if header.count(name) > 1:
                raise source.error(1, f"expected one column {name!r}, got {header.count(name)}")

    def _records(self, source: Source) -> Iterator[tuple[int, list[str]]]:
        """Yield the number of the last line of a row, and its cells."""
        size = 0

        def lines() -> Iterator[str]:
            nonlocal size
            for number, line in source.lines():
                size += len(line) + 1
                if size > LINE_BYTES:  # a row may have many lines
                    raise source.error(number, TOO_LONG)
                yield source.decode(number, line) + "\n"

        csv.field_size_limit(LINE_BYTES)  # of the process; the default refuses long documents
        reader = csv.reader(lines(), delimiter=self._delimiter, strict=True)
        while True:
            try:
                cells = next(reader, None)
            except csv.Error as error:
                raise source.error(reader.line_num, f"expected quoted cells, got something else ({error})") from None
            if cells is None:
                return
            size = 0
            yield reader.line_num, cells

    def write(self, path: Path, batches: Iterator[Examples]) -> None:
        columns = None
        with writing(path) as file:
            for texts, names, ids in with_texts(batches, self.name):
                rows = io.StringIO(newline="")
                # Everything is quoted, since Python versions differ in which line ends they quote.
                writer = csv.writer(rows, delimiter=self._delimiter, quoting=csv.QUOTE_ALL, lineterminator="\n")
                if columns is None:
                    columns = ["document_id"] * (ids is not None) + ["text"] + ["labels"] * (names is not None)
                    writer.writerow(columns)
                for given, what in ((names, "labels"), (ids, "document_id")):
                    if given is not None and what not in columns:
                        raise ValueError(
                            f"Some rows have {what}, and those before had none. Write all rows with {what}, or none."
                        )
                cells = {
                    "document_id": [id or "" for id in ids or [None] * len(texts)],
                    "text": texts,
                    "labels": [_join(row) for row in names or [[]] * len(texts)],
                }
                writer.writerows(zip(*(cells[column] for column in columns), strict=True))
                write_in_pieces(file, rows.getvalue().encode())


def _rows_without_header(source: Source) -> Iterator[Row]:
    for number, line in source.lines():
        if not line.strip():
            continue
        cells = source.decode(number, line).split("\t")
        if len(cells) != 2:
            raise source.error(number, f"expected a text, a tab and labels, got {len(cells)} columns")
        yield Row(cells[0], _split_bare(cells[1].strip()))


def _split_bare(cell: str) -> list[str]:
    if IN_BRACKETS.fullmatch(cell):
        return re.findall("<([^<>]+)>", cell)
    return split_uris(cell) if all(URI.fullmatch(word) for word in cell.split()) else _split(cell)


def _split(cell: str) -> list[str]:
    return [label for label in (part.strip() for part in cell.split(SEPARATOR)) if label]


def _join(labels: list[str]) -> str:
    for label in labels:
        if SEPARATOR in label or not label or label != label.strip():
            raise ValueError(
                f"A label in a table must not be empty, contain {SEPARATOR!r} or begin or end with a blank. "
                f"Got {label!r}. Write jsonl instead."
            )
    return SEPARATOR.join(labels)
