"""Any scikit-learn regressor as a learner."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import KFold
from sklearn.utils import _safe_indexing, check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from labelsense._storage import require, storable
from labelsense._typing import FloatArray
from labelsense.regress.base import Learner, as_columns

FOLDS = 5
DENSE_FEATURES = 2**24  # that one row may have


@storable(private=("_flat",), transient=("out_of_sample", "out_of_sample_"))
class SklearnLearner(Learner):
    """m regressions by any scikit-learn regressor.

    A regressor that takes many targets is fitted once on all of them; any other is copied once per measurement.
    :class:`~labelsense.CompressedLabelClassifier` wraps a regressor in this class by itself.

    Parameters
    ----------
    regressor : estimator
        A scikit-learn regressor.
    n_jobs : int, optional
        How many copies to fit at a time.
    out_of_sample : bool
        Whether ``fit`` also computes ``out_of_sample_``, by five more fits.
    random_state : int, RandomState or None
        Seed of the folds.

    Attributes
    ----------
    regressors_ : list
        One fitted regressor for all measurements, or one per measurement.
    out_of_sample_ : array (n, m)
        Predictions of each of five folds of the rows by a model of the others.

    Examples
    --------
    >>> from sklearn.svm import LinearSVR
    >>> from labelsense import SklearnLearner
    >>> H = SklearnLearner(LinearSVR()).fit([[0.0], [1.0], [2.0]], [[0.0, 1.0], [1.0, 0.0], [2.0, -1.0]])
    >>> len(H.regressors_), H.predict([[1.0]]).shape
    (2, (1, 2))
    """

    def __init__(
        self, regressor: Any, *, n_jobs: int | None = None, out_of_sample: bool = False, random_state: Any = None
    ) -> None:
        self.regressor = regressor
        self.n_jobs = n_jobs
        self.out_of_sample = out_of_sample
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> SklearnLearner:
        if y is None:
            raise ValueError("SklearnLearner requires y to be passed, but the target y is None.")
        Z, self._flat = as_columns(y)
        if get_tags(self.regressor).target_tags.multi_output:
            self.regressors_ = [clone(self.regressor).fit(X, Z.toarray() if sp.issparse(Z) else Z)]
        else:
            tasks = (delayed(_fit_one)(self.regressor, X, Z, i) for i in range(Z.shape[1]))
            self.regressors_ = list(Parallel(n_jobs=self.n_jobs)(tasks))
        if self.out_of_sample:
            self.out_of_sample_ = self._predict_folds(X, Z)
        return self

    def _predict_folds(self, X: Any, Z: Any) -> FloatArray:
        H = np.empty(Z.shape, np.float32)
        folds = KFold(min(FOLDS, Z.shape[0]), shuffle=True, random_state=check_random_state(self.random_state))
        for rest, out in folds.split(np.zeros(Z.shape[0])):
            model = clone(self).set_params(out_of_sample=False)
            H[out] = model.fit(_safe_indexing(X, rest), Z[rest]).predict(_safe_indexing(X, out))
        return H

    def _check_stored(self) -> None:
        regressors = self.regressors_
        fits = isinstance(regressors, list) and all(isinstance(each, BaseEstimator) for each in regressors)
        require(fits and len(regressors) > 0, "its regressors are missing")

    def _count_targets(self, n_features: int) -> int:
        require(n_features == self.n_features_in_, "its regressors must take the features of the model")
        row = sp.csr_array((1, n_features), dtype=np.float32)  # dense where it may be: not all take sparse rows
        return self.predict(row.toarray() if n_features <= DENSE_FEATURES else row).size

    @property
    def n_features_in_(self) -> int:
        """The number of features the regressor was fitted on."""
        check_is_fitted(self)
        return self.regressors_[0].n_features_in_

    def predict(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        columns = [np.asarray(regressor.predict(X), dtype=np.float32) for regressor in self.regressors_]
        H = columns[0].reshape(len(columns[0]), -1) if len(columns) == 1 else np.stack(columns, axis=1)
        return self._shape_like_fit(H)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.regressor)
        tags.input_tags = inner.input_tags
        tags.target_tags.multi_output = True
        return tags


def _fit_one(regressor: BaseEstimator, X: Any, Z: Any, i: int) -> BaseEstimator:
    target = Z[:, [i]].toarray().ravel() if sp.issparse(Z) else np.asarray(Z)[:, i]
    return clone(regressor).fit(X, target)
