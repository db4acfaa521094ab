"""Kernel ridge regression by landmarks, for more rows than a kernel matrix is worth."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from labelsense._blocks import map_rows
from labelsense._progress import log
from labelsense._storage import require, require_array, storable
from labelsense._typing import DoubleArray, FloatArray
from labelsense._validation import check_count, check_real
from labelsense.regress.base import FitCost, Fold, Learner, as_columns, data_bytes, working
from labelsense.regress.checks import check_new_rows, check_predictions, check_solution, check_training
from labelsense.regress.kernel_ridge import PREDICTED_ROWS, as_training_design, check_stored_rows, combine_kernels
from labelsense.regress.kernels import Kernel, choose_kernel, cross_kernel
from labelsense.regress.ridge import RidgeLearner
from labelsense.regress.ridge_cost import BLAS

JITTER = 1e-4  # on the diagonal of the kernel matrix of the landmarks, as a share of it: some of them may be equal


@storable(private=("_flat", "_landmarks"))
class LandmarkRidgeLearner(Learner):
    """Ridge regression on how similar a row is to some rows, the landmarks: kernel ridge regression, approximately.

    With L landmarks of n rows a fit takes n L (p + L + m) operations and n L numbers, where kernel ridge regression
    takes n^3 / 3 and n^2. (The method is Nyström's.) Use it on many rows of up to about as many features as there are
    landmarks; text has too many words for that.

    Parameters
    ----------
    kernel : Kernel or {"rbf", "polynomial", "cosine"}
        See :mod:`labelsense.regress.kernels`.
    alpha : float or "loo"
        The penalty, as of :class:`~labelsense.RidgeLearner`.
    n_landmarks : int
        Drawn at random; all rows if there are no more.
    random_state : int, RandomState or None
        Seed for the landmarks.
    verbose : int
        1 logs each step.

    Attributes
    ----------
    dual_coef_ : array (L, m)
    intercept_ : array (m,)
    kernel_ : Kernel
        The kernel in use.
    alpha_ : float
        The penalty in use.

    Examples
    --------
    >>> from labelsense import LandmarkRidgeLearner, RBFKernel
    >>> H = LandmarkRidgeLearner(RBFKernel(1.0), alpha=1e-4).fit([[0.0], [1.0], [2.0]], [[0.0], [1.0], [0.0]])
    >>> H.predict([[1.0]]).round(2)
    array([[1.]], dtype=float32)
    """

    def __init__(
        self,
        kernel: Kernel | str = "rbf",
        alpha: float | str = 0.3,
        *,
        n_landmarks: int = 1100,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.n_landmarks = n_landmarks
        self.random_state = random_state
        self.verbose = verbose

    @property
    def takes_weights(self) -> bool:
        return True

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LandmarkRidgeLearner:
        F, Z, T = self._describe(X, y)
        ridge = self._ridge().fit(F, Z, sample_weight)
        self._keep(ridge, T)
        return self

    def fit_out_of_sample(self, X: Any, y: Any, sample_weight: Any = None) -> FloatArray:
        """Fit, and return predictions of the same rows by models that did not see them, (n, m).

        Leave-one-out in closed form. Landmarks are drawn from all rows, without a look at targets.
        """
        (F, Z, T), ridge = self._describe(X, y), self._ridge()
        H = ridge.fit_out_of_sample(F, Z, sample_weight)
        self._keep(ridge, T)
        return self._shape_like_fit(H)

    def fit_leaving_out(
        self, X: Any, y: Any, folds: Sequence[Fold], sample_weight: DoubleArray | None = None
    ) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Fit, and then yield for each fold what models of its other rows say, as ridge regression does."""
        (F, Z, T), ridge = self._describe(X, y), self._ridge()
        for number, said in enumerate(ridge.fit_leaving_out(F, Z, folds, sample_weight)):
            if not number:
                self._keep(ridge, T)
            yield said

    def fit_path(
        self, X: Any, y: Any, sample_weight: Any = None
    ) -> Callable[[float], tuple[LandmarkRidgeLearner, FloatArray]]:
        """Return what gives for any penalty a fitted copy, and what its ``fit_out_of_sample`` returns."""
        first = clone(self).set_params(alpha=1.0)
        F, Z, T = first._describe(X, y)
        path = first._ridge().fit_path(F, Z, sample_weight)

        def at(alpha: float) -> tuple[LandmarkRidgeLearner, FloatArray]:
            model = copy(first).set_params(alpha=alpha)
            ridge, H = path(alpha)
            model._keep(ridge, T)
            return model, model._shape_like_fit(H)

        return at

    def predict(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        X = check_new_rows(self, X)
        H = combine_kernels(self.kernel_, X, self._landmarks, self.dual_coef_)
        with np.errstate(over="ignore", invalid="ignore"):
            H += self.intercept_
        return self._shape_like_fit(check_predictions(H, X))

    def unfitted(self) -> LandmarkRidgeLearner:
        return clone(self).set_params(kernel=self.kernel_, alpha=self.alpha_)

    def cost(self, X: Any, n_targets: int) -> FitCost:
        (n, p), m = X.shape, n_targets
        k = min(n, self.n_landmarks)
        work = BLAS * (float(n) * k * (1.5 * k + p + m) + k**3)
        size = data_bytes(X) * k // max(1, n) + 4 * (k + 1) * m
        return FitCost("landmarks", 1e-9 * work, 4 * (n * k + 3 * k * k + 2 * n * m), size)

    def _describe(self, X: Any, y: Any) -> tuple[FloatArray, Any, FloatArray]:
        """Draw landmarks. Return features whose inner products are the kernel, (n, L), the targets, and T.

        Features are K T, by kernels K (n, L) of rows and landmarks.
        """
        if self.alpha != "loo":
            check_real(self.alpha, "alpha", low=1e-9, remedy="Some landmarks may be equal; 'loo' chooses.")
        k = check_count(self.n_landmarks, "n_landmarks")
        X, Z = check_training(self, X, y)
        Z, self._flat = as_columns(Z)
        design = as_training_design(X)
        self.kernel_, n = choose_kernel(self.kernel, design), design.shape[0]
        F = np.empty((n, min(k, n)), np.float32)
        log("landmarks: %d of %d rows", F.shape[1], n)
        with working(self.verbose):
            self._landmarks = design.rows(np.sort(check_random_state(self.random_state).permutation(n)[:k]))
            T = self._whiten()

            def fill(rows: slice) -> None:
                F[rows] = cross_kernel(self.kernel_, design.rows(rows), self._landmarks) @ T

            map_rows(fill, n, PREDICTED_ROWS, -1)
        return F, Z, T

    def _whiten(self) -> FloatArray:
        """Return T (L, L) with T'K T = I, but for the jitter, for the kernel matrix K of the landmarks."""
        K = cross_kernel(self.kernel_, self._landmarks, self._landmarks).astype(np.float64)
        K.flat[:: len(K) + 1] += JITTER * max(float(K.diagonal().mean()), 1e-12)
        inverse: DoubleArray = solve_triangular(np.linalg.cholesky(K), np.eye(len(K)), lower=True)
        return np.ascontiguousarray(inverse.T, np.float32)

    def _ridge(self) -> RidgeLearner:
        return RidgeLearner(self.alpha, verbose=self.verbose, random_state=self.random_state)

    def _keep(self, ridge: RidgeLearner, T: FloatArray) -> None:
        """Keep weights of the kernels of a row and the landmarks."""
        with working(0):
            self.dual_coef_ = (T @ ridge.coef_.astype(np.float64)).astype(np.float32)
        check_solution(self.dual_coef_)
        self.intercept_, self.alpha_ = ridge.intercept_, ridge.alpha_

    def _check_stored(self) -> None:
        k = check_stored_rows(self._landmarks, self.n_features_in_)
        require_array(self.dual_coef_, "dual_coef_", "float32", (k, None))
        require_array(self.intercept_, "intercept_", "float32", (self.dual_coef_.shape[1],))
        require(isinstance(self.kernel_, Kernel), "it must have a kernel")
        self.kernel_.check()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags
