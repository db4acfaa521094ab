"""Ridge regression: all m regressions share X, so they are one system with m right-hand sides."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from labelsense._progress import say, showing
from labelsense._storage import require, require_array, storable
from labelsense._typing import FloatArray
from labelsense._validation import check_choice, check_count, check_real
from labelsense.regress.base import Learner, as_columns
from labelsense.regress.design import product
from labelsense.regress.dual import DualSolver
from labelsense.regress.iterative import ConjugateGradientSolver
from labelsense.regress.moments import Moments
from labelsense.regress.primal import PrimalSolver
from labelsense.regress.problem import Problem

SOLVERS = ("primal", "dual", "cg")
EXPECTED_STEPS = 30  # of conjugate gradients
# Seconds for a thousand million multiplications: dense by BLAS, sparse row by row, and sparse times dense (measured).
BLAS, SPARSE, SPARSE_DENSE, ELEMENTWISE = 0.014, 0.8, 0.12, 0.3
LOO_ROWS = 512  # rows whose leave-one-out error is computed, when all would cost more than the fit


def cost(solver: str, X: Any, n_targets: int) -> float:
    """Return about how many seconds a solver takes, on two cores. What matters is which is least.

    With c_j the number of rows that have feature j and r_i the number of features of row i:

    - primal: X'X (sum of r_i^2 / 2, or n p^2 / 2 if dense), its factor (p^3 / 6) and p^2 m for the solutions;
    - dual: X X' (sum of c_j^2 / 2, or n^2 p / 2), its factor (n^3 / 6) and n^2 m;
    - conjugate gradients: two products of nnz m a step, and six passes over p m numbers.
    """
    n, p = X.shape
    m = n_targets
    if sp.issparse(X):
        r, c = np.diff(X.indptr).astype(float), np.bincount(X.indices, minlength=p).astype(float)
        nnz, by_rows, by_columns, rate = float(X.nnz), (r**2).sum() / 2, (c**2).sum() / 2, SPARSE
        product = SPARSE_DENSE
    else:
        nnz, by_rows, by_columns, rate = float(n * p), n * p**2 / 2, n**2 * p / 2, BLAS
        product = BLAS
    if solver == "primal":
        work = rate * by_rows + BLAS * (p**3 / 6 + p**2 * m) + product * nnz * m
    elif solver == "dual":
        work = min(rate * by_columns, BLAS * n**2 * p / 2) + BLAS * (n**3 / 6 + n**2 * m) + product * nnz * m
    else:
        work = EXPECTED_STEPS * (2 * product * nnz * m + 6 * ELEMENTWISE * p * m)
    return 1e-9 * float(work)


def cheapest_solver(X: Any, n_targets: int, alpha: float | str) -> str:
    """Return the solver with the least :func:`cost`.

    Conjugate gradients are approximate: they have to save half the time, and more than a moment. Least squares
    (alpha 0) needs a factorisation.
    """
    exact = min(("primal", "dual"), key=lambda solver: cost(solver, X, n_targets))
    least = cost(exact, X, n_targets)
    return "cg" if alpha != 0 and least > 0.5 and cost("cg", X, n_targets) < least / 2 else exact


@storable(private=("_flat", "_solution", "_moments"), transient=("out_of_sample", "out_of_sample_"))
class RidgeLearner(Learner):
    """Linear least squares with an l2 penalty: min ||Z - X W - b||^2 + alpha ||W||^2.

    Equivalent to :class:`sklearn.linear_model.Ridge` on all m targets. With any A the result is A times what
    one-against-all ridge would give. Use it first: it is fast, and on scaled text as accurate as anything linear.

    Parameters
    ----------
    alpha : float or "loo"
        The penalty. 0 is least squares; where X is rank-deficient, the solution of least norm. "loo" takes the one
        with the least leave-one-out error of a grid, in closed form, for about three times the cost of a fit. (With
        conjugate gradients there is no closed form: a tenth of the rows is held out instead.)
    fit_intercept : bool
        Whether to add a constant b that is not penalised.
    solver : "auto", "primal", "dual" or "cg"
        Factor the p x p matrix X'X or the n x n matrix X X', or run conjugate gradients on products with X. "auto"
        takes the one with the least :func:`~labelsense.regress.ridge.cost`.
    alphas : sequence of float, optional
        The grid for "loo", ascending. By default half powers of ten from 10^-3 to 10^3, times the mean square of X.
    tol, max_iter : float, int
        For conjugate gradients: the residual, relative to the right-hand side, at which to stop; the most steps. On
        text, the out-of-sample error no longer changes in the third digit from 0.01 on.
    out_of_sample : bool
        Whether ``fit`` also computes ``out_of_sample_``.
    updatable : bool
        Whether ``fit`` keeps X'X and X'Z, so that ``partial_fit`` can go on from it.
    random_state : int, RandomState or None
        Seed for the rows that stand for all in the choice of alpha.
    verbose : int
        1 logs each step.

    Attributes
    ----------
    coef_ : array (p, m)
    intercept_ : array (m,)
    alpha_ : float
        The penalty in use.
    alpha_errors_ : dict
        With "loo": the mean squared error of each penalty that was tried.
    solver_ : str
        The solver that was used.
    n_iter_ : int
        The steps of conjugate gradients; 1 for the other solvers.
    out_of_sample_ : array (n, m)
        Predictions of the training rows by models that did not see them: leave-one-out in closed form, or 5 folds with
        conjugate gradients.

    Examples
    --------
    >>> from labelsense import RidgeLearner
    >>> H = RidgeLearner(alpha=0).fit([[0.0], [1.0], [2.0]], [[1.0], [3.0], [5.0]])
    >>> H.predict([[3.0]])
    array([[7.]], dtype=float32)
    """

    def __init__(
        self,
        alpha: float | str = 1.0,
        *,
        fit_intercept: bool = True,
        solver: str = "auto",
        alphas: Any = None,
        tol: float = 1e-2,
        max_iter: int = 300,
        out_of_sample: bool = False,
        updatable: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.alphas = alphas
        self.tol = tol
        self.max_iter = max_iter
        self.out_of_sample = out_of_sample
        self.updatable = updatable
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RidgeLearner:
        if self.alpha != "loo":
            check_real(self.alpha, "alpha", low=0, remedy="0 is plain least squares, 'loo' chooses.")
        X, Z = validate_data(
            self, X, y, accept_sparse="csr", multi_output=True, y_numeric=True, dtype=[np.float64, np.float32]
        )
        Z, self._flat = as_columns(Z)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
            X, Z, sample_weight = _without_weightless(X, Z, sample_weight)
        self.solver_ = self._choose_solver(X, Z.shape[1])
        with showing(self.verbose):
            return self._fit(X, Z, sample_weight)

    def _fit(self, X: Any, Z: Any, sample_weight: Any) -> RidgeLearner:
        say("ridge: %d rows, %d features, %d targets by %s", *X.shape, Z.shape[1], self.solver_)
        self._moments = self._start_moments(X, Z, sample_weight) if self.updatable else None
        problem = Problem.build(X, Z, self.fit_intercept, sample_weight)
        solver = self._make_solver(problem)
        self.alpha_ = self._choose_alpha(solver, problem) if self.alpha == "loo" else float(self.alpha)
        W = solver.solve(self.alpha_)
        self._solution = W.astype(np.float32), problem.intercept(W).astype(np.float32)
        self.n_iter_ = solver.n_iter if self.solver_ == "cg" else 1
        if self.out_of_sample:
            H = solver.out_of_sample(self.alpha_) + np.outer(problem.s, problem.z_mean)
            self.out_of_sample_ = (H / problem.s[:, None]).astype(np.float32)
        return self

    def predict(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", reset=False, dtype=np.float32)
        H = product(X, self.coef_)
        H += self.intercept_
        return self._shape_like_fit(H)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> RidgeLearner:
        """Learn from more rows, exactly: the model equals one fit on all rows seen. The cost does not grow with them.

        What is kept are X'X and X'Z, in double. Needs a number for ``alpha``, or a ``fit`` that has chosen one.
        """
        return self._update(X, y, sample_weight, 1)

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> RidgeLearner:
        """Take back what was learned from rows: the exact inverse of ``partial_fit`` on them."""
        check_is_fitted(self)
        return self._update(X, y, sample_weight, -1)

    _moments: Moments | None
    _solution: tuple[FloatArray, FloatArray] | None

    @property
    def coef_(self) -> FloatArray:
        """The weights W, (p, m)."""
        return self._solved()[0]

    @property
    def intercept_(self) -> FloatArray:
        """The constants b, (m,)."""
        return self._solved()[1]

    def _solved(self) -> tuple[FloatArray, FloatArray]:
        check_is_fitted(self)
        if self._solution is None:  # rows have come or gone since the last time
            assert self._moments is not None
            W, b = self._moments.solve(self.alpha_, self.fit_intercept)
            self._solution = W.astype(np.float32), b.astype(np.float32)
        return self._solution

    def _check_stored(self) -> None:
        W = self.coef_  # a model with rows not yet solved for is solved now, once
        require_array(W, "the weights", "float32", (self.n_features_in_, None))
        require_array(self.intercept_, "the intercept", "float32", (W.shape[1],), finite=True)
        check_real(self.alpha_, "alpha_", low=0)
        if self._moments is not None:
            fits = isinstance(self._moments, Moments) and self._moments.right.shape == W.shape
            require(fits, "X'Z must have the shape of the weights")

    def _update(self, X: Any, y: Any, sample_weight: Any, sign: int) -> RidgeLearner:
        first = "alpha_" not in vars(self)
        if first and self.alpha == "loo":
            raise ValueError(
                "alpha must be a number for partial_fit, or chosen by a fit with updatable=True. Got 'loo'."
            )
        X, Z = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            multi_output=True,
            y_numeric=True,
            dtype=[np.float64, np.float32],
            reset=first,
        )
        Z, flat = as_columns(Z)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        if first:
            self._flat, self.solver_, self.n_iter_ = flat, "primal", 1
            self.alpha_ = check_real(self.alpha, "alpha", low=0, remedy="0 is plain least squares.")
            self._moments = self._start_moments(X, Z, sample_weight)
        else:
            moments = self._kept_moments(Z)
            weight = X.shape[0] if sample_weight is None else float(sample_weight.sum())
            if moments.total + sign * weight <= 0:
                raise ValueError("forget would take out as many rows as were learned, or more. Start again with fit.")
            moments.add(X, Z, sample_weight, sign)
        self._solution = None
        return self

    def _kept_moments(self, Z: Any) -> Moments:
        if self._moments is None:
            raise ValueError(
                "This model was fitted without updatable=True and has kept nothing to go on from. "
                "Fit it with RidgeLearner(updatable=True), or start with partial_fit."
            )
        if Z.shape[1] != self._moments.right.shape[1]:
            raise ValueError(f"y must have {self._moments.right.shape[1]} targets, as before. Got {Z.shape[1]}.")
        return self._moments

    @staticmethod
    def _start_moments(X: Any, Z: Any, sample_weight: Any) -> Moments:
        moments = Moments(X.shape[1], Z.shape[1])
        moments.add(X, Z, sample_weight, 1)
        return moments

    def _choose_solver(self, X: Any, n_targets: int) -> str:
        words = {"auto": None, **{solver: solver for solver in SOLVERS}}
        return check_choice(self.solver, "solver", words) or cheapest_solver(X, n_targets, self.alpha)

    def _make_solver(self, problem: Problem) -> Any:
        if self.solver_ == "primal":
            return PrimalSolver(problem)
        if self.solver_ == "dual":
            return DualSolver(problem)
        tol = check_real(self.tol, "tol", low=1e-7, high=1)
        seed = check_random_state(self.random_state).randint(2**31)
        return ConjugateGradientSolver(problem, tol, check_count(self.max_iter, "max_iter"), seed)

    def _choose_alpha(self, solver: Any, problem: Problem) -> float:
        """Walk downhill on the grid from its middle: the error is nearly always convex in log alpha."""
        n = problem.X.shape[0]
        grid = self._grid(problem)
        random = check_random_state(self.random_state)
        rows = np.arange(n) if n <= 4 * LOO_ROWS else np.sort(random.permutation(n)[:LOO_ROWS])
        errors: dict[int, float] = {}

        def error(i: int) -> float:
            if i not in errors:
                errors[i] = solver.leave_one_out_error(grid[i], rows)
                say("alpha %g: mean squared out-of-sample error %.6g", grid[i], errors[i])
            return errors[i]

        best = descend(error, len(grid))
        self.alpha_errors_ = {grid[i]: errors[i] for i in sorted(errors)}
        return grid[best]

    def _grid(self, problem: Problem) -> list[float]:
        if self.alphas is not None:
            grid = [check_real(a, "alphas", low=0) for a in self.alphas]
            if not grid or sorted(grid) != grid:
                raise ValueError(f"alphas must be ascending and not empty. Got {self.alphas!r}.")
            return grid
        X = problem.X.X
        squares = X.data if problem.X.sparse else X
        scale = max(float(np.vdot(squares, squares)) / max(1, min(X.shape)), 1e-12)
        return [scale * 10 ** (half / 2) for half in range(-6, 7)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags


def descend(error: Any, size: int) -> int:
    """Return the place of the least error, walking downhill from the middle of a grid."""
    here = size // 2
    for direction in (-1, 1):
        while 0 <= here + direction < size and error(here + direction) < error(here):
            here += direction
    error(here)
    return here


def _without_weightless(X: Any, Z: Any, weights: Any) -> tuple[Any, Any, Any]:
    """Leave out rows of weight zero: they have no say, and no leave-one-out residual."""
    keep = weights > 0
    if not keep.any() or not math.isfinite(weights.sum()):
        raise ValueError("sample_weight must be finite and not all zero.")
    return (X, Z, weights) if keep.all() else (X[keep], Z[keep], weights[keep])
