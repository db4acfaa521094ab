"""Counts of words, or of anything else, scaled for linear models."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted, validate_data

from labelsense._storage import require_array, storable
from labelsense._typing import CSR


@storable()
class LogTfidfTransformer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Counts to log(1 + count) * idf, with rows of unit length.

    Put it before the classifier in a ``Pipeline`` when X holds counts: without it, long rows and common words decide
    everything. idf_j = 1 + log((1 + n) / (1 + rows that have feature j)), so no feature is lost. It differs from
    scikit-learn's ``TfidfTransformer(sublinear_tf=True)`` in the logarithm, which here is log(1 + count).

    Parameters
    ----------
    use_idf : bool
        False leaves out the factor idf: then nothing is learned, and rows that come later are scaled alike.

    Attributes
    ----------
    idf_ : array (p,)

    Examples
    --------
    >>> from labelsense import LogTfidfTransformer
    >>> LogTfidfTransformer().fit_transform([[3, 0], [1, 1]]).toarray().round(2)
    array([[1.  , 0.  ],
           [0.58, 0.81]], dtype=float32)
    """

    def __init__(self, use_idf: bool = True) -> None:
        self.use_idf = use_idf

    def fit(self, X: Any, y: Any = None) -> LogTfidfTransformer:
        """Count in how many rows each feature occurs."""
        X = self._check(X, reset=True)
        return self.fit_frequencies(X.shape[0], rows_with_each(X))

    def fit_frequencies(self, n_rows: int, rows_with: Any) -> LogTfidfTransformer:
        """Learn from counts: how many rows there are, and how many of them have each feature, (p,)."""
        self.n_features_in_ = len(rows_with)
        idf = 1 + np.log((1 + n_rows) / (1 + rows_with)) if self.use_idf else np.ones(len(rows_with))
        self.idf_ = idf.astype(np.float32)
        return self

    def transform(self, X: Any) -> CSR:
        """Return the scaled rows, sparse, in float32."""
        check_is_fitted(self)
        X = self._check(X, reset=False).log1p() @ sp.diags_array(self.idf_)
        return normalize(sp.csr_array(X), copy=False)

    def _check(self, X: Any, reset: bool) -> CSR:
        X = sp.csr_array(validate_data(self, X, accept_sparse="csr", dtype=np.float32, reset=reset))
        if X.nnz and X.data.min() < 0:
            raise ValueError(
                f"Negative values in data passed to LogTfidfTransformer: X must hold counts. Got {X.data.min():g}."
            )
        return X

    def _check_stored(self) -> None:
        require_array(self.idf_, "idf_", "float32", (self.n_features_in_,), finite=True)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


def rows_with_each(X: CSR) -> Any:
    """Return how many rows of counts have each feature, (p,)."""
    return np.bincount(X.indices[X.data != 0], minlength=X.shape[1])
