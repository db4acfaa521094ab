"""Conjugate gradients on many systems with one matrix at once."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from labelsense import _kernels
from labelsense._blocks import map_rows, row_blocks
from labelsense._checkpoint import State, next_step
from labelsense._progress import report_progress
from labelsense._typing import DoubleArray, FloatArray

PASS_ROWS = 2048  # rows of a block that one thread passes over


def conjugate_gradients(
    apply: Callable[[FloatArray], tuple[FloatArray, DoubleArray]],
    right: FloatArray,
    precondition: FloatArray | Callable[[FloatArray], FloatArray],
    tol: float,
    max_iter: int,
    *,
    start: FloatArray | None = None,
    remedy: str = "",
    part: tuple[float, float] = (0.0, 1.0),
) -> tuple[FloatArray, int]:
    """Solve M W = right for a symmetric positive definite M, all columns at once.

    Every column has step lengths of its own; the products are shared. A column is done when its residual is ``tol``
    times its right-hand side.

    Parameters
    ----------
    apply : callable
        Returns M P and the inner products of the columns of P and M P, as :func:`add_ridge` does.
    right : array (p, m)
        Right-hand sides.
    precondition : array (p,) or callable
        About the inverse of M: its diagonal, which costs nothing, or what returns its product with residuals (p, m).
    tol, max_iter : float, int
        The residual, relative to the right-hand side, at which to stop; the most steps.
    start : array (p, m), optional
        Where to start; by default at zero.
    remedy : str
        What else the warning says if ``max_iter`` steps are not enough.
    part : pair of float
        Which part of all work this is, from 0 to 1, for the report of progress.

    Returns
    -------
    tuple
        W, and the number of steps.
    """
    step, first = next_step("conjugate-gradients"), 0
    limit = tol**2 * np.maximum(_dots(right, right), 1e-30)
    diagonal = precondition if isinstance(precondition, np.ndarray) else np.ones(len(right), np.float32)
    if (kept := step.load()) is not None:
        first = int(kept["taken"][0])
        if "R" not in kept:  # it was done
            return kept["W"], max(1, first)
        W, R, P, squares, rho = (kept[name] for name in ("W", "R", "P", "squares", "rho"))
    else:
        W = np.zeros_like(right) if start is None else start.copy()
        R = right.copy() if start is None else right - apply(W)[0]
        P = diagonal[:, None] * (R if isinstance(precondition, np.ndarray) else precondition(R))
        squares, rho = _dots(R, R), _dots(R, P)
    V = R

    def state() -> State:
        return {"W": W, "R": R, "P": P, "squares": squares, "rho": rho, "taken": np.array([taken])}

    for taken in range(first, max_iter):
        if (squares <= limit).all():
            step.finish({"W": W, "taken": np.array([taken])})
            return W, max(1, taken)
        step.save(state)
        report_progress("conjugate gradients", part[0] + (part[1] - part[0]) * _progress(squares, limit, tol))
        Q, curvature = apply(P)
        squares, new = _advance(W, R, P, Q, _ratio(rho, curvature), diagonal)
        if not isinstance(precondition, np.ndarray):
            V = precondition(R)
            new = _dots(R, V)
        _redirect(P, V, _ratio(new, rho), diagonal)
        rho = new
    if not (squares <= limit).all():
        warnings.warn(
            f"Conjugate gradients did not reach tol={tol:g} in max_iter={max_iter} steps. "
            f"Raise alpha, tol or max_iter{remedy}.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return W, max_iter


def _progress(squares: DoubleArray, limit: DoubleArray, tol: float) -> float:
    """Return how far the slowest system is: residuals fall by about the same factor in each step."""
    left = math.sqrt(float((squares / limit).max()))
    return min(max(1 - math.log(max(left, 1)) / math.log(max(1 / tol, 2)), 0), 1)


def add_ridge(
    Q: FloatArray, P: FloatArray, alpha: float, mean: DoubleArray | None = None, shift: FloatArray | None = None
) -> tuple[FloatArray, DoubleArray]:
    """Add alpha P to a product Q, less mean shift' if given; return it and the inner products of its columns with P."""
    p, m = P.shape
    means = np.zeros(p, np.float32) if mean is None else mean.astype(np.float32)
    shift = np.zeros(m, np.float32) if shift is None else shift

    def finish(rows: slice) -> DoubleArray:
        curvature = np.zeros(m)
        _kernels.finish_product(Q, P, alpha, means, shift, rows.start, rows.stop, curvature)
        return curvature

    return Q, np.sum(map_rows(finish, p, PASS_ROWS, -1), axis=0)


def _advance(
    W: FloatArray, R: FloatArray, P: FloatArray, Q: FloatArray, step: FloatArray, diagonal: FloatArray
) -> DoubleArray:
    """Step to W + P step; return the squared residuals, and those weighted by the diagonal, (2, m)."""

    def advance(rows: slice) -> DoubleArray:
        sums = np.zeros((2, len(step)))
        _kernels.take_step(W, R, P, Q, step, diagonal, rows.start, rows.stop, *sums)
        return sums

    return np.sum(map_rows(advance, len(P), PASS_ROWS, -1), axis=0)


def _redirect(P: FloatArray, V: FloatArray, turn: FloatArray, diagonal: FloatArray) -> None:
    """Overwrite P by P turn + diagonal V."""

    def redirect(rows: slice) -> None:
        _kernels.turn_direction(P, V, turn, diagonal, rows.start, rows.stop)

    map_rows(redirect, len(P), PASS_ROWS, -1)


def _ratio(a: DoubleArray, b: DoubleArray) -> FloatArray:
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0).astype(np.float32)


def _dots(A: FloatArray, B: FloatArray) -> DoubleArray:
    """Return the inner products of the columns, in double."""
    dots = [np.einsum("ij,ij->j", A[rows], B[rows], dtype=np.float64) for rows in row_blocks(len(A), PASS_ROWS)]
    return np.sum(dots, axis=0)
