"""What is learned of rows before their candidates can be judged: sources, classifiers of labels, and what is usual."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsense import _kernels
from labelsense._blocks import map_rows
from labelsense._storage import Parts, require, require_array, storable
from labelsense._typing import CSR, FloatArray, IntArray
from labelsense.refine.candidates import Candidates
from labelsense.refine.neighbours import Neighbours
from labelsense.refine.ranker import Ranker
from labelsense.refine.shortlist import Reconstruction, shortlist
from labelsense.refine.sources import Correlations, Source

STANDING = 4  # numbers about a score that depend on the other candidates of the row
PLACE = 2  # which of these is how many candidates have a higher score
KNOWN = 3  # numbers about a label
PAIR_ROWS = 512


@storable()
class Stage:
    """Sources and classifiers learned from some rows, and what they usually say of each label where it is right.

    Parameters
    ----------
    sources : list of Source
        Those that learn. Correlations come first always.
    n_candidates : int
        How many labels of a row are considered.
    ranker : Ranker
    usual : array (sources, 2, d)
        The mean score of each label, out of sample, in rows that have it and in others for which it is a candidate.
    known : array (d, 3)
        Of each label: the logarithm of its number of rows, the share of its candidacies that are right, and the share
        of its rows in which it is a candidate.
    neighbours : list of Neighbours
        Those that speak of new rows only.

    Usual and known is what the models of the folds knew whose rows probabilities are learned from, on average.
    """

    def __init__(
        self,
        sources: list[Source],
        n_candidates: int,
        ranker: Ranker,
        usual: FloatArray,
        known: FloatArray,
        neighbours: list[Neighbours],
    ) -> None:
        self.sources, self.n_candidates, self.ranker = sources, n_candidates, ranker
        self.usual, self.known, self.neighbours = usual, known, neighbours

    def ask(self, X: CSR, H: FloatArray, reconstruction: Reconstruction) -> tuple[Candidates, FloatArray]:
        """Return the candidates of rows that were not learned from, and what each of :meth:`judges` says of them."""
        judges = [Correlations(reconstruction.operator), *self.sources]
        candidates, values = shortlist(judges, reconstruction, X, H, self.n_candidates, self.neighbours)
        return candidates, np.concatenate([values, self.ranker.margins(X, candidates)[None]])

    def describe(self, X: CSR, candidates: Candidates, values: FloatArray) -> FloatArray:
        """Return features of each candidate of rows, (pairs, f), given what :meth:`ask` has told.

        The features are, for each of :meth:`judges`, its score, what it is below the best one of the row, its rank
        there, and the best one; then what is usual, and what is known of the label and of the row.
        """
        return describe_pairs(X, candidates, values, self.usual, self.known)

    def updated(self, sums: CSR, label_counts: IntArray) -> Stage:
        """Return a stage that has learned rows, as far as that is exact, or forgotten them if these are negative.

        Given are the sums of the rows of each label, (p, d), and how many there are.
        """
        d = len(label_counts)
        more = d - len(self.known)
        known = np.concatenate([self.known, np.tile(self.known.mean(axis=0, keepdims=True), (more, 1))])
        known[len(self.known) :, 0] = 0
        counts = np.expm1(known[:, 0].astype(np.float64)) + label_counts
        known[:, 0] = np.log1p(np.maximum(counts, 0))
        usual = np.concatenate([self.usual, np.repeat(self.usual.mean(axis=2, keepdims=True), more, axis=2)], axis=2)
        sources = [source.updated(sums) for source in self.sources]
        neighbours = [source.for_labels(d) for source in self.neighbours]
        return Stage(sources, self.n_candidates, self.ranker.for_labels(d), usual, known, neighbours)

    def judges(self) -> dict[str, int]:
        """Return who scores a candidate, with the column of the score among the features."""
        learned, near = ([source.name for source in sources] for sources in (self.sources, self.neighbours))
        names = ["correlation", *learned, "decoder", *near, "ranker"]
        return {name: STANDING * i for i, name in enumerate(names)}

    def places(self, F: FloatArray) -> dict[str, FloatArray]:
        """Return the place of each pair among the candidates of its row, by every judge alone, the best being 1."""
        return {name: 1 + F[:, column + PLACE] for name, column in self.judges().items()}

    @property
    def n_pair_features(self) -> int:
        """How many features a pair has."""
        return count_features(len(self.judges()), len(self.usual))

    def _to_parts(self) -> Parts:
        return dict(vars(self))

    @classmethod
    def _from_parts(cls, parts: Parts) -> Stage:
        sources, k, ranker = parts["sources"], parts["n_candidates"], parts["ranker"]
        require(isinstance(sources, list) and all(isinstance(s, Source) for s in sources), "there must be sources")
        require(isinstance(ranker, Ranker), "there must be a ranker")
        neighbours = parts.get("neighbours", [])  # files of before have none
        kinds = isinstance(neighbours, list) and all(isinstance(source, Neighbours) for source in neighbours)
        require(kinds, "neighbours must be sources")
        d = len(ranker.bias)
        require(type(k) is int and 1 <= k <= d, "candidates must be labels")
        require_array(parts["usual"], "what sources usually say", "float32", (len(sources) + 2, 2, d), finite=True)
        require_array(parts["known"], "what is known of labels", "float32", (d, KNOWN), finite=True)
        return cls(sources, k, ranker, parts["usual"], parts["known"], neighbours)

    def check_sizes(self, n_features: int, n_measurements: int, n_labels: int) -> None:
        """Refuse parts of a file that are of other sizes."""
        require(self.ranker.weights.shape == (n_labels, n_features), "the ranker must fit features and labels")
        for source in [*self.sources, *self.neighbours]:
            source.check_sizes(n_features, n_measurements, n_labels)


def describe_pairs(
    X: CSR, candidates: Candidates, values: FloatArray, usual: FloatArray, known: FloatArray
) -> FloatArray:
    """Return the features of candidates, given what each judge says of them, (judges, pairs), and what is usual."""
    F = np.empty((len(candidates), count_features(len(values), len(usual))), np.float32)

    def compare(rows: slice) -> None:
        for i, scores in enumerate(values):
            _kernels.standing(candidates.starts, rows.start, rows.stop, scores, STANDING * i, F)

    map_rows(compare, candidates.n_rows, PAIR_ROWS, -1)
    at = STANDING * len(values)
    for scores, (right, wrong) in zip(values, usual[:, :, candidates.labels], strict=False):
        F[:, at] = scores / np.maximum(right, 1e-3)
        F[:, at + 1], F[:, at + 2] = right, wrong
        at += 3
    F[:, at : at + KNOWN] = known[candidates.labels]
    row = candidates.row
    F[:, at + KNOWN], F[:, at + KNOWN + 1] = np.diff(X.indptr)[row], np.diff(candidates.starts)[row]
    return F


def count_features(n_judges: int, n_usual: int) -> int:
    """Return how many features a pair has."""
    return STANDING * n_judges + 3 * n_usual + KNOWN + 2


def as_rows(X: Any) -> CSR:
    """Return features as CSR of float32, in canonical form."""
    X = sp.csr_array(X, dtype=np.float32)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X
