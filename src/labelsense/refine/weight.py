"""The weight of errors in classifiers of labels: chosen by rows that these have not seen, with some of the labels."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from labelsense._progress import log
from labelsense._typing import CSR, IntArray
from labelsense.refine.candidates import Candidates, concatenate
from labelsense.refine.pooled import fit_platt
from labelsense.refine.ranker import Ranker, Settings
from labelsense.refine.stage import as_rows
from labelsense.regress.penalty import descend, mean_square

# Over the mean square of a row. More than 1 costs time, and the labels that come first were never better by it.
GRID = tuple(10 ** (half / 2) for half in range(-3, 1))
PAIRS = 2**16  # of a row and a label, that are learned from for each weight
LEAST_LABELS = 2
FOLDS = 10  # of the rows, one of which is held out


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
        return self.rows(np.diff(self.candidates.starts) + np.diff(self.Y.indptr) > 0)

    def rows(self, chosen: NDArray[np.bool_]) -> Pairs:
        """Return some of the rows."""
        counts = np.diff(self.candidates.starts)
        starts = np.concatenate([[0], np.cumsum(counts[chosen])])
        labels = self.candidates.labels[np.repeat(chosen, counts)]
        return Pairs(self.X[chosen], self.Y[chosen], Candidates(starts, labels, self.candidates.n_labels))

    def split(self) -> tuple[Pairs, Pairs]:
        """Return most rows, and others at random that are held out."""
        out = np.random.default_rng(0).permutation(self.X.shape[0]) % FOLDS == 0
        return self.rows(~out), self.rows(out)

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


def choose_weight(pairs: Pairs) -> float:
    """Return the weight of errors C with which classifiers of most rows tell best which pairs of the others are right.

    Best is the least log loss of the probabilities that the margins stand for. The right C depends on how many rows
    there are, so it cannot be chosen with far fewer rows; fewer labels do.
    """
    learned, held = pairs.split()
    truth = held.candidates.are_in(held.Y)
    scale = mean_square(pairs.X)
    weights = [C / scale for C in GRID]
    if truth.all() or not truth.any():
        return weights[-1]
    sign = np.where(truth, -1.0, 1.0)

    @cache
    def loss(place: int) -> float:
        ranker = Ranker.train(*learned, Settings(C=weights[place]))
        margins = ranker.margins(held.X, held.candidates).astype(np.float64)
        slope, offset = fit_platt(margins, truth)
        return float(np.logaddexp(0, sign * (slope * margins + offset)).mean())

    best = weights[descend(loss, len(GRID), len(GRID) - 1)]
    log("refine: C %.3g, chosen with %d labels", best, learned.Y.shape[1])
    return best
