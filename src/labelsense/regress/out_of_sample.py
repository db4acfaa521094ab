"""Predictions, out of sample, of rows that are not in memory: they are not either."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from labelsense._checkpoint import State
from labelsense._chunks import Chunks, split
from labelsense._progress import log
from labelsense._typing import DoubleArray, FloatArray, IntArray
from labelsense.regress.chunked import ChunkedDesign, ChunkedTargets, Part, Targets
from labelsense.regress.in_memory import product
from labelsense.regress.primal import leave_one_out
from labelsense.regress.ridge import RidgeLearner

STEP = "measurements out of sample"


def fit_out_of_sample(
    learner: RidgeLearner, X: ChunkedDesign, Z: ChunkedTargets, weights: DoubleArray | None = None
) -> Chunks:
    """Fit a learner to rows in chunks, and return what its ``fit_out_of_sample`` does, in chunks of arrays (n, m).

    It is the same to rounding, or to the tolerance of conjugate gradients. Weights must not be zero.
    """
    leverage, m = learner.fit_leverages(X, Z, weights), Z.shape[1]
    log("measurements out of sample")
    if leverage is not None:
        left_out = X.map(_LeaveOneOut(_Linear.of(learner), Z.targets), STEP, leverage)
        return left_out.then(_Shape(m), [None] * len(left_out.lengths), left_out.lengths)
    parts, fold = [], np.empty(X.shape[0], np.int8)
    settings = learner.unfitted()
    for number, (rest, out) in enumerate(settings._folds(X.shape[0])):
        fold[out] = number
        model = clone(settings).fit(X.rows(rest), Z.part(rest), None if weights is None else weights[rest])
        parts.append(X.rows(out).map(_Linear.of(model), STEP))
    lengths = X.chunks().lengths
    return parts[0].paired(*parts[1:]).then(_Merge(m), split(fold, lengths), lengths)


@dataclass(frozen=True)
class _Linear:
    """The predictions of ridge, as one array in a row."""

    coef: FloatArray
    intercept: FloatArray

    @classmethod
    def of(cls, learner: RidgeLearner) -> _Linear:
        return cls(learner.coef_, learner.intercept_)

    def __call__(self, chunk: Any, part: Part) -> State:
        return {"H": self.predict(chunk.X if part.rows is None else chunk.X[part.rows]).ravel()}

    def predict(self, X: Any) -> FloatArray:
        """Return (n, m)."""
        H = product(X.astype(np.float32, copy=False), self.coef)
        H += self.intercept
        return H


@dataclass(frozen=True)
class _LeaveOneOut:
    """Predictions of each row as if it had not been learned, given its leverage."""

    linear: _Linear
    targets: Targets

    def __call__(self, chunk: Any, part: Part) -> State:
        Z = self.targets.of(chunk, part.rows)
        H = self.linear(chunk, part)["H"].reshape(Z.shape)
        return {"H": (Z - leave_one_out(Z - H, part.other)).ravel()}


@dataclass(frozen=True)
class _Shape:
    n_targets: int

    def __call__(self, chunk: State, item: None) -> FloatArray:
        return chunk["H"].reshape(-1, self.n_targets)


@dataclass(frozen=True)
class _Merge:
    """The predictions of several folds, put where their rows are."""

    n_targets: int

    def __call__(self, chunks: tuple[State, ...], fold: IntArray) -> FloatArray:
        H = np.empty((len(fold), self.n_targets), np.float32)
        for number, chunk in enumerate(chunks):
            H[fold == number] = chunk["H"].reshape(-1, self.n_targets)
        return H
