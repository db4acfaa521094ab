"""Label sets in and out: indicator matrices, data frames of 0 and 1, or lists of labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from labelsense._typing import CSR, FloatArray, IntArray, Label
from labelsense._validation import as_list, check_binary, is_matrix, is_missing
from labelsense.errors import InputError

NUMBERS = (int, float, np.bool_, np.integer, np.floating)


class TopK(NamedTuple):
    """The best labels of each row and their scores, best first.

    Attributes
    ----------
    labels : array (n, k)
        Column numbers (-1 where there are fewer than k), or the labels themselves (None where there are fewer).
    scores : array (n, k)
        0 where there are fewer than k.
    """

    labels: NDArray[Any]
    scores: FloatArray


class Vocabulary:
    """The labels of a model, in column order: numbers 0 to d-1, or labels with names.

    The labels of label lists are numbered in sorted order: numbers, strings and tuples each for themselves. Those of a
    data frame are its columns.
    """

    def __init__(self, names: Sequence[Label] | None, n_labels: int) -> None:
        self.names = None if names is None else list(names)
        self.n_labels = n_labels

    @classmethod
    def learn(cls, y: Any) -> tuple[Vocabulary, CSR]:
        """Return the vocabulary of training labels and their indicator matrix."""
        Y, names = read_labels(y)
        return cls(names, Y.shape[1]), Y

    def read(self, y: Any) -> CSR:
        """Return labels as an indicator matrix (n, d); those that the model does not know are refused."""
        Y, names = read_labels(y)
        columns = self._find(Y, names)
        unknown = np.flatnonzero(columns[Y.indices] < 0)
        if len(unknown):
            row = int(np.searchsorted(Y.indptr, unknown[0], side="right")) - 1
            label = names[Y.indices[unknown[0]]] if names is not None else None
            raise InputError(f"y has a label that was not in the training data: {label!r} in row {row}.")
        return _move_columns(Y, columns, self.n_labels)

    def read_counting_unknown(self, y: Any) -> tuple[CSR, IntArray]:
        """Return labels as an indicator matrix, and for each row how many labels have no column."""
        Y, names = read_labels(y)
        known = _move_columns(Y, self._find(Y, names), self.n_labels)
        return known, np.diff(Y.indptr) - np.diff(known.indptr)

    def extend(self, y: Any) -> tuple[Vocabulary, CSR]:
        """Return the vocabulary with the labels of y that are new behind those it has, and y as an indicator matrix."""
        Y, names = read_labels(y)
        if names is None and self.names is None:
            wider = Vocabulary(None, max(self.n_labels, Y.shape[1]))
            return wider, _move_columns(Y, np.arange(Y.shape[1]), wider.n_labels)
        columns = self._find(Y, names)
        new = np.flatnonzero(columns < 0)
        columns[new] = self.n_labels + np.arange(len(new))
        extended = Vocabulary([*(self.names or []), *((names or [])[j] for j in new)], self.n_labels + len(new))
        return extended, _move_columns(Y, columns, extended.n_labels)

    def columns_of(self, labels: Iterable[Label], name: str) -> IntArray:
        """Return the column numbers of labels; those that the model does not know are refused."""
        if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable):
            raise TypeError(f"{name} must be a list of labels. Got {labels!r}. Pass [{labels!r}].")
        given = as_list(labels)
        columns = [self._columns.get(label, -1) for label in given]
        if -1 in columns:
            raise InputError(f"{name} must hold labels of the training data. Got {given[columns.index(-1)]!r}.")
        return np.array(columns, np.int64)

    def lists(self, Y: CSR) -> list[list[Label]]:
        """Return the labels of each row of an indicator matrix."""
        names: Sequence[Label] = range(self.n_labels) if self.names is None else self.names
        return [[names[j] for j in Y.indices[a:b]] for a, b in zip(Y.indptr[:-1], Y.indptr[1:], strict=True)]

    def decode_columns(self, columns: IntArray) -> NDArray[Any]:
        """Return column numbers as labels, where the model has names; -1 becomes None."""
        return columns if self.names is None else self._objects[columns]  # -1 is the last, None

    def as_array(self) -> NDArray[Any]:
        """Return the labels in column order."""
        return np.arange(self.n_labels) if self.names is None else self._objects[:-1]

    @cached_property
    def _objects(self) -> NDArray[Any]:
        objects = np.empty(self.n_labels + 1, dtype=object)
        objects[:-1] = self.names
        return objects

    @cached_property
    def _columns(self) -> dict[Label, int]:
        return {name: j for j, name in enumerate(range(self.n_labels) if self.names is None else self.names)}

    def _find(self, Y: CSR, names: list[Label] | None) -> IntArray:
        """Return the column of the model for each column of Y, -1 where it has none."""
        if (names is None) != (self.names is None):
            matrix, named = "an indicator matrix", "label lists or a data frame with the labels as columns"
            given, wanted = (named, matrix) if self.names is None else (matrix, named)
            raise TypeError(f"y must be given as in training, as {wanted}. Got {given}.")
        if names is not None:
            return np.array([self._columns.get(name, -1) for name in names], np.int64)
        if Y.shape[1] != self.n_labels:
            raise InputError(f"y must have one column per label, {self.n_labels}. Got {Y.shape[1]} columns.")
        return np.arange(self.n_labels)


def _move_columns(Y: CSR, columns: IntArray, n_labels: int) -> CSR:
    """Return Y with its columns at other places, without those whose place is -1."""
    if np.array_equal(columns, np.arange(n_labels)):
        return Y
    moved = columns[Y.indices]
    kept = moved >= 0
    indptr = np.concatenate([[0], np.cumsum(kept)])[Y.indptr]
    result = sp.csr_array((Y.data[kept], moved[kept], indptr), shape=(Y.shape[0], n_labels))
    result.sort_indices()
    return result


def read_labels(y: Any) -> tuple[CSR, list[Label] | None]:
    """Return the labels that a user gave as an indicator matrix of 0 and 1, and the labels of its columns.

    They have names if y is a data frame with names of its own, or not a matrix: one list, set or tuple of labels per
    row, or one number per row, the row's only label.
    """
    if hasattr(y, "__array__") and not isinstance(y, Iterable) and not is_matrix(y):  # as scikit-learn takes it
        y = np.asarray(y)
    if is_matrix(y):
        return _read_frame(y) if hasattr(y, "columns") else (_read_matrix(y), None)
    rows = _label_rows(y)
    labels = _plain_labels(rows)
    names = _sorted(set(labels.values()))
    place = {name: j for j, name in enumerate(names)}
    columns = {given: place[label] for given, label in labels.items()}
    counts = np.fromiter(map(len, rows), np.int64, len(rows))
    indices = np.fromiter(map(columns.__getitem__, chain.from_iterable(rows)), np.int64, int(counts.sum()))
    indptr = np.concatenate([[0], np.cumsum(counts)])
    Y = sp.csr_array((np.ones(len(indices), np.float32), indices, indptr), shape=(len(rows), len(names)))
    Y.sum_duplicates()
    Y.data[:] = 1  # a label given twice
    return Y, names


def _read_matrix(y: Any) -> CSR:
    if isinstance(y, np.ndarray) and y.dtype.kind in "OSUT" and y.size and not isinstance(y.flat[0], NUMBERS):
        raise InputError(
            f"y must hold 0 and 1, one column per label. Got {y.flat[0]!r}. If each row holds its labels, pass "
            "y.tolist(), one list of labels per row."
        )
    return check_binary(y, "y")


def _read_frame(y: Any) -> tuple[CSR, list[Label] | None]:
    """Return a data frame of 0 and 1, and its columns as labels unless they are just numbered."""
    columns = list(y.column_names if hasattr(y, "column_names") else y.columns)  # pyarrow; pandas and polars
    names = [plain_label(name) for name in columns]
    if None in names:
        raise InputError(f"y has a column {columns[names.index(None)]!r}, which cannot be a label. {_LABELS}")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"y must have one column per label. Got {twice!r} more than once.")
    try:
        Y = check_binary(y, "y")
    except (InputError, TypeError):
        for name in columns:
            first = next((value for value in as_list(y[name]) if not is_missing(value)), 0)
            if not isinstance(first, NUMBERS):
                raise InputError(
                    f"y must hold 0 and 1, one column per label. Its column {name!r} holds {first!r}. If that column "
                    f"has each row's labels in lists, pass y[{name!r}]; texts such as 'a, b' have to be split first."
                ) from None
        raise
    return Y, None if names == list(range(len(names))) else names


def _label_rows(y: Any) -> list[Sequence[Any]]:
    """Return y as one sequence of labels per row."""
    if isinstance(y, (str, bytes, dict)) or not isinstance(y, Iterable):
        raise TypeError(
            "y must be an indicator matrix (n, d), sparse or dense, or one list of labels per row. "
            f"Got {type(y).__name__}."
        )
    rows = as_list(y)
    if rows and all(isinstance(row, NUMBERS) for row in rows):
        return _one_label_rows(rows)
    return [_label_row(row, i) for i, row in enumerate(rows)]


def _one_label_rows(rows: list[Any]) -> list[Sequence[Any]]:
    for i, value in enumerate(rows):
        if not float(value).is_integer():
            raise InputError(
                f"y must hold labels, and one number per row is the number of its label. Got {value!r} in row {i}. "
                "Pass an indicator matrix (n, d), or one list of labels per row."
            )
    return [(value,) for value in rows]


def _label_row(row: Any, i: int) -> Sequence[Any]:
    if isinstance(row, (str, bytes)):
        raise InputError(
            f"y must have a list of labels for each row. Got {row!r} in row {i}. If each row has one label, pass "
            "[[label] for label in y]; texts such as 'a, b' have to be split first."
        )
    if is_missing(row):
        raise InputError(f"y must have a list of labels for each row. Got {row!r} in row {i}. Pass [] for no labels.")
    if hasattr(row, "as_py"):  # a list of pyarrow
        row = row.as_py()
    if not isinstance(row, Iterable):
        raise InputError(f"y must have a list of labels for each row. Got {row!r} in row {i}. Pass [{row!r}].")
    return row if isinstance(row, (list, tuple)) else as_list(row)


def _plain_labels(rows: list[Sequence[Any]]) -> dict[Any, Label]:
    """Return each label that occurs, as it was given and as one of Python's own objects."""
    try:
        labels = {label: plain_label(label) for label in dict.fromkeys(chain.from_iterable(rows))}
    except TypeError:  # not hashable
        labels = {}
        wrong: Any = (label for row in rows for label in row if plain_label(label) is None)
    else:
        wrong = (label for label, plain in labels.items() if plain is None)
    for label in wrong:
        row = next(i for i, row in enumerate(rows) if any(label is each for each in row))
        raise InputError(f"y has {label!r} in row {row}, which cannot be a label. {_LABELS}")
    _refuse_nested_indicator(rows, labels)
    return labels


_LABELS = "Labels are strings, numbers, or tuples of these: convert it to one, such as a string."


def plain_label(label: Any) -> Any:
    """Return a label as Python's own str, int, float or bool, or a tuple of these; None if it is none of them."""
    if hasattr(label, "as_py"):  # a scalar of pyarrow
        label = label.as_py()
    elif isinstance(label, (np.bool_, np.number, np.str_)) and not isinstance(label, np.timedelta64):
        label = label.item()
    if isinstance(label, tuple):
        parts = tuple(map(plain_label, label))
        return None if None in parts else parts
    if isinstance(label, bool):
        return label
    if isinstance(label, int):
        return int(label)
    if isinstance(label, str):
        return str.__str__(label)  # of an enumeration, the value
    return float(label) if isinstance(label, float) and label == label else None


def _sorted(labels: Iterable[Label]) -> list[Label]:
    """Return labels in an order that depends on nothing else: numbers, then strings, then tuples."""
    try:
        return sorted(labels)
    except TypeError:
        return sorted(labels, key=_order)


def _order(label: Label) -> Any:
    if isinstance(label, tuple):
        return "tuple", tuple(map(_order, label))
    return ("string" if isinstance(label, str) else "number"), label


def _refuse_nested_indicator(rows: list[Sequence[Any]], labels: dict[Any, Label]) -> None:
    widths = set(map(len, rows))
    if len(widths) == 1 and widths.pop() > 2 and all(label in (0, 1) for label in labels):
        raise TypeError(
            "y looks like an indicator matrix written as nested lists, which would be read as lists of the labels "
            "0 and 1. Pass numpy.asarray(y) or a scipy sparse matrix."
        )


def top_k(scores: CSR, k: int) -> TopK:
    """Return the k best stored entries of each row, or all d: by falling score, ties to the lowest column."""
    n, d = scores.shape
    k = min(k, d)
    counts = np.diff(scores.indptr)
    row = np.repeat(np.arange(n), counts)
    order = np.lexsort((scores.indices, -scores.data, row))
    place = np.arange(len(row)) - np.repeat(scores.indptr[:-1], counts)
    best = place < k
    labels = np.full((n, k), -1, np.int64)
    values = np.zeros((n, k), np.float32)
    labels[row[best], place[best]] = scores.indices[order[best]]
    values[row[best], place[best]] = scores.data[order[best]]
    return TopK(labels, values)
