"""What the paper compares with."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsense._blocks import row_blocks
from labelsense._typing import CSR
from labelsense._validation import check_count
from labelsense.estimator import LabelPredictor, make_learner

SCORE_NUMBERS = 2**24  # scores that exist at a time


class OneVsAllClassifier(LabelPredictor):
    """One regression per label: the paper's top line, with the same learners and methods.

    The scores of a row are kept for its best labels only, so that a dense (n, d) array never exists.

    Parameters
    ----------
    learner : Learner, scikit-learn regressor or {"ridge", "kernel_ridge"}
        How to learn the regressions.
    n_nonzero : int
        How many of the best scores of each row ``predict_scores`` keeps.
    n_jobs : int, optional
        Copies of a single-target regressor fitted at a time.
    verbose : int
        1 logs each step.

    Examples
    --------
    >>> from labelsense import OneVsAllClassifier
    >>> from labelsense.data import make_tagged_documents
    >>> X, Y = make_tagged_documents(n_samples=300, n_labels=50, random_state=0)
    >>> OneVsAllClassifier().fit(X, Y).predict_topk(X, k=3).labels.shape
    (300, 3)
    """

    def __init__(
        self, learner: Any = "ridge", *, n_nonzero: int = 10, n_jobs: int | None = None, verbose: int = 0
    ) -> None:
        self.learner = learner
        self.n_nonzero = n_nonzero
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, Y: Any) -> OneVsAllClassifier:
        """Learn from X (n, p) and Y: an indicator matrix (n, d), sparse or dense, or one list of labels per row."""
        check_count(self.n_nonzero, "n_nonzero")
        X, Y = self._check_training(X, Y)
        self.learner_ = make_learner(self.learner, self.n_jobs).fit(X, Y)
        return self

    def _scores(self, X: Any, at_least: int) -> CSR:
        d = self.vocabulary_.n_labels
        keep = min(max(self.n_nonzero, at_least), d)
        parts = [
            _best_of_dense(self.learner_.predict(X[block]), keep)
            for block in row_blocks(X.shape[0], max(1, SCORE_NUMBERS // d))
        ]
        return sp.vstack(parts, format="csr")


def _best_of_dense(scores: Any, keep: int) -> CSR:
    """Return the ``keep`` largest scores of each row as CSR, ties to the lowest column."""
    n, d = scores.shape
    # Only a label that reaches the keep-th largest value can be among the best; among equals the lowest columns are.
    level = np.partition(scores, d - keep, axis=1)[:, d - keep, None]
    above, equal = scores > level, scores == level
    equal &= np.cumsum(equal, axis=1) <= keep - above.sum(axis=1, keepdims=True)
    columns = np.nonzero(above | equal)[1]
    values = np.take_along_axis(scores, columns.reshape(n, keep), axis=1)
    indptr = np.arange(0, n * keep + 1, keep)
    return sp.csr_array((values.ravel().astype(np.float32), columns, indptr), shape=(n, d))
