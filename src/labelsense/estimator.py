"""The paper's two algorithms, learn to predict compressed labels, then reconstruct; and a third, refine."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from labelsense._blocks import plain_algebra
from labelsense._progress import log, verbosity
from labelsense._storage import storable
from labelsense._typing import CSR, IntArray, RandomState
from labelsense._validation import check_same_length, check_weights
from labelsense.chooser import Choice
from labelsense.compress import Compressor, Operator
from labelsense.errors import InputError
from labelsense.features import make_features
from labelsense.fitted import FittedPredictor, Parts
from labelsense.labels import Vocabulary, count_labels
from labelsense.ordering import HeldOut, describe_order
from labelsense.plan import check_takes_weights
from labelsense.predictor import THRESHOLD, changing, learn
from labelsense.reconstruct import Decoder
from labelsense.refine import Calibration, Reconstruction, Refiner
from labelsense.regress import Learner, RidgeLearner
from labelsense.report import report_fit


@storable(root=True)
class CompressedLabelClassifier(FittedPredictor):
    """Multi-label prediction by compressed sensing.

    ``fit`` compresses the label vectors with a random matrix A and learns to predict the m compressed labels;
    prediction reconstructs the sparse label vector they came from, and refines it: candidates from several sources get
    probabilities. What is not given is chosen by the precision of rows that were left out. Use it where there are
    thousands of labels or more and each row has few.

    ``CompressedLabelClassifier("hadamard", "ridge", "omp", refiner=None)`` is the paper's method.

    Parameters
    ----------
    compressor : Compressor, "auto" or {"hadamard", "gaussian", "bernoulli", "devore", "whitened", "plst", "cplst"}
        How to choose A, and how many measurements. "auto" is whitened, with m in proportion to the square root of d.
    learner : Learner, scikit-learn regressor, "auto" or {"ridge", "kernel_ridge"}
        How to learn the regressions. "auto" chooses between ridge and a kernel, with penalty and width, and how to
        scale the features if X holds features.
    decoder : Decoder, "auto" or a word of DECODERS, such as "omp", "correlation" or "projection"
        How to reconstruct labels from measurements. "auto" is orthogonal matching pursuit, or what suits A. It finds
        ten labels of a row, or six where a refiner hears other sources beside it.
    refiner : Refiner, "auto" or None
        How to judge candidates. None leaves it at what the decoder says, and there are no probabilities.
    features : transformer, encoder or a word of FEATURES, such as "words", "characters" or "counts", optional
        What makes features of X first, as part of the model. "words", "hashing", "characters" and any object with
        ``encode(list of str)`` take texts, "counts" takes counts and scales them, "images" takes images or their files;
        see :func:`~labelsense.features.make_features`. By default X holds features, and "none" keeps these as they are
        where a learner is chosen.
    budget : {"fast", "balanced", "accurate"}
        What to spend on choices and on refinement, see :data:`~labelsense.chooser.BUDGETS`.
    objective : {"precision", "propensity"}
        What the ranking is for. "propensity" ranks by the score times the inverse propensity of the label, which is
        best for propensity-scored precision: rare labels come first, and precision is paid for it. Probabilities and
        ``predict`` stay as they are.
    updatable : bool
        Whether ``fit`` keeps what ``partial_fit`` and ``forget`` need. Only what can be updated is then chosen: ridge.
    held_out : {"auto", "rows", "last"}
        On which rows to measure what to expect. "rows": rows at random, which is right if new rows are like those
        given. "last": the last rows as well, by a model of rows before, which is right if rows come in time or in runs
        of related ones. "auto" does that where rows are ordered so. If rows next to each other are nearly copies, or
        with "last", refinement does not hear the labels of similar rows; and with the budget "accurate" settings are
        compared on runs that are left out whole.
    threshold : "f1" or float
        From which score on ``predict`` takes a label. "f1" is where the F1 of rows left out was best, and the best
        label of a row is always taken unless none is likely; without a refiner it is one half.
    random_state : int, RandomState or None
        Seed for A, unless the compressor has its own, and for the rows that are left out.
    n_jobs : int, optional
        Threads for decoding. The result does not depend on it.
    verbose : int
        1 says what is going on, through the logger "labelsense".

    Attributes
    ----------
    compressor_, learner_, decoder_, refiner_, features_
        The fitted parts. ``compressor_.operator_`` is A.
    scaling_ : transformer or None
        How features are scaled, where that was chosen.
    labels_, classes_ : list, array
        The labels in column order.
    label_counts_ : array (d,)
        How many of the rows learned from have each label.
    n_samples_seen_ : int
        How many rows were learned from.
    threshold_ : float
        From which score on ``predict`` takes a label.
    report_ : Report
        What was chosen and why, and what to expect.

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
        compressor: Compressor | str = "auto",
        learner: Learner | BaseEstimator | str = "auto",
        decoder: Decoder | str = "auto",
        *,
        refiner: Refiner | str | None = "auto",
        features: BaseEstimator | str | None = None,
        budget: str = "balanced",
        objective: str = "precision",
        updatable: bool = False,
        held_out: str = "auto",
        threshold: float | str = "f1",
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.compressor = compressor
        self.learner = learner
        self.decoder = decoder
        self.refiner = refiner
        self.features = features
        self.budget = budget
        self.objective = objective
        self.updatable = updatable
        self.held_out = held_out
        self.threshold = threshold
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

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
        threshold = self._check_settings(sample_weight is not None)
        X, Y, vocabulary = self._check_training(X, y)
        weights = None if sample_weight is None else check_weights(sample_weight, X)
        with verbosity(self.verbose):
            plan = self._plan(X, Y, weighted=weights is not None)
            compressor, learner, decoder, refiner, word, choice = plan
            scaling = make_features("none" if word is None else word)
            X = X if scaling is None else scaling.fit_transform(X)
            start = time.perf_counter()
            with plain_algebra:
                reconstruction = _fit_reconstruction(compressor, decoder, X, Y, weights)
                held_out = self._hold_out(X, Y)
            calibration = self._fit_parts(X, Y, learner, reconstruction, refiner, weights, held_out.last)
            log(
                "learned %d regressions on %d rows in %.1f s",
                compressor.operator_.n_measurements,
                Y.shape[0],
                _since(start),
            )
        with changing:
            self.compressor_, self.decoder_, self.learner_, self.refiner_ = compressor, decoder, learner, refiner
            self.scaling_, self.vocabulary_ = scaling, vocabulary
            self.threshold_ = (
                threshold if threshold is not None else calibration.threshold if calibration else THRESHOLD
            )
            self.report_ = report_fit(self, choice, calibration, held_out)
            self._state = Parts(learner, reconstruction, refiner)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> CompressedLabelClassifier:
        """Learn from more rows, exactly: the model equals one fit on all rows seen, labels in the same columns.

        New labels get the next columns; there are as many as ``compressor_.operator_.capacity`` says. The learner has
        to be one that can (:class:`~labelsense.RidgeLearner` with a number for alpha). A prediction on another thread
        is by the model before the update, or by the one after.
        """
        if "learner_" not in vars(self):
            return self._begin(X, y, sample_weight)
        X = self._check_features(X)
        with changing:
            vocabulary, Y = self.vocabulary_.extend(y)
            check_same_length(X, Y)
            self._learn_more(vocabulary, X, lambda operator: operator.compress(Y), count_labels(Y), sample_weight)
            if self.refiner_ is not None:
                self.refiner_ = self.refiner_.updated(X, Y, 1)
        return self

    def _learn_more(
        self,
        vocabulary: Vocabulary,
        X: Any,
        targets: Callable[[Operator], Any],
        label_counts: IntArray,
        sample_weight: Any = None,
    ) -> None:
        """Learn regressions from rows, given the labels with new ones, and what A makes of the labels of the rows."""
        with changing:
            operator = self.compressor_.operator_.for_labels(vocabulary.n_labels)
            learner = learn(self._copy_learner(), "partial_fit", X, targets(operator), sample_weight)
            if self.label_counts_ is not None:
                known = np.pad(self.label_counts_, (0, vocabulary.n_labels - len(self.label_counts_)))
                self.label_counts_ = known + label_counts
            if self.n_samples_seen_ is not None:
                self.n_samples_seen_ += int(X.shape[0])
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
            if self.refiner_ is not None:
                self.refiner_ = self.refiner_.updated(X, Y, -1)
            self.label_counts_, self._state = counts, None
            if self.n_samples_seen_ is not None:
                self.n_samples_seen_ -= Y.shape[0]
        return self

    def refresh(self, X: Any, y: Any) -> CompressedLabelClassifier:
        """Learn again, from these rows, what updates leave as it was: classifiers of labels, and probabilities.

        The regressions stay as they are. Give the rows that the model has learned from, or as many as there are.
        """
        check_is_fitted(self)
        if self.refiner_ is None:
            raise InputError("The model has no refiner to refresh. Fit it with refiner='auto'.")
        X = self._check_features(X)
        with changing, verbosity(self.verbose):
            Y = self.vocabulary_.read(y)
            check_same_length(X, Y)
            parts, refiner = self._current(), clone(self.refiner_)
            last = self._hold_out(X, Y).last
            calibration = refiner.fit(X, Y, parts.learner.unfitted(), parts.reconstruction, last=last)
            self.threshold_ = _first(self._check_threshold(), calibration.threshold)
            self.refiner_, self._state = refiner, Parts(parts.learner, parts.reconstruction, refiner)
            self.report_ = report_fit(self, calibration=calibration)
        return self

    def _begin(self, X: Any, y: Any, sample_weight: Any) -> CompressedLabelClassifier:
        """Learn from the first rows in a way that more can follow. Nothing is chosen by them, and nothing refined."""
        learner = _updatable(RidgeLearner() if self.learner == "auto" else self._make_learner())
        if sample_weight is not None:
            check_takes_weights(learner)
        X, Y, vocabulary = self._check_training(X, y)
        weights = None if sample_weight is None else check_weights(sample_weight, X)
        seed = check_random_state(self.random_state).randint(2**31)
        compressor = self._make_compressor(Y.shape[1], seed)
        decoder = self._make_decoder(compressor, Y.shape[1], refined=False)
        with verbosity(self.verbose):
            _fit_reconstruction(compressor, decoder, X, Y, weights)
            learner = learn(learner, "partial_fit", X, compressor.operator_.compress(Y), weights)
        self._set_parts(compressor, learner, decoder, vocabulary)
        return self

    def _set_parts(
        self,
        compressor: Compressor,
        learner: Learner,
        decoder: Decoder,
        vocabulary: Vocabulary,
        refiner: Refiner | None = None,
        calibration: Calibration | None = None,
        choice: Choice | None = None,
        held_out: HeldOut | None = None,
    ) -> None:
        """Become the model of these fitted parts."""
        with changing:
            self.compressor_, self.decoder_, self.learner_ = compressor, decoder, learner
            self.refiner_, self.scaling_, self.vocabulary_, self._state = refiner, None, vocabulary, None
            self.threshold_ = _first(
                self._check_threshold(), None if calibration is None else calibration.threshold, THRESHOLD
            )
            self.report_ = report_fit(self, choice, calibration, held_out)

    def _fit_parts(
        self,
        X: Any,
        Y: CSR,
        learner: Learner,
        reconstruction: Reconstruction,
        refiner: Refiner | None,
        weights: Any,
        last: bool,
    ) -> Calibration | None:
        if refiner is not None:
            return refiner.fit(X, Y, learner, reconstruction, weights, last)
        learn(learner, "fit", X, reconstruction.operator.compress(Y), weights)
        return None

    def _hold_out(self, X: Any, Y: CSR) -> HeldOut:
        """Tell whether to hold out the last rows, too, because rows at random may not tell what new ones get."""
        if self.held_out == "rows":
            return HeldOut()
        order = describe_order(X, Y, random_state=0)
        return HeldOut(self.held_out == "last" or order is not None, order)

    def _copy_learner(self) -> Learner:
        """Return a learner that can be updated without a change to the weights of the one in use."""
        return copy.copy(_updatable(self.learner_))

    def _counts_without(self, Y: CSR) -> IntArray | None:
        """Return the counts of labels without these rows; refuse rows that cannot have been learned."""
        if self.label_counts_ is None:
            return None
        counts = self.label_counts_ - count_labels(Y)
        if counts.min() < 0:
            j = int(counts.argmin())
            raise InputError(
                f"y has the label {self.labels_[j]!r} in {self.label_counts_[j] - counts[j]} rows, and "
                f"{self.label_counts_[j]} of the rows learned have it. Only rows that were learned can be forgotten."
            )
        return counts


def _fit_reconstruction(compressor: Compressor, decoder: Decoder, X: Any, Y: CSR, weights: Any) -> Reconstruction:
    """Fit A to the rows, and prepare a decoder; refuse a support that does not fit before any other work."""
    operator = compressor.fit_rows(X, Y, weights).operator_
    decoder.fit_labels(Y).support_size(operator)
    log("compressed %d labels to %d measurements", Y.shape[1], operator.n_measurements)
    return Reconstruction.by(decoder, operator)


def _updatable(learner: Learner) -> Learner:
    if not learner.takes_updates:
        raise TypeError(f"{type(learner).__name__} cannot be updated. Use RidgeLearner with a number for alpha.")
    return learner


def _first(*values: float | None) -> float:
    """Return the first that is given."""
    return next(value for value in values if value is not None)


def _since(start: float) -> float:
    return time.perf_counter() - start
