"""The design matrix X that all regressions share: what solvers may ask of it, wherever its rows are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from labelsense._blocks import row_blocks
from labelsense._typing import CSR, DoubleArray, FloatArray, Precision, Rows

DENSE_ROWS = 2048  # rows of a dense block
DOUBLE_ROWS = 256  # and of one that is copied in double for a sum: enough to be fast, too few to need much memory


class Design(ABC):
    """X (n, p), in float32, behind the products that solvers need. Long sums are in double.

    Each of these can be had by passes over blocks of rows, so the rows need not be in memory. What needs them all at
    once is in :class:`MemoryDesign`.

    Attributes
    ----------
    shape : tuple
        (n, p).
    """

    shape: tuple[int, int]

    @abstractmethod
    def weighted_sum(self, weights: DoubleArray) -> DoubleArray:
        """Return X'w, (p,), for a weight of each row, in double."""

    @abstractmethod
    def total_square(self) -> float:
        """Return the sum of squares of all entries; infinity where float32 ends or beyond."""

    @abstractmethod
    def column_squares(self) -> DoubleArray:
        """Return the sum of squares of each feature, (p,), in double."""

    @abstractmethod
    def row_squares(self) -> DoubleArray:
        """Return the squared length of each row, (n,), in double."""

    @abstractmethod
    def times(self, B: Any) -> FloatArray:
        """Return X B, (n, m), for dense B (p, m)."""

    @abstractmethod
    def times_vector(self, v: DoubleArray) -> DoubleArray:
        """Return X v, (n,), in double."""

    @abstractmethod
    def transposed_times(self, B: Any) -> Any:
        """Return X' B, (p, m), for B (n, m), dense or sparse: in double if B is, or if that costs no more."""

    @abstractmethod
    def gram(self, kind: Precision = np.float32) -> Any:
        """Return X'X, (p, p). Only its lower triangle is right."""

    def sparse_gram(self, fullest: float) -> CSR | None:
        """Return the lower triangle of X'X, sparse, in double; None if more than this part of X'X is not zero.

        None, too, where rows are dense.
        """
        return None

    @abstractmethod
    def quadratic_forms(self, S: FloatArray) -> DoubleArray:
        """Return x' S x for each row, (n,); only the lower triangle of the symmetric S is read."""

    @abstractmethod
    def centred(self, mean: DoubleArray) -> tuple[Design, DoubleArray]:
        """Return X less as much of the mean as can be taken off without harm, and what remains to be taken off.

        Dense rows lose all of it, before they are rounded. Sparse rows lose nothing, since zeros would not stay zeros.
        """

    @abstractmethod
    def scaled(self, weights: DoubleArray) -> Design:
        """Return X with each row multiplied by a weight."""

    @abstractmethod
    def rows(self, chosen: Rows) -> Design:
        """Return some of the rows."""

    @abstractmethod
    def dense_rows(self, chosen: Rows) -> FloatArray:
        """Return some of the rows as an array."""


class MemoryDesign(Design):
    """A design whose rows are in memory, so that each of them can meet each other."""

    @abstractmethod
    def outer_gram(self, kind: Precision = np.float32) -> Any:
        """Return X X', (n, n). Only its lower triangle is right."""

    @abstractmethod
    def times_rows_of(self, other: MemoryDesign) -> FloatArray:
        """Return X Z', (n, k), for another design Z (k, p)."""

    @abstractmethod
    def centred(self, mean: DoubleArray) -> tuple[MemoryDesign, DoubleArray]: ...

    @abstractmethod
    def scaled(self, weights: DoubleArray) -> MemoryDesign: ...

    @abstractmethod
    def rows(self, chosen: Rows) -> MemoryDesign: ...


def sum_over_blocks(n: int, function: Callable[[slice], Any], size: int = DENSE_ROWS) -> Any:
    """Return the sum of a function of blocks of rows, accumulated in double."""
    first, *others = row_blocks(n, size)
    total = function(first).astype(np.float64, copy=False)
    for rows in others:
        total += function(rows)
    return total
