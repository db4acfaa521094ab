"""Label sets in and out: indicator matrices, or lists of any hashable labels."""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from labelsense._storage import Parts, is_plain, require, storable
from labelsense._typing import CSR
from labelsense._validation import check_choice, check_indicator


class TopK(NamedTuple):
    """The best labels of each row and their scores, best first.

    Attributes
    ----------
    labels : array (n, k)
        Column numbers (-1 where there are fewer than k), or the labels themselves (None where there are fewer).
    scores : array (n, k)
        0 where there are fewer than k.
    """

    labels: Any
    scores: Any


@storable()
class Vocabulary:
    """The labels of a model, in column order: numbers 0 to d-1, or the labels met in training.

    Label lists are numbered in sorted order where they can be sorted, else in order of appearance.
    """

    def __init__(self, names: Sequence[Hashable] | None, n_labels: int) -> None:
        self.names = None if names is None else list(names)
        self.n_labels = n_labels
        self._columns = None if names is None else {name: column for column, name in enumerate(names)}

    @classmethod
    def learn(cls, Y: Any) -> tuple[Vocabulary, CSR]:
        """Return the vocabulary of training labels and their indicator matrix."""
        rows = label_lists(Y)
        if rows is None:
            Y = check_indicator(Y)
            return cls(None, Y.shape[1]), Y
        names = list(dict.fromkeys(label for row in rows for label in row))
        with contextlib.suppress(TypeError):  # labels of mixed types keep their order of appearance
            names.sort(key=_itself)
        vocabulary = cls(names, len(names))
        return vocabulary, vocabulary.indicator(rows)

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

    def read(self, Y: Any, on_unknown: str = "error") -> CSR:
        """Return labels given like those of training as an indicator matrix (n, d)."""
        rows = label_lists(Y)
        if (rows is None) != (self.names is None):
            given, wanted = ("lists", "an indicator matrix") if rows is not None else ("a matrix", "label lists")
            raise TypeError(f"Y must be given as in training, as {wanted}. Got {given}.")
        if rows is not None:
            return self.indicator(rows, on_unknown)
        Y = check_indicator(Y)
        if Y.shape[1] != self.n_labels:
            raise ValueError(f"Y must have one column per label, {self.n_labels}. Got {Y.shape[1]} columns.")
        return Y

    def extend(self, Y: Any) -> tuple[Vocabulary, CSR]:
        """Return the vocabulary with the labels of Y that are new behind those it has, and Y as an indicator matrix."""
        rows = label_lists(Y)
        if rows is None or self.names is None:
            n_columns = self.n_labels if rows is not None else max(self.n_labels, Y.shape[1])
            wider = Vocabulary(self.names, n_columns)
            if rows is None and Y.shape[1] < n_columns:
                Y = check_indicator(Y)
                Y.resize((Y.shape[0], n_columns))
            return wider, wider.read(Y)
        known = set(self.names)
        new = [label for label in dict.fromkeys(label for row in rows for label in row) if label not in known]
        with contextlib.suppress(TypeError):
            new.sort(key=_itself)
        extended = Vocabulary([*self.names, *new], self.n_labels + len(new))
        return extended, extended.indicator(rows)

    def read_counting_unknown(self, Y: Any) -> tuple[CSR, Any]:
        """Return labels as an indicator matrix, and for each row how many labels have no column."""
        known = self.read(Y, on_unknown="ignore")
        rows = label_lists(Y)
        given = np.diff(known.indptr) if rows is None else np.array([len(set(row)) for row in rows])
        return known, given - np.diff(known.indptr)

    def indicator(self, rows: Sequence[Sequence[Hashable]], on_unknown: str = "error") -> CSR:
        """Return label lists as an indicator matrix; labels unknown to the model are refused or left out."""
        ignore = check_choice(on_unknown, "on_unknown", {"error": False, "ignore": True})
        assert self._columns is not None
        indices: list[int] = []
        indptr = [0]
        for i, row in enumerate(rows):
            columns = {self._columns.get(label, -1) for label in row}
            if -1 in columns:
                if not ignore:
                    unknown = next(label for label in row if label not in self._columns)
                    raise ValueError(
                        f"Y has a label that was not in the training data: {unknown!r} in row {i}. "
                        "Pass on_unknown='ignore' to leave such labels out."
                    )
                columns.discard(-1)
            indices.extend(sorted(columns))
            indptr.append(len(indices))
        data = np.ones(len(indices), np.float32)
        return sp.csr_array((data, indices, indptr), shape=(len(rows), self.n_labels))

    def lists(self, Y: CSR) -> list[list[Hashable]]:
        """Return the labels of each row of an indicator matrix."""
        names: Any = range(self.n_labels) if self.names is None else self.names
        return [[names[j] for j in Y.indices[a:b]] for a, b in zip(Y.indptr[:-1], Y.indptr[1:], strict=True)]

    def decode_columns(self, columns: Any) -> Any:
        """Return column numbers as labels, where the model has names; -1 becomes None."""
        if self.names is None:
            return columns
        names = np.empty(self.n_labels + 1, dtype=object)
        names[:-1] = self.names
        return names[columns]  # -1 is the last, None


def _itself(label: Any) -> Any:
    return label


def label_lists(Y: Any) -> list[list[Hashable]] | None:
    """Return Y as one list of labels per row, or None if it is an indicator matrix.

    A sequence of label lists, sets or tuples is taken as it is; one-dimensional data has one label per row.
    """
    if getattr(Y, "ndim", 1) == 2:  # sparse, array or DataFrame
        return None
    if isinstance(Y, (str, bytes, dict)) or not isinstance(Y, Iterable):
        raise TypeError(
            "Y must be an indicator matrix (n, d), sparse or dense, or one list of labels per row. "
            f"Got {type(Y).__name__}."
        )
    rows: list[list[Hashable]] = []
    for i, row in enumerate(Y):
        many = isinstance(row, Iterable) and not isinstance(row, (str, bytes))
        labels = list(row) if many else [row]
        for label in labels:
            if not isinstance(label, Hashable) or label is None or label != label:
                raise ValueError(f"Y has {label!r} in row {i}, which cannot be a label (NaN, None or not hashable).")
        rows.append(labels)
    _refuse_nested_indicator(rows)
    return rows


def _refuse_nested_indicator(rows: list[list[Hashable]]) -> None:
    widths = {len(row) for row in rows}
    if len(widths) == 1 and widths.pop() > 2 and all(label in (0, 1) for row in rows for label in row):
        raise TypeError(
            "Y looks like an indicator matrix written as nested lists, which would be read as lists of the labels "
            "0 and 1. Pass numpy.asarray(Y) or a scipy sparse matrix."
        )


def top_k(scores: CSR, k: int) -> TopK:
    """Return the k best stored entries of each row: by falling score, ties to the lowest column."""
    scores = sp.csr_array(scores)
    n = scores.shape[0]
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
