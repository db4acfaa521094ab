"""Which fields of a record are the text, the labels and the name of a document: the schema of all text formats.

====== ==========================================================================================
text   "text"; or else "title", "body" and "description", those that are there, joined with a blank
labels "labels", or else "tags", "subjects", "subject_uris"
id     "document_id", or else "id"
====== ==========================================================================================

``text_fields`` names other fields for the text, as in ``["title", "text", "metadata.abstract"]``: they are joined with
a blank, and a dot goes into an object. Fields with other names are not read.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from labelsense.data.formats.base import BATCH_BYTES, Examples, Format, listed

TEXT_KEYS = ("title", "body", "description")  # where there is no "text"
LABEL_KEYS = ("labels", "tags", "subjects", "subject_uris")
ID_KEYS = ("document_id", "id")
KEYS = frozenset(("text", *TEXT_KEYS, *LABEL_KEYS, *ID_KEYS))


class Row(NamedTuple):
    """A document."""

    text: str
    labels: list[str] | None = None
    id: str | None = None


class Records(Format):
    """A format whose rows have named fields."""

    text_fields: tuple[str, ...] | None = None

    def with_text_fields(self, names: Sequence[str]) -> Format:
        other = copy.copy(self)
        other.text_fields = tuple(names)
        return other

    def row(self, record: dict[str, Any]) -> Row:
        """Return the text, the labels and the id of a record; a ValueError says what it lacks."""
        return Row(self._text(record), _labels(record), _id(record))

    def _text(self, record: dict[str, Any]) -> str:
        alone = self.text_fields is None and record.get("text") is not None
        names = ("text",) if alone else self.text_names()
        given = {name: text for name in names if (text := find(record, name)) is not None}
        if not given:
            raise ValueError(f"expected a text under {listed(names)}, got {list(record)}")
        for name, text in given.items():
            if not isinstance(text, str):
                raise ValueError(f"expected a string under {name!r}, got {text!r}")
        return " ".join(given.values())

    def text_names(self) -> tuple[str, ...]:
        """Return the names of the fields that may hold the text."""
        return self.text_fields or ("text", *TEXT_KEYS)


def find(record: dict[str, Any], name: str) -> Any:
    """Return a field of a record, None if it is not there; ``a.b`` is the field b of the object a, or of that name."""
    if name in record:
        return record[name]
    first, dot, rest = name.partition(".")
    inner = record.get(first) if dot else None
    return find(inner, rest) if isinstance(inner, dict) else None


def _labels(record: dict[str, Any]) -> list[str] | None:
    key = next((key for key in LABEL_KEYS if record.get(key) is not None), None)
    if key is None:
        return None
    given = record[key]
    if isinstance(given, str):
        return split_uris(given) if key == "subject_uris" else [given]
    names = [_label(item) for item in given] if isinstance(given, list) else [None]
    if None in names:
        raise ValueError(
            f"expected a string, or a list of strings or of objects with 'uri' or 'label', under {key!r}, got {given!r}"
        )
    return [name for name in names if name is not None]


def _label(item: Any) -> str | None:
    if isinstance(item, dict):
        item = item.get("uri", item.get("label"))
    return item if isinstance(item, str) else None


def _id(record: dict[str, Any]) -> str | None:
    key = next((key for key in ID_KEYS if record.get(key) is not None), None)
    if key is None:
        return None
    given = record[key]
    if isinstance(given, bool) or not isinstance(given, (str, int)):
        raise ValueError(f"expected a string or an integer under {key!r}, got {given!r}")
    return str(given)


def split_uris(cell: str) -> list[str]:
    """Return URIs that are separated by blanks, in angle brackets or not."""
    return [uri for uri in (word.strip("<>") for word in cell.split()) if uri]


def in_batches(rows: Iterable[Row], limit: int) -> Iterator[Examples]:
    """Yield documents in batches of at most ``limit`` rows, and of bounded size."""
    batch: list[Row] = []
    size, started, labelled, named = 0, False, False, False
    for row in rows:
        if len(batch) == limit or size > BATCH_BYTES:
            yield _examples(batch, labelled, named)
            batch, size, started = [], 0, True
        batch.append(row)
        size += len(row.text)
        labelled, named = labelled or row.labels is not None, named or row.id is not None
    if batch or not started:
        yield _examples(batch, labelled, named)


def _examples(batch: list[Row], labelled: bool, named: bool) -> Examples:
    return Examples(
        [row.text for row in batch],
        [row.labels or [] for row in batch] if labelled else None,
        ids=[row.id for row in batch] if named else None,
    )
