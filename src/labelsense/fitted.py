"""What a fitted classifier does with its parts: predict, explain, diagnose."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from labelsense._blocks import map_rows, row_blocks
from labelsense._progress import report_progress, verbosity
from labelsense._storage import require
from labelsense._typing import CSR, FloatArray, Label
from labelsense._validation import check_count, check_real
from labelsense.compress import Compressor, Operator
from labelsense.diagnose import Diagnosis, diagnose
from labelsense.errors import InputError
from labelsense.explain import Explanation, explain_measurements, explain_ranker
from labelsense.labels import scale_columns, top_k
from labelsense.metrics import above
from labelsense.plan import PlannedPredictor
from labelsense.predictor import THRESHOLD, changing, predict_measurements
from labelsense.reconstruct import Decoder
from labelsense.refine import Reconstruction, Refiner
from labelsense.regress import Learner
from labelsense.report import Report

MEASURE_ROWS = 4096  # rows of X that are predicted at a time
DECODE_NUMBERS = 2**24  # rows times columns of A that a decoder thread handles between two looks at Ctrl-C
NONE_LIKELY = 0.5  # the probability of no label, up to which a row gets one
TRIED_NUMBERS = 2**24  # of A, up to which a stored model is tried on a row


class Parts(NamedTuple):
    """What a prediction uses, all of one time: an update on another thread makes others, and changes none of these."""

    learner: Learner
    reconstruction: Reconstruction
    refiner: Refiner | None

    @property
    def operator(self) -> Operator:
        """A."""
        return self.reconstruction.operator


class FittedPredictor(PlannedPredictor):
    """A model of fitted parts: A, regressions, a decoder and a refiner. The subclass learns them."""

    compressor_: Compressor
    learner_: Learner
    decoder_: Decoder
    # A model file of before has none of these.
    refiner_: Refiner | None = None
    scaling_: Any = None
    threshold_: float = THRESHOLD
    report_: Report | None = None
    _state: Parts | None = None

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

    def _has_probabilities(self) -> bool:
        """Tell whether there is a refiner; before a fit, whether there will be one."""
        return (self.refiner_ if "learner_" in vars(self) else self.refiner) is not None

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> CSR:
        """Return the probabilities of the candidate labels of each row, as CSR (n, d); of other labels it is near 0."""
        return self.predict_scores(X)

    def explain(self, x: Any, label: Label) -> Explanation:
        """Tell what spoke for a label, and what against it.

        Exact for ridge and for the linear classifiers of refinement: the parts add up to the score. With other
        learners a part is what the score loses without the feature.

        Parameters
        ----------
        x : one row of X, as a batch of one, or one text
        label : label
            One that the model knows: a column number where labels have no names.
        """
        parts = self._current()
        j = int(self.vocabulary_.columns_of([label], "label")[0])
        row = self._check_features([x] if isinstance(x, str) else x)
        if row.shape[0] != 1:
            raise InputError(f"x must be one row. Got {row.shape[0]}.")
        names = self._feature_names()

        def predict(X: Any) -> FloatArray:
            return predict_measurements(parts.learner, X)

        found = explain_measurements(parts.learner, parts.operator, row, j, label, names, predict)
        if parts.refiner is None:
            return found
        probability = float(self._scores(row, 1)[[0]].toarray()[0, j])
        ranker = explain_ranker(parts.refiner.ranker, row, j, label, names)
        return replace(found, probability=probability, ranker=ranker)

    def _feature_names(self) -> Any:
        if hasattr(self.features_, "get_feature_names_out"):
            return self.features_.get_feature_names_out()
        return getattr(self, "feature_names_in_", range(self.n_features_in_))

    def _scores(self, X: Any, at_least: int) -> CSR:
        learner, reconstruction, refiner = self._current()
        rows = max(1, min(256, DECODE_NUMBERS // reconstruction.operator.n_labels))
        found = []
        with self.decoder_.one_warning() as decoder:
            reconstruction = reconstruction._replace(decoder=decoder)
            for block in row_blocks(X.shape[0], MEASURE_ROWS):
                H = predict_measurements(learner, X[block])

                def decode(rows: slice, H: FloatArray = H) -> CSR:
                    return decoder.decode(reconstruction.state, H[rows])

                with verbosity(self.verbose):
                    report_progress("decoding", block.start / X.shape[0])
                if refiner is not None:
                    found.append(refiner.predict(X[block], H, reconstruction))
                else:
                    found += map_rows(decode, len(H), rows, self.n_jobs)
        return sp.vstack(found, format="csr")

    def _rank(self, scores: CSR) -> CSR:
        weights = self._propensity_weights() if self.objective == "propensity" else None
        return scores if weights is None else scale_columns(scores, weights[:-1])

    def _choose(self, scores: CSR) -> CSR:
        chosen = above(scores, self.threshold_)
        if self.refiner_ is None or self.threshold != "f1":
            return chosen
        return _with_best(chosen, scores)

    def _check_features(self, X: Any) -> Any:
        X = super()._check_features(X)
        return X if self.scaling_ is None else self.scaling_.transform(X)

    def _current(self) -> Parts:
        """Return what to predict with, made once per process and again after an update."""
        check_is_fitted(self)
        parts = self._state
        if parts is None:
            with changing:
                _ = getattr(self.learner_, "coef_", None)  # solved for the rows of all updates, once
                reconstruction = Reconstruction.by(self.decoder_, self.compressor_.operator_)
                self._state = parts = Parts(self.learner_, reconstruction, self.refiner_)
        return parts

    def _check_sizes(self) -> None:
        operator, m = self.compressor_.operator_, self.learner_._count_targets(self.n_features_in_)
        require(operator.n_labels == self.vocabulary_.n_labels, "A must have a column for each label")
        require(operator.n_measurements == m, f"A has {operator.n_measurements} rows, and {m} numbers are predicted")
        self.decoder_.support_size(operator)
        check_real(self.threshold_, "threshold_", low=0)
        require(self.report_ is None or isinstance(self.report_, Report), "report_ must be a report")
        if self.scaling_ is not None:
            require(hasattr(self.scaling_, "transform"), "scaling_ must be a transformer")
            require(self.scaling_.n_features_in_ == self.n_features_in_, "scaling_ must be of its features")
        if self.refiner_ is not None:
            require(isinstance(self.refiner_, Refiner), "refiner_ must be a refiner")
            self.refiner_.check_sizes(self.n_features_in_, m, operator.n_labels)
        if m * operator.n_labels <= TRIED_NUMBERS:  # what a larger A needs is made when it is first used
            self.decoder_.decode(self.decoder_.prepare(operator), np.zeros((1, m), np.float32))

    def __getstate__(self) -> Any:
        return {name: value for name, value in super().__getstate__().items() if name != "_state"}


def _with_best(chosen: CSR, scores: CSR) -> CSR:
    """Return what was chosen, and the best label of each row without one, unless none is likely."""
    none = np.ones(scores.shape[0])
    row = np.repeat(np.arange(scores.shape[0]), np.diff(scores.indptr))
    np.multiply.at(none, row, 1 - scores.data.astype(np.float64))
    lacking = np.flatnonzero((np.diff(chosen.indptr) == 0) & (none < NONE_LIKELY))
    best = top_k(scores[lacking], 1).labels[:, 0]
    extra = sp.csr_array((np.ones(len(best), np.int64), (lacking, best)), shape=chosen.shape)
    return sp.csr_array(chosen + extra)
