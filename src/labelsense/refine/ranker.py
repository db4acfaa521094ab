"""One linear classifier per label, trained on the rows for which the label is a candidate."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from labelsense import _kernels
from labelsense._blocks import map_rows
from labelsense._progress import log, report_progress
from labelsense._storage import Parts, require, require_array, storable
from labelsense._typing import CSR, FloatArray, IntArray
from labelsense.refine.candidates import Candidates

BLOCK_PAIRS = 2**14  # pairs of a row and a label that a thread learns from between two looks at Ctrl-C
SMALLEST = 0.02  # a third of the weights of text are larger, and they do as well

Arrays = tuple[Any, Any, Any]  # of CSR: int64 starts, int32 columns, float32 values


class Settings(NamedTuple):
    """How classifiers are learned.

    Attributes
    ----------
    C : float
        The weight of errors.
    tol : float
        Stop at this largest violation of the optimality conditions.
    max_rounds : int
        Passes over the rows of a label, at most.
    smallest : float
        Leave out weights below, as a share of the label's largest one.
    """

    C: float = 1.0
    tol: float = 0.5  # with a fifth of it the precision is the same, for half as much time again
    max_rounds: int = 300
    smallest: float = SMALLEST


USUAL = Settings()


@storable()
class Ranker:
    """w_j and b_j of each label j: a support vector machine with squared hinge loss.

    Equivalent to ``sklearn.svm.LinearSVC(C=C, intercept_scaling=1)`` on the rows of each label.

    Parameters
    ----------
    weights : CSR (d, p)
        Those that are not small.
    bias : array (d,)
    """

    def __init__(self, weights: CSR, bias: FloatArray) -> None:
        self.weights, self.bias = compact(weights), bias

    @classmethod
    def train(cls, X: CSR, Y: CSR, candidates: Candidates, settings: Settings = USUAL) -> Ranker:
        """Learn to tell, for each label, the rows that have it from the others for which it is a candidate.

        Parameters
        ----------
        X : CSR (n, p) of float32
        Y : CSR (n, d)
            1 where a row has a label, candidate or not.
        candidates : Candidates
            Of the n rows.
        settings : Settings
        """
        return cls.train_twice(X, Y, candidates, X.shape[0], settings)[1]

    @classmethod
    def train_twice(
        cls, X: CSR, Y: CSR, candidates: Candidates, n_first: int, settings: Settings = USUAL
    ) -> tuple[Ranker, Ranker]:
        """Do what :meth:`train` does for the first rows, then go on with all; return both."""
        return cls.train_labels(X, *rows_of_labels(Y, candidates), n_first, settings)

    @classmethod
    def train_labels(
        cls,
        X: CSR,
        starts: IntArray,
        rows: Any,
        has: Any,
        n_first: int,
        settings: Settings = USUAL,
        first: int = 0,
    ) -> tuple[Ranker, Ranker]:
        """Learn the labels from the first one on, given the rows of each and which of these have it.

        The result for a label depends on nothing else, but for its number.

        Parameters
        ----------
        X : CSR (n, p) of float32
        starts : array (d + 1,)
            Where the rows of each label start; those of labels before the first one are empty.
        rows, has : arrays
            As :func:`rows_of_labels` returns them.
        n_first : int
            How many rows of X the first of the two results is learned from.
        settings : Settings
        first : int
            The first label to learn.
        """
        squares = np.zeros(X.shape[0])
        np.add.at(squares, np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), np.square(X.data, dtype=np.float64))
        arrays = csr_arrays(X)
        d = len(starts) - 1
        bounds = bounds_of_blocks(starts, first)

        def learn(piece: slice) -> Any:
            report_progress("classifiers of labels", float(starts[bounds[piece.start]] / max(1, starts[-1])))
            begin, end = int(bounds[piece.start]), int(bounds[piece.stop])
            C, tol, max_rounds, smallest = settings
            return _kernels.train_ranker(
                *arrays, squares, X.shape[1], starts, rows, has, begin, end, n_first, C, tol, max_rounds, smallest
            )

        parts = map_rows(learn, len(bounds) - 1, 1, -1)
        unsettled = sum(part[2] for part in parts)
        log("ranker: %d of %d classifiers were still changing at the last round", unsettled, d - first)
        whole = cls._of_arrays([part[0] for part in parts], X.shape[1])
        return (cls._of_arrays([part[1] for part in parts], X.shape[1]) if n_first < X.shape[0] else whole), whole

    @classmethod
    def _of_arrays(cls, parts: list[Any], n_features: int) -> Ranker:
        """Return the classifiers of consecutive labels, as the kernel gives their weights."""
        data, indices, starts, bias = zip(*parts, strict=True)
        indptr = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(part) for part in starts]))])
        biases = np.concatenate(bias)
        shape = len(biases), n_features
        return cls(compact_csr(np.concatenate(data), np.concatenate(indices), indptr, shape), biases)

    @classmethod
    def join(cls, parts: list[Ranker]) -> Ranker:
        """Return the classifiers of consecutive labels as one. The list is emptied, so that nothing is there twice."""
        if len(parts) == 1:
            return parts.pop()
        n_features = parts[0].weights.shape[1]
        ends = np.cumsum([part.weights.nnz for part in parts])
        starts = [
            np.zeros(1, np.int64),
            *(end - part.weights.nnz + part.weights.indptr[1:] for part, end in zip(parts, ends, strict=True)),
        ]
        bias = np.concatenate([part.bias for part in parts])
        data, indices = np.empty(ends[-1], np.float32), np.empty(ends[-1], np.int32)
        while parts:
            weights = parts.pop().weights
            place = slice(ends[len(parts)] - weights.nnz, ends[len(parts)])
            data[place], indices[place] = weights.data, weights.indices
        return cls(compact_csr(data, indices, np.concatenate(starts), (len(bias), n_features)), bias)

    def largest(self, most: float) -> Ranker:
        """Return classifiers with no more than so many weights: the largest, beside the largest one of their label."""
        weights = self.weights
        if weights.nnz <= most:
            return self
        counts = np.diff(weights.indptr)
        tops = np.maximum.reduceat(np.abs(weights.data), weights.indptr[:-1][counts > 0])
        shares = np.abs(weights.data) / np.repeat(tops, counts[counts > 0])
        kept = shares > np.partition(shares, -int(most) - 1)[-int(most) - 1]
        starts = np.concatenate([[0], np.cumsum(kept)])[weights.indptr]
        return Ranker(compact_csr(weights.data[kept], weights.indices[kept], starts, weights.shape), self.bias)

    def margins(self, X: CSR, candidates: Candidates) -> FloatArray:
        """Return w_j'x_i + b_j of each pair of a row i of X and a candidate j."""
        out = np.empty(len(candidates), np.float32)
        places = np.arange(len(candidates))
        pairs = sp.csc_array(candidates.matrix(places))  # label by label
        starts, rows = pairs.indptr.astype(np.int64), pairs.indices.astype(np.int32)
        left, bounds = csr_arrays(X), bounds_of_blocks(starts)

        def multiply(piece: slice) -> None:
            begin, end = int(bounds[piece.start]), int(bounds[piece.stop])
            _kernels.margins(*left, X.shape[1], *self._arrays, self.bias, starts, rows, pairs.data, begin, end, out)

        map_rows(multiply, len(bounds) - 1, 1, -1)
        return out

    @cached_property
    def _arrays(self) -> Arrays:
        return csr_arrays(self.weights)

    def for_labels(self, n_labels: int) -> Ranker:
        """Return classifiers for more labels: nothing speaks for the new ones or against them."""
        d = len(self.bias)
        indptr = np.pad(self.weights.indptr, (0, n_labels - d), mode="edge")
        weights = sp.csr_array(
            (self.weights.data, self.weights.indices, indptr), shape=(n_labels, self.weights.shape[1])
        )
        return Ranker(weights, np.pad(self.bias, (0, n_labels - d)))

    def _to_parts(self) -> Parts:
        return {"weights": self.weights, "bias": self.bias}

    @classmethod
    def _from_parts(cls, parts: Parts) -> Ranker:
        weights = parts["weights"]
        require(sp.issparse(weights) and weights.dtype == np.float32, "the weights of the ranker must be numbers")
        require_array(parts["bias"], "the constants of the ranker", "float32", (weights.shape[0],), finite=True)
        return cls(weights, parts["bias"])


def compact(X: CSR) -> CSR:
    """Return CSR with places of 32 bits, if these are enough."""
    return X if X.indices.dtype == np.int32 else compact_csr(X.data, X.indices, X.indptr, X.shape)


def compact_csr(data: Any, indices: Any, starts: Any, shape: tuple[int, int]) -> CSR:
    """Return CSR of these arrays, with places of 32 bits if these are enough: scipy takes 64 for all if some have."""
    if max(*shape, len(data)) <= np.iinfo(np.int32).max:
        indices, starts = indices.astype(np.int32, copy=False), starts.astype(np.int32, copy=False)
    return sp.csr_array((data, indices, starts), shape=shape)


def csr_arrays(X: CSR) -> Arrays:
    """Return CSR as the kernels want it."""
    kinds = ((X.indptr, np.int64), (X.indices, np.int32), (X.data, np.float32))
    starts, columns, values = (array.astype(kind, copy=False) for array, kind in kinds)
    return starts, columns, values


def bounds_of_blocks(starts: IntArray, first: int = 0) -> IntArray:
    """Return where blocks of labels begin and end, from the first one on, that have about as many pairs each.

    Examples
    --------
    >>> bounds_of_blocks(np.array([0, 10_000, 20_000, 20_001, 60_000])).tolist()
    [0, 2, 4]
    """
    cuts = np.searchsorted(starts, np.arange(0, starts[-1], BLOCK_PAIRS)[1:])
    return np.unique(np.concatenate([[first], cuts[cuts > first], [len(starts) - 1]]))


def rows_of_labels(Y: CSR, candidates: Candidates) -> tuple[Any, Any, Any]:
    """Return the rows of each label, those that have it and those for which it is a candidate, and which have it."""
    is_candidate = candidates.matrix(np.ones(len(candidates), np.float32))
    has = sp.csr_array((np.full(Y.nnz, 2, np.float32), Y.indices, Y.indptr), shape=Y.shape)
    both = sp.csc_array(is_candidate + has)
    return both.indptr.astype(np.int64), both.indices.astype(np.int32), (both.data >= 2).astype(np.uint8)
