"""What every learner offers: m regressions on one design matrix."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.model_selection import KFold
from sklearn.utils import _safe_indexing, check_random_state

from labelsense._blocks import plain_algebra
from labelsense._progress import verbosity
from labelsense._typing import DoubleArray, FloatArray, IntArray
from labelsense.errors import InputError

Fold = tuple[IntArray, IntArray]

FOLDS, FEWER_FOLDS, MANY_ROWS = 5, 3, 5000  # from so many rows on, two thirds of them teach as much as four fifths


@dataclass(frozen=True)
class FitCost:
    """What a fit will take, by what the code really does and allocates.

    Attributes
    ----------
    solver : str
        How the regressions will be solved, in a word.
    seconds : float
        About how long, on two cores. Good for the ratio of two fits by one learner.
    work_bytes : int or None
        The most memory that is allocated beyond X and the targets. None where the learner does not know.
    model_bytes : int or None
        The size of the learned coefficients, in memory or in a file. None where the learner does not know.
    """

    solver: str
    seconds: float
    work_bytes: int | None
    model_bytes: int | None


@contextmanager
def working(verbose: int) -> Iterator[None]:
    """Show progress if asked for, leave overflow to who checks the solution, and linear algebra to our threads."""
    with verbosity(verbose), np.errstate(over="ignore", invalid="ignore"), plain_algebra:
        yield


class Learner(RegressorMixin, BaseEstimator, ABC):
    """Learns H: X -> R^m, all m regressions at once.

    ``fit(X, y)`` takes X (n, p) sparse or dense and targets y (n, m), ``predict(X)`` returns (n, m).
    """

    random_state: Any

    @property
    def takes_weights(self) -> bool:
        """Whether ``fit`` and ``fit_out_of_sample`` take ``sample_weight``."""
        return False

    @property
    def takes_updates(self) -> bool:
        """Whether there are ``partial_fit`` and ``forget``, which change a model as if it had been fitted anew."""
        return False

    @abstractmethod
    def fit(self, X: Any, y: Any) -> Learner:
        """Learn to predict y (n, m) from X (n, p)."""

    @abstractmethod
    def predict(self, X: Any) -> FloatArray:
        """Predict the measurements of the rows of X, (n, m)."""

    def _count_targets(self, n_features: int) -> int:
        """Return how many numbers it predicts of a row, by trying an empty one. A stored model may say anything."""
        return self.predict(sp.csr_array((1, n_features), dtype=np.float32)).size

    @abstractmethod
    def fit_out_of_sample(self, X: Any, y: Any) -> FloatArray:
        """Fit, and return predictions of the same rows by models that did not see them, (n, m).

        What learns from predictions should learn from these: fitted values are closer to the targets than predictions
        of new rows will be.
        """

    def fit_leaving_out(
        self, X: Any, y: Any, folds: Sequence[Fold], sample_weight: DoubleArray | None = None
    ) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Fit, and then yield for each fold what models of its other rows say, with the settings of the fit.

        Parameters
        ----------
        X, y : as for ``fit``
        folds : list of pairs of arrays
            The rows to learn from, and those that are left out: none where the others are all rows, in order.
        sample_weight : array (n,), optional
            How much each row counts, if the learner takes that.

        Yields
        ------
        rest, held : arrays (rows, m)
            Predictions of the rows to learn from, each by a model that has not seen it either, and of those left out.
        """
        weights = _weigh(sample_weight, slice(None))
        if all(len(held) for _, held in folds):
            self.fit(X, y, **weights)
        else:
            H = self.fit_out_of_sample(X, y, **weights)
            H = H.reshape(len(H), -1)
        for fold in folds:
            yield self._fit_without(X, y, fold, sample_weight) if len(fold[1]) else (H, H[:0])

    def _fit_without(
        self, X: Any, y: Any, fold: Fold, sample_weight: DoubleArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return what :meth:`fit_leaving_out` yields for a fold, by a fit."""
        (rest, held), model = fold, self.unfitted()
        H = model.fit_out_of_sample(_safe_indexing(X, rest), y[rest], **_weigh(sample_weight, rest))
        H = H.reshape(len(rest), -1)
        if not len(held):
            return H, H[:0]
        return H, np.reshape(model.predict(_safe_indexing(X, held)), (len(held), -1))

    def unfitted(self) -> Learner:
        """Return a copy that has learned nothing, with the settings that the fit has chosen as numbers."""
        return clone(self)

    def combine_targets(self, direction: Any) -> tuple[DoubleArray, float] | None:
        """Return the weights (p,) and the constant of the combination of its targets by a direction (m,).

        None if what it predicts is not linear in the features.
        """
        return None

    @abstractmethod
    def cost(self, X: Any, n_targets: int) -> FitCost:
        """Return what a fit of so many regressions on X will take."""

    def _predict_folds(self, X: Any, Z: Any, sample_weight: DoubleArray | None = None) -> FloatArray:
        """Return predictions of each fold of the rows by a copy of this learner that has seen the others."""
        H = np.empty(Z.shape, np.float32)
        for rest, out in self._folds(check_two_rows(X)):
            model = clone(self).fit(_safe_indexing(X, rest), Z[rest], **_weigh(sample_weight, rest))
            H[out] = model.predict(_safe_indexing(X, out))
        return H

    def _folds(self, n: int) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield five times, or three, which rows to learn from, and which to predict."""
        folds = KFold(
            min(FOLDS if n < MANY_ROWS else FEWER_FOLDS, n),
            shuffle=True,
            random_state=check_random_state(self.random_state),
        )
        return folds.split(np.zeros(n))

    def _shape_like_fit(self, H: FloatArray) -> FloatArray:
        """Return one column as a vector if ``fit`` was given a vector."""
        return H[:, 0] if self._flat else H

    _flat: bool = False


def _weigh(sample_weight: DoubleArray | None, rows: Any) -> dict[str, DoubleArray]:
    """Return the weights of rows as what to pass, if there are any."""
    return {} if sample_weight is None else {"sample_weight": sample_weight[rows]}


def check_two_rows(X: Any) -> int:
    """Return the number of rows, if one can be left out."""
    n = int(X.shape[0] if hasattr(X, "shape") else len(X))
    if n < 2:
        raise InputError(f"X must have at least 2 rows, so that one can be left out. Got n_samples = {n}.")
    return n


def as_columns(Z: Any) -> tuple[Any, bool]:
    """Return targets as (n, m), and whether they were a vector."""
    if sp.issparse(Z):
        return Z.tocsr(), False
    Z = np.asarray(Z)
    return (Z.reshape(-1, 1), True) if Z.ndim == 1 else (Z, False)


def data_bytes(M: Any) -> int:
    """Return the memory of a sparse or dense matrix."""
    if sp.issparse(M):
        return int(M.data.nbytes + M.indices.nbytes + M.indptr.nbytes)
    return int(M.nbytes)
