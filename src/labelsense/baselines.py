"""What the paper compares with: one-against-all and output codes."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.random import sample_without_replacement

from labelsense._blocks import row_blocks
from labelsense._progress import log, verbosity
from labelsense._storage import require, storable
from labelsense._typing import CSR, FloatArray, RandomState
from labelsense._validation import check_choice, check_count, check_real
from labelsense.compress import BernoulliCompressor, HadamardOperator, Operator
from labelsense.compress.hadamard import hadamard_order
from labelsense.errors import InputError
from labelsense.labels import keep_best
from labelsense.predictor import LabelPredictor, learn, predict_measurements
from labelsense.regress import Learner

SCORE_NUMBERS = 2**24  # scores that exist at a time
TARGET_NUMBERS = 2**24  # targets of subproblems that exist at a time


@storable(root=True)
class OneVsAllClassifier(LabelPredictor):
    """One regression per label: the paper's top line, with the same learners and methods.

    The scores of a row are kept for its best labels only, so that a dense (n, d) array never exists.

    Parameters
    ----------
    learner : Learner, scikit-learn regressor or {"ridge", "kernel_ridge"}
        How to learn the regressions.
    n_nonzero : int
        How many of the best scores of each row ``predict_scores`` keeps.
    features : transformer or {"words", "hashing", "counts", "images"}, optional
        What makes features of X first, as in :class:`~labelsense.CompressedLabelClassifier`.
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
        self,
        learner: Learner | BaseEstimator | str = "ridge",
        *,
        n_nonzero: int = 10,
        features: BaseEstimator | str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.learner = learner
        self.n_nonzero = n_nonzero
        self.features = features
        self.n_jobs = n_jobs
        self.verbose = verbose

    _scores_more = True

    def fit(self, X: Any, y: Any) -> OneVsAllClassifier:
        """Learn from X (n, p) and y: an indicator matrix (n, d), sparse or dense, or one list of labels per row."""
        check_count(self.n_nonzero, "n_nonzero")
        learner = self._make_learner()
        X, Y, self.vocabulary_ = self._check_training(X, y)
        self.learner_ = learn(learner, "fit", X, Y)
        return self

    def _check_sizes(self) -> None:
        check_count(self.n_nonzero, "n_nonzero")
        d = self.learner_._count_targets(self.n_features_in_)
        require(d == self.vocabulary_.n_labels, f"{d} labels are predicted, and there are {self.vocabulary_.n_labels}")

    def _scores(self, X: Any, at_least: int) -> CSR:
        d = self.vocabulary_.n_labels
        keep = min(max(self.n_nonzero, at_least), d)
        parts = [
            keep_best(predict_measurements(self.learner_, X[block]), keep)
            for block in row_blocks(X.shape[0], max(1, SCORE_NUMBERS // d))
        ]
        return sp.vstack(parts, format="csr")


class OutputCodeClassifier(LabelPredictor):
    """Output codes: each subproblem splits the labels in two halves, and all of them vote on each label.

    The target of a subproblem is the number of the row's labels in one half less the number in the other. A code is
    kept in parts of a few subproblems, each with its learner, so that the targets (n, m) never exist at once.
    """

    n_nonzero: int
    random_state: RandomState
    _scores_more = True

    @abstractmethod
    def _make_code(self, n_labels: int, size: int, random_state: np.random.RandomState) -> Iterator[Operator]:
        """Yield the code, with entries ±1/sqrt(rows), in parts of at most so many rows."""

    @abstractmethod
    def _votes(self, differences: FloatArray) -> FloatArray:
        """Return what to average, given the predicted differences between the halves."""

    def fit(self, X: Any, y: Any) -> OutputCodeClassifier:
        """Learn from X (n, p) and y: an indicator matrix (n, d), sparse or dense, or one list of labels per row."""
        check_count(self.n_nonzero, "n_nonzero")
        X, Y, self.vocabulary_ = self._check_training(X, y)
        n, d = Y.shape
        self.labels_per_row_ = float(Y.sum()) / n
        code = self._make_code(d, max(1, TARGET_NUMBERS // n), check_random_state(self.random_state))
        parts: list[tuple[Operator, Learner]] = []
        with verbosity(self.verbose):
            for part in code:
                parts.append((part, learn(self._make_learner(), "fit", X, part.compress(Y))))
                log("learned %d subproblems", part.n_measurements)
        self.parts_ = parts
        self.n_subproblems_ = sum(part.n_measurements for part, _ in parts)
        return self

    def _check_sizes(self) -> None:
        check_count(self.n_nonzero, "n_nonzero")
        check_real(self.labels_per_row_, "labels_per_row_", low=1e-12)
        for part, learner in self.parts_:
            m = learner._count_targets(self.n_features_in_)
            require(part.n_labels == self.vocabulary_.n_labels, "the code must have a column for each label")
            require(part.n_measurements == m, f"{part.n_measurements} subproblems, and {m} numbers are predicted")
        self._votes(np.zeros((1, 1), np.float32))
        require(self.n_subproblems_ == sum(part.n_measurements for part, _ in self.parts_), "the code must be complete")

    def _scores(self, X: Any, at_least: int) -> CSR:
        d = self.vocabulary_.n_labels
        keep = min(max(self.n_nonzero, at_least), d)
        blocks = row_blocks(X.shape[0], max(1, SCORE_NUMBERS // d))
        return sp.vstack([keep_best(self._averages(X[block]), keep) for block in blocks], format="csr")

    def _averages(self, X: Any) -> FloatArray:
        """Return for each label the mean of the votes over all subproblems, signed by the half that it is in."""
        total = np.zeros((X.shape[0], self.vocabulary_.n_labels), np.float32)
        for part, learner in self.parts_:
            scale = np.float32(math.sqrt(part.n_measurements))
            differences = predict_measurements(learner, X) * scale
            total += part.correlate(self._votes(differences)) * (scale / self.n_subproblems_)
        return total


@storable(root=True)
class ECOCClassifier(OutputCodeClassifier):
    """Error-correcting output codes: random halves, loss-based decoding.

    The margin of a subproblem is its predicted difference over the mean number of labels of a row, so that it is
    about ±1 where the row's labels are all in one half. A label's loss is the sum of the losses of its margins over all
    subproblems. For a code of ±1, that loss is a constant less the sum of signed votes (L(-f) - L(f)) / 2, whose
    average is the score. Where rows have one label, this is the method of Allwein, Schapire and Singer.

    With the squared loss (or the logistic one, which ranks alike) scores estimate E[y given x] without bias, with a
    variance of about labels per row / m for each label; with other losses they only rank.

    Parameters
    ----------
    learner : Learner, scikit-learn regressor or {"ridge", "kernel_ridge"}
        How to learn the subproblems.
    n_subproblems : int or "auto"
        m, the number of splits. "auto" is 10 log2(d), rounded up.
    loss : {"squared", "hinge", "exponential", "hamming"}
        "hamming" counts the subproblems on the wrong side, whatever the margin: the classical decoding.
    n_nonzero : int
        How many of the best scores of each row ``predict_scores`` keeps.
    features : transformer or {"words", "hashing", "counts", "images"}, optional
        What makes features of X first, as in :class:`~labelsense.CompressedLabelClassifier`.
    random_state : int, RandomState or None
        Seed of the code.
    n_jobs : int, optional
        Copies of a single-target regressor fitted at a time.
    verbose : int
        1 logs each step.

    References
    ----------
    Dietterich, Bakiri (1995), Solving multiclass learning problems via error-correcting output codes.
    Allwein, Schapire, Singer (2000), Reducing multiclass to binary: a unifying approach for margin classifiers.

    Examples
    --------
    >>> from labelsense import ECOCClassifier
    >>> from labelsense.data import make_tagged_documents
    >>> X, Y = make_tagged_documents(n_samples=300, n_labels=50, random_state=0)
    >>> clf = ECOCClassifier(random_state=0).fit(X, Y)
    >>> clf.n_subproblems_, clf.predict_topk(X, k=3).labels.shape
    (57, (300, 3))
    """

    def __init__(
        self,
        learner: Learner | BaseEstimator | str = "ridge",
        *,
        n_subproblems: int | str = "auto",
        loss: str = "squared",
        n_nonzero: int = 10,
        features: BaseEstimator | str | None = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.learner = learner
        self.n_subproblems = n_subproblems
        self.loss = loss
        self.n_nonzero = n_nonzero
        self.features = features
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _make_code(self, n_labels: int, size: int, random_state: np.random.RandomState) -> Iterator[Operator]:
        check_choice(self.loss, "loss", VOTES)
        m = _count_subproblems(self.n_subproblems, math.ceil(10 * math.log2(n_labels)), None)
        for rows in row_blocks(m, min(size, n_labels)):
            yield BernoulliCompressor(rows.stop - rows.start, random_state=random_state).fit(n_labels).operator_

    def _votes(self, differences: FloatArray) -> FloatArray:
        return VOTES[self.loss](differences / self.labels_per_row_) * self.labels_per_row_


@storable(root=True)
class SECOCClassifier(OutputCodeClassifier):
    """Sensitive error-correcting output codes: the halves of a Hadamard matrix, decoded by averages.

    In the form that the paper compares with: the subproblems are regressions, and there is one for each row of the
    Hadamard matrix of order D, the smallest power of two that is at least d. The score of a label is the mean over all
    halves of the predicted difference, signed by the half that the label is in. The squared error of the scores of all
    d labels is then at most 4 k^2 r-bar (:func:`labelsense.theory.secoc_bound`), and with linear learners they are
    those of :class:`~labelsense.OneVsAllClassifier`. The guarantee needs all D subproblems; with fewer, labels
    disturb one another as in :class:`~labelsense.ECOCClassifier`.

    Parameters
    ----------
    learner : Learner, scikit-learn regressor or {"ridge", "kernel_ridge"}
        How to learn the subproblems.
    n_subproblems : int or "auto"
        How many rows of the Hadamard matrix, chosen at random. "auto" is all of them.
    n_nonzero : int
        How many of the best scores of each row ``predict_scores`` keeps.
    features : transformer or {"words", "hashing", "counts", "images"}, optional
        What makes features of X first, as in :class:`~labelsense.CompressedLabelClassifier`.
    random_state : int, RandomState or None
        Seed of the choice of rows.
    n_jobs : int, optional
        Copies of a single-target regressor fitted at a time.
    verbose : int
        1 logs each step.

    References
    ----------
    Langford, Beygelzimer (2005), Sensitive error correcting output codes.

    Examples
    --------
    >>> from labelsense import SECOCClassifier
    >>> from labelsense.data import make_tagged_documents
    >>> X, Y = make_tagged_documents(n_samples=300, n_labels=50, random_state=0)
    >>> clf = SECOCClassifier().fit(X, Y)
    >>> clf.n_subproblems_, clf.predict_topk(X, k=3).labels.shape
    (64, (300, 3))
    """

    def __init__(
        self,
        learner: Learner | BaseEstimator | str = "ridge",
        *,
        n_subproblems: int | str = "auto",
        n_nonzero: int = 10,
        features: BaseEstimator | str | None = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.learner = learner
        self.n_subproblems = n_subproblems
        self.n_nonzero = n_nonzero
        self.features = features
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _make_code(self, n_labels: int, size: int, random_state: np.random.RandomState) -> Iterator[Operator]:
        order = hadamard_order(n_labels)
        m = _count_subproblems(self.n_subproblems, order, order)
        chosen = sample_without_replacement(order, m, random_state=random_state)
        for rows in row_blocks(m, size):
            yield HadamardOperator(chosen[rows], order, n_labels)

    def _votes(self, differences: FloatArray) -> FloatArray:
        return differences


# The loss L of a margin f -> (L(-f) - L(f)) / 2, as a multiple of which the slope at 0 is 1.
VOTES: dict[str, Callable[[Any], Any]] = {
    "squared": lambda f: f,
    "hinge": lambda f: (np.maximum(0, 1 + f) - np.maximum(0, 1 - f)) / 2,
    "exponential": lambda f: np.sinh(np.clip(f, -50, 50)),  # a wild margin must not become infinite
    "hamming": np.sign,
}


def _count_subproblems(value: int | str, auto: int, high: int | None) -> int:
    if value == "auto":
        return auto
    if isinstance(value, str):
        raise InputError(f"n_subproblems must be an integer or 'auto'. Got {value!r}.")
    return check_count(
        value, "n_subproblems", high=high, remedy="The Hadamard matrix has no more rows." if high else ""
    )
