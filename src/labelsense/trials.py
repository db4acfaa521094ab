"""Settings that are tried on some rows: how precise each is on rows that its model has not seen."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from labelsense._blocks import map_rows, plain_algebra
from labelsense._progress import log
from labelsense._typing import CSR, DoubleArray, FloatArray, IntArray
from labelsense.compress import Operator, WhitenedCompressor
from labelsense.labels import top_k
from labelsense.metrics.ranking import clearly_more, precision_shares
from labelsense.reconstruct import Decoder, OMPDecoder
from labelsense.refine import Reconstruction
from labelsense.refine.candidates import Candidates
from labelsense.refine.sources import Centroids, LinearDecoder
from labelsense.refine.stage import as_rows
from labelsense.regress import KernelRidgeLearner, Learner, RBFKernel
from labelsense.regress.penalty import descend, mean_square

KS = (1, 3, 5)
ALPHAS = tuple(10 ** (half / 2) for half in range(-4, 5))  # times the mean square of a row
GAMMAS = (0.25, 0.5, 1.0, 2.0, 4.0)  # over the mean square of a row
HEARD_ATOMS = 6  # of the decoder where refinement hears other sources as well: with 10, it was no better
DECODED_ROWS = 128
RUNS = 10  # parts of rows in order, of which each is left out whole


@dataclass(frozen=True)
class Tried:
    """A setting that was compared with others, and the precision of rows that were left out of it, one at a time."""

    features: str | None
    alpha: float
    gamma: float | None  # None without a kernel
    figures: dict[str, float]
    by_row: DoubleArray = field(repr=False)  # the mean of P@1, P@3 and P@5
    seconds: float
    settled: bool = False  # on more rows than the others

    @property
    def precision(self) -> float:
        """The mean of P@1, P@3 and P@5."""
        return sum(self.figures.values()) / len(self.figures)

    @property
    def family(self) -> tuple[str | None, bool]:
        """The scaling, and whether there is a kernel."""
        return self.features, self.gamma is not None

    def clearly_beats(self, other: Tried, errors: float = 2) -> bool:
        """Whether it is better by more than some standard errors of the difference."""
        return clearly_more(self.by_row, other.by_row, errors)

    def make_learner(self, learner: Learner) -> Learner:
        """Return a copy of a learner with this penalty, and this kernel if there is one."""
        kernel = {} if self.gamma is None else {"kernel": RBFKernel(self.gamma)}
        return clone(learner).set_params(alpha=self.alpha, **kernel)

    def __str__(self) -> str:
        learner = "ridge" if self.gamma is None else f"kernel {self.gamma:g}"
        rows = f"{len(self.by_row):,} rows, " if self.settled else ""
        return f"{rows}{learner}, alpha {self.alpha:g}, features {self.features or 'as they are'}"


class Trial:
    """Rows on which settings are compared, and what was seen.

    Parameters
    ----------
    X, Y : matrices (n, p) and (n, d)
    m : int
        How many measurements to make.
    refined : bool
        Whether to judge by all that refinement hears, or by the decoder alone.
    seed : int
        Of A.
    in_runs : bool
        Whether rows next to each other belong together, and are left out together.
    """

    def __init__(self, X: Any, Y: CSR, m: int, refined: bool, seed: int, in_runs: bool = False) -> None:
        self.X, self.Y, self.refined, self.in_runs, self.tried = X, Y, refined, in_runs, list[Tried]()
        self.nearest: dict[str | None, DoubleArray] = {}  # the precision of centroids, by scaling
        self.said: dict[tuple[str | None, bool], FloatArray] = {}  # what the best of each family predicts
        self._path: tuple[Any, Callable[[float], tuple[Learner, FloatArray]]] | None = None  # of the last setting
        operator = WhitenedCompressor(m, random_state=seed).fit(Y).operator_
        self.Z = operator.compress(Y)
        decoder = OMPDecoder(count_atoms(m, Y.shape[1], refined), penalty=0.1)
        self.reconstruction = Reconstruction.by(decoder, operator)

    def best(self, *words: str | None) -> Tried:
        """Return the most precise setting so far, with one of some scalings if they are given."""
        tried = [tried for tried in self.tried if not words or tried.features in words]
        return max(tried, key=lambda tried: tried.precision)

    def walk_penalties(
        self, word: str | None, F: Any, learner: Any, start: int = len(ALPHAS) // 2, hopeful: bool = True
    ) -> int:
        """Try penalties downhill from one of the grid; return the place of the best.

        Unless hopeful, the first one is all if what was tried before is clearly better.
        """
        found: dict[int, float] = {}

        def loss(i: int) -> float:
            if i not in found:
                found[i] = -self.try_penalty(word, F, learner, i)
            return found[i]

        if not hopeful and self.tried:
            best = self.best()
            loss(start)
            if best.clearly_beats(self.tried[-1], errors=1):
                return start
        return descend(loss, len(ALPHAS), start)

    def try_penalty(self, word: str | None, F: Any, learner: Any, place: int) -> float:
        """Try one penalty of the grid; return the precision."""
        return self._try(word, F, learner.set_params(alpha=float(f"{penalty_scale(learner, F) * ALPHAS[place]:.3g}")))

    def walk_kernels(self, word: str | None, F: Any) -> None:
        """Try widths of an RBF kernel, and penalties for the first and the best one."""
        square = mean_square(F)
        middle = len(GAMMAS) // 2
        learners = [KernelRidgeLearner(RBFKernel(float(f"{gamma / square:.3g}"))) for gamma in GAMMAS]
        before = len(self.tried)
        place = self.walk_penalties(word, F, learners[middle])
        found = {middle: -max(tried.precision for tried in self.tried[before:])}

        def loss(i: int) -> float:
            if i not in found:
                found[i] = -self._try(word, F, learners[i].set_params(alpha=float(f"{ALPHAS[place]:.3g}")))
            return found[i]

        best = descend(loss, len(GAMMAS))
        if best != middle:
            self.walk_penalties(word, F, learners[best], place)

    def _try(self, word: str | None, F: Any, learner: Any) -> float:
        start = time.perf_counter()
        gamma = learner.kernel.gamma if hasattr(learner, "kernel") else None
        for tried in self.tried:
            if (tried.features, tried.alpha, tried.gamma) == (word, learner.alpha, gamma):
                return tried.precision
        H = _leave_runs_out(learner, F, self.Z) if self.in_runs else self._predict(word, F, learner, gamma)
        by_row = precision_by_row(self.reconstruction, H, self.Y, KS)
        if self.refined:
            if word not in self.nearest:
                self.nearest[word] = centroid_precision_by_row(as_rows(F), self.Y, KS)
            judges = [by_row, linear_precision_by_row(H, self.Y, KS), self.nearest[word]]
            by_row = np.mean(judges, axis=0)
        figures = {f"P@{k}": float(values.mean()) for k, values in zip(KS, by_row, strict=True)}
        tried = Tried(word, learner.alpha, gamma, figures, by_row.mean(axis=0), time.perf_counter() - start)
        log("tried %s: precision %.4f", tried, tried.precision)
        if all(tried.precision > other.precision for other in self.tried if other.family == tried.family):
            self.said[tried.family] = H
        self.tried.append(tried)
        return tried.precision

    def _predict(self, word: str | None, F: Any, learner: Any, gamma: float | None) -> FloatArray:
        """Return predictions of rows by models that have not seen them: walks change the penalty, and little else."""
        if self._path is None or self._path[0] != (word, gamma):
            self._path = (word, gamma), learner.fit_path(F, self.Z)
        return self._path[1](learner.alpha)[1]


def count_atoms(n_measurements: int, n_labels: int, refined: bool) -> int | str:
    """Return how many labels the decoder is to find of a row.

    Examples
    --------
    >>> count_atoms(100, 500, refined=True), count_atoms(100, 500, refined=False), count_atoms(4, 4, refined=True)
    (6, 'auto', 'auto')
    """
    return HEARD_ATOMS if refined and min(n_measurements, n_labels) > HEARD_ATOMS else "auto"


def _leave_runs_out(learner: Learner, X: Any, Z: FloatArray) -> FloatArray:
    """Return predictions of rows by models that have not seen them, nor those next to them, (n, m)."""
    every, H = np.arange(len(Z)), np.empty(Z.shape, np.float32)
    runs = np.array_split(every, min(RUNS, len(Z)))
    folds = [(np.setdiff1d(every, run), run) for run in runs]
    for run, (_, said) in zip(runs, learner.fit_leaving_out(X, Z, folds), strict=True):
        H[run] = said
    return H


def precision_curve(
    H: FloatArray, Y: CSR, operator: Operator, decoder: Decoder, ms: Sequence[int], ks: Sequence[int] = KS
) -> list[dict[str, float]]:
    """Return the precision that some of the measurements give, without refinement, for several numbers of them.

    The regressions do not depend on each other, so one fit has all of them. H are predictions out of sample.
    """
    curve = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # supports that do not fit are tried on purpose
        for m in ms:
            some = first_measurements(operator, m)
            reconstruction = Reconstruction.by(decoder.at_most(m), operator.subset(some))
            figures = decoded_precision(reconstruction, operator.subset_measurements(H, some), Y, ks)
            curve.append({"n_measurements": m, **figures})
    return curve


def first_measurements(operator: Operator, m: int) -> IntArray:
    """Return which m measurements stand for a smaller matrix; those of a larger one have them too."""
    return np.sort(check_random_state(0).permutation(operator.n_measurements)[:m])


def decoded_precision(reconstruction: Reconstruction, H: FloatArray, Y: CSR, ks: Sequence[int]) -> dict[str, float]:
    """Return P@k of the labels that measurements are decoded to."""
    by_row = precision_by_row(reconstruction, H, Y, ks)
    return {f"P@{k}": float(values.mean()) for k, values in zip(ks, by_row, strict=True)}


def precision_by_row(reconstruction: Reconstruction, H: FloatArray, Y: CSR, ks: Sequence[int]) -> DoubleArray:
    """Return P@k of each row, of the labels that measurements are decoded to, (ks, n)."""
    _, decoder, state = reconstruction
    parts = map_rows(lambda rows: decoder.decode(state, H[rows]), len(H), DECODED_ROWS, -1)
    return precision_shares(Y, top_k(sp.vstack(parts, format="csr"), max(ks)).labels, ks)


def linear_precision_by_row(H: FloatArray, Y: CSR, ks: Sequence[int]) -> DoubleArray:
    """Return P@k of each row, of the labels that a linear decoder learned from the other rows gives, (ks, n).

    H holds measurements that are out of sample.
    """
    decoder, k = LinearDecoder.learn(H, Y), min(max(ks), Y.shape[1])
    leverage, row = decoder.leverages(H), np.repeat(np.arange(len(H)), np.diff(Y.indptr))

    def find(rows: slice) -> IntArray:
        scores = H[rows] @ decoder.weights + decoder.intercept
        own = slice(Y.indptr[rows.start], Y.indptr[rows.stop])
        scores[row[own] - rows.start, Y.indices[own]] -= leverage[row[own]]  # but for a factor of the row
        return _best(scores, k)

    with plain_algebra:
        labels = np.concatenate(map_rows(find, len(H), DECODED_ROWS, -1))
    return precision_shares(Y, labels, ks)


def centroid_precision_by_row(X: CSR, Y: CSR, ks: Sequence[int]) -> DoubleArray:
    """Return P@k of each row, of the labels whose centroids are nearest, without the row itself, (ks, n)."""
    centroids, k = Centroids.learn(X, Y), min(max(ks), Y.shape[1])

    def find(rows: slice) -> IntArray:
        some, d = X[rows], Y.shape[1]
        pairs = Candidates(
            np.arange(0, some.shape[0] * d + 1, d), np.tile(np.arange(d, dtype=np.int32), some.shape[0]), d
        )
        no_measurements = np.empty((some.shape[0], 0), np.float32)
        scores = centroids.scores(some, no_measurements).ravel()
        return _best(centroids.own(some, no_measurements, Y[rows], pairs, scores).reshape(-1, d), k)

    return precision_shares(Y, np.concatenate(map_rows(find, X.shape[0], DECODED_ROWS, -1)), ks)


def _best(scores: FloatArray, k: int) -> IntArray:
    """Return the columns of the k largest numbers of each row, the largest first."""
    best = np.argpartition(-scores, k - 1, axis=1)[:, :k]
    order = np.argsort(-np.take_along_axis(scores, best, 1), axis=1, kind="stable")
    return np.take_along_axis(best, order, 1)


def penalty_scale(learner: Learner, X: Any) -> float:
    """Return what penalties are multiples of: a kernel has ones on its diagonal."""
    return 1.0 if hasattr(learner, "kernel") else mean_square(X)
