"""The paper's two algorithms: learn to predict compressed labels, then reconstruct."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from labelsense._blocks import map_rows, row_blocks
from labelsense._progress import log, report_progress, verbosity
from labelsense._storage import require, storable
from labelsense._typing import CSR, FloatArray, IntArray, RandomState
from labelsense._validation import check_choice, check_count, check_same_length, check_weights
from labelsense.compress import COMPRESSORS, Compressor, Operator
from labelsense.diagnose import Diagnosis, diagnose
from labelsense.errors import InputError
from labelsense.labels import Vocabulary
from labelsense.predictor import LabelPredictor, changing, learn, predict_measurements
from labelsense.reconstruct import DECODERS, Decoder
from labelsense.regress import Learner

MEASURE_ROWS = 4096  # rows of X that are predicted at a time
DECODE_NUMBERS = 2**24  # rows times columns of A that a decoder thread handles between two looks at Ctrl-C
TRIED_NUMBERS = 2**24  # of A, up to which a stored model is tried on a row


class Parts(NamedTuple):
    """What a prediction uses, all of one time: an update on another thread makes others, and changes none of these."""

    learner: Learner
    operator: Operator
    state: Any


@storable(root=True)
class CompressedLabelClassifier(LabelPredictor):
    """Multi-label prediction by compressed sensing.

    ``fit`` compresses the label vectors with a random matrix A and learns to predict the m compressed labels;
    ``predict_scores`` predicts them and reconstructs the sparse label vector they came from. Use it where there are
    thousands of labels or more and each row has few.

    Parameters
    ----------
    compressor : Compressor or {"hadamard", "gaussian", "bernoulli", "devore", "whitened"}
        How to choose A, and how many measurements.
    learner : Learner, scikit-learn regressor or {"ridge", "kernel_ridge"}
        How to learn the regressions.
    decoder : Decoder or {"omp", "foba", "cosamp", "lasso", "correlation", "multistage_lasso", "group_omp"}
        How to reconstruct labels from measurements.
    features : transformer or {"words", "hashing", "counts", "images"}, optional
        What makes features of X first, as part of the model. "words" and "hashing" take texts, "counts" takes counts
        and scales them, "images" takes images or their files; see :func:`~labelsense.features.make_features`. By
        default X holds features.
    random_state : int, RandomState or None
        Seed for A, unless the compressor has its own.
    n_jobs : int, optional
        Threads for decoding. The result does not depend on it.
    verbose : int
        1 says what is going on, through the logger "labelsense".

    Attributes
    ----------
    compressor_, learner_, decoder_, features_
        The fitted parts. ``compressor_.operator_`` is A.
    labels_, classes_ : list, array
        The labels in column order.
    label_counts_ : array (d,)
        How many of the rows learned from have each label.

    References
    ----------
    Hsu, Kakade, Langford, Zhang (2009), Multi-label prediction via compressed sensing.

    Examples
    --------
    >>> from labelsense import CompressedLabelClassifier
    >>> from labelsense.data import make_tagged_documents
    >>> X, Y = make_tagged_documents(n_samples=500, n_labels=200, random_state=0)
    >>> clf = CompressedLabelClassifier(random_state=0).fit(X[:400], Y[:400])
    >>> clf.predict_topk(X[400:], k=3).labels.shape
    (100, 3)
    """

    def __init__(
        self,
        compressor: Compressor | str = "hadamard",
        learner: Learner | BaseEstimator | str = "ridge",
        decoder: Decoder | str = "omp",
        *,
        features: BaseEstimator | str | None = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.compressor = compressor
        self.learner = learner
        self.decoder = decoder
        self.features = features
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    _words = LabelPredictor._words | {"compressor": COMPRESSORS, "decoder": DECODERS}

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> CompressedLabelClassifier:
        """Learn from X (n, p) and y.

        Parameters
        ----------
        X : array, CSR or data frame (n, p), or what ``features`` takes
            The rows.
        y : CSR, array or data frame (n, d) of 0 and 1, or one list of labels per row
            Labels are strings, numbers, or tuples of these. The columns of a data frame are labels.
        sample_weight : array (n,), optional
            How much each row counts, in the regressions and in the frequencies of the labels. The learner must take
            weights.
        """
        self._learn(self._make_learner(), "fit", X, y, sample_weight)
        self._current()  # predictions find it made
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> CompressedLabelClassifier:
        """Learn from more rows, exactly: the model equals one fit on all rows seen, labels in the same columns.

        New labels get the next columns; there are as many as ``compressor_.operator_.capacity`` says. The learner has
        to be one that can (:class:`~labelsense.RidgeLearner` with a number for alpha). A prediction on another thread
        is by the model before the update, or by the one after.
        """
        if "learner_" not in vars(self):
            return self._learn(_updatable(self._make_learner()), "partial_fit", X, y, sample_weight)
        X = self._check_features(X)
        with changing:
            vocabulary, Y = self.vocabulary_.extend(y)
            check_same_length(X, Y)
            self._learn_more(vocabulary, X, lambda operator: operator.compress(Y), _count(Y), sample_weight)
        return self

    def _learn_more(
        self,
        vocabulary: Vocabulary,
        X: Any,
        targets: Callable[[Operator], Any],
        label_counts: IntArray,
        sample_weight: Any = None,
    ) -> None:
        """Learn from rows, given the labels with those that are new, and what A makes of the labels of the rows."""
        with changing:
            operator = self.compressor_.operator_.for_labels(vocabulary.n_labels)
            learner = learn(self._copy_learner(), "partial_fit", X, targets(operator), sample_weight)
            if self.label_counts_ is not None:
                known = np.pad(self.label_counts_, (0, vocabulary.n_labels - len(self.label_counts_)))
                self.label_counts_ = known + label_counts
            self.compressor_.operator_, self.vocabulary_ = operator, vocabulary
            self.learner_, self._state = learner, None

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> CompressedLabelClassifier:
        """Take back what was learned from rows: the exact inverse of ``partial_fit`` on them.

        Rows that cannot have been learned, because too few had their labels, are refused.
        """
        X = self._check_features(X)
        with changing:
            Y = self.vocabulary_.read(y)
            check_same_length(X, Y)
            counts = self._counts_without(Y)
            Z = self.compressor_.operator_.compress(Y)
            self.learner_ = learn(self._copy_learner(), "forget", X, Z, sample_weight)
            self.label_counts_, self._state = counts, None
        return self

    def measure(self, X: Any) -> FloatArray:
        """Return the predicted measurements H(x) of each row, (n, m)."""
        return predict_measurements(self._current().learner, self._check_features(X))

    def diagnose(self, X: Any, y: Any, k: int = 5) -> Diagnosis:
        """Tell where precision is lost on rows that were not learned from, and which part to spend on.

        Labels that were not in the training data are left out.
        """
        check_count(k, "k")
        X, Y, _ = self._check_test(X, y)
        parts = self._current()
        return diagnose(parts.operator, self.decoder_, predict_measurements(parts.learner, X), Y, k)

    def _learn(self, learner: Learner, step: str, X: Any, y: Any, sample_weight: Any) -> CompressedLabelClassifier:
        """Learn from the first rows, by a step of the learner: "fit" or "partial_fit"."""
        if sample_weight is not None and not learner.takes_weights:
            raise TypeError(f"{type(learner).__name__} does not take sample_weight. Use RidgeLearner, which does.")
        X, Y, vocabulary = self._check_training(X, y)
        weights = None if sample_weight is None else check_weights(sample_weight, X)
        start = time.perf_counter()
        compressor, decoder = self._make_compressor(*_label_shares(Y, weights)), self._make_decoder().fit_labels(Y)
        decoder.support_size(compressor.operator_)  # refuse a support that does not fit before any work
        with verbosity(self.verbose):
            Z = compressor.operator_.compress(Y)
            log("compressed %d labels to %d measurements in %.1f s", Y.shape[1], Z.shape[1], _since(start))
            start = time.perf_counter()
            learner = learn(learner, step, X, Z, weights)
            log("learned %d regressions on %d rows in %.1f s", Z.shape[1], len(Z), _since(start))
        self._set_parts(compressor, learner, decoder, vocabulary, _count(Y))
        return self

    def _set_parts(
        self, compressor: Compressor, learner: Learner, decoder: Decoder, vocabulary: Vocabulary, label_counts: IntArray
    ) -> None:
        """Become the model of these fitted parts."""
        with changing:
            self.compressor_, self.decoder_, self.learner_ = compressor, decoder, learner
            self.vocabulary_, self.label_counts_, self._state = vocabulary, label_counts, None

    def _scores(self, X: Any, at_least: int) -> CSR:
        parts = self._current()
        rows = max(1, min(256, DECODE_NUMBERS // parts.operator.n_labels))
        found = []
        with self.decoder_.one_warning() as decoder:
            for block in row_blocks(X.shape[0], MEASURE_ROWS):
                H = predict_measurements(parts.learner, X[block])

                def decode(rows: slice, H: FloatArray = H) -> CSR:
                    return decoder.decode(parts.state, H[rows])

                with verbosity(self.verbose):
                    report_progress("decoding", block.start / X.shape[0])
                found += map_rows(decode, len(H), rows, self.n_jobs)
        return sp.vstack(found, format="csr")

    def _current(self) -> Parts:
        """Return what to predict with, made once per process and again after an update."""
        check_is_fitted(self)
        parts = self._state
        if parts is None:
            with changing:
                _ = getattr(self.learner_, "coef_", None)  # solved for the rows of all updates, once
                operator = self.compressor_.operator_
                self._state = parts = Parts(self.learner_, operator, self.decoder_.prepare(operator))
        return parts

    def _check_sizes(self) -> None:
        operator, m = self.compressor_.operator_, self.learner_._count_targets(self.n_features_in_)
        require(operator.n_labels == self.vocabulary_.n_labels, "A must have a column for each label")
        require(operator.n_measurements == m, f"A has {operator.n_measurements} rows, and {m} numbers are predicted")
        self.decoder_.support_size(operator)
        if m * operator.n_labels <= TRIED_NUMBERS:  # what a larger A needs is made when it is first used
            self.decoder_.decode(self.decoder_.prepare(operator), np.zeros((1, m), np.float32))

    label_counts_: IntArray | None = None  # a model file of before has none
    _state: Parts | None = None

    def __getstate__(self) -> Any:
        return {name: value for name, value in super().__getstate__().items() if name != "_state"}

    def _copy_learner(self) -> Learner:
        """Return a learner that can be updated without a change to the weights of the one in use."""
        return copy.copy(_updatable(self.learner_))

    def _counts_without(self, Y: CSR) -> IntArray | None:
        """Return the counts of labels without these rows; refuse rows that cannot have been learned."""
        if self.label_counts_ is None:
            return None
        counts = self.label_counts_ - _count(Y)
        if counts.min() < 0:
            j = int(counts.argmin())
            raise InputError(
                f"y has the label {self.labels_[j]!r} in {self.label_counts_[j] - counts[j]} rows, and "
                f"{self.label_counts_[j]} of the rows learned have it. Only rows that were learned can be forgotten."
            )
        return counts

    def _make_compressor(self, n_labels: int, k: float, frequencies: Any) -> Compressor:
        if isinstance(self.compressor, Compressor):
            compressor = clone(self.compressor)
        else:
            compressor = check_choice(self.compressor, "compressor", COMPRESSORS)()
        if compressor.random_state is None:
            compressor.random_state = check_random_state(self.random_state).randint(2**31)
        return compressor.fit_frequencies(n_labels, k, frequencies)

    def _make_decoder(self) -> Decoder:
        if isinstance(self.decoder, Decoder):
            return clone(self.decoder)
        return check_choice(self.decoder, "decoder", DECODERS)()


def _updatable(learner: Learner) -> Learner:
    if not learner.takes_updates:
        raise TypeError(f"{type(learner).__name__} cannot be updated. Use RidgeLearner with a number for alpha.")
    return learner


def _label_shares(Y: CSR, weights: Any) -> tuple[int, float, Any]:
    """Return the number of labels, how many a row has on average, and the share of rows that have each."""
    if weights is None:
        return Y.shape[1], Y.nnz / Y.shape[0], Y.sum(axis=0) / Y.shape[0]
    weights = weights / weights.sum()
    return Y.shape[1], float(weights @ np.diff(Y.indptr)), weights @ Y


def _count(Y: CSR) -> IntArray:
    """Return how many rows have each label."""
    return np.bincount(Y.indices, minlength=Y.shape[1]).astype(np.int64)


def _since(start: float) -> float:
    return time.perf_counter() - start
