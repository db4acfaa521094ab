"""Any scikit-learn regressor as a learner."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from labelsense._storage import require, storable
from labelsense._typing import FloatArray, as_dense
from labelsense.errors import InputError
from labelsense.regress.base import FitCost, Learner, as_columns

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
    random_state : int, RandomState or None
        Seed of the folds of ``fit_out_of_sample``.

    Attributes
    ----------
    regressors_ : list
        One fitted regressor for all measurements, or one per measurement.

    Examples
    --------
    >>> from sklearn.svm import LinearSVR
    >>> from labelsense import SklearnLearner
    >>> H = SklearnLearner(LinearSVR()).fit([[0.0], [1.0], [2.0]], [[0.0, 1.0], [1.0, 0.0], [2.0, -1.0]])
    >>> len(H.regressors_), H.predict([[1.0]]).shape
    (2, (1, 2))
    """

    def __init__(self, regressor: Any, *, n_jobs: int | None = None, random_state: Any = None) -> None:
        self.regressor = regressor
        self.n_jobs = n_jobs
        self.random_state = random_state

    @property
    def takes_weights(self) -> bool:
        return has_fit_parameter(self.regressor, "sample_weight")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SklearnLearner:
        if y is None:
            raise InputError("SklearnLearner requires y to be passed, but the target y is None.")
        if sample_weight is not None and not self.takes_weights:
            raise TypeError(f"{type(self.regressor).__name__} does not take sample_weight. Use RidgeLearner.")
        Z, self._flat = as_columns(y)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        if get_tags(self.regressor).target_tags.multi_output:
            self.regressors_ = [clone(self.regressor).fit(X, as_dense(Z), **weights)]
        else:
            tasks = (delayed(_fit_one)(self.regressor, X, Z, i, weights) for i in range(Z.shape[1]))
            self.regressors_ = list(Parallel(n_jobs=self.n_jobs)(tasks))
        return self

    def fit_out_of_sample(self, X: Any, y: Any, sample_weight: Any = None) -> FloatArray:
        """Fit, and return predictions of each of five folds of the rows by a model of the others.

        From 5,000 rows on there are three.
        """
        self.fit(X, y, sample_weight)
        weights = None if sample_weight is None else np.asarray(sample_weight)
        return self._shape_like_fit(self._predict_folds(X, as_columns(y)[0], weights))

    def cost(self, X: Any, n_targets: int) -> FitCost:
        """Return that it is in proportion to the rows and targets; more is not known of other people's regressors."""
        return FitCost(type(self).__name__, 1e-9 * X.shape[0] * n_targets, None, None)

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


def _fit_one(regressor: BaseEstimator, X: Any, Z: Any, i: int, weights: dict[str, Any]) -> BaseEstimator:
    target = Z[:, [i]].toarray().ravel() if sp.issparse(Z) else Z[:, i]
    return clone(regressor).fit(X, target, **weights)
