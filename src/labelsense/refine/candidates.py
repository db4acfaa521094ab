"""Pairs of a row and a label that may be right, as refinement hands them around."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from labelsense._typing import CSR, FloatArray, IntArray


@dataclass(frozen=True)
class Candidates:
    """The candidate labels of some rows, ascending within a row.

    Attributes
    ----------
    starts : array (n + 1,)
        Where the candidates of each row start.
    labels : array (pairs,) of int32
    n_labels : int
    """

    starts: IntArray
    labels: NDArray[np.int32]
    n_labels: int

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.starts) - 1

    @property
    def row(self) -> IntArray:
        """The row of each pair."""
        return np.repeat(np.arange(self.n_rows), np.diff(self.starts))

    def matrix(self, values: FloatArray | IntArray) -> CSR:
        """Return a value of each pair as CSR (n, d)."""
        return sp.csr_array((values, self.labels, self.starts), shape=(self.n_rows, self.n_labels))

    def of(self, rows: slice) -> Candidates:
        """Return the candidates of some rows; their pairs are :meth:`pairs`."""
        pairs = self.pairs(rows)
        return Candidates(self.starts[rows.start : rows.stop + 1] - pairs.start, self.labels[pairs], self.n_labels)

    def pairs(self, rows: slice) -> slice:
        """Return which pairs are those of some rows."""
        return slice(int(self.starts[rows.start]), int(self.starts[rows.stop]))

    def are_in(self, Y: CSR) -> NDArray[np.bool_]:
        """Return whether each pair is one of the label matrix."""
        return np.isin(self._keys(self.starts, self.labels), self._keys(Y.indptr, Y.indices), assume_unique=True)

    def _keys(self, starts: IntArray, labels: NDArray[np.integer]) -> IntArray:
        row = np.repeat(np.arange(len(starts) - 1, dtype=np.int64), np.diff(starts))
        return row * self.n_labels + labels


def concatenate(parts: list[Candidates]) -> Candidates:
    """Return the candidates of blocks of rows as one."""
    counts = np.concatenate([np.diff(part.starts) for part in parts])
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Candidates(starts, np.concatenate([part.labels for part in parts]), parts[0].n_labels)
