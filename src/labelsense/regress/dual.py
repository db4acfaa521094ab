"""Ridge and kernel ridge by an n x n matrix and its Cholesky factor."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelsense._blocks import row_blocks
from labelsense._typing import as_dense
from labelsense.regress import lapack
from labelsense.regress.primal import leave_one_out, mean_square, positive_eigenpairs
from labelsense.regress.problem import Problem

SMALL = 1024
CENTRED_ROWS = 256  # of the kernel matrix, at a time: whole, the products in double would be six times its size


class DualSystem:
    """(K + alpha I) U = Z for one kernel matrix and any number of penalties.

    Parameters
    ----------
    K : array (n, n)
        The lower triangle of a symmetric positive semi-definite matrix.
    Z : array (n, m)
        Right-hand sides.
    own_weight : array (n,)
        The leverage of each row on an intercept that Z and K have been centred for; zero without one.
    consume : bool
        Whether K may be overwritten, when only one penalty will be asked for.
    """

    def __init__(self, K: Any, Z: Any, own_weight: Any, consume: bool = False) -> None:
        self.K, self.Z, self.own_weight = K, Z, own_weight
        self._consume = consume
        self._alpha: float | None = None
        self._positive = False

    def solve(self, alpha: float) -> Any:
        """Return U, (n, m)."""
        if not self._factor(alpha):
            values, vectors = positive_eigenpairs(self.K, alpha)
            return vectors @ ((vectors.T @ self.Z) / values[:, None])
        U = self.Z.astype(self._L.dtype, order="C")
        lapack.solve(self._L, U)
        return U

    def leave_one_out_error(self, alpha: float, rows: Any) -> float:
        """Return the mean squared leave-one-out residual of some rows, exactly."""
        V = np.zeros((len(self.K), len(rows)), self.K.dtype)
        V[rows, np.arange(len(rows))] = 1
        if self._factor(alpha):
            lapack.solve(self._L, V)
        else:
            values, vectors = positive_eigenpairs(self.K, alpha)
            V = (vectors / values) @ (vectors.T @ V)
        diagonal = V[rows, np.arange(len(rows))].astype(np.float64)
        return mean_square(alpha * (V.T @ self.Z), self._leverage(alpha, diagonal, rows), self.Z.shape[1])

    def out_of_sample_residuals(self, alpha: float) -> Any:
        """Return the leave-one-out residuals of all rows, (n, m)."""
        U = self.solve(alpha)
        if self._factor(alpha):
            S = self._L if self._consume else self._L.copy()
            lapack.invert(S)
            diagonal = S.diagonal().astype(np.float64)
            self._alpha = None
        else:
            values, vectors = positive_eigenpairs(self.K, alpha)
            diagonal = (vectors**2 / values).sum(axis=1)
        return leave_one_out(alpha * U, self._leverage(alpha, diagonal, slice(None)))

    def _leverage(self, alpha: float, diagonal: Any, rows: Any) -> Any:
        return 1 - alpha * diagonal + self.own_weight[rows]

    def _factor(self, alpha: float) -> bool:
        if self._alpha == alpha:
            return self._positive
        self._alpha = alpha
        self._L = self.K if self._consume else self.K.copy()
        self._L[np.diag_indices_from(self._L)] += alpha
        try:
            lapack.cholesky(self._L)
            self._positive = True
        except lapack.NotPositiveDefiniteError:
            self._positive = False
        return self._positive


class DualSolver:
    """Ridge by X X'."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        X = problem.X.X
        if X.shape[0] <= SMALL:  # in double, which costs nothing here
            dense = as_dense(X).astype(np.float64)
            K, shift = dense @ dense.T, dense @ problem.x_mean
        else:
            K, shift = problem.X.outer_gram(), np.asarray(X @ problem.x_mean).ravel()
        if problem.x_mean.any():  # K - shift s' - s shift' + (x_mean'x_mean) s s', a block at a time
            shift = shift - 0.5 * (problem.x_mean @ problem.x_mean) * problem.s
            for rows in row_blocks(len(K), CENTRED_ROWS):
                K[rows] -= (np.outer(shift[rows], problem.s) + np.outer(problem.s[rows], shift)).astype(K.dtype)
        self.system = DualSystem(K, problem.centred_targets().astype(K.dtype), problem.own_weight())

    def solve(self, alpha: float) -> Any:
        """Return W, (p, m)."""
        U = self.system.solve(alpha)
        X = self.problem.X.X
        W = X.T @ U if len(U) <= SMALL else self.problem.X.transposed_times(U)
        return W - np.outer(self.problem.x_mean, self.problem.s @ U)

    def leave_one_out_error(self, alpha: float, rows: Any) -> float:
        """Return the mean squared leave-one-out residual of some rows, exactly."""
        return self.system.leave_one_out_error(alpha, rows)

    def out_of_sample(self, alpha: float) -> Any:
        """Return the leave-one-out predictions of all rows, (n, m): weighted and centred, like the targets."""
        return self.problem.centred_targets() - self.system.out_of_sample_residuals(alpha)
