"""Ridge by the p x p matrix X'X and its Cholesky factor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg as la

from labelsense._blocks import row_blocks
from labelsense._gram import copied, mirror
from labelsense._typing import DoubleArray, FloatArray, IntArray, Precision
from labelsense.regress import lapack
from labelsense.regress.base import Fold
from labelsense.regress.problem import DirectSolver, Problem

SMALL = 1024  # below this many features everything is in double: it costs nothing
FOLD_ROWS = 4096  # that meet all rows of a fold at a time
# Reciprocal condition numbers below which a solution is refined once, and below which it is not used: a float32
# factor is then computed again in double, and a double one taken for singular.
POOR = 1e-5
USELESS = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-12}


class PrimalSolver(DirectSolver):
    """Ridge by X'X; the products X'X and X'Z are computed once."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.right = problem.right_hand_side()
        self._set_precision(np.float64 if problem.X.shape[1] <= SMALL else np.float32)
        self._alpha: float | None = None
        self._positive = False

    def solve(self, alpha: float) -> Any:
        if not self._factor(alpha):
            return self._least_norm(alpha)
        W = self.right.astype(self._gram.dtype, order="C")
        lapack.solve(self._L, W)
        if self._condition < POOR and W.dtype == np.float32:
            rest = self.right - self._times_gram(W) - alpha * W.astype(np.float64)
            rest = rest.astype(self._gram.dtype, order="C")
            lapack.solve(self._L, rest)
            W += rest
        return W

    def leave_one_out_error(self, alpha: float, rows: IntArray) -> float:
        problem, regular = self.problem, self._factor(alpha)  # which may find that it needs another precision
        X = problem.centred_rows(rows).astype(self._gram.dtype)
        if regular:
            V = np.ascontiguousarray(X.T)
            lapack.solve(self._L, V)
        else:
            V = self._inverse(alpha) @ X.T
        leverage = np.einsum("ij,ji->i", X, V).astype(np.float64) + problem.own_weight(rows)
        residual = problem.centred_targets(rows) - V.T @ self.right.astype(V.dtype)
        return mean_square(residual, leverage, problem.n_targets)

    def solve_out_of_sample(self, alpha: float) -> tuple[Any, FloatArray]:
        problem = self.problem
        W, leverage = self.solve(alpha), self.leverages(alpha)
        targets = problem.centred_targets()
        return W, problem.original(targets - leave_one_out(targets - problem.fitted(W), leverage))

    def leave_out(self, alpha: float) -> tuple[Any, Callable[[Fold], tuple[FloatArray, FloatArray]]]:
        """Return W, and a function that says of a fold what :meth:`Learner.fit_leaving_out` does.

        With G the hat matrix, models without the rows f that are held miss these by (I - G_ff)^-1 e_f, where e is what
        the model of all rows misses, and the others by e_r + G_rf (I - G_ff)^-1 e_f. The leverages of these are the
        diagonal of G_rr + G_rf (I - G_ff)^-1 G_fr.
        """
        problem, W, S = self.problem, self.solve(alpha), self._single_inverse(alpha)
        leverage, targets = self._leverages(S), problem.centred_targets()
        residual = targets - problem.fitted(W)

        def leave(fold: Fold) -> tuple[FloatArray, FloatArray]:
            rest, held = fold
            missed, own, decided = np.ascontiguousarray(residual[held]), residual[rest], leverage[rest]
            if len(held):
                V = np.ascontiguousarray(problem.fitted(S, held).T)
                L = np.eye(len(held), dtype=np.float32) - self._hat(V, held, held)
                lapack.cholesky(L)
                lapack.solve(L, missed)
                for rows in row_blocks(len(rest), FOLD_ROWS):
                    across = self._hat(V, rest[rows], held)
                    own[rows] += across @ missed
                    across = np.ascontiguousarray(across.T)
                    lapack.forward(L, across)
                    decided[rows] += np.einsum("ij,ij->j", across, across, dtype=np.float64)
            said = targets[rest] - leave_one_out(own, decided)
            return problem.original(said, rest), problem.original(targets[held] - missed, held)

        return W, leave

    def _hat(self, V: FloatArray, rows: IntArray, held: IntArray) -> FloatArray:
        """Return the hat matrix of some rows and those that are held, given S times the latter, (p, held)."""
        problem = self.problem
        own = np.outer(problem.s[rows], problem.s[held] / problem.total)
        return problem.fitted(V, rows) + own.astype(np.float32)

    def leverages(self, alpha: float) -> DoubleArray:
        """Return how much each row decides its own prediction, (n,)."""
        return self._leverages(self._single_inverse(alpha))

    def _leverages(self, S: FloatArray) -> DoubleArray:
        problem = self.problem
        Sm = S @ problem.x_mean.astype(np.float32)
        leverage = problem.X.quadratic_forms(S) + problem.own_weight()
        if problem.x_mean.any():
            leverage -= 2 * problem.s * problem.X.times(Sm[:, None]).ravel()
            leverage += problem.s**2 * (problem.x_mean @ Sm)
        return leverage

    def _set_precision(self, kind: Precision) -> None:
        problem = self.problem
        gram = problem.X.gram(kind)
        raw = gram.diagonal().astype(np.float64)
        if np.isfinite(problem.total) and problem.x_mean.any():
            lapack.subtract_outer(gram, problem.x_mean, problem.total)
            left = gram.diagonal()
            if kind is np.float32 and (left < 1e-3 * raw).any():  # a feature that hardly varies: that is rounding
                return self._set_precision(np.float64)
        self._gram = gram
        self._norm = lapack.largest_eigenvalue(gram)

    def _factor(self, alpha: float) -> bool:
        """Factor X'X + alpha I; False if it is singular."""
        if self._alpha == alpha:
            return self._positive
        self._alpha = alpha
        while True:
            self._L = copied(self._gram)
            self._L[np.diag_indices_from(self._L)] += alpha
            try:
                lapack.cholesky(self._L)
                self._condition = lapack.reciprocal_condition(self._L, self._norm + alpha)
            except lapack.NotPositiveDefiniteError:
                self._condition = 0.0
            self._positive = self._condition > USELESS[self._L.dtype]
            if self._positive or self._gram.dtype == np.float64:
                return self._positive
            self._set_precision(np.float64)

    def _times_gram(self, W: Any) -> Any:
        lower = np.tril(self._gram).astype(np.float64)
        W = W.astype(np.float64)
        return lower @ W + lower.T @ W - lower.diagonal()[:, None] * W

    def _single_inverse(self, alpha: float) -> FloatArray:
        return self._inverse(alpha).astype(np.float32, copy=False)

    def _inverse(self, alpha: float) -> Any:
        """Return (X'X + alpha I)^-1 in full, or its pseudo-inverse."""
        if not self._factor(alpha):
            values, vectors = self._eigen(alpha)
            return (vectors / values) @ vectors.T
        S, self._alpha = self._L, None  # which is no factor any more
        lapack.invert(S)
        mirror(S)
        return S

    def _least_norm(self, alpha: float) -> Any:
        values, vectors = self._eigen(alpha)
        return vectors @ ((vectors.T @ self.right) / values[:, None])

    def _eigen(self, alpha: float) -> tuple[Any, Any]:
        return positive_eigenpairs(self._gram, alpha)


def solve_positive(make_gram: Callable[[], DoubleArray], right: DoubleArray, alpha: float) -> DoubleArray:
    """Return (gram + alpha I)^-1 right in double, or the solution of least norm.

    ``make_gram`` returns the lower triangle, which is overwritten; it is called again if there is no factor. ``right``
    may be overwritten too.
    """
    factor = make_gram()
    norm = lapack.largest_eigenvalue(factor) + alpha
    factor[np.diag_indices_from(factor)] += alpha
    try:
        lapack.cholesky(factor)
        if lapack.reciprocal_condition(factor, norm) > USELESS[factor.dtype]:
            lapack.solve(factor, right)
            return right
    except lapack.NotPositiveDefiniteError:
        pass
    values, vectors = positive_eigenpairs(make_gram(), alpha)
    return vectors @ ((vectors.T @ right) / values[:, None])


def positive_eigenpairs(gram: Any, alpha: float) -> tuple[Any, Any]:
    """Return the eigenpairs of gram + alpha I that are not zero up to rounding."""
    values, vectors = la.eigh(gram, lower=True)
    values = values + alpha
    keep = values > USELESS[gram.dtype] * max(values[-1], 0)
    return values[keep], vectors[:, keep]


def leave_one_out(residual: Any, leverage: DoubleArray) -> Any:
    """Return the residuals of models that did not see their row: e / (1 - leverage)."""
    left = np.maximum(1 - leverage, 1e-8)  # a row that alone decides its own fit
    return residual / left[:, None].astype(residual.dtype)


def mean_square(residual: Any, leverage: DoubleArray, n_targets: int) -> float:
    """Return the mean square of leave-one-out residuals."""
    errors = leave_one_out(residual.astype(np.float64), leverage)
    return float((errors**2).sum() / (len(errors) * n_targets))
