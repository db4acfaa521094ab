"""The design matrix X that all regressions share: what solvers may ask of it, wherever its rows are."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from labelsense._blocks import row_blocks
from labelsense._gram import copied
from labelsense._typing import CSR, DoubleArray, FloatArray, Precision, Rows

DENSE_ROWS = 2048  # rows of a dense block
DOUBLE_ROWS = 256  # and of one that is copied in double for a sum: enough to be fast, too few to need much memory


@dataclass(frozen=True)
class Size:
    """What the cost of products with X (n, p) depends on.

    Attributes
    ----------
    n, p : int
    entries : int
        Numbers that are stored: n p if X is dense.
    by_rows, by_columns : float
        Multiplications for the lower triangles of X'X and X X': half the sum of squares of the numbers of entries of a
        row, and of a column.
    sparse : bool
    """

    n: int
    p: int
    entries: int
    by_rows: float
    by_columns: float
    sparse: bool

    @classmethod
    def of(cls, X: Any) -> Size:
        """Count."""
        n, p = X.shape
        if not sp.issparse(X):
            return cls.dense(n, p)
        X = X.tocsr()
        r, c = np.diff(X.indptr).astype(float), np.bincount(X.indices, minlength=p).astype(float)
        return cls(n, p, int(X.nnz), float((r**2).sum()) / 2, float((c**2).sum()) / 2, True)

    @classmethod
    def dense(cls, n: int, p: int) -> Size:
        """Return the size of an array."""
        return cls(n, p, n * p, n * p**2 / 2, n**2 * p / 2, False)


class Design(ABC):
    """X (n, p), in float32, behind the products that solvers need. Long sums are in double.

    Each of these can be had by passes over blocks of rows, so the rows need not be in memory. What needs them all at
    once is in :class:`MemoryDesign`.

    Attributes
    ----------
    shape : tuple
        (n, p).
    in_memory : bool
        Whether all rows are in memory, so that each of them can meet each other: then it is a :class:`MemoryDesign`.
    memory : float
        How many bytes a solver may take for itself.
    """

    shape: tuple[int, int]
    in_memory: ClassVar[bool] = False
    memory: float = math.inf

    @abstractmethod
    def size(self) -> Size:
        """Return what the cost of products depends on."""

    @abstractmethod
    def weighted_sum(self, weights: DoubleArray | None) -> DoubleArray:
        """Return X'w, (p,), for a weight of each row, or 1, in double."""

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

    def moment_times(self, B: Any) -> DoubleArray:
        """Return X' B, (p, m), in double, of which sums over many rows are in double too: right to rounding."""
        return copied(self.transposed_times(B), np.float64)

    def normal_times(self, P: FloatArray, shift: FloatArray, s: DoubleArray | None) -> tuple[FloatArray, FloatArray]:
        """Return X'H, (p, m), and s'H, (m,), for H = X P - s shift', (n, m), where s is 1 if not given."""
        H = self.times(P)
        if shift.any():
            H -= shift if s is None else s[:, None].astype(np.float32) * shift
        sums = (np.ones(len(H), np.float32) if s is None else s.astype(np.float32)) @ H
        return np.ascontiguousarray(self.transposed_times(H), dtype=np.float32), sums

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

    in_memory = True

    @cached_property
    def squared_lengths(self) -> FloatArray:
        """The squared length of each row, (n,), in the precision of inner products."""
        return self.row_squares().astype(np.float32)

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
    first, *others = some_blocks(n, size)
    total = function(first).astype(np.float64, copy=False)
    for rows in others:
        total += function(rows)
    return total


def some_blocks(n: int, size: int) -> list[slice]:
    """Return the blocks of n rows; of none, one that is empty."""
    return list(row_blocks(n, size)) or [slice(0, 0)]
