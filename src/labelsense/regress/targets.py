"""Targets Z (n, m) of all regressions: an array, a sparse matrix, or made when needed from rows that are elsewhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsense._typing import DoubleArray, FloatArray, Rows, as_dense
from labelsense.regress.design import DOUBLE_ROWS, sum_over_blocks


class LazyTargets(ABC):
    """Targets that are not in memory.

    Attributes
    ----------
    shape : tuple
        (n, m).
    """

    shape: tuple[int, int]

    @abstractmethod
    def part(self, rows: Rows, columns: Any = slice(None)) -> LazyTargets:
        """Return some of the rows, which are ascending, and columns."""

    @abstractmethod
    def scaled(self, weights: DoubleArray) -> LazyTargets:
        """Return the rows, each times its weight."""

    @abstractmethod
    def weighted_sum(self, weights: DoubleArray | None) -> DoubleArray:
        """Return the sum of the rows, each times its weight if there are weights, (m,), in double."""

    @abstractmethod
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        """Return all of them: for a few rows."""


def weighted_sum(Z: Any, weights: DoubleArray | None) -> DoubleArray:
    """Return the sum of the rows of targets of any kind, each times its weight, (m,), in double."""
    if isinstance(Z, LazyTargets):
        return Z.weighted_sum(weights)
    w = np.ones(Z.shape[0]) if weights is None else weights
    if sp.issparse(Z):
        return np.asarray(Z.T @ w, np.float64)
    return sum_over_blocks(len(w), lambda rows: w[rows] @ Z[rows], DOUBLE_ROWS)


def scaled_targets(Z: Any, weights: DoubleArray) -> Any:
    """Return targets of any kind, each row times its weight."""
    if isinstance(Z, LazyTargets):
        return Z.scaled(weights)
    return sp.diags_array(weights) @ Z if sp.issparse(Z) else Z * weights[:, None]


def some_targets(Z: Any, rows: Rows, columns: Any = slice(None)) -> Any:
    """Return some rows and columns of targets of any kind, dense unless they are made when needed."""
    return Z.part(rows, columns) if isinstance(Z, LazyTargets) else as_dense(Z[rows][:, columns])
