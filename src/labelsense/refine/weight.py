"""The weight of errors in classifiers of labels: chosen by rows that these have not seen, for some of the labels."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from labelsense._progress import log
from labelsense._typing import CSR, IntArray
from labelsense.refine.candidates import Candidates, concatenate
from labelsense.refine.pooled import fit_platt
from labelsense.refine.ranker import Ranker, Settings
from labelsense.refine.stage import as_rows
from labelsense.regress.penalty import descend

GRID = tuple(10 ** (half / 2) for half in range(-3, 5))  # over the mean square of a row
FIRST = GRID.index(1.0)
PAIRS = 2**16  # of a row and a label, that are learned from for each weight
LEAST_LABELS = 2


class Pairs(NamedTuple):
    """Rows with their labels (n, s) and their candidates, of some labels."""

    X: CSR
    Y: CSR
    candidates: Candidates

    @classmethod
    def of(cls, X: CSR, Y: CSR, candidates: Candidates, labels: IntArray) -> Pairs:
        """Leave out all but some labels, ascending, which get numbers from 0 on."""
        number = np.full(candidates.n_labels, -1, np.int32)
        number[labels] = np.arange(len(labels))
        mine = number[candidates.labels] >= 0
        starts = np.concatenate([[0], np.cumsum(mine)])[candidates.starts]
        return cls(X, sp.csr_array(Y[:, labels]), Candidates(starts, number[candidates.labels[mine]], len(labels)))

    def kept(self) -> Pairs:
        """Leave out rows that have none of the labels, neither as labels nor as candidates."""
        counts = np.diff(self.candidates.starts)
        rows = np.flatnonzero(counts + np.diff(self.Y.indptr))
        starts = np.concatenate([[0], np.cumsum(counts[rows])])
        return Pairs(self.X[rows], self.Y[rows], Candidates(starts, self.candidates.labels, self.candidates.n_labels))

    @staticmethod
    def join(parts: list[Pairs]) -> Pairs:
        """Return the rows of all parts."""
        X, Y = (sp.vstack(every, format="csr") for every in ([part.X for part in parts], [part.Y for part in parts]))
        return Pairs(as_rows(X), Y, concatenate([part.candidates for part in parts]))


def draw_labels(label_counts: IntArray, n_pairs: int) -> IntArray:
    """Return some labels at random, with about as many pairs as are to be learned from, of so many in all.

    Pairs are taken to be as many as rows that have the label, in proportion. Labels that have too many alone are left
    out, if there are others.

    Examples
    --------
    >>> import numpy as np
    >>> len(draw_labels(np.full(1000, 10), 10 * 2**16))
    100
    """
    wanted = label_counts.sum() * min(1.0, PAIRS / max(1, n_pairs))
    fitting = np.flatnonzero((label_counts > 0) & (label_counts <= wanted))
    if len(fitting) < LEAST_LABELS:
        fitting = np.argsort(label_counts, kind="stable")[-LEAST_LABELS:]
    order = np.random.default_rng(0).permutation(fitting)
    last = int(np.searchsorted(np.cumsum(label_counts[order]), wanted, "right"))
    return np.sort(order[: max(LEAST_LABELS, last)])


def choose_weight(learned: Pairs, held: Pairs) -> float:
    """Return the weight of errors C with which classifiers of the first pairs tell best which of the second are right.

    Best is the least log loss of the probabilities that the margins stand for. The right C depends on how many rows
    there are, so it cannot be chosen with fewer rows; fewer labels do.
    """
    truth = held.candidates.are_in(held.Y)
    scale = float(np.square(held.X.data, dtype=np.float64).sum()) / max(1, held.X.shape[0])
    weights = [C / max(scale, 1e-12) for C in GRID]
    if truth.all() or not truth.any():
        return weights[FIRST]
    sign = np.where(truth, -1.0, 1.0)

    @cache
    def loss(place: int) -> float:
        ranker = Ranker.train(*learned, Settings(C=weights[place]))
        margins = ranker.margins(held.X, held.candidates).astype(np.float64)
        slope, offset = fit_platt(margins, truth)
        return float(np.logaddexp(0, sign * (slope * margins + offset)).mean())

    best = weights[descend(loss, len(GRID), FIRST)]
    log("refine: C %.3g, chosen with %d labels", best, learned.Y.shape[1])
    return best
