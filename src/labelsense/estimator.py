"""The paper's two algorithms: learn to predict compressed labels, then reconstruct."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from labelsense._blocks import map_rows, row_blocks
from labelsense._labels import TopK, Vocabulary, top_k
from labelsense._progress import report, say, showing
from labelsense._typing import CSR, FloatArray
from labelsense._validation import (
    check_binary,
    check_choice,
    check_count,
    check_not_text,
    check_same_length,
    check_some_labels,
    check_texts,
)
from labelsense.compress import COMPRESSORS, Compressor
from labelsense.diagnose import Diagnosis, diagnose
from labelsense.features import is_vectoriser, make_features
from labelsense.metrics import ndcg_at_k, precision_at_k, recall_at_k
from labelsense.reconstruct import DECODERS, Decoder
from labelsense.regress import LEARNERS, Learner, RidgeLearner, SklearnLearner

MEASURE_ROWS = 4096  # rows of X that are predicted at a time
DECODE_NUMBERS = 2**24  # rows times columns of A that a decoder thread handles between two looks at Ctrl-C
THRESHOLD = 0.5


class LabelPredictor(BaseEstimator, ABC):
    """What every model offers once it can score labels. Base of the classifier and of the baselines."""

    verbose: int
    features_: Any = None  # what makes features of X, in a model that takes something else

    @abstractmethod
    def _scores(self, X: Any, at_least: int) -> CSR:
        """Return sparse scores of validated rows, for at least so many labels each where the model can."""

    def predict_scores(self, X: Any) -> CSR:
        """Return the sparse estimate of E[y given x] for each row of X, as CSR (n, d)."""
        return self._scores(self._check_features(X), 1)

    def predict_topk(self, X: Any, k: int = 5) -> TopK:
        """Return the k best labels of each row and their scores, best first, ties to the lowest column."""
        X = self._check_features(X)
        labels, scores = top_k(self._scores(X, check_count(k, "k")), k)
        return TopK(self.vocabulary_.decode_columns(labels), scores)

    def predict(self, X: Any) -> Any:
        """Return the labels whose score is at least one half: CSR, or lists if fitted on label lists."""
        scores = self.predict_scores(X)
        chosen = sp.csr_array((scores.data >= THRESHOLD, scores.indices, scores.indptr), shape=scores.shape)
        chosen.eliminate_zeros()
        return chosen.astype(np.int64) if self.vocabulary_.names is None else self.vocabulary_.lists(chosen)

    def score(self, X: Any, y: Any) -> float:
        """Return nDCG at 5. Labels that were not in the training data count as not found."""
        return self.evaluate(X, y, [5])["nDCG@5"]

    def evaluate(self, X: Any, y: Any, ks: Sequence[int] = (1, 3, 5)) -> dict[str, float]:
        """Return precision, recall and nDCG at each k, from 0 to 1: ``{"P@1": ..., "recall@1": ..., "nDCG@1": ...}``.

        Labels that were not in the training data count as not found.
        """
        X = self._check_features(X)
        truth, extra = self.vocabulary_.read_counting_unknown(y)
        check_same_length(X, truth)
        top = top_k(self._scores(X, max(ks)), max(ks))
        figures: dict[str, float] = {}
        for k in ks:
            figures[f"P@{k}"] = precision_at_k(truth, top, k)
            figures[f"recall@{k}"] = recall_at_k(truth, top, k, unseen=extra)
            figures[f"nDCG@{k}"] = ndcg_at_k(truth, top, k, unseen=extra)
        return figures

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, which :func:`labelsense.load_model` reads. No pickle is involved."""
        from labelsense.model_file import save_model  # which knows all classes, this one too

        check_is_fitted(self)
        save_model(self, path)

    def _check_training(self, X: Any, Y: Any) -> tuple[Any, CSR]:
        """Return X and the indicator matrix of Y, and remember their shapes and labels."""
        if Y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        check_not_text(X)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32])
        self.vocabulary_, Y = Vocabulary.learn(Y)
        check_same_length(X, Y)
        check_some_labels(Y)
        return X, Y

    @property
    def takes_text(self) -> bool:
        """Whether X holds texts."""
        return is_vectoriser(self.features_)

    def _check_features(self, X: Any) -> Any:
        check_is_fitted(self)
        if self.takes_text:
            check_texts(X)
        elif self.features_ is None or hasattr(self.features_, "n_features_in_"):
            check_not_text(X)
        if self.features_ is not None:
            X = self.features_.transform(X)
        return validate_data(self, X, accept_sparse="csr", reset=False, dtype=[np.float64, np.float32])

    @property
    def labels_(self) -> list[Any]:
        """The labels, in column order."""
        check_is_fitted(self)
        return list(range(self.vocabulary_.n_labels)) if self.vocabulary_.names is None else self.vocabulary_.names

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


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
    labels_ : list
        The labels in column order.

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
        learner: Any = "ridge",
        decoder: Decoder | str = "omp",
        *,
        features: Any = None,
        random_state: Any = None,
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

    def fit(self, X: Any, Y: Any) -> CompressedLabelClassifier:
        """Learn from X (n, p) and Y: an indicator matrix (n, d), sparse or dense, or one list of labels per row."""
        X, Y = self._check_training(self._learn_features(X, Y), Y)
        start = time.perf_counter()
        self.compressor_ = self._make_compressor().fit(Y)
        self.decoder_ = self._make_decoder().fit_labels(Y)
        self.decoder_.support_size(self._decoder_state())  # refuse a support that does not fit before any work
        with showing(self.verbose):
            Z = self.compressor_.operator_.compress(Y)
            say("compressed %d labels to %d measurements in %.1f s", Y.shape[1], Z.shape[1], _since(start))
            start = time.perf_counter()
            self.learner_ = self._make_learner().fit(X, Z)
            say("learned %d regressions on %d rows in %.1f s", Z.shape[1], len(Z), _since(start))
        return self

    def partial_fit(self, X: Any, Y: Any) -> CompressedLabelClassifier:
        """Learn from more rows, exactly: the model equals one fit on all rows seen, labels in the same columns.

        New labels get the next columns; there are as many as ``compressor_.operator_.capacity`` says. The learner has
        to be one that can (:class:`~labelsense.RidgeLearner` with a number for alpha).
        """
        vocabulary = None
        if "learner_" not in vars(self):
            X, Y = self._check_training(self._learn_features(X, Y), Y)
            self.compressor_ = self._make_compressor().fit(Y)
            self.decoder_ = self._make_decoder().fit_labels(Y)
            self.decoder_.support_size(self._decoder_state())
            learner, operator = self._updatable(self._make_learner()), self.compressor_.operator_
        else:
            X = self._check_features(X)
            learner = self._updatable(self.learner_)
            vocabulary, Y = self.vocabulary_.extend(Y)
            check_same_length(X, Y)
            operator = self.compressor_.operator_.for_labels(vocabulary.n_labels)
        self.learner_ = learner.partial_fit(X, operator.compress(Y))
        if vocabulary is not None:  # nothing changes before the learner has taken the rows
            self.compressor_.operator_, self.vocabulary_, self._state = operator, vocabulary, None
        return self

    def forget(self, X: Any, Y: Any) -> CompressedLabelClassifier:
        """Take back what was learned from rows: the exact inverse of ``partial_fit`` on them."""
        X = self._check_features(X)
        learner = self._updatable(self.learner_)
        Y = self.vocabulary_.read(Y)
        check_same_length(X, Y)
        learner.forget(X, self.compressor_.operator_.compress(Y))
        return self

    @staticmethod
    def _updatable(learner: Learner) -> RidgeLearner:
        if not isinstance(learner, RidgeLearner):
            raise TypeError(f"{type(learner).__name__} cannot be updated. Use RidgeLearner with a number for alpha.")
        return learner

    def measure(self, X: Any) -> FloatArray:
        """Return the predicted measurements H(x) of each row, (n, m)."""
        return self._measure(self._check_features(X))

    def _learn_features(self, X: Any, Y: Any) -> Any:
        """Return X as the features that this model learns from."""
        if self.features is None:
            self.features_ = None
            return X
        self.features_ = make_features(self.features)
        return self.features_.fit_transform(X, Y)

    def diagnose(self, X: Any, Y: Any, k: int = 5) -> Diagnosis:
        """Tell where precision is lost on rows that were not learned from, and which part to spend on.

        Labels that were not in the training data are left out.
        """
        X = self._check_features(X)
        Y, _ = self.vocabulary_.read_counting_unknown(Y)
        check_same_length(X, Y)
        check_count(k, "k")
        return diagnose(self.compressor_.operator_, self.decoder_, self._measure(X), check_binary(Y), k)

    def _scores(self, X: Any, at_least: int) -> CSR:
        state = self._decoder_state()
        largest = min(state.n_measurements, state.n_labels)
        size = max(self.decoder_.support_size(state), min(at_least, largest))
        rows = max(1, min(256, DECODE_NUMBERS // state.n_labels))
        parts = []
        with self.decoder_.one_warning() as decoder:
            for block in row_blocks(X.shape[0], MEASURE_ROWS):
                H = self._measure(X[block])

                def decode(rows: slice, H: FloatArray = H) -> CSR:
                    return decoder.path(state, H[rows], [size])[0]

                with showing(self.verbose):
                    report("decoding", block.start / X.shape[0])
                parts += map_rows(decode, len(H), rows, self.n_jobs)
        return sp.vstack(parts, format="csr")

    def _measure(self, X: Any) -> FloatArray:
        H = np.asarray(self.learner_.predict(X), dtype=np.float32)
        return np.ascontiguousarray(H.reshape(len(H), -1))

    def _decoder_state(self) -> Any:
        """Return what the decoder made of A, made once per process."""
        if self._state is None:
            self._state = self.decoder_.prepare(self.compressor_.operator_)
        return self._state

    _state: Any = None

    def __getstate__(self) -> Any:
        return {name: value for name, value in super().__getstate__().items() if name != "_state"}

    def _make_compressor(self) -> Compressor:
        if isinstance(self.compressor, Compressor):
            compressor = clone(self.compressor)
        else:
            compressor = check_choice(self.compressor, "compressor", COMPRESSORS)()
        self._state = None
        if compressor.random_state is None:
            compressor.random_state = check_random_state(self.random_state).randint(2**31)
        return compressor

    def _make_decoder(self) -> Decoder:
        if isinstance(self.decoder, Decoder):
            return clone(self.decoder)
        return check_choice(self.decoder, "decoder", DECODERS)()

    def _make_learner(self) -> Learner:
        return make_learner(self.learner, self.n_jobs)


def make_learner(learner: Any, n_jobs: int | None) -> Learner:
    """Return a fresh learner for a learner, a scikit-learn regressor or a word."""
    if isinstance(learner, Learner):
        return clone(learner)
    if isinstance(learner, BaseEstimator):
        return SklearnLearner(clone(learner), n_jobs=n_jobs)
    return check_choice(learner, "learner", LEARNERS)()


def _since(start: float) -> float:
    return time.perf_counter() - start
