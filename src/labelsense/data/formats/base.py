"""What a data file holds, and what every format offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsense._typing import CSR
from labelsense._validation import check_binary
from labelsense.data.formats.source import Source

BATCH_BYTES = 2**25  # of text in a batch
COLUMN_LIMIT = 2**31 - 1  # the widest matrix that has 32-bit column numbers


@dataclass(frozen=True)
class Examples:
    """Rows of a file: features, texts or images, with their labels.

    Attributes
    ----------
    X : CSR (n, p) of float32, or list of str
        Features, or one text per row, or the name of one image file per row.
    Y : CSR (n, d) of float32, list of lists of str, or None
        1 where a row has the label with that column number, or the names of each row's labels. None if the file has
        no labels at all.
    features, labels : list of str or None
        The names of the columns of X and of Y, where the file has them.
    ids : list of str or None
        The names of the rows, where the file has them; None for a row without.
    images : bool
        Whether X names image files: then it does not hold texts.
    name : str
        What errors call these rows: the file that they are from.

    Examples
    --------
    >>> from labelsense.data import Examples
    >>> examples = Examples(["a red fox", "two hens"], [["fox"], ["hen", "egg"]])
    >>> len(examples), examples.kind
    (2, 'texts')
    """

    X: CSR | list[str]
    Y: CSR | list[list[str]] | None
    features: list[str] | None = None
    labels: list[str] | None = None
    ids: list[str | None] | None = None
    images: bool = False
    name: str = "examples"

    @property
    def kind(self) -> str:
        """What X holds: "texts", "features" or "images"."""
        return "images" if self.images else "texts" if isinstance(self.X, list) else "features"

    def __len__(self) -> int:
        return len(self.X) if isinstance(self.X, list) else self.X.shape[0]


class Format(ABC):
    """One way to write examples down.

    Attributes
    ----------
    name : str
        What ``format=`` calls it.
    suffixes : tuple of str
        The ends of file names that stand for it. Where several formats share one, the content decides among them, and
        the last of them is written.
    """

    name: str
    suffixes: tuple[str, ...]

    @abstractmethod
    def sniff(self, head: bytes) -> bool:
        """Tell whether a file that begins like this is of this format."""

    @abstractmethod
    def stream(self, source: Source, rows: int) -> Iterator[Examples]:
        """Yield batches of at most ``rows`` rows, at least one batch. Memory does not grow with the file."""

    def stream_parts(self, paths: Sequence[Path], rows: int) -> Iterator[Examples]:
        """Yield batches of several files as if they were one."""
        for path in paths:
            with Source(path) as source:
                yield from self.stream(source, rows)

    def read(self, source: Source) -> Examples:
        """Return the whole file."""
        return concatenate(list(self.stream(source, COLUMN_LIMIT)))

    def write(self, path: Path, batches: Iterator[Examples]) -> None:
        """Write batches to a file that appears only when it is complete."""
        raise ValueError(f"{self.name} is read, not written. Write jsonl, tsv, csv or parquet.")

    def with_text_fields(self, names: Sequence[str]) -> Format:
        """Return this format, made to take the text of a row from the fields of these names."""
        raise ValueError(
            f"text_fields is for rows with named fields, in jsonl, tsv, csv or parquet. Got {listed(names)} for a file "
            f"of format {self.name}."
        )


def listed(names: Iterable[str], word: str = "or") -> str:
    """Return names in quotes, as a sentence lists them."""
    *most, last = (repr(name) for name in names)
    return f"{', '.join(most)} {word} {last}" if most else last


def concatenate(batches: list[Examples]) -> Examples:
    """Return batches of one file as one; where only some batches have labels, the rows of the others have none."""
    last = batches[-1]
    if len(batches) == 1:
        return last
    Y: Any = None
    ids: Any = None
    if any(batch.ids is not None for batch in batches):
        ids = [id for batch in batches for id in batch.ids or [None] * len(batch)]
    if isinstance(last.X, list):
        X: Any = [text for batch in batches for text in batch.X]
        if any(batch.Y is not None for batch in batches):
            Y = [row for batch in batches for row in batch.Y or [[]] * len(batch)]
    else:
        parts = [batch.X for batch in batches]
        X = sp.vstack(parts, format="csr") if sp.issparse(last.X) else np.concatenate(parts)
        if last.Y is not None:
            Y = sp.vstack([batch.Y for batch in batches], format="csr")
    return replace(last, X=X, Y=Y, ids=ids)


def widened(M: CSR, width: int) -> CSR:
    """Return a matrix with at least so many columns."""
    return M if M.shape[1] >= width else sp.csr_array((M.data, M.indices, M.indptr), shape=(M.shape[0], width))


def with_features(batches: Iterable[Examples], name: str) -> Iterator[tuple[CSR, CSR | None, Examples]]:
    """Yield X in canonical float32 and Y of batches with the batch; refuse texts and label names."""
    for batch in batches:
        if isinstance(batch.X, list):
            raise ValueError(f"{name} holds features, and these examples are texts. Write them as jsonl, tsv or csv.")
        if isinstance(batch.Y, list):
            raise ValueError(f"{name} holds label numbers, and these examples have label names. Pass an indicator Y.")
        X = sp.csr_array(batch.X).astype(np.float32, copy=False)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        if X.shape[1] > COLUMN_LIMIT:
            raise ValueError(f"X must have at most {COLUMN_LIMIT} columns to be written. Got {X.shape[1]}.")
        if not np.isfinite(X.data).all():
            raise ValueError("X contains NaN or infinity, which no format holds. Remove or replace them.")
        Y = None if batch.Y is None else check_binary(batch.Y)
        if Y is not None and Y.shape[0] != X.shape[0]:
            raise ValueError(f"X and Y must have the same number of rows. Got {X.shape[0]} and {Y.shape[0]}.")
        yield X, Y, batch


def with_texts(batches: Iterable[Examples], name: str) -> Iterator[tuple[list[str], list[list[str]] | None, Any]]:
    """Yield texts, label names, by number where the labels have no names, and ids; refuse features."""
    for batch in batches:
        if not isinstance(batch.X, list):
            raise ValueError(f"{name} holds texts, and these examples are features. Write them as xc, libsvm or npz.")
        Y = batch.Y
        if Y is not None and not isinstance(Y, list):
            Y = check_binary(Y)
            Y = label_lists(Y, batch.labels or [str(j) for j in range(Y.shape[1])])
        if Y is not None and len(Y) != len(batch.X):
            raise ValueError(f"X and Y must have the same number of rows. Got {len(batch.X)} and {len(Y)}.")
        yield batch.X, Y, batch.ids


def label_lists(Y: CSR, names: list[str]) -> list[list[str]]:
    """Return the names of each row's labels."""
    return [[names[j] for j in Y.indices[a:b]] for a, b in zip(Y.indptr[:-1], Y.indptr[1:], strict=True)]
