"""Kernel ridge regression on sparse or dense rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from labelsense._blocks import map_rows, plain_algebra
from labelsense._memory import available_memory
from labelsense._progress import log
from labelsense._storage import require, require_array, storable
from labelsense._typing import FloatArray, as_dense
from labelsense._validation import check_count, check_real
from labelsense.regress.base import FitCost, Fold, Learner, as_columns, check_two_rows, data_bytes, working
from labelsense.regress.checks import (
    check_magnitude,
    check_new_rows,
    check_predictions,
    check_solution,
    check_training,
)
from labelsense.regress.design import MemoryDesign
from labelsense.regress.dual import DualSystem, leave_fold_out
from labelsense.regress.in_memory import SparseDesign, as_design, dense_product
from labelsense.regress.kernel_blocks import LANDMARKS, KernelStrips, solve_by_strips
from labelsense.regress.kernels import (
    KERNEL_ROWS,
    Kernel,
    RBFKernel,
    choose_kernel,
    cross_kernel,
    kernel_matrix,
)
from labelsense.regress.lapack import NotPositiveDefiniteError
from labelsense.regress.penalty import descend, errors_downhill
from labelsense.regress.ridge_cost import BLAS

LOO_ROWS = 4000  # rows on which alpha and gamma are chosen: a Cholesky factor of them costs little
KEPT_ROWS = 5000  # up to which the kernel matrix is kept for other penalties
PREDICTED_ROWS = 128  # of new rows at a time, by each thread
EMPTY_COLUMNS = 2**22  # that stored rows may have, whatever is in them
GAMMAS = (0.25, 0.5, 1.0, 2.0, 4.0)


@storable(private=("_flat", "_design"), transient=("out_of_sample", "out_of_sample_"))
class KernelRidgeLearner(Learner):
    """Ridge regression in the space of a kernel: f(x) = sum_i u_i k(x, x_i) with (K + alpha I) U = Z.

    Equivalent to :class:`sklearn.kernel_ridge.KernelRidge`, in float32 and in place: 4 n^2 bytes. Use it where
    accuracy is worth n^3 / 3 operations: on text with unit rows it gains one to four points of precision over ridge.

    Parameters
    ----------
    kernel : Kernel or {"rbf", "polynomial", "cosine"}
        Kernels can be added. See :mod:`labelsense.regress.kernels`.
    alpha : float or "loo"
        The penalty. "loo" chooses it by the leave-one-out error in closed form, on at most 4,000 rows; for an RBF
        kernel given as the word "rbf", its width too.
    max_memory : float, optional
        Gigabytes that the kernel matrix may take; by default what is available. If its 4 n^2 bytes do not fit, the
        system is solved by conjugate gradients: half of them hold the lower triangle, and what does not fit there is
        computed again at each step. Slower, but as accurate as ``tol``.
    tol, max_iter : float, int
        For conjugate gradients: the residual, relative to the right-hand side, at which to stop; the most steps.
    random_state : int, RandomState or None
        Seed for the rows on which "loo" chooses.
    verbose : int
        1 logs each step.

    Attributes
    ----------
    dual_coef_ : array (n, m)
    n_iter_ : int
        The steps of conjugate gradients; 1 for the factorisation.
    kernel_ : Kernel
        The kernel in use.
    alpha_ : float
        The penalty in use.
    alpha_errors_ : dict
        With "loo": the mean squared error of each (gamma, alpha) that was tried; gamma is None for other kernels.

    Examples
    --------
    >>> from labelsense import KernelRidgeLearner
    >>> H = KernelRidgeLearner("rbf", alpha=1e-4).fit([[0.0], [1.0], [2.0]], [[0.0], [1.0], [0.0]])
    >>> H.predict([[1.0]]).round(2)
    array([[1.]], dtype=float32)
    """

    def __init__(
        self,
        kernel: Kernel | str = "rbf",
        alpha: float | str = 0.3,
        *,
        max_memory: float | None = None,
        tol: float = 1e-2,
        max_iter: int = 100,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.max_memory = max_memory
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> KernelRidgeLearner:
        design, Z, budget = self._check_rows(X, y)
        with working(self.verbose):
            self._choose(design, Z)
            if self._in_memory(design, budget):
                self._keep(design, self._system(design, Z).solve(self.alpha_))
            else:
                self._fit_strips(design, Z, budget)
        return self

    def fit_out_of_sample(self, X: Any, y: Any) -> FloatArray:
        """Fit, and return predictions of the same rows by models that did not see them, (n, m).

        Leave-one-out in closed form, for about twice the time of a fit; by folds if the kernel matrix does not
        fit in memory. Width and penalty, if chosen, are chosen by all rows.
        """
        design, Z, budget = self._check_rows(X, y)
        check_two_rows(design)
        with working(self.verbose):
            self._choose(design, Z)
            if self._in_memory(design, budget):
                H = self._keep_out_of_sample(self._system(design, Z), design)
            else:
                self._fit_strips(design, Z, budget)
                H = self.unfitted()._predict_folds(X, Z)
        return self._shape_like_fit(H)

    def fit_leaving_out(
        self, X: Any, y: Any, folds: Sequence[Fold], sample_weight: Any = None
    ) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Fit, and then yield for each fold what models of its other rows say.

        In closed form, for three times the time of a fit, however many folds there are; by a fit for each fold if the
        kernel matrix does not fit in memory.
        """
        design, Z, budget = self._check_rows(X, y)
        if not self._in_memory(design, budget):
            yield from super().fit_leaving_out(X, y, folds)
            return
        with working(self.verbose):
            self._choose(design, Z)
            U, inverse = self._system(design, Z).invert(self.alpha_)
            self._keep(design, U)
        for fold in folds:
            try:
                H, others = leave_fold_out(Z, U, inverse, *fold)
            except NotPositiveDefiniteError:  # by rounding
                H, others = self._fit_without(X, y, fold)
            yield H.astype(np.float32, copy=False), others.astype(np.float32, copy=False)

    def fit_path(self, X: Any, y: Any) -> Callable[[float], tuple[KernelRidgeLearner, FloatArray]]:
        """Return what gives for any penalty a fitted copy of this learner, and what its ``fit_out_of_sample`` returns.

        The kernel matrix is made once, if rows are few enough to keep it beside its factor.
        """
        first = clone(self).set_params(alpha=1.0)
        design, Z, budget = first._check_rows(X, y)
        check_two_rows(design)
        with working(self.verbose):
            first._choose(design, Z)
            in_memory = self._in_memory(design, budget)
            system = first._system(design, Z, keep=len(Z) <= KEPT_ROWS) if in_memory else None

        def at(alpha: float) -> tuple[KernelRidgeLearner, FloatArray]:
            model = copy(first).set_params(alpha=alpha)
            if system is None:
                return model, model.fit_out_of_sample(X, y)
            model.alpha_ = check_real(alpha, "alpha", low=1e-9)
            with working(self.verbose):
                return model, model._shape_like_fit(model._keep_out_of_sample(system, design))

        return at

    def predict(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        X = check_new_rows(self, X)
        H = combine_kernels(self.kernel_, X, self._design, self.dual_coef_)
        return self._shape_like_fit(check_predictions(H, X))

    def unfitted(self) -> KernelRidgeLearner:
        return clone(self).set_params(kernel=self.kernel_, alpha=self.alpha_)

    def cost(self, X: Any, n_targets: int) -> FitCost:
        """Return what a fit of so many regressions on X will take, if the kernel matrix fits in memory.

        That is n^2 numbers, and while it is made a block of it by each thread; then the solutions, twice (2 n m).
        """
        (n, p), m = X.shape, n_targets
        making = min(n, effective_n_jobs(-1) * KERNEL_ROWS) * n + 7 * X.nnz if sp.issparse(X) else n * p
        work = BLAS * (n**3 / 6 + float(n) ** 2 * m)
        return FitCost("kernel", 1e-9 * work, 4 * (n * n + max(2 * n * m, making)), 4 * n * m + data_bytes(X))

    def _check_rows(self, X: Any, y: Any) -> tuple[MemoryDesign, FloatArray, float]:
        """Return rows, targets, and how many bytes the kernel matrix may take."""
        if self.alpha != "loo":
            check_real(self.alpha, "alpha", low=1e-9, remedy="Without a penalty K may be singular; 'loo' chooses.")
        X, Z = check_training(self, X, y)
        Z, self._flat = as_columns(Z)
        Z = np.ascontiguousarray(as_dense(Z), np.float32)
        budget = self._memory_for_kernel(*Z.shape)
        return as_training_design(X), Z, budget

    @staticmethod
    def _in_memory(design: MemoryDesign, budget: float) -> bool:
        return 4 * design.shape[0] ** 2 <= budget

    def _system(self, design: MemoryDesign, Z: FloatArray, keep: bool = False) -> DualSystem:
        log("kernel ridge: a %d x %d kernel matrix", len(Z), len(Z))
        return DualSystem(lambda: kernel_matrix(self.kernel_, design), Z, np.zeros(len(Z)), keep)

    def _keep_out_of_sample(self, system: DualSystem, design: MemoryDesign) -> FloatArray:
        """Solve, and return predictions by models that did not see their row."""
        U, residuals = system.solve_out_of_sample(self.alpha_)
        self._keep(design, U)
        return (system.Z - residuals).astype(np.float32)

    def _fit_strips(self, design: MemoryDesign, Z: FloatArray, budget: float) -> None:
        log("kernel ridge: %d rows by conjugate gradients, %.1f GB of the kernel kept", len(Z), budget / 1e9)
        strips = KernelStrips(self.kernel_, design, budget)
        tol, max_iter = check_real(self.tol, "tol", low=1e-6, high=1), check_count(self.max_iter, "max_iter")
        U, steps = solve_by_strips(strips, Z, self.alpha_, tol, max_iter, check_random_state(self.random_state))
        self._keep(design, U, steps)

    def _keep(self, design: MemoryDesign, U: Any, steps: int = 1) -> None:
        U = U.astype(np.float32, copy=False)
        check_solution(U)
        self._design, self.dual_coef_, self.n_iter_ = design, U, steps

    def _check_stored(self) -> None:
        n = check_stored_rows(self._design, self.n_features_in_)
        require_array(self.dual_coef_, "dual_coef_", "float32", (n, None))
        require(isinstance(self.kernel_, Kernel), "it must have a kernel")
        self.kernel_.check()

    def _memory_for_kernel(self, n: int, m: int) -> float:
        """Return how many bytes the kernel matrix may take; refuse what cannot be done before allocating anything."""
        available = available_memory() - 4.0 * n * (LANDMARKS + 6 * m)
        budget = available if self.max_memory is None else 1e9 * check_real(self.max_memory, "max_memory", low=0)
        if available < 0:
            raise MemoryError(
                f"KernelRidgeLearner needs {4e-9 * n * (LANDMARKS + 6 * m):.1f} GB for {n} rows and {m} targets, even "
                f"without the kernel matrix, and {available_memory() / 1e9:.1f} GB are available. Use RidgeLearner."
            )
        return budget

    def _choose(self, design: MemoryDesign, Z: FloatArray) -> None:
        """Set ``kernel_`` and ``alpha_``."""
        self.kernel_ = kernel = choose_kernel(self.kernel, design)
        if self.alpha != "loo":
            self.alpha_ = float(self.alpha)
            return
        rows = np.sort(check_random_state(self.random_state).permutation(len(Z))[:LOO_ROWS])
        sample, targets = design.rows(rows), Z[rows]
        kernels: dict[float | None, Kernel] = {None: kernel}
        if self.kernel == "rbf":
            widths = [gamma * kernel.gamma for gamma in GAMMAS]
            kernels = {gamma: RBFKernel(gamma) for gamma in widths}
        errors: dict[float | None, dict[float, float]] = {}

        def least(i: int) -> float:
            gamma = list(kernels)[i]
            if gamma not in errors:
                log("kernel %s", kernels[gamma])
                errors[gamma] = _penalty_errors(kernels[gamma], sample, targets)
            return min(errors[gamma].values())

        descend(least, len(kernels))
        self.alpha_errors_ = {(gamma, alpha): e for gamma, found in errors.items() for alpha, e in found.items()}
        gamma, self.alpha_ = min(self.alpha_errors_, key=lambda key: self.alpha_errors_[key])
        self.kernel_ = clone(kernels[gamma])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags


def as_training_design(X: Any) -> MemoryDesign:
    """Return rows to learn from, refused where their squares are too large."""
    with np.errstate(over="ignore"):
        design: MemoryDesign = as_design(X.astype(np.float32, copy=False))
    check_magnitude(design)
    return design


def combine_kernels(kernel: Kernel, X: Any, design: MemoryDesign, U: FloatArray) -> FloatArray:
    """Return the kernels of new rows and those of a design, times U."""

    def combine(rows: slice) -> FloatArray:
        with np.errstate(over="ignore", invalid="ignore"):
            return dense_product(cross_kernel(kernel, as_design(X[rows]), design), U)

    with plain_algebra:
        return np.concatenate(map_rows(combine, X.shape[0], PREDICTED_ROWS, -1))


def check_stored_rows(design: Any, n_features: int) -> int:
    """Refuse rows of a file that new rows cannot be compared with; return how many there are."""
    require(isinstance(design, MemoryDesign), "the training rows are missing")
    n, p = design.shape
    require(p == n_features, f"rows of {n_features} features cannot be compared with rows of {p}")
    if isinstance(design, SparseDesign):  # products with it take memory for each column, also for an empty one
        few = p <= max(EMPTY_COLUMNS, 16 * design.X.nnz)
        require(few, f"rows of {p} features that hold {design.X.nnz} numbers cannot be stored")
    return int(n)


def _penalty_errors(kernel: Kernel, sample: MemoryDesign, targets: FloatArray) -> dict[float, float]:
    """Return the leave-one-out error of each of the penalties that were tried."""
    K = kernel_matrix(kernel, sample)
    scale = float(K.diagonal().mean())
    system = DualSystem(lambda: K, targets, np.zeros(len(targets)), keep=True)

    def error(alpha: float) -> float:
        return float((system.solve_out_of_sample(alpha)[1].astype(np.float64) ** 2).mean())

    return errors_downhill(error, [scale * 10 ** (half / 2) for half in range(-6, 3)])
