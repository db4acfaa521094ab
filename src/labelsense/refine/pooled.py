"""The probability that a candidate is right: one small model for all labels, on what the sources say of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from labelsense._blocks import map_rows, plain_algebra
from labelsense._storage import Parts, require, require_array, storable
from labelsense._typing import DoubleArray, FloatArray, IntArray
from labelsense.refine.trees import BoostedTrees

FOLDS = 2  # by which the model is told what it is worth: with three it was no better
SURE = 1e-6  # the least weight of a score that is all
MOST_ODDS = 30  # log odds of pairs that are learned from
LINEAR_PAIRS = 50_000  # that a few dozen weights are learned from, at most
LIKELY = 0.02  # trees judge the pairs that the logistic regression gives so much


@storable()
class PooledModel:
    """A mean of the log odds of a logistic regression and of boosted trees, calibrated out of sample.

    The first cannot overfit, the second sees what is not linear. What each counts in the mean is learned out of sample,
    too: with few pairs it is about even, with many the trees are nearly all. The first alone judges what it finds very
    unlikely: that is most pairs.

    Parameters
    ----------
    mean, scale, weights : arrays (f,)
        Of the features, and the weights of the standardised ones.
    intercept : float
    trees : BoostedTrees, optional
        None where a logistic regression is all.
    share : float
        What the trees count in the mean, from 0 to 1.
    slope, offset : float
        What makes calibrated log odds of those of the mean (Platt scaling).
    """

    def __init__(
        self,
        mean: DoubleArray,
        scale: DoubleArray,
        weights: DoubleArray,
        intercept: float,
        trees: BoostedTrees | None = None,
        share: float = 1.0,
        slope: float = 1.0,
        offset: float = 0.0,
    ) -> None:
        self.mean, self.scale, self.weights, self.intercept, self.trees = mean, scale, weights, intercept, trees
        self.share, self.slope, self.offset = share, slope, offset

    @classmethod
    def train(cls, F: FloatArray, truth: NDArray[np.bool_], row: IntArray) -> tuple[PooledModel, FloatArray]:
        """Learn from features F (pairs, f) that are out of sample, which of the pairs are right, and their rows.

        Returns the model, and the probabilities of the pairs by models that have not learned from their rows.
        """
        fold = row % FOLDS
        parts = [fold != number for number in (FOLDS, *range(FOLDS))]  # all of them first, which takes longest

        def fit(one: slice) -> PooledModel:
            part = parts[one.start]
            return cls._fit(F[part], truth[part])

        with plain_algebra:
            final, *models = map_rows(fit, len(parts), 1, -1)
        linear, more = np.empty(len(F)), np.empty(len(F))
        for model, part in zip(models, parts[1:], strict=True):
            linear[~part], more[~part] = model._odds(F[~part])
        linear.clip(-MOST_ODDS, MOST_ODDS, out=linear)  # so that none counts more than all others
        final.share = _fit_share(linear, more, truth)
        odds = linear + final.share * more
        final.slope, final.offset = fit_platt(odds, truth)
        return final, expit(final.slope * odds + final.offset).astype(np.float32)

    @classmethod
    def train_on_one(cls, F: FloatArray, truth: NDArray[np.bool_], column: int) -> tuple[PooledModel, FloatArray]:
        """Learn from one of the features only: probabilities in the order of a score."""
        f = F.shape[1]
        slope, offset = fit_platt(F[:, column].astype(np.float64), truth)
        weights = np.zeros(f)
        weights[column] = max(slope, SURE)  # never against it
        model = cls(np.zeros(f), np.ones(f), weights, offset)
        return model, model.predict(F)

    @classmethod
    def _fit(cls, F: FloatArray, truth: NDArray[np.bool_]) -> PooledModel:
        some = slice(None, None, max(1, -(-len(F) // LINEAR_PAIRS)))
        model = cls._fit_linear(F[some].astype(np.float64), truth[some])
        likely = model._linear(F) >= logit(LIKELY)
        if 0 < truth[likely].sum() < likely.sum():
            model.trees = BoostedTrees.train(F[likely], truth[likely])
        return model

    @classmethod
    def _fit_linear(cls, F: DoubleArray, truth: NDArray[np.bool_]) -> PooledModel:
        mean, scale = F.mean(axis=0), F.std(axis=0)
        scale[scale == 0] = 1
        if truth.all() or not truth.any():
            return cls(mean, scale, np.zeros(F.shape[1]), _share_log_odds(truth))
        linear = LogisticRegression(solver="newton-cholesky", max_iter=100).fit((F - mean) / scale, truth)
        return cls(mean, scale, linear.coef_[0], float(linear.intercept_[0]))

    def predict(self, F: FloatArray) -> FloatArray:
        """Return the probability of each pair."""
        linear, more = self._odds(F)
        return expit(self.slope * (linear + self.share * more) + self.offset).astype(np.float32)

    def _odds(self, F: FloatArray) -> tuple[DoubleArray, DoubleArray]:
        """Return the log odds of each pair by the logistic regression, and what those of the trees are beyond."""
        linear = self._linear(F)
        more = np.zeros(len(F))
        if self.trees is not None:
            likely = np.flatnonzero(linear >= logit(LIKELY))
            more[likely] = self.trees.log_odds(F[likely]) - linear[likely]
        return linear, more

    def _linear(self, F: FloatArray) -> DoubleArray:
        """Return the log odds of each pair by the logistic regression."""
        with np.errstate(all="ignore"):
            slope = self.weights / self.scale
            parts = F @ slope.astype(np.float32)  # a copy of F in double would cost more than all the rest
            odds: DoubleArray = parts + (self.intercept - self.mean @ slope)
        return np.nan_to_num(odds, copy=False)  # where huge scores speak for and against

    def _to_parts(self) -> Parts:
        return dict(vars(self))

    @classmethod
    def _from_parts(cls, parts: Parts) -> PooledModel:
        weights, trees = parts["weights"], parts["trees"]
        require_array(weights, "the weights of the pooled model", "float64", (None,), finite=True)
        for name in ("mean", "scale"):
            require_array(parts[name], f"the {name} of the pooled model", "float64", weights.shape, finite=True)
        require(bool((parts["scale"] > 0).all()), "the scale of the pooled model must be positive")
        if trees is not None:
            require(isinstance(trees, BoostedTrees), "the pooled model must have trees")
            require(int(trees.feature.max()) < len(weights), "trees must ask for features that are there")
        # Files of before have the mean of both.
        told = parts["intercept"], parts.get("share", 0.5), parts["slope"], parts["offset"]
        numbers = [float(number) for number in told]
        require(bool(np.isfinite(numbers).all()), "the pooled model must be of finite numbers")
        return cls(parts["mean"], parts["scale"], weights, numbers[0], trees, *numbers[1:])


def _share_log_odds(truth: NDArray[np.bool_]) -> float:
    return float(logit((truth.sum() + 0.5) / (len(truth) + 1)))


def _fit_share(linear: DoubleArray, more: DoubleArray, truth: NDArray[np.bool_]) -> float:
    """Return what ``more`` counts in the best log odds of the truth, as a share of what ``linear`` does."""
    told = more != 0
    if not 0 < truth[told].sum() < told.sum():
        return 0.0
    both = np.stack([linear[told], more[told]], axis=1)
    first, second = LogisticRegression(C=1e3, solver="newton-cholesky").fit(both, truth[told]).coef_[0]
    return float(np.clip(second / first, 0, 1)) if first > 0 else 1.0


def fit_platt(odds: DoubleArray, truth: NDArray[np.bool_]) -> tuple[float, float]:
    """Return slope and offset of the logistic regression of the truth on one number."""
    scale = float(odds.std())
    if truth.all() or not truth.any() or scale == 0:
        return 0.0, _share_log_odds(truth)
    model = LogisticRegression(C=1e3, solver="newton-cholesky").fit(odds[:, None] / scale, truth)
    return float(model.coef_[0, 0]) / scale, float(model.intercept_[0])
