"""Learning with some rows held out: what is said of these by what has not seen them, and then what all rows teach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from labelsense._typing import CSR, DoubleArray, FloatArray, IntArray
from labelsense.labels import count_labels
from labelsense.refine.candidates import Candidates, concatenate
from labelsense.refine.neighbours import Neighbours, SimilarFeatures, SimilarMeasurements
from labelsense.refine.ranker import Ranker, Settings
from labelsense.refine.shortlist import Reconstruction, shortlist
from labelsense.refine.sources import Centroids, Correlations, LinearDecoder, Source, sums_by_label
from labelsense.refine.stage import Stage, describe_pairs
from labelsense.refine.weight import Pairs, choose_weight, draw_labels

NEIGHBOURS: tuple[type[Neighbours], ...] = SimilarFeatures, SimilarMeasurements
STRANGERS = 100  # rows that a label without others to tell it from is told from
PRIOR = 3.0  # rows that the mean of all labels counts in the mean of one
MOST_LINEAR = 2**23  # numbers m d up to which there is a linear decoder: beyond, it costs more than all the others


class Rows(NamedTuple):
    """Rows: features (n, p), measurements (n, m) by a learner that has not seen the row, and labels (n, d)."""

    X: CSR
    H: FloatArray
    Y: CSR

    def plus(self, other: Rows) -> Rows:
        """Return these rows, then others."""
        X, Y = (sp.vstack(pair, format="csr") for pair in ((self.X, other.X), (self.Y, other.Y)))
        return Rows(X, np.concatenate([self.H, other.H]), Y)


class Judged(NamedTuple):
    """Rows that were held out.

    Their candidates, the features of each (pairs, f), their labels (n, d), and what was usual and known of labels then,
    see :class:`~labelsense.refine.stage.Stage`.
    """

    candidates: Candidates
    features: FloatArray
    Y: CSR
    usual: FloatArray
    known: FloatArray

    def split(self, n: int) -> tuple[Judged, Judged]:
        """Return the first n rows, and the others."""

        def part(rows: slice) -> Judged:
            mine = self.candidates.pairs(rows)
            return self._replace(candidates=self.candidates.of(rows), features=self.features[mine], Y=self.Y[rows])

        return part(slice(0, n)), part(slice(n, self.Y.shape[0]))


class Heard(NamedTuple):
    """What is said of rows, and of rows that were held out, before there are classifiers of labels.

    The sums of the first rows, their candidates, and the habits of labels in them; the candidates of the others, with
    what is said of each, (sources + 1, pairs), and whether neighbours are among these.
    """

    rest: Rows
    held: Rows
    sums: Sums
    inside: Candidates
    habits: DoubleArray
    outside: Candidates
    values: FloatArray
    neighbours: bool

    def choose_weight(self) -> float:
        """Return the weight of errors in the classifiers of labels."""
        labels = draw_labels(self.sums.label_counts, len(self.inside))
        return choose_weight(Pairs.of(self.rest.X, self.rest.Y, self.inside, labels).kept())


def learn(heard: Heard, n_candidates: int, C: float) -> tuple[Judged, Stage]:
    """Learn from rows, judge others by it, and return with that a stage that has learned from all of them.

    What this stage knows of a row was said by a learner and by sources that had not seen it, so nothing has to be said
    again: the candidates are the same, and classifiers of labels go on with the rows that were held out.
    """
    rest, held, sums, inside, habits, outside, values, neighbours = heard
    every, taught = rest.plus(held), against_new_labels(outside, held.Y, sums.label_counts)
    first, ranker = Ranker.train_twice(every.X, every.Y, concatenate([inside, taught]), len(rest.H), Settings(C=C))
    values = np.concatenate([values, first.margins(held.X, outside)[None]])
    near = [kind.learn(*every) for kind in NEIGHBOURS] if neighbours else []
    whole = sums.plus(Sums.of(held))
    return finish(held, outside, values, sums.label_counts, whole, habits, ranker, n_candidates, near)


def against_new_labels(candidates: Candidates, Y: CSR, label_counts: IntArray) -> Candidates:
    """Return candidates of rows held out that classifiers of labels go on with, given labels Y and those of other rows.

    Labels that only these rows have were never candidates of others. They become candidates of some rows, so that there
    is something to tell them from; else their classifiers would speak for them everywhere.
    """
    new, n = np.flatnonzero((label_counts == 0) & (count_labels(Y) > 0)), candidates.n_rows
    if not len(new):
        return candidates
    rows = np.arange(0, n, max(1, n // STRANGERS))
    pairs = np.repeat(rows, len(new)), np.tile(new, len(rows))
    more = sp.csr_array((np.ones(len(pairs[0]), np.float32), pairs), shape=Y.shape)
    both = sp.csr_array(candidates.matrix(np.ones(len(candidates), np.float32)) + more)
    both.sort_indices()
    return Candidates(both.indptr.astype(np.int64), both.indices.astype(np.int32), candidates.n_labels)


def judge(heard: Heard, C: float) -> Judged:
    """Learn from rows, and judge others by it."""
    rest, held, sums, inside, habits, outside, values, _ = heard
    ranker = Ranker.train(rest.X, rest.Y, inside, Settings(C=C))
    values = np.concatenate([values, ranker.margins(held.X, outside)[None]])
    return describe(held, outside, values, habits, sums.label_counts)


def hear(rest: Rows, held: Rows, reconstruction: Reconstruction, n_candidates: int, neighbours: bool = False) -> Heard:
    """Learn sources from rows, and return what they say of these and of others."""
    sums = Sums.of(rest)
    judges = [Correlations(reconstruction.operator), *sums.sources()]
    inside, values = shortlist(judges, reconstruction, rest.X, rest.H, n_candidates)
    habits = habit_sums(inside, own_values(judges, rest, inside, values), inside.are_in(rest.Y))
    near = [kind.learn(*rest) for kind in NEIGHBOURS] if neighbours else []
    outside, values = shortlist(judges, reconstruction, held.X, held.H, n_candidates, near)
    return Heard(rest, held, sums, inside, habits, outside, values, bool(near))


def finish(
    held: Rows,
    candidates: Candidates,
    values: FloatArray,
    label_counts: IntArray,
    sums: Sums,
    habits: DoubleArray,
    ranker: Ranker,
    n_candidates: int,
    neighbours: list[Neighbours],
) -> tuple[Judged, Stage]:
    """Return what :func:`learn` does.

    Given are the rows that were held out, with their candidates and what is said of each by all that have learned from
    the other rows; how many of the others have each label, and its habits there; and sums, classifiers and
    neighbours of all rows.
    """
    judged = describe(held, candidates, values, habits, label_counts)
    known = judged.known.copy()
    known[:, 0] = np.where(label_counts > 0, known[:, 0], np.log1p(sums.label_counts))
    return judged, Stage(sums.sources(), n_candidates, ranker, judged.usual, known, neighbours)


def describe(
    held: Rows, candidates: Candidates, values: FloatArray, habits: DoubleArray, label_counts: IntArray
) -> Judged:
    """Return rows that were held out as judged by what has learned from the others. See :func:`finish`."""
    usual, known = describe_habits(habits, label_counts)
    return Judged(candidates, describe_pairs(held.X, candidates, values, usual, known), held.Y, usual, known)


@dataclass(frozen=True)
class Sums:
    """What sources learn from. Those of parts of the rows add up.

    Attributes
    ----------
    label_counts : array (d,)
        How many rows have each label.
    by_label : CSR (p, d)
        The sums of these rows.
    moments : array, optional
        Those of :class:`~labelsense.refine.sources.LinearDecoder`, if there is one.
    """

    label_counts: IntArray
    by_label: CSR
    moments: DoubleArray | None

    @classmethod
    def of(cls, rows: Rows) -> Sums:
        """Sum over rows in memory."""
        linear = has_linear_decoder(rows.H.shape[1], rows.Y.shape[1])
        moments = LinearDecoder.moments(rows.H, rows.Y) if linear else None
        return cls(count_labels(rows.Y), sums_by_label(rows.X, rows.Y), moments)

    def plus(self, other: Sums) -> Sums:
        """Return the sums over the rows of both."""
        moments = None if self.moments is None or other.moments is None else self.moments + other.moments
        return Sums(self.label_counts + other.label_counts, self.by_label + other.by_label, moments)

    def sources(self) -> list[Source]:
        """Return the sources that learn, after they did."""
        centroids = Centroids.of(self.by_label)
        return [centroids] if self.moments is None else [centroids, LinearDecoder.solve(self.moments)]


def has_linear_decoder(n_measurements: int, n_labels: int) -> bool:
    """Tell whether a linear decoder is among the sources."""
    return n_measurements * n_labels <= MOST_LINEAR


def own_values(judges: list[Source], rows: Rows, candidates: Candidates, values: FloatArray) -> FloatArray:
    """Return what is said of candidates, by sources that have learned from these rows, as if they had not."""
    own = [judge.own(*rows, candidates, said) for judge, said in zip(judges, values, strict=False)]
    return np.stack([*own, values[-1]])  # the decoder learns nothing


def habit_sums(candidates: Candidates, values: FloatArray, right: NDArray[np.bool_]) -> DoubleArray:
    """Return the sums of the scores of each label, and how many they are, (sources + 1, 2, d). Those of parts add up.

    Once in rows that have the label, and once in others for which it is a candidate.
    """
    d = candidates.n_labels
    sums = np.empty((len(values) + 1, 2, d))
    for case, chosen in enumerate((right, ~right)):
        labels = candidates.labels[chosen]
        sums[-1, case] = np.bincount(labels, minlength=d)
        for i, scores in enumerate(values):
            sums[i, case] = np.bincount(labels, scores[chosen], d)
    return sums


def describe_habits(sums: DoubleArray, label_counts: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return what is usual, and what is known of labels, given :func:`habit_sums` and how many rows have each label."""
    totals, counts = sums[:-1], sums[-1]
    overall = totals.sum(axis=2, keepdims=True) / np.maximum(1, counts.sum(axis=1))[:, None]
    found, missed = counts
    known = [np.log1p(label_counts), found / (found + missed + 1), found / (label_counts + 1)]
    usual = (totals + PRIOR * overall) / (counts + PRIOR)
    return usual.astype(np.float32), np.stack(known, axis=1).astype(np.float32)
