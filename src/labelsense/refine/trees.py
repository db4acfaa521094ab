"""Boosted trees as arrays: trained by scikit-learn, kept and evaluated without it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from labelsense import _kernels
from labelsense._blocks import map_rows
from labelsense._storage import Parts, require, require_array, storable
from labelsense._typing import DoubleArray, FloatArray, IntArray

ROUNDS, LEAVES, RATE, LEAST_ROWS, PENALTY, SHARE = 150, 15, 0.05, 100, 10.0, 0.3
TREE_ROWS = 4096


@storable()
class BoostedTrees:
    """The log odds of a pair as a sum over small trees.

    Parameters
    ----------
    baseline : float
    roots : array (trees,)
        The first node of each tree.
    feature : array (nodes,)
        What a node asks for, -1 in a leaf.
    value : array (nodes,)
        The threshold up to which a node sends to the left, or what a leaf adds.
    left : array (nodes,)
        The left child of a node; the right one follows it.
    """

    def __init__(
        self,
        baseline: float,
        roots: IntArray,
        feature: NDArray[np.int32],
        value: DoubleArray,
        left: NDArray[np.int32],
    ) -> None:
        self.baseline, self.roots, self.feature, self.value, self.left = baseline, roots, feature, value, left

    @classmethod
    def train(cls, F: FloatArray, truth: NDArray[np.bool_]) -> BoostedTrees:
        """Learn which pairs are right from their features F (pairs, f)."""
        learner = HistGradientBoostingClassifier(
            max_iter=ROUNDS,
            learning_rate=RATE,
            max_leaf_nodes=LEAVES,
            min_samples_leaf=min(LEAST_ROWS, max(1, len(F) // 20)),
            l2_regularization=PENALTY,
            max_features=SHARE,
            early_stopping=False,
            random_state=0,
        )
        with threadpool_limits(1, "openmp"):  # its threads wait for each other: several fits at a time are faster
            model = learner.fit(F, truth)
        trees = [_nodes(predictor.nodes) for (predictor,) in model._predictors]
        sizes = np.cumsum([0, *(len(feature) for feature, _, _ in trees)])
        left = np.concatenate([part + start for (_, _, part), start in zip(trees, sizes[:-1], strict=True)])
        feature, value = (np.concatenate([tree[i] for tree in trees]) for i in (0, 1))
        return cls(float(np.ravel(model._baseline_prediction)[0]), sizes[:-1], feature, value, left.astype(np.int32))

    def log_odds(self, F: FloatArray) -> DoubleArray:
        """Return the log odds of each pair."""
        out = np.full(len(F), self.baseline)

        def add(rows: slice) -> None:
            _kernels.add_trees(self.roots, self.feature, self.value, self.left, F[rows], out[rows])

        map_rows(add, len(F), TREE_ROWS, -1)
        return out

    def _to_parts(self) -> Parts:
        return dict(vars(self))

    @classmethod
    def _from_parts(cls, parts: Parts) -> BoostedTrees:
        roots, feature, value, left = (parts[name] for name in ("roots", "feature", "value", "left"))
        require_array(feature, "the features of trees", "int32", (None,))
        n = len(feature)
        require_array(roots, "the roots of trees", "int64", (None,))
        require_array(value, "the values of trees", "float64", (n,), finite=True)
        require_array(left, "the children of trees", "int32", (n,))
        require(bool(roots.min() >= 0 and roots.max() < n), "trees must begin at a node")
        inner = feature >= 0
        forward = bool((left[inner] > np.flatnonzero(inner)).all() and (left[inner] < n - 1).all())
        require(forward, "children must come after their parents")  # so that every walk ends
        return cls(float(parts["baseline"]), roots, feature, value, left)


def _nodes(nodes: Any) -> tuple[NDArray[np.int32], DoubleArray, NDArray[np.int32]]:
    """Return a tree of scikit-learn with the children of each node next to each other, after it."""
    order, places = [0], {0: 0}
    for node in order:  # which grows meanwhile
        if not nodes["is_leaf"][node]:
            for child in (nodes["left"][node], nodes["right"][node]):
                places[int(child)] = len(order)
                order.append(int(child))
    leaf = nodes["is_leaf"][order].astype(bool)
    feature = np.where(leaf, -1, nodes["feature_idx"][order]).astype(np.int32)
    value = np.where(leaf, nodes["value"][order], nodes["num_threshold"][order])
    left = np.array([0 if end else places[int(nodes["left"][i])] for i, end in zip(order, leaf, strict=True)], np.int32)
    return feature, value.astype(np.float64), left
