"""Refinement of rows in chunks: what :class:`~labelsense.refine.Refiner` learns, without all rows in one place.

Sums over chunks give the sources and what is usual of labels. Candidates are kept as chunks. Classifiers of labels are
learned for as many labels at a time as there is memory for their rows, which are gathered from the chunks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsense._checkpoint import State, next_step, steps_within
from labelsense._chunks import Chunks
from labelsense._progress import log
from labelsense._typing import CSR, DoubleArray, FloatArray, IntArray
from labelsense.compress.base import Operator
from labelsense.labels import count_labels
from labelsense.reconstruct import Decoder
from labelsense.refine.candidates import Candidates
from labelsense.refine.label_blocks import train_ranker
from labelsense.refine.refiner import Calibration, Refiner
from labelsense.refine.shortlist import Reconstruction, candidates_for, shortlist
from labelsense.refine.sources import Centroids, Correlations, LinearDecoder, Source, sums_by_label
from labelsense.refine.stage import Stage, as_rows, habit_sums, habits, has_linear_decoder
from labelsense.regress import RidgeLearner
from labelsense.regress.chunked import ChunkedDesign, ChunkedTargets
from labelsense.regress.out_of_sample import fit_out_of_sample

PAIRS_BYTES = 2000  # of the candidates of a row, with their scores, about


def needed_bytes(n_features: int, n_measurements: int, n_labels: int, pairs: float, chunk_rows: int) -> float:
    """Return how much memory refinement takes beyond what the solver and classifiers of labels may take, about.

    That is the weights of two learners and a copy, the measurements of two chunks, and three times the sums of rows by
    label: no more than there are pairs of a feature and a label of a row.
    """
    weights, measured = 3 * n_features * n_measurements, 2 * chunk_rows * n_measurements
    return 4.0 * (weights + measured) + 24 * min(float(n_features) * n_labels, pairs)


def kept_bytes(n_rows: int, n_measurements: int) -> float:
    """Return how much the chunks take that refinement makes: measurements, twice, and candidates."""
    return n_rows * (8.0 * n_measurements + PAIRS_BYTES)


def fit_refiner(
    refiner: Refiner,
    X: ChunkedDesign,
    Z: ChunkedTargets,
    H: Chunks,
    learner: RidgeLearner,
    reconstruction: Reconstruction,
    memory: float = math.inf,
    weights: DoubleArray | None = None,
) -> Calibration:
    """Do what ``refiner.fit`` does.

    Parameters
    ----------
    refiner : Refiner
        It learns.
    X, Z : ChunkedDesign, ChunkedTargets
        Rows and their measurements.
    H : Chunks
        What was predicted of them, out of sample.
    learner : RidgeLearner
        A fitted one, of which copies are fitted to parts of the rows.
    reconstruction : Reconstruction
    memory : float
        How many bytes the rows may take that classifiers of labels are learned from.
    weights : array (n,), optional
        How much each row counts in the regressions. None is zero.
    """
    rows, d = X.chunks(), reconstruction.operator.n_labels
    numbers = np.concatenate(list(rows.results(_label_numbers)))
    k = candidates_for(numbers, d) if refiner.n_candidates == "auto" else min(int(refiner.n_candidates), d)
    learning = _Learning(reconstruction, k, refiner.C, memory, weights)
    parts = []
    for number, (rest, held) in enumerate(refiner._folds(len(numbers))):
        log("refine: without fold %d of %d rows", number + 1, len(held))
        parts.append(_judged(learning, X, Z, learner, rest, held))
    log("refine: all rows")
    refiner._stage, refiner.n_candidates_ = learning.stage(rows, H), k
    return refiner._judge(refiner._stage.judges(), parts)


def rehearse(
    refiner: Refiner,
    X: ChunkedDesign,
    Z: ChunkedTargets,
    learner: RidgeLearner,
    reconstruction: Reconstruction,
    n_last: int,
    memory: float = math.inf,
    weights: DoubleArray | None = None,
) -> tuple[CSR, CSR]:
    """Do what ``refiner.rehearse`` does after :func:`fit_refiner`; return also the labels of the last rows."""
    log("refine: without the last %d rows", n_last)
    learning = _Learning(reconstruction, refiner.n_candidates_, refiner.C, memory, weights)
    every = np.arange(X.shape[0])
    candidates, F, Y = _judged(learning, X, Z, learner, every[:-n_last], every[-n_last:])
    return candidates.matrix(refiner._pooled.predict(F)), Y


def _judged(
    learning: _Learning, X: ChunkedDesign, Z: ChunkedTargets, learner: RidgeLearner, rest: IntArray, held: IntArray
) -> tuple[Candidates, FloatArray, CSR]:
    """Learn from some rows; return the candidates of the others, what is said of each, and the labels."""
    step = next_step("fold")
    with steps_within("fold"):
        if (kept := step.load()) is None:
            kept = _judge(learning, X, Z, learner, rest, held)
            step.finish(kept)
    return _from_state(kept, learning.reconstruction.operator.n_labels)


def _judge(
    learning: _Learning, X: ChunkedDesign, Z: ChunkedTargets, learner: RidgeLearner, rest: IntArray, held: IntArray
) -> State:
    some, model = X.rows(rest), learner.unfitted()
    H = fit_out_of_sample(model, some, Z.part(rest), None if learning.weights is None else learning.weights[rest])
    stage = learning.stage(some.chunks(), H)
    others = list(X.rows(held).chunks().results(_whole))
    F, Y = as_rows(sp.vstack([part.X for part in others])), sp.vstack([part.Y for part in others], format="csr")
    candidates, features = stage.pairs(F, np.asarray(model.predict(F), np.float32), learning.reconstruction)
    return {
        "starts": candidates.starts,
        "labels": candidates.labels,
        "features": features.ravel(),
        "truth": Y.indices.astype(np.int32),
        "truth starts": Y.indptr.astype(np.int64),
    }


def _from_state(state: State, d: int) -> tuple[Candidates, FloatArray, CSR]:
    labels, starts = state["truth"], state["truth starts"]
    Y = sp.csr_array((np.ones(len(labels), np.float32), labels, starts), shape=(len(starts) - 1, d))
    candidates = Candidates(state["starts"], state["labels"], d)
    return candidates, state["features"].reshape(len(candidates), -1), Y


@dataclass(frozen=True)
class _Learning:
    """How to learn a stage."""

    reconstruction: Reconstruction
    n_candidates: int
    C: float
    memory: float
    weights: DoubleArray | None

    def stage(self, rows: Chunks, H: Chunks) -> Stage:
        """Do what ``Stage.learn`` does, for rows in chunks, and their measurements out of sample."""
        operator, decoder, _ = self.reconstruction
        log("refine: sums by label")
        counts = rows.total(_label_counts)
        sources: list[Source] = [Centroids.of(rows.total(chunk_sums))]
        measured = rows.beside(H)
        if has_linear_decoder(operator.n_measurements, operator.n_labels):
            sources.append(LinearDecoder.solve(measured.total(_moments)))
        log("refine: %d candidates a row", self.n_candidates)
        shortlisted = measured.map(Shortlist(sources, operator, decoder, self.n_candidates), step="candidates")
        known = habits(shortlisted.total(_Habits(operator.n_labels, len(sources) + 2)), counts)
        ranker = train_ranker(rows.beside(shortlisted), operator.n_labels, self.C, self.memory)
        return Stage(sources, self.n_candidates, ranker, *known)


@dataclass(frozen=True)
class Shortlist:
    """The candidates of the rows of a chunk, what each source says of each, and which are right.

    A source that has learned from a row speaks as if it had not.
    """

    sources: list[Source]
    operator: Operator
    decoder: Decoder
    n_candidates: int

    @cached_property
    def _reconstruction(self) -> Reconstruction:
        return Reconstruction.by(self.decoder, self.operator)

    def __call__(self, chunk: tuple[Any, FloatArray]) -> State:
        rows, H = chunk
        X, Y = as_rows(rows.X), rows.Y
        every = [Correlations(self.operator), *self.sources]
        candidates, values = shortlist(every, self._reconstruction, X, H, self.n_candidates)
        for i, source in enumerate(every):
            values[i] = source.own(X, H, Y, candidates, values[i])
        return {
            "starts": candidates.starts,
            "labels": candidates.labels,
            "values": values.ravel(),
            "right": candidates.are_in(Y),
        }

    def __getstate__(self) -> Any:
        return {name: value for name, value in vars(self).items() if name != "_reconstruction"}


@dataclass(frozen=True)
class _Habits:
    n_labels: int
    n_scores: int

    def __call__(self, chunk: State) -> DoubleArray:
        candidates = Candidates(chunk["starts"], chunk["labels"], self.n_labels)
        return habit_sums(candidates, chunk["values"].reshape(self.n_scores, -1), chunk["right"])


def _label_numbers(rows: Any) -> IntArray:
    return np.diff(rows.Y.indptr)


def _label_counts(rows: Any) -> IntArray:
    return count_labels(rows.Y)


def chunk_sums(rows: Any) -> CSR:
    """Return the sum of the rows of each label in a chunk, (p, d)."""
    return sums_by_label(as_rows(rows.X), rows.Y)


def _moments(chunk: tuple[Any, FloatArray]) -> DoubleArray:
    rows, H = chunk
    return LinearDecoder.moments(H, rows.Y)


def _whole(rows: Any) -> Any:
    return rows
