"""Texts with label names: JSON lines, tables, and plain lines."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from labelsense.data.formats.base import BATCH_BYTES, Examples, Format, with_texts
from labelsense.data.formats.source import Source, writing

TEXT_KEYS = ("title", "body", "description")  # joined with a blank, where there is no "text"
LABEL_KEYS = ("labels", "tags")
SEPARATOR = "|"  # of the labels in a table
FIELD_LIMIT = 2**31 - 1

Row = tuple[str, list[str] | None]


def in_batches(rows: Iterable[Row], limit: int) -> Iterator[Examples]:
    """Yield texts and labels in batches of at most ``limit`` rows, and of bounded size."""
    texts: list[str] = []
    names: list[list[str]] = []
    size, labelled, started = 0, False, False
    for text, labels in rows:
        if len(texts) == limit or size > BATCH_BYTES:
            yield Examples(texts, names if labelled else None)
            texts, names, size, started = [], [], 0, True
        texts.append(text)
        names.append(labels or [])
        size += len(text)
        labelled = labelled or labels is not None
    if texts or not started:
        yield Examples(texts, names if labelled else None)


def row_of(record: dict[str, Any]) -> Row:
    """Return the text and the labels of a record; a ValueError says what it lacks."""
    keys = ["text"] if "text" in record else [key for key in TEXT_KEYS if record.get(key) is not None]
    if not keys:
        raise ValueError(f"expected a text under 'text', 'title', 'body' or 'description', got {list(record)}")
    for key in keys:
        if not isinstance(record[key], str):
            raise ValueError(f"expected a string under {key!r}, got {record[key]!r}")
    text = " ".join(record[key] for key in keys)
    for key in LABEL_KEYS:
        given = record.get(key)
        if given is not None:
            labels = [given] if isinstance(given, str) else given
            if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
                raise ValueError(f"expected a string or a list of strings under {key!r}, got {given!r}")
            return text, labels
    return text, None


class JSONLines(Format):
    """One JSON object per line, such as ``{"text": "a red fox", "labels": ["fox", "red"]}``.

    The text is the string under "text"; where there is none, those under "title", "body" and "description" that are
    there, in this order, joined with a blank. The labels are under "labels", or else "tags": a list of strings, or one
    string. Other keys are ignored, and so are empty lines.
    """

    name = "jsonl"
    suffixes = (".jsonl", ".ndjson")

    def sniff(self, head: bytes) -> bool:
        return re.match(rb'\s*\{\s*["}]', head) is not None

    def stream(self, source: Source, rows: int) -> Iterator[Examples]:
        return in_batches(self._rows(source), rows)

    @staticmethod
    def _rows(source: Source) -> Iterator[Row]:
        for number, line in source.lines():
            if not line.strip():
                continue
            text = source.decode(number, line)
            try:
                record = json.loads(text)
            except ValueError as error:
                raise source.error(number, f"expected a JSON object, got {text[:80]!r} ({error})") from None
            if not isinstance(record, dict):
                raise source.error(number, f"expected a JSON object, got {text[:80]!r}")
            try:
                row = row_of(record)
            except ValueError as error:
                raise source.error(number, str(error)) from None
            yield row

    def write(self, path: Path, batches: Iterator[Examples]) -> None:
        with writing(path) as file:
            for texts, names in with_texts(batches, self.name):
                for i, text in enumerate(texts):
                    record = {"text": text} if names is None else {"text": text, "labels": names[i]}
                    file.write(json.dumps(record, ensure_ascii=False).encode() + b"\n")


class Table(Format):
    """A table with a header, its cells separated by tabs ("tsv") or by commas ("csv"), quoted as the csv module does.

    Columns are found by name as in JSON lines: "text" (or "title", "body", "description") and "labels" (or "tags"). The
    labels of a row are separated by ``|``; a label that contains it cannot be written. Other columns are ignored.

    A TSV file without a header is read as Annif does: the text, a tab, and the labels, ``<...>`` each and separated by
    blanks, or else separated by ``|``. Nothing is quoted there.
    """

    def __init__(self, name: str, delimiter: str) -> None:
        self.name = name
        self.suffixes = (f".{name}",)
        self._delimiter = delimiter

    def sniff(self, head: bytes) -> bool:
        line = head.partition(b"\n")[0].decode(errors="replace")
        columns = self._columns(line)
        if self.name == "tsv" and re.fullmatch(r"[^\t]*\t\s*(<[^<>\t]*>\s*)+", line):
            return True
        return _has_text(columns) and (len(columns) > 1 or (self.name == "tsv" and columns == ["text"]))

    def _columns(self, line: str) -> list[str]:
        try:
            names = next(csv.reader([line], delimiter=self._delimiter), [])
        except csv.Error:  # a zero byte, before Python 3.11
            return []
        return [name.strip().lower() for name in names]

    def stream(self, source: Source, rows: int) -> Iterator[Examples]:
        header = self._columns(source.head.partition(b"\n")[0].decode(errors="replace"))
        if _has_text(header):
            return in_batches(self._rows(source, header), rows)
        if self.name == "tsv":
            return in_batches(self._rows_without_header(source), rows)
        raise source.error(1, f"expected a header with a column 'text', 'title', 'body' or 'description', got {header}")

    def _rows(self, source: Source, header: list[str]) -> Iterator[Row]:
        csv.field_size_limit(FIELD_LIMIT)  # of the process; the default refuses long documents
        lines = (source.decode(number, line) + "\n" for number, line in source.lines())
        reader = csv.reader(lines, delimiter=self._delimiter, strict=True)
        next(reader)
        while True:
            try:
                cells = next(reader, None)
            except csv.Error as error:
                raise source.error(reader.line_num, f"expected quoted cells, got something else ({error})") from None
            if cells is None:
                return
            if not cells:
                continue
            if len(cells) != len(header):
                raise source.error(reader.line_num, f"expected {len(header)} columns, got {len(cells)}")
            record: dict[str, Any] = dict(zip(header, cells, strict=True))
            record.update({key: _split(record[key]) for key in LABEL_KEYS if key in record})
            yield row_of(record)

    @staticmethod
    def _rows_without_header(source: Source) -> Iterator[Row]:
        for number, line in source.lines():
            if not line.strip():
                continue
            cells = source.decode(number, line).split("\t")
            if len(cells) != 2:
                raise source.error(number, f"expected a text, a tab and labels, got {len(cells)} columns")
            text, labels = cells[0], cells[1].strip()
            yield text, re.findall("<([^<>]*)>", labels) if labels.startswith("<") else _split(labels)

    def write(self, path: Path, batches: Iterator[Examples]) -> None:
        labelled = None
        with writing(path) as file:
            for texts, names in with_texts(batches, self.name):
                rows = io.StringIO(newline="")
                # Everything is quoted, since Python versions differ in which line ends they quote.
                writer = csv.writer(rows, delimiter=self._delimiter, quoting=csv.QUOTE_ALL, lineterminator="\n")
                if labelled is None:
                    labelled = names is not None
                    writer.writerow(["text", "labels"] if labelled else ["text"])
                if names is not None and not labelled:
                    raise ValueError("Y has labels, and the rows before had none. Write all rows with labels, or none.")
                cells = names or [[]] * len(texts)
                writer.writerows([t, _join(row)] if labelled else [t] for t, row in zip(texts, cells, strict=True))
                file.write(rows.getvalue().encode())


def _has_text(header: list[str]) -> bool:
    return not {"text", *TEXT_KEYS}.isdisjoint(header)


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


class Lines(Format):
    """One text per line, without labels: what to predict for, from a file or a pipe. An empty line is an empty text."""

    name = "txt"
    suffixes = (".txt",)

    def sniff(self, head: bytes) -> bool:
        return b"\0" not in head

    def stream(self, source: Source, rows: int) -> Iterator[Examples]:
        lines = source.lines()
        return in_batches(((source.decode(number, line.removesuffix(b"\r")), None) for number, line in lines), rows)

    def write(self, path: Path, batches: Iterator[Examples]) -> None:
        with writing(path) as file:
            for texts, names in with_texts(batches, self.name):
                if names is not None:
                    raise ValueError("txt holds no labels, and these examples have some. Write jsonl, tsv or csv.")
                for text in texts:
                    if "\n" in text or "\r" in text:
                        raise ValueError(f"A text in a txt file is one line. Got {text[:80]!r}. Write jsonl instead.")
                    file.write(text.encode() + b"\n")
