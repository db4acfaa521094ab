"""Ridge by conjugate gradients, for sparse X with many rows and many features."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.random import sample_without_replacement

from labelsense._blocks import map_rows, plain_algebra, row_blocks
from labelsense._checkpoint import without_checkpoints
from labelsense._typing import DoubleArray, FloatArray, IntArray, as_dense
from labelsense.regress.conjugate_gradients import add_ridge, conjugate_gradients
from labelsense.regress.design import Design
from labelsense.regress.problem import Problem, Solver

HELD_OUT, MOST_HELD_OUT = 0.1, 50_000  # share of the rows for the choice of alpha, and how many at most
HELD_OUT_TARGETS = 24  # targets that stand for all in the choice of alpha
HELD_OUT_TOL = 0.03  # and how closely their systems are solved
CACHED_COLUMNS = 32  # that each thread solves for at a time: what belongs to so many stays near it
COLUMN_ARRAYS = 14  # numbers in memory for each weight that is solved for, with the sums of chunks on the way


class ConjugateGradientSolver(Solver):
    """Solves (X'X + alpha I) W = X'Z by products with X only, preconditioned by the diagonal of X'X + alpha I."""

    def __init__(self, problem: Problem, tol: float, max_iter: int, seed: int) -> None:
        self.problem, self.tol, self.max_iter = problem, tol, max_iter
        self.n_iter = 0
        self._last: FloatArray | None = None
        self._seed = seed

    def solve(self, alpha: float, start: FloatArray | None = None) -> FloatArray:
        """Return W, (p, m).

        Where each pass over the rows costs, as many of its columns are solved for at once as memory allows. Rows in
        memory cost little beside W, so then columns are shared out among threads, a few at a time.
        """
        X, m = self.problem.X, self.problem.n_targets
        W = np.empty((X.shape[1], m), np.float32)

        def solve(columns: slice) -> int:
            right = self._right_of(columns)
            begin = None if start is None else np.ascontiguousarray(start[:, columns])
            W[:, columns], steps = self._solve(alpha, right, begin, (columns.start / m, columns.stop / m))
            return steps

        if X.in_memory:
            _ = self._right, self._diagonal  # once, by all threads
            with plain_algebra, without_checkpoints():
                self.n_iter = max(map_rows(solve, m, CACHED_COLUMNS, -1))
        else:
            at_once = max(1, int(min(X.memory / (4 * COLUMN_ARRAYS * len(W)), m)))
            self.n_iter = max([solve(columns) for columns in row_blocks(m, -(-m // -(-m // at_once)))])  # none is small
        return W

    def _right_of(self, columns: slice) -> FloatArray:
        if self.problem.X.in_memory:
            return np.ascontiguousarray(self._right[:, columns])
        return self.problem.right_hand_side(columns).astype(np.float32)

    def _solve(
        self, alpha: float, right: FloatArray, start: FloatArray | None, part: tuple[float, float]
    ) -> tuple[FloatArray, int]:
        return conjugate_gradients(
            lambda P: self._apply(P, alpha),
            right,
            (1 / np.maximum(self._diagonal + alpha, 1e-12)).astype(np.float32),
            self.tol,
            self.max_iter,
            start=start,
            remedy=", or use solver='primal'",
            part=part,
        )

    def leave_one_out_error(self, alpha: float, rows: IntArray) -> float:
        """Return the mean squared error on held-out rows of a model that did not see them.

        There is no closed form without a factorisation. ``rows`` is not used: a tenth of the rows, at most 50,000 and
        the same for every alpha, is held out once, and a sample of the targets is predicted, starting from the last
        solution.
        """
        train, test, targets = self._split
        self._last = train.solve(alpha, self._last)
        errors = test.times(self._last) + train.problem.intercept(self._last).astype(np.float32) - targets
        return float((errors.astype(np.float64) ** 2).mean())

    @cached_property
    def _split(self) -> tuple[ConjugateGradientSolver, Design, FloatArray]:
        n = self.problem.X.shape[0]
        random = np.random.RandomState(self._seed)
        out = np.zeros(n, bool)
        out[sample_without_replacement(n, min(max(1, int(HELD_OUT * n)), MOST_HELD_OUT), random_state=random)] = True
        some = np.sort(random.permutation(self.problem.n_targets)[:HELD_OUT_TARGETS])
        train = self._part(np.flatnonzero(~out), some, max(self.tol, HELD_OUT_TOL))
        X, Z, _ = self.problem.part(np.flatnonzero(out), some)
        return train, X, as_dense(Z)

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
        shift = problem.x_mean.astype(np.float32) @ P
        Q, sums = problem.X.normal_times(P, shift, None if problem.unweighted else problem.s)
        return add_ridge(Q, P, alpha, problem.x_mean, sums) if problem.x_mean.any() else add_ridge(Q, P, alpha)
