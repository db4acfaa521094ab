"""Label sets as users give them: indicator matrices, data frames of 0 and 1, or lists of labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsense._typing import CSR, Label
from labelsense._validation import as_list, check_binary, is_matrix, is_missing
from labelsense.errors import InputError

NUMBERS = (int, float, np.bool_, np.integer, np.floating)
LABELS = "Labels are strings, numbers, or tuples of these: convert it to one, such as a string."


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
    names = sorted_labels(set(labels.values()))
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
        raise InputError(f"y has a column {columns[names.index(None)]!r}, which cannot be a label. {LABELS}")
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
        raise InputError(f"y has {label!r} in row {row}, which cannot be a label. {LABELS}")
    _refuse_nested_indicator(rows, labels)
    return labels


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


def sorted_labels(labels: Iterable[Label]) -> list[Label]:
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
