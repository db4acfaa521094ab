"""Ridge by conjugate gradients on all m regressions at once, for sparse X with many rows and many features."""

from __future__ import annotations

import warnings
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from labelsense import _kernels
from labelsense._blocks import map_rows
from labelsense._progress import report
from labelsense.regress.design import Design
from labelsense.regress.problem import Problem

HELD_OUT = 0.1  # of the rows, for the choice of alpha
HELD_OUT_TARGETS = 24  # targets that stand for all in the choice of alpha
HELD_OUT_TOL = 0.03  # and how closely their systems are solved
FOLDS = 5
PASS_ROWS = 2048  # rows of a block that one thread passes over


class ConjugateGradientSolver:
    """Solves (X'X + alpha I) W = X'Z by products with X only, preconditioned by the diagonal of X'X + alpha I.

    Every column has step lengths of its own; the products are shared. A column is done when its residual is ``tol``
    times its right-hand side.
    """

    def __init__(self, problem: Problem, tol: float, max_iter: int, seed: int) -> None:
        self.problem, self.tol, self.max_iter = problem, tol, max_iter
        self._right: Any = None
        self._last: Any = None
        self._seed = seed

    def solve(self, alpha: float, start: Any = None) -> Any:
        """Return W, (p, m)."""
        if self._right is None:
            self._right = self.problem.right_hand_side().astype(np.float32)
        W, self.n_iter = conjugate_gradients(self.problem, self._right, alpha, start, self.tol, self.max_iter)
        return W

    def leave_one_out_error(self, alpha: float, rows: Any) -> float:
        """Return the mean squared error on held-out rows of a model that did not see them.

        There is no closed form without a factorisation. ``rows`` is not used: a tenth of the rows, the same for
        every alpha, is held out once, and a sample of the targets is predicted, starting from the last solution.
        """
        train, test, targets = self._split
        self._last = train.solve(alpha, self._last)
        errors = test.times(self._last) + train.problem.intercept(self._last).astype(np.float32) - targets
        return float((errors.astype(np.float64) ** 2).mean())

    def out_of_sample(self, alpha: float) -> Any:
        """Return the predictions of each row by a model of the other folds, (n, m): centred, like the targets."""
        problem = self.problem
        n = problem.X.shape[0]
        fold = np.random.RandomState(self._seed).permutation(n) % min(FOLDS, n)
        H = np.empty((n, problem.n_targets), np.float32)
        for f in range(min(FOLDS, n)):
            out, rest = np.flatnonzero(fold == f), np.flatnonzero(fold != f)
            part = self._part(rest, slice(None), self.tol)
            W = part.solve(alpha)
            H[out] = Design(problem.part(out, slice(None))[0]).times(W) + part.problem.intercept(W).astype(np.float32)
        return problem.s[:, None].astype(np.float32) * (H - problem.z_mean.astype(np.float32))

    @cached_property
    def _split(self) -> tuple[ConjugateGradientSolver, Design, Any]:
        n = self.problem.X.shape[0]
        random = np.random.RandomState(self._seed)
        order = random.permutation(n)
        out, kept = np.split(order, [max(1, int(HELD_OUT * n))])
        some = np.sort(random.permutation(self.problem.n_targets)[:HELD_OUT_TARGETS])
        train = self._part(np.sort(kept), some, max(self.tol, HELD_OUT_TOL))
        X, Z, _ = self.problem.part(out, some)
        return train, Design(X), Z

    def _part(self, rows: Any, columns: Any, tol: float) -> ConjugateGradientSolver:
        X, Z, weights = self.problem.part(rows, columns)
        part = Problem.build(X, Z, bool(np.isfinite(self.problem.total)), weights)
        return ConjugateGradientSolver(part, tol, self.max_iter, self._seed)


def conjugate_gradients(problem: Problem, right: Any, alpha: float, start: Any, tol: float, max_iter: int) -> Any:
    """Return W with ||(X'X + alpha I) W - right|| <= tol ||right||, column by column, and the number of steps."""
    p, m = right.shape
    inverse = (1 / np.maximum(_diagonal(problem) + alpha, 1e-12)).astype(np.float32)
    limit = tol**2 * np.maximum(_dots(right, right), 1e-30)
    W = np.zeros_like(right) if start is None else start.copy()
    R = right.copy() if start is None else right - _apply(problem, W, alpha)[0]
    P = inverse[:, None] * R
    squares, rho = _dots(R, R), _dots(R, P)
    for taken in range(max_iter):
        if (squares <= limit).all():
            return W, max(1, taken)
        report("conjugate gradients, systems solved", float((squares <= limit).mean()))
        Q, curvature = _apply(problem, P, alpha)
        step = np.divide(rho, curvature, out=np.zeros(m), where=curvature > 0).astype(np.float32)

        def advance(rows: slice, Q: Any = Q, step: Any = step) -> Any:
            sums = np.zeros((2, m))
            _kernels.take_step(W, R, P, Q, step, inverse, rows.start, rows.stop, *sums)
            return sums

        squares, new = np.sum(map_rows(advance, p, PASS_ROWS, -1), axis=0)
        turn = np.divide(new, rho, out=np.zeros(m), where=rho > 0).astype(np.float32)

        def redirect(rows: slice, turn: Any = turn) -> None:
            _kernels.turn_direction(P, R, turn, inverse, rows.start, rows.stop)

        map_rows(redirect, p, PASS_ROWS, -1)
        rho = new
    if not (squares <= limit).all():
        warnings.warn(
            f"Conjugate gradients did not reach tol={tol:g} in max_iter={max_iter} steps. "
            "Raise alpha, tol or max_iter, or use solver='primal'.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return W, max_iter


def _apply(problem: Problem, P: Any, alpha: float) -> tuple[Any, Any]:
    """Return Q = (X'X + alpha I) P, centred, and the inner products of the columns of P and Q."""
    H = problem.fitted(P)
    Q = np.ascontiguousarray(problem.X.transposed_times(H), dtype=np.float32)
    mean = problem.x_mean.astype(np.float32)
    shift = problem.s.astype(np.float32) @ H if problem.x_mean.any() else np.zeros(P.shape[1], np.float32)

    def finish(rows: slice) -> Any:
        curvature = np.zeros(P.shape[1])
        _kernels.finish_product(Q, P, alpha, mean, shift, rows.start, rows.stop, curvature)
        return curvature

    return Q, np.sum(map_rows(finish, len(P), PASS_ROWS, -1), axis=0)


def _diagonal(problem: Problem) -> Any:
    X = problem.X.X
    squares = np.asarray((X.multiply(X) if problem.X.sparse else X**2).sum(axis=0), np.float64).ravel()
    if np.isfinite(problem.total):
        squares = squares - problem.total * problem.x_mean**2
    return squares


def _dots(A: Any, B: Any) -> Any:
    """Return the inner products of the columns, in double."""
    return np.einsum("ij,ij->j", A, B, dtype=np.float64)
