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

from labelsense._blocks import plain_algebra
from labelsense._checkpoint import State, next_step, steps_within
from labelsense._chunks import Chunks
from labelsense._progress import log
from labelsense._typing import CSR, DoubleArray, FloatArray, IntArray
from labelsense.compress.base import Operator
from labelsense.labels import count_labels
from labelsense.reconstruct import Decoder
from labelsense.refine.candidates import Candidates
from labelsense.refine.label_blocks import train_ranker
from labelsense.refine.learning import (
    Judged,
    Rows,
    Sums,
    against_new_labels,
    finish,
    habit_sums,
    has_linear_decoder,
    own_values,
)
from labelsense.refine.refiner import Calibration, Refiner, whole_fold
from labelsense.refine.shortlist import Reconstruction, candidates_for, shortlist
from labelsense.refine.sources import Correlations, LinearDecoder, Source, sums_by_label
from labelsense.refine.stage import Stage, as_rows
from labelsense.refine.weight import Pairs, choose_weight, draw_labels
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
    learner: RidgeLearner,
    reconstruction: Reconstruction,
    memory: float = math.inf,
    weights: DoubleArray | None = None,
    last: bool = False,
) -> Calibration:
    """Do what ``refiner.fit`` does.

    Parameters
    ----------
    refiner : Refiner
        It learns.
    X, Z : ChunkedDesign, ChunkedTargets
        Rows and their measurements.
    learner : RidgeLearner
        A fitted one, of which copies are fitted to parts of the rows.
    reconstruction : Reconstruction
    memory : float
        How many bytes the rows may take that classifiers of labels are learned from.
    weights : array (n,), optional
        How much each row counts in the regressions. None is zero.
    last : bool
        Whether the last rows are held out beside rows at random.
    """
    d = reconstruction.operator.n_labels
    numbers = np.concatenate(list(X.chunks().results(_label_numbers)))
    k = candidates_for(numbers, d) if refiner.n_candidates == "auto" else min(int(refiner.n_candidates), d)
    C = None if refiner.C == "auto" else float(refiner.C)
    learning = _Learning(X, Z, learner, reconstruction, k, C, memory, weights)
    folds, n_last = refiner._folds(len(numbers), last)
    whole, parts = whole_fold(len(numbers)), []
    for number, (rest, held) in enumerate(folds):
        log("refine: without fold %d of %d rows", number + 1, len(held))
        if number or whole:
            parts.append(_judged(learning, rest, held))
        else:
            part, refiner._stage = learning.learn(rest, held)
            parts.append(part)
    if whole:
        log("refine: all rows")
        refiner._stage = learning.learn(*whole[0])[1]
    assert learning.C is not None
    refiner.n_candidates_, refiner.C_ = k, learning.C
    with plain_algebra:
        return refiner._judge(parts, n_last)


def _judged(learning: _Learning, rest: IntArray, held: IntArray) -> Judged:
    """Learn from some rows, and judge the others by it."""
    step = next_step("fold")
    with steps_within("fold"):
        if (kept := step.load()) is None:
            candidates, features, Y, usual, known = learning.learn(rest, held)[0]
            kept = {
                "C": np.array([learning.C]),
                "usual": usual,
                "known": known,
                "starts": candidates.starts,
                "labels": candidates.labels,
                "features": features.ravel(),
                "truth": Y.indices.astype(np.int32),
                "truth starts": Y.indptr.astype(np.int64),
            }
            step.finish(kept)
    learning.C = float(kept["C"][0])
    d, labels, starts = learning.reconstruction.operator.n_labels, kept["truth"], kept["truth starts"]
    Y = sp.csr_array((np.ones(len(labels), np.float32), labels, starts), shape=(len(starts) - 1, d))
    candidates = Candidates(kept["starts"], kept["labels"], d)
    features = kept["features"].reshape(len(candidates), -1)
    return Judged(candidates, features, Y, kept["usual"], kept["known"])


@dataclass
class _Learning:
    """Rows, and how to learn from them. The weight of errors is chosen when it is first needed, if it is not given."""

    X: ChunkedDesign
    Z: ChunkedTargets
    learner: RidgeLearner
    reconstruction: Reconstruction
    n_candidates: int
    C: float | None
    memory: float
    weights: DoubleArray | None

    def learn(self, rest: IntArray, held: IntArray) -> tuple[Judged, Stage]:
        """Do what :func:`~labelsense.refine.learning.learn` does."""
        operator, k = self.reconstruction.operator, self.n_candidates
        some, model = self.X.rows(rest), self.learner.unfitted()
        weights = None if self.weights is None else self.weights[rest]
        H = fit_out_of_sample(model, some, self.Z.part(rest), weights)
        others = self._gather(held, model)
        rows = some.chunks()
        measured = rows.beside(H)
        log("refine: sums by label")
        linear = has_linear_decoder(operator.n_measurements, operator.n_labels)
        moments = measured.total(_moments) if linear else None
        sums = Sums(rows.total(_label_counts), rows.total(chunk_sums), moments)
        shortlisted, habits, outside, values = self._shortlist(sums, measured, others)
        label_counts, sums = sums.label_counts, sums.plus(Sums.of(others))
        taught = against_new_labels(outside, others.Y, label_counts)
        chosen: State = {"starts": taught.starts, "labels": taught.labels}
        pairs = rows.beside(shortlisted)
        if self.C is None:
            self.C = _choose_weight(label_counts, pairs)
        margins, ranker = train_ranker(pairs, (others, chosen), operator.n_labels, self.C, self.memory)
        asked = taught.are_in(outside.matrix(np.ones(len(outside), np.float32)))
        values = np.concatenate([values, margins[asked][None]])
        return finish(others, outside, values, label_counts, sums, habits, ranker, k, [])

    def _shortlist(
        self, sums: Sums, measured: Chunks, others: Rows
    ) -> tuple[Chunks, DoubleArray, Candidates, FloatArray]:
        """Return the candidates of rows, the habits of labels in them, and candidates of others with what is said."""
        (operator, decoder, _), k = self.reconstruction, self.n_candidates
        log("refine: %d candidates a row", k)
        choose = Shortlist(sums.sources(), operator, decoder, k)
        shortlisted = measured.map(choose, step="candidates")
        habits = shortlisted.total(_Habits(operator.n_labels, len(choose.sources) + 2))
        return shortlisted, habits, *shortlist(choose.judges, self.reconstruction, others.X, others.H, k)

    def _gather(self, held: IntArray, model: RidgeLearner) -> Rows:
        """Return a few rows, in one place, with what a model says of them."""
        operator = self.reconstruction.operator
        if not len(held):
            none = [sp.csr_array((0, size), dtype=np.float32) for size in (self.X.shape[1], operator.n_labels)]
            return Rows(none[0], np.empty((0, operator.n_measurements), np.float32), none[1])
        parts = list(self.X.rows(held).chunks().results(_whole))
        X, Y = as_rows(sp.vstack([part.X for part in parts])), sp.vstack([part.Y for part in parts], format="csr")
        return Rows(X, np.asarray(model.predict(X), np.float32), Y)


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

    @property
    def judges(self) -> list[Source]:
        """All that say something of labels, but for the decoder."""
        return [Correlations(self.operator), *self.sources]

    def __call__(self, chunk: tuple[Any, FloatArray]) -> State:
        rows, H = chunk
        mine = Rows(as_rows(rows.X), H, rows.Y)
        candidates, values = shortlist(self.judges, self._reconstruction, mine.X, H, self.n_candidates)
        return {
            "starts": candidates.starts,
            "labels": candidates.labels,
            "values": own_values(self.judges, mine, candidates, values).ravel(),
            "right": candidates.are_in(mine.Y),
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


def _choose_weight(label_counts: IntArray, pairs: Chunks) -> float:
    """Do what :meth:`~labelsense.refine.learning.Heard.choose_weight` does."""
    labels = draw_labels(label_counts, pairs.total(_count_pairs))
    return choose_weight(Pairs.join(list(pairs.results(_SomePairs(labels)))))


@dataclass(frozen=True)
class _SomePairs:
    """The rows of a chunk that have one of some labels, or have it as a candidate."""

    labels: IntArray

    def __call__(self, chunk: tuple[Any, State]) -> Pairs:
        rows, found = chunk
        candidates = Candidates(found["starts"], found["labels"], rows.Y.shape[1])
        return Pairs.of(as_rows(rows.X), rows.Y, candidates, self.labels).kept()


def _count_pairs(chunk: tuple[Any, State]) -> int:
    return len(chunk[1]["labels"])


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
