"""Refinement: candidates of a row, and the probability of each."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing, check_random_state

from labelsense._blocks import map_rows, plain_algebra, row_blocks
from labelsense._progress import log
from labelsense._storage import require, storable
from labelsense._typing import CSR, DoubleArray, FloatArray, IntArray, RandomState
from labelsense._validation import check_count, check_real
from labelsense.labels import count_labels, top_k
from labelsense.metrics import best_f1_threshold
from labelsense.metrics.ranking import clearly_more, precision_shares
from labelsense.refine.candidates import Candidates, concatenate
from labelsense.refine.learning import Judged, Rows, hear, judge, learn
from labelsense.refine.pooled import PooledModel
from labelsense.refine.ranker import Ranker
from labelsense.refine.shortlist import MOST_SCORED, Reconstruction, count_candidates
from labelsense.refine.sources import sums_by_label
from labelsense.refine.stage import Stage, as_rows
from labelsense.regress import Learner

FOLDS, FEWER_FOLDS, MANY_ROWS = 10, 6, 10_000  # from so many rows on, a model of five sixths is much like one of all
MOST_LAST = 1000  # rows; otherwise the last ones are a tenth
LEAST_ROWS = 10
KS = (1, 3, 5)
NAMES = tuple(f"P@{k}" for k in KS)
ALL = "all, pooled"
JUDGED_PAIRS = 2**18  # that exist at a time
ASSESSED_ROWS = 256


@dataclass(frozen=True)
class Calibration:
    """What was seen on rows that nothing had learned from.

    Attributes
    ----------
    recall : float
        The share of their labels that were candidates.
    figures : dict
        P@1, P@3 and P@5 of each judge alone, by name, and of the pooled model.
    chosen : str
        Whose order is taken.
    probabilities : CSR (n_rows, d)
        Of the rows, by models that have not learned from them.
    truth : CSR (n_rows, d)
        Their labels.
    last : tuple of CSR, optional
        Probabilities and labels of the last rows, where they were held out, too.
    """

    recall: float
    figures: dict[str, dict[str, float]]
    chosen: str
    probabilities: CSR = field(repr=False)
    truth: CSR = field(repr=False)
    last: tuple[CSR, CSR] | None = field(default=None, repr=False)

    @property
    def n_rows(self) -> int:
        """How many rows these were."""
        return int(self.truth.shape[0])

    @cached_property
    def threshold(self) -> float:
        """The probability from which on labels have the best F1."""
        return best_f1_threshold(self.probabilities, self.truth)


@storable(private=("_stage", "_pooled"))
class Refiner(BaseEstimator):
    """Judges the candidate labels of each row by what several sources say of them, and gives probabilities.

    Candidates come from the decoder, from correlations, from a linear decoder learned from measurements, from the
    centroids of labels, and from the rows that are most similar. For each label a linear classifier is learned from the
    rows for which it is a candidate. One small model pooled over all labels then learns, on rows that none of these has
    seen, how likely a candidate is right that they speak of so. Where the best of them alone is clearly better, the
    order is that one's.

    Parameters
    ----------
    n_candidates : int or "auto"
        How many labels of a row to consider. "auto": 50, or more where rows have many labels.
    C : float or "auto"
        The weight of errors in the classifiers of labels. "auto" chooses it by rows that were left out: at most 1
        over the mean square of a row.
    n_calibration : int
        How many rows to learn probabilities from, at most. They are left out of a first training of everything else.
    neighbour_rows : int
        Up to how many rows the labels of similar rows are heard, similar in features or in measurements; 0 is never.
        The model then holds the rows, with their strongest features. Rows in chunks have no neighbours.
    random_state : int, RandomState or None
        Seed of the choice of these rows.
    """

    def __init__(
        self,
        n_candidates: int | str = "auto",
        *,
        C: float | str = "auto",
        n_calibration: int = 3000,
        neighbour_rows: int = 30_000,
        random_state: RandomState = 0,
    ) -> None:
        self.n_candidates = n_candidates
        self.C = C
        self.n_calibration = n_calibration
        self.neighbour_rows = neighbour_rows
        self.random_state = random_state

    n_candidates_: int
    C_: float
    _stage: Stage
    _pooled: PooledModel

    def fit(
        self,
        X: Any,
        Y: CSR,
        learner: Learner,
        reconstruction: Reconstruction,
        sample_weight: Any = None,
        last: bool = False,
    ) -> Calibration:
        """Learn from rows X (n, p) with labels Y (n, d), and what a learner says of them out of sample.

        The learner is fitted to all rows, and copies of it to parts of them. ``last`` is whether the last rows are held
        out beside rows at random, which tells what to expect if new rows come later.
        """
        if sample_weight is not None:  # rows without weight are as if they were not there
            kept = np.flatnonzero(sample_weight)
            X, Y, sample_weight = _safe_indexing(X, kept), Y[kept], sample_weight[kept]
        k = count_candidates(Y) if self.n_candidates == "auto" else min(int(self.n_candidates), Y.shape[1])
        rows, Z, parts = as_rows(X), reconstruction.operator.compress(Y), []
        neighbours = Y.shape[0] <= self.neighbour_rows and Y.shape[1] <= MOST_SCORED
        folds, n_last = self._folds(Y.shape[0], last)
        whole = whole_fold(Y.shape[0])
        said = learner.fit_leaving_out(X, Z, [*folds, *whole], sample_weight)
        for number, ((rest, held), (H_rest, H_held)) in enumerate(zip([*folds, *whole], said, strict=True)):
            inside, outside = Rows(rows[rest], H_rest, Y[rest]), Rows(rows[held], H_held, Y[held])
            if number < len(folds):
                log("refine: without fold %d of %d rows", number + 1, len(held))
            else:
                log("refine: all rows")
            with plain_algebra:
                heard = hear(inside, outside, reconstruction, k, neighbours)
                if not number:
                    self.C_ = heard.choose_weight() if self.C == "auto" else float(self.C)
                if number == (len(folds) if whole else 0):
                    judged, self._stage = learn(heard, k, self.C_)
                else:
                    judged = judge(heard, self.C_)
            parts.append(judged)
        self.n_candidates_ = k
        with plain_algebra:
            return self._judge(parts[: len(folds)], n_last)

    def check_settings(self) -> None:
        """Refuse settings that cannot be."""
        if self.n_candidates != "auto":
            check_count(self.n_candidates, "n_candidates", remedy="'auto' chooses.")
        if self.C != "auto":
            check_real(self.C, "C", low=1e-9, remedy="'auto' chooses.")
        check_count(self.n_calibration, "n_calibration", low=FOLDS)
        check_count(self.neighbour_rows, "neighbour_rows", low=0)

    def predict(self, X: Any, H: FloatArray, reconstruction: Reconstruction) -> CSR:
        """Return the probabilities of the candidates of each row, as CSR (n, d)."""
        rows, found = as_rows(X), list[CSR]()
        with plain_algebra:
            for block in row_blocks(len(H), max(1, JUDGED_PAIRS // self._stage.n_candidates)):
                candidates, values = self._stage.ask(rows[block], H[block], reconstruction)

                def assess(
                    some: slice,
                    X: CSR = rows[block],
                    candidates: Candidates = candidates,
                    values: FloatArray = values,
                ) -> FloatArray:
                    said = values[:, candidates.pairs(some)]
                    return self._pooled.predict(self._stage.describe(X[some], candidates.of(some), said))

                parts = map_rows(assess, candidates.n_rows, ASSESSED_ROWS, -1)
                found.append(candidates.matrix(np.concatenate(parts)))
        return sp.vstack(found, format="csr")

    def opinions(self, X: Any, H: FloatArray, reconstruction: Reconstruction) -> tuple[CSR, dict[str, CSR]]:
        """Return what :meth:`predict` does, and the place of each candidate by every judge alone, the best being 1."""
        rows = as_rows(X)
        candidates, values = self._stage.ask(rows, H, reconstruction)
        F = self._stage.describe(rows, candidates, values)
        places = {name: candidates.matrix(values) for name, values in self._stage.places(F).items()}
        return candidates.matrix(self._pooled.predict(F)), places

    def updated(self, X: Any, Y: CSR, sign: int) -> Refiner:
        """Return a copy that has learned rows (sign 1) or forgotten them (-1), as far as that is exact.

        Label counts and centroids add up; classifiers of labels and probabilities stay as they are. Labels that are new
        have no classifier.
        """
        return self.updated_by(sign * sums_by_label(as_rows(X), Y), sign * count_labels(Y))

    def updated_by(self, sums: CSR, label_counts: IntArray) -> Refiner:
        """Do what :meth:`updated` does, given the sums of the rows of each label, (p, d), and how many there are."""
        refiner = copy(self)
        refiner._stage = self._stage.updated(sums, label_counts)
        return refiner

    @property
    def ranker(self) -> Ranker:
        """The linear classifiers of labels."""
        return self._stage.ranker

    def check_sizes(self, n_features: int, n_measurements: int, n_labels: int) -> None:
        """Refuse what a file says if it is of other sizes."""
        self._stage.check_sizes(n_features, n_measurements, n_labels)

    def _judge(self, parts: list[Judged], n_last: int) -> Calibration:
        """Learn probabilities of pairs that are out of sample, or whom to follow if there is no gain in it.

        The last rows, so many, are at the end of the last part. Nothing is learned from them.
        """
        parts[-1], late = parts[-1].split(parts[-1].Y.shape[0] - n_last)
        # What all rows say of labels is a little more than what the models of the folds knew. Probabilities would take
        # that for a sign of something else.
        usual, known = (
            np.mean(every, axis=0) for every in zip(*((part.usual, part.known) for part in parts), strict=True)
        )
        stage = self._stage
        known[:, 0] = np.where(known[:, 0] > 0, known[:, 0], stage.known[:, 0])  # labels that none of these knew
        self._stage = Stage(stage.sources, stage.n_candidates, stage.ranker, usual, known, stage.neighbours)
        candidates = concatenate([part.candidates for part in parts])
        F, Y = np.concatenate([part.features for part in parts]), sp.vstack([part.Y for part in parts], format="csr")
        truth, judges = candidates.are_in(Y), self._stage.judges()

        def precision(values: FloatArray) -> DoubleArray:
            return precision_shares(Y, top_k(candidates.matrix(values), max(KS)).labels, KS)

        seen = {name: precision(F[:, column]) for name, column in judges.items()}
        self._pooled, probabilities = PooledModel.train(F, truth, candidates.row)
        best = max(seen, key=lambda name: seen[name].sum())
        seen[ALL] = precision(probabilities)
        if not clearly_more(seen[best].mean(axis=0), seen[ALL].mean(axis=0)):
            best = ALL  # on new rows it mostly is, and one score alone makes poorer probabilities
        else:
            self._pooled, probabilities = PooledModel.train_on_one(F, truth, judges[best])
        recall = float(truth.sum() / max(1, Y.nnz))
        log("refine: %s, candidates hold %.3f of the labels", best, recall)
        last = (late.candidates.matrix(self._pooled.predict(late.features)), late.Y) if n_last else None
        figures = {name: dict(zip(NAMES, shares.mean(axis=1).tolist(), strict=True)) for name, shares in seen.items()}
        return Calibration(recall, figures, best, candidates.matrix(probabilities), Y, last)

    def _folds(self, n: int, last: bool) -> tuple[list[tuple[IntArray, IntArray]], int]:
        """Return rows to learn from and rows to learn probabilities from, as often as gives about enough of these.

        If the last rows are wanted, they are held out with the last of the folds. The second result is their number.
        """
        wanted = self.n_calibration
        size = min(-(-n // (FOLDS if n < MANY_ROWS else FEWER_FOLDS)), wanted)
        n_last = min(-(-n // FOLDS), MOST_LAST) if last else 0
        order = check_random_state(self.random_state).permutation(n - n_last)
        folds = [np.sort(order[i * size : (i + 1) * size]) for i in range(min(FOLDS, max(1, round(wanted / size))))]
        folds[-1] = np.concatenate([folds[-1], np.arange(n - n_last, n)])
        return [(np.setdiff1d(np.arange(n), held), held) for held in folds if len(held)], n_last

    def _check_stored(self) -> None:
        require(isinstance(self._stage, Stage) and isinstance(self._pooled, PooledModel), "it must have learned")
        f = self._stage.n_pair_features
        require(len(self._pooled.weights) == f, "the pooled model must fit what the sources say")


def whole_fold(n: int) -> list[tuple[IntArray, IntArray]]:
    """Return a fold without rows that are held out, if rows are few enough that to learn from all anew is better.

    Where they are many, what the first fold teaches, with the rows that were held out, is as good, and costs nothing.
    """
    return [(np.arange(n), np.arange(0))] if n < MANY_ROWS else []
