"""The probability that a candidate is right: one small model for all labels, on what the sources say of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from labelsense._storage import Parts, require, require_array, storable
from labelsense._typing import DoubleArray, FloatArray
from labelsense.refine.trees import BoostedTrees


@storable()
class PooledModel:
    """The mean of the probabilities of a logistic regression and of boosted trees.

    The first cannot overfit, the second sees what is not linear; their mean is better than either where rows are few,
    and not much worse than the better one elsewhere.

    Parameters
    ----------
    mean, scale, weights : arrays (f,)
        Of the features, and the weights of the standardised ones.
    intercept : float
    trees : BoostedTrees
    """

    def __init__(
        self, mean: DoubleArray, scale: DoubleArray, weights: DoubleArray, intercept: float, trees: BoostedTrees
    ) -> None:
        self.mean, self.scale, self.weights, self.intercept, self.trees = mean, scale, weights, intercept, trees

    @classmethod
    def train(cls, F: FloatArray, truth: NDArray[np.bool_]) -> PooledModel:
        """Learn from features F (pairs, f) that are out of sample, and which of the pairs are right."""
        mean, scale = F.mean(axis=0, dtype=np.float64), F.std(axis=0, dtype=np.float64)
        scale[scale == 0] = 1
        linear = LogisticRegression(solver="newton-cholesky", max_iter=100).fit((F - mean) / scale, truth)
        return cls(mean, scale, linear.coef_[0], float(linear.intercept_[0]), BoostedTrees.train(F, truth))

    def predict(self, F: FloatArray) -> FloatArray:
        """Return the probability of each pair."""
        slope = self.weights / self.scale
        linear = F @ slope + (self.intercept - self.mean @ slope)
        return ((expit(linear) + expit(self.trees.log_odds(F))) / 2).astype(np.float32)

    def _to_parts(self) -> Parts:
        return dict(vars(self))

    @classmethod
    def _from_parts(cls, parts: Parts) -> PooledModel:
        weights = parts["weights"]
        require_array(weights, "the weights of the pooled model", "float64", (None,), finite=True)
        for name in ("mean", "scale"):
            require_array(parts[name], f"the {name} of the pooled model", "float64", weights.shape, finite=True)
        require(isinstance(parts["trees"], BoostedTrees), "the pooled model must have trees")
        require(int(parts["trees"].feature.max()) < len(weights), "trees must ask for features that are there")
        return cls(parts["mean"], parts["scale"], weights, float(parts["intercept"]), parts["trees"])
