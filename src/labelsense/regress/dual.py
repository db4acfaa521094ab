"""Ridge and kernel ridge by an n x n matrix and its Cholesky factor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from labelsense._blocks import plain_algebra, row_blocks
from labelsense._gram import copied, mirror
from labelsense._typing import DoubleArray, FloatArray, IntArray, Rows
from labelsense.regress import lapack
from labelsense.regress.base import Fold
from labelsense.regress.design import MemoryDesign
from labelsense.regress.primal import USELESS, leave_one_out, mean_square, positive_eigenpairs
from labelsense.regress.problem import DirectSolver, Problem, subtract_outer

SMALL = 1024
CENTRED_ROWS = 256  # of the kernel matrix, at a time: whole, the products in double would be six times its size


class DualSystem:
    """(K + alpha I) U = Z for one kernel matrix and any number of penalties.

    Parameters
    ----------
    make : callable
        Returns K (n, n), the lower triangle of a symmetric positive semi-definite matrix.
    Z : array (n, m)
        Right-hand sides.
    own_weight : array (n,)
        The leverage of each row on an intercept that Z and K have been centred for; zero without one.
    keep : bool
        Whether to keep K beside its factor, for other penalties. Else it is made again where it is needed again.
    """

    def __init__(self, make: Callable[[], Any], Z: Any, own_weight: DoubleArray, keep: bool = False) -> None:
        self.Z, self.own_weight = Z, own_weight
        self._make = make
        self._kept = make() if keep else None
        self._alpha: float | None = None
        self._positive = False

    def solve(self, alpha: float) -> Any:
        """Return U, (n, m)."""
        return self._times_inverse(alpha, self.Z)

    def leave_one_out_error(self, alpha: float, rows: IntArray) -> float:
        """Return the mean squared leave-one-out residual of some rows, exactly."""
        chosen = np.arange(len(rows))
        V = np.zeros((len(self.Z), len(rows)), self.Z.dtype)
        V[rows, chosen] = 1
        V = self._times_inverse(alpha, V)
        diagonal = V[rows, chosen].astype(np.float64)
        return mean_square(alpha * (V.T @ self.Z), self._leverage(alpha, diagonal, rows), self.Z.shape[1])

    def solve_out_of_sample(self, alpha: float) -> tuple[Any, Any]:
        """Return U, and the leave-one-out residuals of all rows, (n, m)."""
        U = self.solve(alpha)
        if self._positive:
            lapack.invert(self._L)
            self._alpha = None
            diagonal = self._L.diagonal().astype(np.float64)
        else:
            values, vectors = self._pairs
            diagonal = (vectors**2 / values).sum(axis=1)
        return U, leave_one_out(alpha * U, self._leverage(alpha, diagonal, slice(None)))

    def invert(self, alpha: float) -> tuple[Any, Any]:
        """Return U, and (K + alpha I)^-1 (n, n)."""
        U = self.solve(alpha)
        if not self._positive:
            values, vectors = self._pairs
            return U, (vectors / values) @ vectors.T
        lapack.invert(self._L)
        mirror(self._L)
        self._alpha = None
        return U, self._L

    def _leverage(self, alpha: float, diagonal: DoubleArray, rows: Rows) -> DoubleArray:
        return 1 - alpha * diagonal + self.own_weight[rows]

    def _times_inverse(self, alpha: float, B: Any) -> Any:
        """Return (K + alpha I)^-1 B, or the solution of least norm."""
        if self._alpha != alpha:
            self._alpha = alpha
            self._positive = self._factor(alpha)
            if not self._positive:
                self._pairs = positive_eigenpairs(self._matrix(), alpha)
        if self._positive:
            U = B.astype(self._L.dtype, order="C")
            lapack.solve(self._L, U)
            return U
        values, vectors = self._pairs
        return vectors @ ((vectors.T @ B) / values[:, None])

    def _factor(self, alpha: float) -> bool:
        self._L = self._matrix()
        norm = lapack.largest_eigenvalue(self._L) if alpha == 0 else 0.0
        self._L[np.diag_indices_from(self._L)] += alpha
        try:
            lapack.cholesky(self._L)
        except lapack.NotPositiveDefiniteError:
            return False
        # Without a penalty, rounding may hide that K is singular: it always is, if it has been centred.
        return alpha > 0 or lapack.reciprocal_condition(self._L, norm) > USELESS[self._L.dtype]

    def _matrix(self) -> Any:
        """Return K, to be overwritten."""
        return self._make() if self._kept is None else copied(self._kept)


def leave_fold_out(
    Z: FloatArray, U: FloatArray, inverse: FloatArray, rest: IntArray, held: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return what models without some rows say: of the other rows, each left out as well, and of these.

    With G = (K + alpha I)^-1 and U = G Z, the system of the rows r without those f that are held has the inverse
    G_rr - G_rf G_ff^-1 G_fr and the solution U_r - G_rf G_ff^-1 U_f, and G_ff^-1 U_f is by how much it misses Z_f.
    """
    missed, diagonal = np.ascontiguousarray(U[held]), inverse.diagonal()[rest].astype(np.float64)
    own: Any = U[rest]
    if len(held):
        L = np.ascontiguousarray(inverse[np.ix_(held, held)])
        across = np.ascontiguousarray(inverse[held][:, rest])
        with plain_algebra:
            lapack.cholesky(L)
            lapack.solve(L, missed)
            own = own - across.T @ missed
            lapack.forward(L, across)
        diagonal -= np.einsum("ij,ij->j", across, across, dtype=np.float64)
    return Z[rest] - own / np.maximum(diagonal, 1e-8)[:, None].astype(own.dtype), Z[held] - missed


class DualSolver(DirectSolver):
    """Ridge by X X'; the rows have to be in memory."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        assert isinstance(problem.X, MemoryDesign)
        K = problem.X.outer_gram(np.float64 if problem.X.shape[0] <= SMALL else np.float32)  # small: it costs nothing
        if problem.x_mean.any():  # K - shift s' - s shift' + (x_mean'x_mean) s s', a block at a time
            shift = problem.X.times_vector(problem.x_mean)
            shift -= 0.5 * (problem.x_mean @ problem.x_mean) * problem.s
            for rows in row_blocks(len(K), CENTRED_ROWS):
                K[rows] -= (np.outer(shift[rows], problem.s) + np.outer(problem.s[rows], shift)).astype(K.dtype)
        self.system = DualSystem(lambda: K, problem.centred_targets().astype(K.dtype), problem.own_weight(), keep=True)

    def solve(self, alpha: float) -> Any:
        return self._weights(self.system.solve(alpha))

    def _weights(self, U: Any) -> Any:
        W = self.problem.X.transposed_times(U)
        subtract_outer(W, self.problem.x_mean, self.problem.s @ U)
        return W

    def leave_one_out_error(self, alpha: float, rows: IntArray) -> float:
        return self.system.leave_one_out_error(alpha, rows)

    def solve_out_of_sample(self, alpha: float) -> tuple[Any, FloatArray]:
        U, residuals = self.system.solve_out_of_sample(alpha)
        return self._weights(U), self.problem.original(self.problem.centred_targets() - residuals)

    def leave_out(self, alpha: float) -> tuple[Any, Callable[[Fold], tuple[FloatArray, FloatArray]]]:
        """Return W, and a function that says of a fold what :meth:`Learner.fit_leaving_out` does.

        With an intercept, the inverse is that of K + alpha I with s as one more row and column and 0 in the corner.
        If K is centred, that is (K + alpha I)^-1 - s s' / (alpha s's).
        """
        (U, inverse), problem = self.system.invert(alpha), self.problem
        if np.isfinite(problem.total):
            subtract_outer(inverse, problem.s / (alpha * problem.total), problem.s)

        def leave(fold: Fold) -> tuple[FloatArray, FloatArray]:
            rest, held = leave_fold_out(self.system.Z, U, inverse, *fold)
            return problem.original(rest, fold[0]), problem.original(held, fold[1])

        return self._weights(U), leave
