"""A ridge regression problem, weighted and centred without touching the sparse rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsense._blocks import row_blocks
from labelsense._typing import DoubleArray, FloatArray, IntArray, Rows, as_dense
from labelsense.regress.base import Fold
from labelsense.regress.design import DENSE_ROWS, Design, sum_over_blocks
from labelsense.regress.targets import LazyTargets, scaled_targets, some_targets, weighted_sum


@dataclass(frozen=True)
class TrainingRows:
    """Validated rows of training. Those of weight zero have no say, and no leave-one-out residual."""

    X: Any
    Z: Any
    weights: DoubleArray | None

    def with_weight(self) -> tuple[Any, Any, DoubleArray | None]:
        """Return the rows that have a say."""
        if self.weights is None or self.weights.all():
            return self.X, self.Z, self.weights
        keep = self.weights > 0
        return self.X[keep], self.Z[keep], self.weights[keep]

    def fill(self, H: FloatArray, predict: Callable[[Any], FloatArray]) -> FloatArray:
        """Return predictions of all rows, given those of the rows that have a say."""
        if len(H) == self.X.shape[0]:
            return H
        assert self.weights is not None
        every = np.empty((self.X.shape[0], H.shape[1]), np.float32)
        every[self.weights > 0] = H
        every[self.weights == 0] = predict(self.X[self.weights == 0])
        return every


@dataclass(frozen=True)
class Problem:
    """min sum_i w_i ||z_i - W'x_i - b||^2 + alpha ||W||^2.

    With s = sqrt(w), the centred rows are ``X - s x_mean'`` and ``Z - s z_mean'``, where the rows of X and Z have been
    multiplied by s. Without an intercept the means are zero and ``total`` is infinite.
    """

    X: Design
    Z: Any  # (n, m) float32, dense, or sparse for one-against-all, or made when needed: see targets.py
    s: DoubleArray
    total: float
    x_mean: DoubleArray
    z_mean: DoubleArray
    shift: DoubleArray  # what dense rows have been centred by already
    unweighted: bool

    @classmethod
    def build(cls, design: Design, Z: Any, fit_intercept: bool, sample_weight: DoubleArray | None = None) -> Problem:
        """Weigh the rows and find the means."""
        n, p = design.shape
        w = None if sample_weight is None else np.asarray(sample_weight, np.float64)
        total = np.inf if not fit_intercept else float(n) if w is None else float(w.sum())
        x_mean, z_mean, shift = np.zeros(p), np.zeros(Z.shape[1]), np.zeros(p)
        if fit_intercept:
            shift = design.weighted_sum(w) / total
            z_mean = weighted_sum(Z, w) / total
            design, x_mean = design.centred(shift)
            shift = shift - x_mean
        s = np.broadcast_to(1.0, n) if w is None else np.sqrt(w)  # of ones, one is stored
        if w is not None:
            design = design.scaled(s)
            Z = scaled_targets(Z, s)
        if sp.issparse(Z):
            Z = sp.csr_array(Z, dtype=np.float32)
        elif not isinstance(Z, LazyTargets):
            Z = np.ascontiguousarray(Z, np.float32)
        return cls(design, Z, s, total, x_mean, z_mean, shift, w is None)

    @property
    def n_targets(self) -> int:
        """The number of regressions, m."""
        return int(self.Z.shape[1])

    def centred_rows(self, rows: Rows) -> FloatArray:
        """Return some centred rows of X, dense."""
        return self.X.dense_rows(rows) - np.outer(self.s[rows], self.x_mean).astype(np.float32)

    def centred_targets(self, rows: Rows = slice(None)) -> FloatArray:
        """Return some centred rows of Z, dense."""
        return as_dense(some_targets(self.Z, rows)) - np.outer(self.s[rows], self.z_mean).astype(np.float32)

    def original(self, H: Any, rows: Rows = slice(None)) -> FloatArray:
        """Return centred and weighted predictions of all rows, or some, as they were before."""
        H = H / self.s[rows, None].astype(np.float32)
        H += self.z_mean.astype(np.float32)
        return H.astype(np.float32, copy=False)

    def part(self, rows: Rows, columns: Any) -> tuple[Design, FloatArray, DoubleArray | None]:
        """Return some rows of X and Z as they were before they were weighted, and their weights, if any."""
        X, Z = self.X.rows(rows), some_targets(self.Z, rows, columns)
        if self.unweighted:
            return X, Z, None
        s = self.s[rows]
        return X.scaled(1 / s), scaled_targets(Z, 1 / s), s**2

    def right_hand_side(self, columns: slice = slice(None)) -> DoubleArray:
        """Return the centred X'Z, (p, m), in double, or some of its columns."""
        Z = self.Z if columns == slice(None) else some_targets(self.Z, slice(None), columns)
        right = self.X.moment_times(Z)
        if np.isfinite(self.total):
            subtract_outer(right, self.total * self.x_mean, self.z_mean[columns])
        return right

    def diagonal(self) -> DoubleArray:
        """Return the diagonal of the centred X'X, (p,)."""
        squares = self.X.column_squares()
        return squares - self.total * self.x_mean**2 if np.isfinite(self.total) else squares

    def intercept(self, W: Any) -> Any:
        """Return b for given W."""
        mean = self.x_mean + self.shift
        return self.z_mean - sum_over_blocks(len(W), lambda rows: mean[rows] @ W[rows])

    def fitted(self, W: Any, rows: Rows = slice(None)) -> FloatArray:
        """Return the centred, weighted fitted values of all rows, or some, (n, m)."""
        every = isinstance(rows, slice) and rows == slice(None)
        H = (self.X if every else self.X.rows(rows)).times(W)
        if self.x_mean.any():
            shift = self.x_mean.astype(np.float32) @ W.astype(np.float32, copy=False)
            H -= shift if self.unweighted else self.s[rows, None].astype(np.float32) * shift
        return H

    def own_weight(self, rows: Rows = slice(None)) -> DoubleArray:
        """Return the leverage that each row, or some, has on the intercept alone."""
        return self.s[rows] ** 2 / self.total


class Solver(ABC):
    """Solves one problem for any number of penalties.

    Attributes
    ----------
    problem : Problem
    n_iter : int
        The steps of the last solution, 1 if it is direct.
    """

    problem: Problem
    n_iter: int = 1

    @abstractmethod
    def solve(self, alpha: float) -> Any:
        """Return W, (p, m)."""

    @abstractmethod
    def leave_one_out_error(self, alpha: float, rows: IntArray) -> float:
        """Return the mean squared error of models that did not see their row, over some rows."""


class DirectSolver(Solver):
    """A solver with a factorisation, by which rows are left out in closed form."""

    @abstractmethod
    def solve_out_of_sample(self, alpha: float) -> tuple[Any, FloatArray]:
        """Return W, and the prediction of each row by a model of the others, (n, m)."""

    @abstractmethod
    def leave_out(self, alpha: float) -> tuple[Any, Callable[[Fold], tuple[FloatArray, FloatArray]]]:
        """Return W, and a function that says of a fold what :meth:`Learner.fit_leaving_out` does."""


def subtract_outer(A: Any, x: DoubleArray, z: DoubleArray) -> None:
    """Subtract x z' from A, a block of rows at a time: the whole product would be as large as A."""
    for rows in row_blocks(len(A), DENSE_ROWS):
        A[rows] -= np.outer(x[rows], z)
