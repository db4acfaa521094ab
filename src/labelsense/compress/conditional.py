"""Conditional principal label space: the directions of the label vectors that can be predicted best."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh
from sklearn.base import clone

from labelsense._storage import storable
from labelsense._typing import CSR, DoubleArray
from labelsense.compress.principal import PLSTCompressor, principal_directions, row_shares
from labelsense.errors import InputError
from labelsense.regress import Learner, RidgeLearner

SPAN = 3  # times m: of how many principal directions the best are combined


@storable()
class CPLSTCompressor(PLSTCompressor):
    """The m directions of the label vectors that are predicted with the least error from X: conditional PLST.

    Principal label space keeps what varies most, also if nothing in X says which way. This keeps, of the span of 3 m
    principal directions (all of them, where there are no more), those V for which the squared error of the decoded
    prediction, ||Y - Y' V V'||^2, is least. The predictions Y' of the training rows are out of sample, while the
    original method takes fitted values: with as many features as rows, those explain every direction alike. Use it with
    :class:`~labelsense.ProjectionDecoder`. It costs one fit of 3 m regressions more.

    Parameters
    ----------
    n_measurements, random_share, k, reserve, random_state
        See :class:`~labelsense.PLSTCompressor`.
    learner : Learner, optional
        What predicts the directions. By default ``RidgeLearner()``; take the one that the classifier has.

    References
    ----------
    Chen, Lin (2012), Feature-aware label space dimension reduction for multi-label classification.

    Examples
    --------
    >>> from labelsense import CompressedLabelClassifier, CPLSTCompressor, ProjectionDecoder
    >>> from labelsense.data import make_tagged_documents
    >>> X, Y = make_tagged_documents(n_samples=300, n_labels=50, random_state=0)
    >>> clf = CompressedLabelClassifier(CPLSTCompressor(20), "ridge", ProjectionDecoder(), refiner=None).fit(X, Y)
    >>> clf.measure(X).shape
    (300, 20)
    """

    def __init__(
        self,
        n_measurements: int | str = "auto",
        *,
        learner: Learner | None = None,
        random_share: float = 0.0,
        k: float | None = None,
        reserve: int = 0,
        random_state: Any = None,
    ) -> None:
        super().__init__(n_measurements, random_share=random_share, k=k, reserve=reserve, random_state=random_state)
        self.learner = learner

    def _directions(
        self, X: Any, Y: CSR, m: int, weights: DoubleArray | None, random_state: np.random.RandomState
    ) -> DoubleArray:
        if X is None:
            raise InputError(
                "CPLSTCompressor needs the features of the rows. Call fit_rows(X, Y), or use it in a classifier."
            )
        shares = row_shares(Y.shape[0], weights)
        V = principal_directions(Y, min(SPAN * m, *Y.shape), shares, random_state)
        learner = RidgeLearner() if self.learner is None else clone(self.learner)
        weighted = {} if weights is None else {"sample_weight": weights}
        Z = (Y @ V).astype(np.float32)
        mean = shares @ Z
        predicted = learner.fit_out_of_sample(X, Z, **weighted) - mean
        both = (predicted * shares[:, None]).T @ (Z - mean)
        gain = both + both.T - (predicted * shares[:, None]).T @ predicted
        return V @ eigh(gain)[1][:, : -m - 1 : -1]
