"""Boosted trees: whether a pair is right, by questions about its features."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from labelsense import _kernels
from labelsense._blocks import map_rows
from labelsense._progress import report_progress
from labelsense._storage import Parts, require, require_array, storable
from labelsense._typing import DoubleArray, FloatArray, IntArray

ROUNDS, LEAVES, RATE, LEAST_ROWS, PENALTY = 50, 31, 0.12, 100, 10.0
SHARE, LEAST_FEATURES = 0.3, 8  # of the features, that a tree may ask for
ROUNDS_AT_ONCE = 10  # between two looks at Ctrl-C
TREE_ROWS = 4096
MOST_LEAVES = 32  # that the kernel has bits for


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
        booster = _kernels.Booster(
            np.ascontiguousarray(F),
            truth.view(np.uint8),
            RATE,
            LEAVES,
            min(LEAST_ROWS, max(1, len(F) // 20)),
            PENALTY,
            min(F.shape[1], max(LEAST_FEATURES, round(SHARE * F.shape[1]))),
        )
        for done in range(0, ROUNDS, ROUNDS_AT_ONCE):
            report_progress("trees", done / ROUNDS)
            booster.grow(ROUNDS_AT_ONCE)
        return cls(*booster.trees())

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
        require(forward, "children must come after their parents")  # so that every tree ends
        leaves = np.ones(n, np.int64)
        for node in np.flatnonzero(inner)[::-1]:
            leaves[node] = min(MOST_LEAVES + 1, leaves[left[node]] + leaves[left[node] + 1])
        require(bool(leaves[roots].max() <= MOST_LEAVES), f"trees must have at most {MOST_LEAVES} leaves")
        return cls(float(parts["baseline"]), roots, feature, value, left)
