"""Texts with label names: JSON lines, and plain lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from labelsense.data.formats.base import Examples, Format, listed, with_texts
from labelsense.data.formats.fields import Records, Row, find, in_batches
from labelsense.data.formats.source import BOM, Source, writing
from labelsense.errors import FormatError

SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")  # half a character, which JSON can hold and UTF-8 cannot


class JSONLines(Records):
    """One JSON object per line, such as ``{"text": "a red fox", "labels": ["fox", "red"]}``.

    :mod:`labelsense.data.formats.fields` says under which names the text, the labels and the id of a document are
    sought. Labels are a list of strings, or one string, or as in Annif's corpora a list of objects with "uri" or else
    "label". Other keys are ignored, and so are empty lines.
    """

    name = "jsonl"
    suffixes = (".jsonl", ".ndjson")

    def sniff(self, head: bytes) -> bool:
        return re.match(rb'\s*\{\s*["}]', head) is not None

    def stream(self, source: Source, rows: int) -> Iterator[Examples]:
        return in_batches(self._rows(source), rows)

    def _rows(self, source: Source) -> Iterator[Row]:
        unseen, empty = set(self.text_fields or ()), True
        for number, line in source.lines():
            if not line.strip():
                continue
            record, empty = _record(source, number, line), False
            unseen = {name for name in unseen if find(record, name) is None}
            try:
                row = self.row(record)
            except ValueError as error:
                raise source.error(number, str(error)) from None
            yield row
        if unseen and not empty:  # most likely misspelt
            raise FormatError(f"{source.name}: expected a text under {listed(sorted(unseen))}, and no row has any.")

    def write(self, path: Path, batches: Iterator[Examples]) -> None:
        with writing(path) as file:
            for texts, names, ids in with_texts(batches, self.name):
                for i, text in enumerate(texts):
                    record: dict[str, Any] = {} if ids is None or ids[i] is None else {"document_id": ids[i]}
                    record["text"] = text
                    if names is not None:
                        record["labels"] = names[i]
                    file.write(json.dumps(record, ensure_ascii=False).encode() + b"\n")


def _record(source: Source, number: int, line: bytes) -> dict[str, Any]:
    text = source.decode(number, line)
    try:
        record = json.loads(text)
        if SURROGATE.search(line):
            json.dumps(record, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise source.error(number, f"expected a JSON object, got {text[:80]!r} ({error})") from None
    if not isinstance(record, dict):
        raise source.error(number, f"expected a JSON object, got {text[:80]!r}")
    return record


class Lines(Format):
    """One text per line, without labels: what to predict for, from a file or a pipe. An empty line is an empty text."""

    name = "txt"
    suffixes = (".txt",)

    def sniff(self, head: bytes) -> bool:
        return b"\0" not in head

    def stream(self, source: Source, rows: int) -> Iterator[Examples]:
        lines = source.lines()
        return in_batches((Row(source.decode(number, line.removesuffix(b"\r"))) for number, line in lines), rows)

    def write(self, path: Path, batches: Iterator[Examples]) -> None:
        with writing(path) as file:
            before = BOM  # so that a mark which the first text itself begins with is not taken for the file's
            for texts, names, ids in with_texts(batches, self.name):
                if names is not None or ids is not None:
                    extra = "labels" if names is not None else "ids"
                    raise ValueError(f"txt holds no {extra}, and these examples have some. Write jsonl, tsv or csv.")
                for text in texts:
                    if "\n" in text or "\r" in text:
                        raise ValueError(f"A text in a txt file is one line. Got {text[:80]!r}. Write jsonl instead.")
                    line = text.encode() + b"\n"
                    file.write(before + line if line.startswith(BOM) else line)
                    before = b""
