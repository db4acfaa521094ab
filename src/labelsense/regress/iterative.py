"""Ridge by conjugate gradients on all m regressions at once, for sparse X with many rows and many features."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from labelsense._typing import DoubleArray, FloatArray, IntArray
from labelsense.regress.conjugate_gradients import add_ridge, conjugate_gradients
from labelsense.regress.design import Design
from labelsense.regress.problem import Problem, Solver

HELD_OUT = 0.1  # of the rows, for the choice of alpha
HELD_OUT_TARGETS = 24  # targets that stand for all in the choice of alpha
HELD_OUT_TOL = 0.03  # and how closely their systems are solved


class ConjugateGradientSolver(Solver):
    """Solves (X'X + alpha I) W = X'Z by products with X only, preconditioned by the diagonal of X'X + alpha I."""

    def __init__(self, problem: Problem, tol: float, max_iter: int, seed: int) -> None:
        self.problem, self.tol, self.max_iter = problem, tol, max_iter
        self.n_iter = 0
        self._last: FloatArray | None = None
        self._seed = seed

    def solve(self, alpha: float, start: FloatArray | None = None) -> FloatArray:
        """Return W, (p, m)."""
        W, self.n_iter = conjugate_gradients(
            lambda P: self._apply(P, alpha),
            self._right,
            (1 / np.maximum(self._diagonal + alpha, 1e-12)).astype(np.float32),
            self.tol,
            self.max_iter,
            start=start,
            remedy=", or use solver='primal'",
        )
        return W

    def leave_one_out_error(self, alpha: float, rows: IntArray) -> float:
        """Return the mean squared error on held-out rows of a model that did not see them.

        There is no closed form without a factorisation. ``rows`` is not used: a tenth of the rows, the same for
        every alpha, is held out once, and a sample of the targets is predicted, starting from the last solution.
        """
        train, test, targets = self._split
        self._last = train.solve(alpha, self._last)
        errors = test.times(self._last) + train.problem.intercept(self._last).astype(np.float32) - targets
        return float((errors.astype(np.float64) ** 2).mean())

    @cached_property
    def _split(self) -> tuple[ConjugateGradientSolver, Design, FloatArray]:
        n = self.problem.X.shape[0]
        random = np.random.RandomState(self._seed)
        order = random.permutation(n)
        out, kept = np.split(order, [max(1, int(HELD_OUT * n))])
        some = np.sort(random.permutation(self.problem.n_targets)[:HELD_OUT_TARGETS])
        train = self._part(np.sort(kept), some, max(self.tol, HELD_OUT_TOL))
        X, Z, _ = self.problem.part(out, some)
        return train, X, Z

    def _part(self, rows: IntArray, columns: Any, tol: float) -> ConjugateGradientSolver:
        X, Z, weights = self.problem.part(rows, columns)
        part = Problem.build(X, Z, bool(np.isfinite(self.problem.total)), weights)
        return ConjugateGradientSolver(part, tol, self.max_iter, self._seed)

    @cached_property
    def _right(self) -> FloatArray:
        return self.problem.right_hand_side().astype(np.float32)

    @cached_property
    def _diagonal(self) -> DoubleArray:
        return self.problem.diagonal()

    def _apply(self, P: FloatArray, alpha: float) -> tuple[FloatArray, DoubleArray]:
        """Return Q = (X'X + alpha I) P, centred, and the inner products of the columns of P and Q."""
        problem = self.problem
        H = problem.fitted(P)
        Q = np.ascontiguousarray(problem.X.transposed_times(H), dtype=np.float32)
        if not problem.x_mean.any():
            return add_ridge(Q, P, alpha)
        return add_ridge(Q, P, alpha, problem.x_mean, problem.s.astype(np.float32) @ H)
