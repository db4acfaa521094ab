"""The labels of a model: their columns, their names, and the best of each row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from labelsense import _kernels
from labelsense._html import html_table
from labelsense._label_input import read_labels
from labelsense._storage import Parts, is_plain, require, storable
from labelsense._typing import CSR, FloatArray, IntArray, Label
from labelsense._validation import as_list
from labelsense.errors import InputError

SHOWN = 20  # rows, in a notebook


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

    def _repr_html_(self) -> str:
        rows = [
            [i, ", ".join(f"{label} {score:.2f}" for label, score in zip(*row, strict=True) if label not in (None, -1))]
            for i, row in enumerate(zip(self.labels[:SHOWN].tolist(), self.scores[:SHOWN].tolist(), strict=True))
        ]
        more = f"<p>and {len(self.labels) - SHOWN:,} rows more</p>" if len(self.labels) > SHOWN else ""
        return html_table(["row", "labels and scores, best first"], rows) + more


@storable()
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

    def _to_parts(self) -> Parts:
        return {"names": self.names, "n_labels": self.n_labels}

    @classmethod
    def _from_parts(cls, parts: Parts) -> Vocabulary:
        names, n_labels = parts["names"], parts["n_labels"]
        require(type(n_labels) is int and n_labels > 0, "the number of labels must be a whole number")
        if names is not None:
            require(isinstance(names, list) and all(map(is_plain, names)), "labels must be plain values")
            require(len(set(names)) == len(names) == n_labels, "labels must be different, and as many as it says")
        return cls(names, n_labels)

    def read(self, y: Any) -> CSR:
        """Return labels as an indicator matrix (n, d); those that the model does not know are refused."""
        Y, names = read_labels(y)
        columns = self._find(Y, names)
        unknown = np.flatnonzero(columns[Y.indices] < 0)
        if len(unknown):
            row = int(np.searchsorted(Y.indptr, unknown[0], side="right")) - 1
            label = names[Y.indices[unknown[0]]] if names is not None else None
            raise InputError(f"y has a label that was not in the training data: {label!r} in row {row}.")
        return move_columns(Y, columns, self.n_labels)

    def read_counting_unknown(self, y: Any) -> tuple[CSR, IntArray]:
        """Return labels as an indicator matrix, and for each row how many labels have no column."""
        Y, names = read_labels(y)
        known = move_columns(Y, self._find(Y, names), self.n_labels)
        return known, np.diff(Y.indptr) - np.diff(known.indptr)

    def extend(self, y: Any) -> tuple[Vocabulary, CSR]:
        """Return the vocabulary with the labels of y that are new behind those it has, and y as an indicator matrix."""
        Y, names = read_labels(y)
        if names is None and self.names is None:
            wider = Vocabulary(None, max(self.n_labels, Y.shape[1]))
            return wider, move_columns(Y, np.arange(Y.shape[1]), wider.n_labels)
        columns = self._find(Y, names)
        new = np.flatnonzero(columns < 0)
        columns[new] = self.n_labels + np.arange(len(new))
        extended = Vocabulary([*(self.names or []), *((names or [])[j] for j in new)], self.n_labels + len(new))
        return extended, move_columns(Y, columns, extended.n_labels)

    def columns_of(self, labels: Iterable[Label], name: str) -> IntArray:
        """Return the column numbers of labels; those that the model does not know are refused."""
        if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable):
            raise TypeError(f"{name} must be a list of labels. Got {labels!r}. Pass [{labels!r}].")
        given = as_list(labels)
        if self.names is None:
            columns = [int(j) if isinstance(j, (int, np.integer)) and 0 <= j < self.n_labels else -1 for j in given]
        else:
            columns = [self._columns.get(label, -1) for label in given]
        if -1 in columns:
            raise InputError(f"{name} must hold labels of the training data. Got {given[columns.index(-1)]!r}.")
        return np.array(columns, np.int64)

    def column(self, label: Label) -> int:
        """Return the column number of a label, -1 if the model does not know it."""
        return self._columns.get(label, -1)

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
        return {name: j for j, name in enumerate(self.names or ())}

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


def move_columns(Y: CSR, columns: IntArray, n_labels: int) -> CSR:
    """Return Y with its columns at other places, without those whose place is -1."""
    if np.array_equal(columns, np.arange(n_labels)):
        return Y
    moved = columns[Y.indices]
    kept = moved >= 0
    indptr = np.concatenate([[0], np.cumsum(kept)])[Y.indptr]
    result = sp.csr_array((Y.data[kept], moved[kept], indptr), shape=(Y.shape[0], n_labels))
    result.sort_indices()
    return result


def top_k(scores: CSR, k: int) -> TopK:
    """Return the k best stored entries of each row, or all d: by falling score, ties to the lowest column."""
    n, d = scores.shape
    k = min(k, d)
    labels = np.full((n, k), -1, np.int64)
    values = np.zeros((n, k), np.float32)
    if k:
        _kernels.top_entries(
            scores.indptr.astype(np.int64),
            scores.indices.astype(np.int32),
            scores.data.astype(np.float64),
            labels,
            values,
        )
    return TopK(labels, values)


def scale_columns(M: CSR, factors: Any) -> CSR:
    """Return M diag(factors).

    With :func:`~labelsense.metrics.inverse_propensities`, ``A.compress(scale_columns(Y, weights))`` are targets whose
    decoded scores rank labels by weight times probability, which is best for propensity-scored precision; scaled by
    the inverse weights, they estimate probabilities again.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> scale_columns(sp.csr_array([[1, 0, 1]]), [2.0, 3.0, 4.0]).toarray().tolist()
    [[2.0, 0.0, 4.0]]
    """
    scaled = M.data * np.asarray(factors, dtype=np.float32)[M.indices]
    return sp.csr_array((scaled, M.indices, M.indptr), shape=M.shape)


def count_labels(Y: CSR) -> IntArray:
    """Return how many rows have each label."""
    return np.bincount(Y.indices, minlength=Y.shape[1]).astype(np.int64)


def keep_best(scores: FloatArray, keep: int) -> CSR:
    """Return the ``keep`` largest scores of each row as CSR, ties to the lowest column."""
    n, d = scores.shape
    # Only a label that reaches the keep-th largest value can be among the best; among equals the lowest columns are.
    level = np.partition(scores, d - keep, axis=1)[:, d - keep, None]
    above, equal = scores > level, scores == level
    equal &= np.cumsum(equal, axis=1) <= keep - above.sum(axis=1, keepdims=True)
    columns = np.nonzero(above | equal)[1]
    values = np.take_along_axis(scores, columns.reshape(n, keep), axis=1)
    indptr = np.arange(0, n * keep + 1, keep)
    return sp.csr_array((values.ravel().astype(np.float32), columns, indptr), shape=(n, d))
