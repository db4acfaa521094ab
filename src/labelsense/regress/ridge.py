"""Ridge regression: all m regressions share X, so they are one system with m right-hand sides."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.random import sample_without_replacement
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from labelsense._blocks import plain_algebra
from labelsense._memory import available_memory
from labelsense._progress import log
from labelsense._storage import require, require_array, storable
from labelsense._typing import DoubleArray, FloatArray
from labelsense._validation import check_choice, check_count, check_real
from labelsense.errors import InputError
from labelsense.regress import ridge_cost
from labelsense.regress.base import FitCost, Fold, Learner, as_columns, check_two_rows, working
from labelsense.regress.checks import (
    check_magnitude,
    check_new_rows,
    check_predictions,
    check_solution,
    check_training,
)
from labelsense.regress.design import Design, Size
from labelsense.regress.dual import DualSolver
from labelsense.regress.in_memory import as_design, product
from labelsense.regress.iterative import ConjugateGradientSolver
from labelsense.regress.lapack import NotPositiveDefiniteError
from labelsense.regress.moments import Moments
from labelsense.regress.penalty import errors_downhill
from labelsense.regress.primal import PrimalSolver
from labelsense.regress.problem import DirectSolver, Problem, Solver, TrainingRows
from labelsense.regress.ridge_cost import cheapest_solver
from labelsense.regress.targets import LazyTargets

SOLVERS = ("primal", "dual", "cg")
LOO_ROWS = 512  # rows whose leave-one-out error is computed, when all would cost more than the fit

_SOLVING = threading.Lock()  # held while a model is solved after updates: it takes all cores and p^2 numbers
_CHANGING = threading.Lock()  # held while the moments or the solution of a model are exchanged for others


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
        takes the one that is fastest by :func:`~labelsense.regress.ridge_cost.seconds`.
    alphas : sequence of float, optional
        The grid for "loo", ascending. By default half powers of ten from 10^-3 to 10^3, times the mean square of X.
    tol, max_iter : float, int
        For conjugate gradients: the residual, relative to the right-hand side, at which to stop; the most steps. On
        text, the out-of-sample error no longer changes in the third digit from 0.01 on.
    updatable : bool
        Whether ``fit`` keeps X'X and X'Z, so that ``partial_fit`` can go on from it. ``update_bytes`` says how much.
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
        alphas: Sequence[float] | None = None,
        tol: float = 1e-2,
        max_iter: int = 300,
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
        self.updatable = updatable
        self.random_state = random_state
        self.verbose = verbose

    _moments: Moments | None = None
    _solution: tuple[FloatArray, FloatArray] | None = None  # None if rows have come or gone since the last one

    @property
    def takes_weights(self) -> bool:
        return True

    @property
    def takes_updates(self) -> bool:
        return True

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RidgeLearner:
        rows = self._check_rows(X, y, sample_weight)
        with working(self.verbose):
            solver = self._start(rows)
            self._keep(solver, solver.solve(self.alpha_))
        return self

    def fit_out_of_sample(self, X: Any, y: Any, sample_weight: Any = None) -> FloatArray:
        """Fit, and return predictions of the same rows by models that did not see them, (n, m).

        Leave-one-out in closed form, for about twice the cost of a fit; with conjugate gradients, or without a penalty,
        by five folds, or three from 5,000 rows on. An alpha that "loo" has chosen is chosen by all rows.
        """
        rows = self._check_rows(X, y, sample_weight)
        with working(self.verbose):
            return self._shape_like_fit(self._keep_out_of_sample(self._start(rows), rows))

    def fit_leaving_out(
        self, X: Any, y: Any, folds: Sequence[Fold], sample_weight: DoubleArray | None = None
    ) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Fit, and then yield for each fold what models of its other rows say, with the settings of the fit.

        In closed form by the factor that a fit would take, or by that of X X' where this takes less time than conjugate
        gradients for each fold.
        """
        rows = self._check_rows(X, y, sample_weight)
        closed = self._choose_closed_form(rows, folds)
        if closed is None:
            yield from super().fit_leaving_out(X, y, folds, sample_weight)
            return
        with working(self.verbose):
            solver = self._start(rows, closed)
            assert isinstance(solver, DirectSolver)
            W, leave_out = solver.leave_out(self.alpha_)
            self._keep(solver, W)
        for fold in folds:
            try:
                with plain_algebra:
                    said = leave_out(fold)
            except NotPositiveDefiniteError:  # by rounding
                said = self._fit_without(X, y, fold, sample_weight)
            yield said

    def fit_leverages(self, X: Design, y: LazyTargets, sample_weight: Any = None) -> DoubleArray | None:
        """Fit to rows that are not in memory; return how much each row decides its own prediction, (n,).

        By this a row is left out in closed form. None with conjugate gradients, or without a penalty. Weights must not
        be zero.
        """
        rows = self._check_rows(X, y, sample_weight)
        with working(self.verbose):
            solver = self._start(rows)
            self._keep(solver, solver.solve(self.alpha_))
            return solver.leverages(self.alpha_) if isinstance(solver, PrimalSolver) and self.alpha_ > 0 else None

    def fit_path(self, X: Any, y: Any, sample_weight: Any = None) -> Callable[[float], tuple[RidgeLearner, FloatArray]]:
        """Return what gives for any penalty a fitted copy of this learner, and what its ``fit_out_of_sample`` returns.

        X'X or X X' is made once, and factored once for each penalty.
        """
        first = clone(self).set_params(alpha=1.0)
        rows = first._check_rows(X, y, sample_weight)
        with working(self.verbose):
            solver = first._start(rows)
        return lambda alpha: first._at(check_real(alpha, "alpha", low=0), solver, rows)

    def predict(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        X = check_new_rows(self, X)
        W, b = self._solved()
        with np.errstate(over="ignore", invalid="ignore"):
            H = product(X, W)
            H += b
        return self._shape_like_fit(check_predictions(H, X))

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> RidgeLearner:
        """Learn from more rows, exactly: the model equals one fit on all rows seen. The cost does not grow with them.

        What is kept are X'X and X'Z, in double. Needs a number for ``alpha``, or a ``fit`` that has chosen one. Other
        threads may predict meanwhile: they do so by the model before or after.
        """
        return self._update(X, y, sample_weight, 1)

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> RidgeLearner:
        """Take back what was learned from rows: the exact inverse of ``partial_fit`` on them."""
        check_is_fitted(self)
        return self._update(X, y, sample_weight, -1)

    def unfitted(self) -> RidgeLearner:
        return clone(self).set_params(alpha=self.alpha_, solver=self.solver_, updatable=False)

    def combine_targets(self, direction: Any) -> tuple[DoubleArray, float]:
        W, b = self._solved()
        return W.astype(np.float64) @ direction, float(b.astype(np.float64) @ direction)

    def cost(self, X: Any, n_targets: int) -> FitCost:
        size = Size.of(X)
        solver = self._choose_solver(size, n_targets)
        return FitCost(
            solver,
            ridge_cost.seconds(solver, size, n_targets),
            ridge_cost.work_bytes(solver, size, n_targets),
            4 * (size.p + 1) * n_targets,
        )

    @property
    def coef_(self) -> FloatArray:
        """The weights W, (p, m)."""
        return self._solved()[0]

    @property
    def intercept_(self) -> FloatArray:
        """The constants b, (m,)."""
        return self._solved()[1]

    @property
    def update_bytes(self) -> int:
        """The memory of what is kept for updates."""
        return 0 if self._moments is None else self._moments.nbytes

    def _check_rows(self, X: Any, y: Any, sample_weight: Any) -> TrainingRows:
        if self.alpha != "loo":
            check_real(self.alpha, "alpha", low=0, remedy="0 is plain least squares, 'loo' chooses.")
        X, Z, self._flat = self._check_data(X, y, True)
        if sample_weight is None:
            return TrainingRows(X, Z, None)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not weights.any() or not math.isfinite(weights.sum()):
            raise InputError("sample_weight must be finite and not all zero.")
        return TrainingRows(X, Z, weights)

    def _check_data(self, X: Any, y: Any, reset: bool) -> tuple[Any, Any, bool]:
        """Return rows and targets (n, m), and whether these were a vector. A design comes from who has checked it."""
        if isinstance(X, Design):
            if reset:
                self.n_features_in_ = X.shape[1]
            return X, y, False
        X, Z = check_training(self, X, y, reset=reset)
        return X, *as_columns(Z)

    def _start(self, rows: TrainingRows, solver: str | None = None) -> Solver:
        """Choose penalty and solver, if none is given; return the solver, ready for any penalty."""
        X, Z, weights = rows.with_weight()
        design = as_design(X)
        check_magnitude(design)
        self.solver_ = solver or self._choose_solver(design.size(), Z.shape[1], design)
        log("ridge: %d rows, %d features, %d targets by %s", *X.shape, Z.shape[1], self.solver_)
        self._moments = Moments.of(design, Z, weights) if self.updatable else None
        problem = Problem.build(design, Z, self.fit_intercept, weights)
        made = self._make_solver(problem)
        self.alpha_ = self._choose_alpha(made, problem) if self.alpha == "loo" else float(self.alpha)
        return made

    def _keep(self, solver: Solver, W: Any) -> None:
        solution = W.astype(np.float32), solver.problem.intercept(W).astype(np.float32)
        check_solution(*solution)
        self._solution, self.n_iter_ = solution, solver.n_iter

    def _keep_out_of_sample(self, solver: Solver, rows: TrainingRows) -> FloatArray:
        """Solve, and return predictions by models that did not see their row."""
        check_two_rows(rows.X)
        X, Z, weights = rows.with_weight()
        if isinstance(solver, DirectSolver) and self.alpha_ > 0:
            W, H = solver.solve_out_of_sample(self.alpha_)
            self._keep(solver, W)
        else:
            self._keep(solver, solver.solve(self.alpha_))
            H = self.unfitted()._predict_folds(X, Z, weights)
        return rows.fill(H, lambda others: product(others.astype(np.float32), self.coef_) + self.intercept_)

    def _at(self, alpha: float, solver: Solver, rows: TrainingRows) -> tuple[RidgeLearner, FloatArray]:
        model = copy(self).set_params(alpha=alpha)
        model.alpha_ = alpha
        with working(self.verbose):
            H = model._keep_out_of_sample(solver, rows)
        return model, model._shape_like_fit(H)

    def _solved(self) -> tuple[FloatArray, FloatArray]:
        check_is_fitted(self)
        solution = self._solution
        if solution is None:
            with _SOLVING:
                solution = self._solution or self._solve_moments()
        return solution

    def _solve_moments(self) -> tuple[FloatArray, FloatArray]:
        moments = self._moments
        assert moments is not None
        W, b = moments.solve(self.alpha_, self.fit_intercept)
        with np.errstate(over="ignore"):
            solution = W.astype(np.float32), b.astype(np.float32)
        check_solution(*solution)
        with _CHANGING:
            if self._moments is moments:  # else rows have come meanwhile, and this is for the one call only
                self._solution = solution
        return solution

    def _check_stored(self) -> None:
        W = self.coef_  # a model with rows not yet solved for is solved now, once
        require_array(W, "the weights", "float32", (self.n_features_in_, None))
        require_array(self.intercept_, "the intercept", "float32", (W.shape[1],), finite=True)
        check_real(self.alpha_, "alpha_", low=0)
        if self._moments is not None:
            fits = isinstance(self._moments, Moments) and self._moments.right.shape == W.shape
            require(fits, "X'Z must have the shape of the weights")

    def _update(self, X: Any, y: Any, sample_weight: Any, sign: int) -> RidgeLearner:
        first = not self.__sklearn_is_fitted__()
        if first and self.alpha == "loo":
            raise InputError(
                "alpha must be a number for partial_fit, or chosen by a fit with updatable=True. Got 'loo'."
            )
        alpha = check_real(self.alpha, "alpha", low=0, remedy="0 is plain least squares.") if first else self.alpha_
        X, Z, flat = self._check_data(X, y, first)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not first:
            self._check_kept(Z)
        kept = self._moments
        sparse = None if kept is None else kept.is_sparse
        design = as_design(sp.csr_array(X) if sparse and not isinstance(X, Design) else X)
        check_magnitude(design)
        change = Moments.of(design, Z, sample_weight, sign, sparse)
        with _CHANGING:  # moments are never changed, only exchanged: a thread that solves them may go on
            if self._moments is not None:
                change.merge(self._moments)
            if change.total <= 0:
                raise InputError(
                    "sample_weight must not be all zero."
                    if sign > 0
                    else "forget would take out as many rows as were learned, or more. Start again with fit."
                )
            self._moments, self._solution, self.alpha_ = change, None, alpha
            if first:
                self._flat, self.solver_, self.n_iter_ = flat, "primal", 1
        return self

    def _check_kept(self, Z: Any) -> None:
        if self._moments is None:
            raise InputError(
                "This model was fitted without updatable=True and has kept nothing to go on from. "
                "Fit it with RidgeLearner(updatable=True), or start with partial_fit."
            )
        if Z.shape[1] != self._moments.right.shape[1]:
            raise InputError(f"y must have {self._moments.right.shape[1]} targets, as before. Got {Z.shape[1]}.")

    def _choose_solver(self, size: Size, n_targets: int, design: Design | None = None) -> str:
        words = {"auto": None, **{solver: solver for solver in SOLVERS}}
        wanted: str | None = check_choice(self.solver, "solver", words)
        if design is None:
            return wanted or cheapest_solver(size, n_targets, self.alpha)
        if wanted == "dual" and not design.in_memory:
            raise InputError("solver must be 'primal' or 'cg' for rows that are not in memory. Got 'dual'.")
        return wanted or cheapest_solver(size, n_targets, self.alpha, in_memory=design.in_memory, memory=design.memory)

    def _choose_closed_form(self, rows: TrainingRows, folds: Sequence[Fold]) -> str | None:
        """Return the solver by which folds are best left out in closed form, which takes a penalty, if there is one."""
        all_count = rows.weights is None or rows.weights.all()
        if isinstance(rows.X, Design) or self.alpha == 0 or not all_count:
            return None
        size, m = Size.of(rows.X), rows.Z.shape[1]
        solver = self._choose_solver(size, m)
        if solver == "primal":
            return solver if ridge_cost.leaving_out_pays(size, m, max(len(held) for _, held in folds)) else None
        if ridge_cost.work_bytes("dual", size, m) > available_memory() / 2:
            return None
        pays = solver == "dual" or (self.solver == "auto" and ridge_cost.closed_form_pays(size, m, len(folds)))
        return "dual" if pays else None

    def _make_solver(self, problem: Problem) -> Solver:
        if self.solver_ == "primal":
            return PrimalSolver(problem)
        if self.solver_ == "dual":
            return DualSolver(problem)
        tol = check_real(self.tol, "tol", low=1e-7, high=1)
        seed = check_random_state(self.random_state).randint(2**31)
        return ConjugateGradientSolver(problem, tol, check_count(self.max_iter, "max_iter"), seed)

    def _choose_alpha(self, solver: Solver, problem: Problem) -> float:
        n = problem.X.shape[0]
        random = check_random_state(self.random_state)
        few = n <= 4 * LOO_ROWS
        rows = np.arange(n) if few else np.sort(sample_without_replacement(n, LOO_ROWS, random_state=random))
        grid = self._grid(problem)
        self.alpha_errors_ = errors_downhill(lambda alpha: solver.leave_one_out_error(alpha, rows), grid)
        return min(self.alpha_errors_, key=lambda alpha: self.alpha_errors_[alpha])

    def _grid(self, problem: Problem) -> list[float]:
        if self.alphas is not None:
            grid = [check_real(a, "alphas", low=0) for a in self.alphas]
            if not grid or sorted(grid) != grid or grid[0] == 0:
                raise InputError(f"alphas must be positive, ascending and not empty. Got {self.alphas!r}.")
            return grid
        scale = max(problem.X.total_square() / max(1, min(problem.X.shape)), 1e-12)
        return [scale * 10 ** (half / 2) for half in range(-6, 7)]

    def __sklearn_is_fitted__(self) -> bool:
        return "alpha_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags
