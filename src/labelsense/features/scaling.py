"""Features of any kind, scaled for models that compare rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted, validate_data

from labelsense._storage import require_array, storable


class _Scaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    def _check(self, X: Any, reset: bool) -> Any:
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=reset)
        return sp.csr_array(X) if sp.issparse(X) else X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


@storable()
class UnitRows(_Scaler):
    """Rows scaled to unit length, so that long ones do not decide everything.

    Examples
    --------
    >>> from labelsense.features import UnitRows
    >>> UnitRows().fit_transform([[3.0, 4.0]])
    array([[0.6, 0.8]])
    """

    def fit(self, X: Any, y: Any = None) -> UnitRows:
        """Remember how many features there are."""
        self._check(X, reset=True)
        return self

    def transform(self, X: Any) -> Any:
        """Return the scaled rows."""
        check_is_fitted(self, "n_features_in_")
        return normalize(self._check(X, reset=False))


@storable()
class StandardColumns(_Scaler):
    """Features less their means, over their standard deviations, with rows of length one in the mean.

    Sparse features stay sparse: they are divided by their root mean squares only.

    Attributes
    ----------
    mean_, factor_ : arrays (p,)

    Examples
    --------
    >>> from labelsense.features import StandardColumns
    >>> StandardColumns().fit_transform([[1.0], [3.0]])
    array([[-1.],
           [ 1.]])
    """

    def fit(self, X: Any, y: Any = None) -> StandardColumns:
        """Learn means and deviations."""
        X = self._check(X, reset=True)
        if sp.issparse(X):
            self.mean_ = np.zeros(X.shape[1])
            squares = np.bincount(X.indices, np.square(X.data, dtype=np.float64), X.shape[1]) / X.shape[0]
        else:
            self.mean_ = X.mean(axis=0, dtype=np.float64)
            squares = X.var(axis=0, dtype=np.float64)
        constant = squares <= 1e-12 * max(1e-300, float(squares.max(initial=0)))
        squares[constant] = 1
        self.factor_ = np.where(constant, 0, 1 / np.sqrt(squares)) / np.sqrt(max(1, int(np.count_nonzero(~constant))))
        return self

    def transform(self, X: Any) -> Any:
        """Return the scaled rows."""
        check_is_fitted(self)
        X = self._check(X, reset=False)
        if sp.issparse(X):
            return sp.csr_array(X @ sp.diags_array(self.factor_.astype(X.dtype)))
        return ((X - self.mean_) * self.factor_).astype(X.dtype)

    def _check_stored(self) -> None:
        for name in ("mean_", "factor_"):
            require_array(getattr(self, name), name, "float64", (self.n_features_in_,), finite=True)
