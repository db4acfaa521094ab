"""What every model offers once it can score labels: the base of the classifier and of the baselines."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from labelsense._storage import require, require_array
from labelsense._typing import CSR, DoubleArray, FloatArray, IntArray, Label
from labelsense._validation import (
    check_choice,
    check_count,
    check_not_text,
    check_places,
    check_representable,
    check_same_length,
    check_some_labels,
    check_texts,
)
from labelsense.errors import InputError
from labelsense.evaluation import Evaluation, evaluate_predictions
from labelsense.features import FEATURES, EncodedTexts, is_vectoriser, make_features
from labelsense.labels import TopK, Vocabulary, count_labels, top_k
from labelsense.metrics import above, ndcg_at_k, propensity_weights, ranking_figures
from labelsense.model_file import save_model
from labelsense.regress import LEARNERS, Learner, SklearnLearner

THRESHOLD = 0.5
# Held while a model changes, and while it makes what its predictions use until the next change. One for all models:
# the predictions of a model that does not change do without it.
changing = threading.RLock()


class LabelPredictor(BaseEstimator, ABC):
    """A model that scores labels. Subclasses learn, and say how."""

    learner: Any
    features: Any
    n_jobs: int | None
    verbose: int
    vocabulary_: Vocabulary
    features_: Any = None  # what makes features of X, in a model that takes something else
    label_counts_: IntArray | None = None  # rows learned from that have each label; files of before have none
    n_samples_seen_: int | None = None  # rows learned from

    _scores_more: ClassVar[bool] = False  # whether there are scores of more labels if more are asked for
    _words: ClassVar[dict[str, dict[str, Any]]] = {"learner": LEARNERS, "features": FEATURES}

    @abstractmethod
    def _scores(self, X: Any, at_least: int) -> CSR:
        """Return sparse scores of validated rows, of at least so many labels each where the model has them.

        More labels never change the scores of others.
        """

    def predict_scores(self, X: Any) -> CSR:
        """Return the sparse estimate of E[y given x] for each row of X, as CSR (n, d)."""
        return self._scores(self._check_features(X), 1)

    def decision_function(self, X: Any) -> CSR:
        """Return what ranks the labels: by default ``predict_scores``, by the name by which a ``Pipeline`` has it."""
        return self._rank(self.predict_scores(X))

    def predict_topk(
        self, X: Any, k: int = 5, *, allow: Iterable[Label] | None = None, block: Iterable[Label] | None = None
    ) -> TopK:
        """Return the k best labels of each row and their scores, best first, ties to the lowest column.

        The first labels do not depend on k. There are min(k, d) places; those beyond the labels that the decoder
        returns for a row, its ``n_nonzero``, are empty: label -1, or None, and score 0.

        Parameters
        ----------
        X : like the X of ``fit``
            Rows.
        k : int
            How many labels, at most.
        allow, block : list of labels, optional
            Labels to choose from, and labels to leave out: column numbers where labels have no names. They are taken
            out of the scores; a larger ``n_nonzero`` scores more labels, and leaves more.
        """
        check_is_fitted(self)
        k = check_count(k, "k")
        allowed = None if allow is None else self.vocabulary_.columns_of(allow, "allow")
        blocked = None if block is None else self.vocabulary_.columns_of(block, "block")
        scores = self._rank(self._scores(self._check_features(X), k))
        if allow is not None or block is not None:
            scores = _restrict(scores, allowed, blocked)
        labels, values = top_k(scores, k)
        return TopK(self.vocabulary_.decode_columns(labels), values)

    def predict(self, X: Any) -> CSR | list[list[Label]]:
        """Return the labels whose score is at least one half: CSR, or lists of labels if they have names.

        They have if the model was fitted on label lists, or on a data frame with the labels as columns.
        """
        chosen = self._choose(self.predict_scores(X))
        return chosen if self.vocabulary_.names is None else self.vocabulary_.lists(chosen)

    def _rank(self, scores: CSR) -> CSR:
        """Return what ranks labels, given their scores."""
        return scores

    def _choose(self, scores: CSR) -> CSR:
        """Return the labels to predict, given the scores of some rows, as an indicator matrix."""
        return above(scores, THRESHOLD)

    def score(self, X: Any, y: Any) -> float:
        """Return nDCG at 5. Labels that were not in the training data count as not found."""
        X, Y, unseen = self._check_test(X, y)
        return ndcg_at_k(Y, self._rank(self._scores(X, 5)), 5, unseen=unseen)

    def evaluate(self, X: Any, y: Any, ks: Sequence[int] = (1, 3, 5)) -> Evaluation:
        """Return how good the predictions are, from 0 to 1: a dictionary, which ``print`` shows as a table.

        At each k: ``"P@1"`` (precision), ``"recall@1"``, ``"nDCG@1"``, ``"PSP@1"`` (propensity-scored precision, by the
        counts of the training rows) and ``"coverage@1"`` (the share of the labels that are among the k best of some
        row). Of ``predict``: ``"F1"`` (the mean over rows), ``"F1 micro"``, ``"F1 macro"``, ``"precision"``,
        ``"recall"``, ``"predicted labels"`` (of a row) and ``"empty rows"`` (the share that gets no label). Of
        ``predict_proba``, in a model that has it: ``"ECE"`` (calibration error), ``"expected labels"`` (the sum of the
        probabilities of a row) and ``"missed"`` (the share of the true labels that have no probability). ``"labels"``
        is how many a row has. See :class:`~labelsense.evaluation.Evaluation` for what else is in it.

        Labels that were not in the training data count as not found, places without a label as misses.
        """
        ks = [check_count(k, "each of ks") for k in ks]
        if not ks:
            raise InputError("ks must name at least one k. Got none.")
        return self._evaluate(*self._check_test(X, y), ks)

    def _evaluate(self, X: Any, Y: CSR, unseen: Any, ks: Sequence[int] = (1, 3, 5)) -> Evaluation:
        """Return what ``evaluate`` does for features, known labels and the numbers of those that are unknown."""
        scores = ranking = self._scores(X, 1)
        if self._scores_more and np.diff(scores.indptr).min() < min(max(ks), Y.shape[1]):
            ranking = self._scores(X, max(ks))
        return evaluate_predictions(
            Y,
            unseen,
            ks,
            self._rank(ranking),
            self._choose(scores),
            scores if hasattr(self, "predict_proba") else None,
            self._propensity_weights(),
            self.labels_,
        )

    def _propensity_weights(self) -> DoubleArray | None:
        """Return what a hit of each label counts, (d + 1,), that of labels without column last; None if not known."""
        if self.label_counts_ is None or self.n_samples_seen_ is None:
            return None
        return propensity_weights(np.append(self.label_counts_, 0), self.n_samples_seen_)

    def _figures(self, X: Any, Y: CSR, unseen: Any, ks: Sequence[int] = (1, 3, 5)) -> dict[str, float]:
        """Return those figures of ``_evaluate`` that are means over rows."""
        figures = ranking_figures(Y, top_k(self._scores(X, max(ks)), max(ks)), ks, unseen)
        return {name: value for name, value in figures.items() if name.partition("@")[0] in ("P", "recall", "nDCG")}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, which :func:`labelsense.load_model` reads. No pickle is involved."""
        check_is_fitted(self)
        with changing:
            save_model(self, path)

    def _check_complete(self) -> None:
        """Refuse parts that do not fit together, as a file may have them, before any of them is used."""
        require(isinstance(self.vocabulary_, Vocabulary), "it must have labels")
        if self.label_counts_ is not None:
            require_array(self.label_counts_, "label_counts_", "int64", (self.vocabulary_.n_labels,))
            require(self.label_counts_.min() >= 0, "label_counts_ must not be negative")
        seen = self.n_samples_seen_
        require(seen is None or (type(seen) is int and seen > 0), "n_samples_seen_ must be a whole number")
        transform = getattr(self.features_, "transform", None)
        require(self.features_ is None or callable(transform), "features_ must be a transformer")
        self._check_sizes()
        if self.takes_text:
            self._check_features([""])

    @abstractmethod
    def _check_sizes(self) -> None:
        """Refuse learners that do not fit the labels."""

    @property
    def labels_(self) -> list[Label]:
        """The labels, in column order."""
        return self.classes_.tolist()

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels in column order, as an array."""
        check_is_fitted(self)
        return self.vocabulary_.as_array()

    @property
    def takes_text(self) -> bool:
        """Whether X holds texts."""
        return is_vectoriser(self.features_) or isinstance(self.features_, EncodedTexts)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; with ``deep``, also those of the parts, given as objects or as words."""
        params = super().get_params(deep)
        for name, words in self._words.items() if deep else ():
            word = params[name]
            part = words[word]() if isinstance(word, str) and word in words else None
            if part is not None:
                params |= {f"{name}__{key}": value for key, value in part.get_params().items()}
        return params

    def set_params(self, **params: Any) -> LabelPredictor:
        """Set parameters by name. ``decoder__n_nonzero`` makes an object of a decoder that was given as a word."""
        super().set_params(**{name: value for name, value in params.items() if "__" not in name})
        nested = {name: value for name, value in params.items() if "__" in name}
        for name in {name.partition("__")[0] for name in nested} & self._words.keys():
            word = getattr(self, name)
            if isinstance(word, str):
                setattr(self, name, check_choice(word, name, self._words[name])())
        return super().set_params(**nested)

    def _make_learner(self) -> Learner:
        return make_learner(self.learner, self.n_jobs)

    def _check_training(self, X: Any, y: Any) -> tuple[Any, CSR, Vocabulary]:
        """Return X as features, the indicator matrix of y, and its labels; remember what X was made of."""
        if y is None:
            raise InputError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        self.features_ = None if self.features is None else make_features(self.features)
        X = self._read_rows(X)
        if self.features_ is None:
            X = self._check_rows(X, reset=True)
        vocabulary, Y = Vocabulary.learn(y)
        check_some_labels(Y)
        check_same_length(X, Y)
        if self.features_ is not None:
            X = self._check_rows(self.features_.fit_transform(X, y), reset=True)
        self.label_counts_, self.n_samples_seen_ = count_labels(Y), Y.shape[0]
        return X, Y, vocabulary

    def _check_test(self, X: Any, y: Any) -> tuple[Any, CSR, Any]:
        """Return X as features, the indicator matrix of y, and how many labels of each row the model does not know."""
        X = self._check_features(X)
        Y, unseen = self.vocabulary_.read_counting_unknown(y)
        check_same_length(X, Y)
        return X, Y, unseen

    def _check_features(self, X: Any) -> Any:
        """Return X as the features that the model was fitted on."""
        check_is_fitted(self)
        X = self._read_rows(X)
        return self._check_rows(X if self.features_ is None else self.features_.transform(X), reset=False)

    def _read_rows(self, X: Any) -> Any:
        """Return X as the transformer of this model takes it, or as features."""
        if self.takes_text:
            return check_texts(X)
        if self.features_ is None or hasattr(self.features_, "n_features_in_"):
            check_not_text(X)
        return check_places(X, "X") if sp.issparse(X) else X

    def _check_rows(self, X: Any, reset: bool) -> Any:
        try:
            X = validate_data(
                self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=reset, ensure_all_finite=False
            )
        except ValueError as error:
            raise InputError(str(error)) from None
        check_representable(X, type(self).__name__)
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


def make_learner(learner: Any, n_jobs: int | None) -> Learner:
    """Return a fresh learner for a learner, a scikit-learn regressor or a word."""
    if isinstance(learner, Learner):
        return clone(learner)
    if isinstance(learner, BaseEstimator):
        return SklearnLearner(clone(learner), n_jobs=n_jobs)
    return check_choice(learner, "learner", LEARNERS)()


def learn(learner: Learner, step: str, X: Any, Z: Any, sample_weight: Any = None) -> Learner:
    """Take a step of a learner, "fit", "partial_fit" or "forget", on rows that have been checked."""
    take = getattr(learner, step)
    with config_context(assume_finite=True):
        return take(X, Z) if sample_weight is None else take(X, Z, sample_weight=sample_weight)


def predict_measurements(learner: Learner, X: Any) -> FloatArray:
    """Return what a learner predicts for rows that have been checked, (n, m)."""
    with config_context(assume_finite=True):
        H = np.asarray(learner.predict(X), dtype=np.float32)
    return np.ascontiguousarray(H.reshape(X.shape[0], -1))


def _restrict(scores: CSR, allowed: IntArray | None, blocked: IntArray | None) -> CSR:
    """Return the scores of the columns that are allowed, and of none that is blocked."""
    kept = np.ones(scores.nnz, bool) if allowed is None else np.isin(scores.indices, allowed)
    if blocked is not None:
        kept &= ~np.isin(scores.indices, blocked)
    indptr = np.concatenate([[0], np.cumsum(kept)])[scores.indptr]
    return sp.csr_array((scores.data[kept], scores.indices[kept], indptr), shape=scores.shape)
