"""What is learned of rows before their candidates can be judged: sources, classifiers of labels, and what is usual."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from labelsense import _kernels
from labelsense._blocks import map_rows
from labelsense._typing import CSR, FloatArray
from labelsense.compress.base import Operator
from labelsense.reconstruct import Decoder
from labelsense.refine.candidates import Candidates
from labelsense.refine.ranker import Ranker
from labelsense.refine.shortlist import count_candidates, shortlist
from labelsense.refine.sources import Centroids, Correlations, LinearDecoder, Source

PRIOR = 3.0  # rows that the mean of all labels counts in the mean of one
STANDING = 4  # numbers about a score that depend on the other candidates of the row
PAIR_ROWS = 512


@dataclass(frozen=True)
class Stage:
    """Sources and classifiers learned from some rows, and what they usually say of each label where it is right.

    Attributes
    ----------
    usual : array (sources, 2, d)
        The mean score of each label, out of sample, in rows that have it and in others for which it is a candidate.
    about : array (d, 3)
        Of each label: the logarithm of its number of rows, the share of its candidacies that are right, and the share
        of its rows in which it is a candidate.
    """

    sources: list[Source]
    decoder: Decoder
    state: object
    n_candidates: int
    ranker: Ranker
    usual: FloatArray
    about: FloatArray

    @classmethod
    def learn(cls, X: CSR, H: FloatArray, Y: CSR, operator: Operator, decoder: Decoder, state: object) -> Stage:
        """Learn from rows X (n, p) with labels Y (n, d), and their measurements H (n, m), out of sample."""
        sources: list[Source] = [Correlations(operator), LinearDecoder.learn(H, Y), Centroids.learn(X, Y)]
        k = count_candidates(Y)
        candidates, values = shortlist(sources, decoder, state, X, H, k)
        ranker = Ranker.train(X, Y, candidates)
        for i, source in enumerate(sources):
            values[i] = source.own(X, H, Y, candidates, values[i])
        usual, about = _habits(candidates, values, Y)
        return cls(sources, decoder, state, k, ranker, usual, about)

    def pairs(self, X: CSR, H: FloatArray) -> tuple[Candidates, FloatArray]:
        """Return the candidates of rows that were not learned from, and features of each of them, (pairs, f)."""
        candidates, values = shortlist(self.sources, self.decoder, self.state, X, H, self.n_candidates)
        values = np.concatenate([values, self.ranker.margins(X, candidates)[None]])
        known = len(self.usual)
        F = np.empty((len(candidates), STANDING * len(values) + 3 * known + 5), np.float32)

        def compare(rows: slice) -> None:
            for i, scores in enumerate(values):
                _kernels.standing(candidates.starts, rows.start, rows.stop, scores, STANDING * i, F)

        map_rows(compare, candidates.n_rows, PAIR_ROWS, -1)
        at = STANDING * len(values)
        for scores, (right, wrong) in zip(values, self.usual[:, :, candidates.labels], strict=False):
            F[:, at] = scores / np.maximum(right, 1e-3)
            F[:, at + 1], F[:, at + 2] = right, wrong
            at += 3
        F[:, at : at + 3] = self.about[candidates.labels]
        row = candidates.row
        F[:, at + 3], F[:, at + 4] = np.diff(X.indptr)[row], np.diff(candidates.starts)[row]
        return candidates, F


def _habits(candidates: Candidates, values: FloatArray, Y: CSR) -> tuple[FloatArray, FloatArray]:
    d, right = Y.shape[1], candidates.are_in(Y)
    usual = np.empty((len(values), 2, d), np.float32)
    counts = []
    for case, chosen in enumerate((right, ~right)):
        labels = candidates.labels[chosen]
        count = np.bincount(labels, minlength=d)
        counts.append(count)
        for i, scores in enumerate(values):
            total = np.bincount(labels, scores[chosen], d)
            overall = total.sum() / max(1, count.sum())
            usual[i, case] = (total + PRIOR * overall) / (count + PRIOR)
    rows = np.bincount(Y.indices, minlength=d)
    found, missed = counts
    about = np.stack([np.log1p(rows), found / (found + missed + 1), found / (rows + 1)], axis=1)
    return usual, about.astype(np.float32)


def as_rows(X: object) -> CSR:
    """Return features as CSR of float32, in canonical form."""
    X = sp.csr_array(X, dtype=np.float32)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X
