"""Ridge regression: all m regressions share X, so they are one factorisation with m right-hand sides."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted, validate_data

from labelsense._typing import FloatArray
from labelsense._validation import check_choice, check_real
from labelsense.regress.base import Learner, as_columns

BLOCK_ROWS = 4096
SINGULAR = 1e-12  # reciprocal condition number below which a Cholesky solution is not trusted


class RidgeLearner(Learner):
    """Linear least squares with an l2 penalty: min ||Z - X W - b||^2 + alpha ||W||^2.

    Equivalent to :class:`sklearn.linear_model.Ridge` on all m targets. With any A the result is A times what
    one-against-all ridge would give.

    Parameters
    ----------
    alpha : float
        The penalty. 0 is least squares; where X is rank-deficient, the solution of least norm.
    fit_intercept : bool
        Whether to add a constant b that is not penalised.
    solver : "auto", "primal" or "dual"
        Factor the p x p matrix X'X or the n x n matrix X X'. "auto" takes the smaller.

    Attributes
    ----------
    coef_ : array (p, m)
    intercept_ : array (m,)

    Examples
    --------
    >>> from labelsense import RidgeLearner
    >>> H = RidgeLearner(alpha=0).fit([[0.0], [1.0], [2.0]], [[1.0], [3.0], [5.0]])
    >>> H.predict([[3.0]])
    array([[7.]], dtype=float32)
    """

    def __init__(self, alpha: float = 1.0, *, fit_intercept: bool = True, solver: str = "auto") -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.solver = solver

    def fit(self, X: Any, Y: Any) -> RidgeLearner:
        alpha = check_real(self.alpha, "alpha", low=0, remedy="0 is plain least squares.")
        X, Z = validate_data(
            self, X, Y, accept_sparse="csr", multi_output=True, y_numeric=True, dtype=[np.float64, np.float32]
        )
        Z, self._flat = as_columns(Z)
        n, p = X.shape
        solve = check_choice(self.solver, "solver", {"auto": None, "primal": _primal, "dual": _dual})
        solve = solve or (_primal if p <= n else _dual)
        if self.fit_intercept:
            x_mean, z_mean = _column_means(X), _column_means(Z)
        else:
            x_mean, z_mean = np.zeros(p), np.zeros(Z.shape[1])
        W = solve(X, Z, x_mean, z_mean, alpha)
        self.coef_ = W.astype(np.float32)
        self.intercept_ = (z_mean - x_mean @ W).astype(np.float32)
        return self

    def predict(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", reset=False, dtype=np.float32)
        H = X @ self.coef_
        H += self.intercept_
        return self._shape_like_fit(H)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags


def _column_means(M: Any) -> Any:
    return np.asarray(M.mean(axis=0), dtype=np.float64).ravel()


def _dense_blocks(X: Any) -> Any:
    for start in range(0, X.shape[0], BLOCK_ROWS):
        block = X[start : start + BLOCK_ROWS]
        yield slice(start, start + BLOCK_ROWS), (block.toarray() if sp.issparse(block) else block).astype(np.float64)


def _primal(X: Any, Z: Any, x_mean: Any, z_mean: Any, alpha: float) -> Any:
    """W = (X'X + alpha I)^-1 X'Z, centred."""
    n = X.shape[0]
    gram = -n * np.outer(x_mean, x_mean)
    for _, block in _dense_blocks(X):
        gram += block.T @ block
    right = X.T @ Z
    right = (right.toarray() if sp.issparse(right) else right).astype(np.float64, copy=False)
    right -= n * np.outer(x_mean, z_mean)
    return _solve_positive(gram, right, alpha)


def _dual(X: Any, Z: Any, x_mean: Any, z_mean: Any, alpha: float) -> Any:
    """W = X' (X X' + alpha I)^-1 Z, centred."""
    dense_Z = (Z.toarray() if sp.issparse(Z) else Z) - z_mean
    shift = np.asarray(X @ x_mean).ravel()
    gram = X @ X.T
    gram = (gram.toarray() if sp.issparse(gram) else gram).astype(np.float64, copy=False)
    gram = gram - shift[:, None] - shift[None, :] + x_mean @ x_mean
    U = _solve_positive(gram, dense_Z, alpha)
    return X.T @ U - np.outer(x_mean, U.sum(axis=0))


def _solve_positive(gram: Any, right: Any, alpha: float) -> Any:
    """Return (gram + alpha I)^-1 right, or the solution of least norm where gram is singular and alpha is 0."""
    size = np.abs(gram).sum(axis=0).max(initial=0)
    gram[np.diag_indices_from(gram)] += alpha
    factor, info = la.lapack.dpotrf(gram, lower=True, clean=False)
    if info == 0 and la.lapack.dpocon(factor, size + alpha, uplo="L")[0] > SINGULAR:
        return la.lapack.dpotrs(factor, right, lower=True)[0]
    values, vectors = la.eigh(gram)
    keep = values > len(values) * np.finfo(np.float64).eps * max(values[-1], 0)
    vectors = vectors[:, keep]
    return vectors @ ((vectors.T @ right) / values[keep, None])
