"""The settings that nobody has given: chosen by the precision of rows that the trial models have not seen."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from labelsense._blocks import map_rows, plain_algebra
from labelsense._memory import available_memory
from labelsense._progress import log
from labelsense._typing import CSR, FloatArray, IntArray
from labelsense.compress import Compressor, HadamardCompressor, Operator, PLSTCompressor, WhitenedCompressor
from labelsense.features import make_features
from labelsense.labels import top_k
from labelsense.metrics._pairs import are_true
from labelsense.reconstruct import Decoder, OMPDecoder, ProjectionDecoder
from labelsense.refine import Reconstruction, Refiner
from labelsense.refine.candidates import Candidates
from labelsense.refine.sources import Centroids, LinearDecoder
from labelsense.refine.stage import as_rows
from labelsense.regress import KernelRidgeLearner, Learner, RBFKernel, RidgeLearner
from labelsense.regress.penalty import descend

KS = (1, 3, 5)
SPARSE = 0.25  # the share of numbers that are not zero, up to which features are taken for counts
ALPHAS = tuple(10 ** (half / 2) for half in range(-4, 5))  # times the mean square of a row
GAMMAS = (0.25, 0.5, 1.0, 2.0, 4.0)  # over the mean square of a row
DECODED_ROWS = 128
LEAST_MEASUREMENTS = 100
MEMORY_SHARE = 0.5  # of what is free, for the kernel matrix or for a whitened A
RARE = 1.0  # mean rows of a label in a sample of rows, below which labels are sampled instead
SETTLED_ROWS = 12_000  # on which a thorough choice is made of the penalty, at most
FITS = 4  # fits of all rows that a fit with the folds of refinement costs, in closed form


@dataclass(frozen=True)
class Budget:
    """What may be spent on a fit.

    Attributes
    ----------
    sample : int
        Rows on which settings are compared, at most.
    kernel_seconds : float
        Time for fits with a kernel, as estimated beforehand.
    gain : float
        How much better than ridge a kernel must be to be taken, as a share.
    thorough : bool
        Whether kernels are tried with every scaling of the features, not only with the best one for ridge, and the
        penalty is chosen again on more rows.
    n_calibration : int
        Rows from which refinement learns probabilities, at most.
    roots : float
        How many measurements there are, in square roots of the number of labels.
    """

    sample: int
    kernel_seconds: float
    gain: float
    thorough: bool
    n_calibration: int
    roots: float


BUDGETS = {
    "fast": Budget(sample=1000, kernel_seconds=0, gain=0, thorough=False, n_calibration=1000, roots=4.0),
    "balanced": Budget(sample=1500, kernel_seconds=15, gain=0.007, thorough=False, n_calibration=2000, roots=4.5),
    "accurate": Budget(sample=4000, kernel_seconds=300, gain=0, thorough=True, n_calibration=6000, roots=6.3),
}


@dataclass(frozen=True)
class Tried:
    """A setting that was compared with others, and the precision of rows that were left out of it, one at a time."""

    features: str | None
    alpha: float
    gamma: float | None  # None without a kernel
    figures: dict[str, float]
    by_row: FloatArray = field(repr=False)  # the mean of P@1, P@3 and P@5
    seconds: float
    settled: bool = False  # on more rows than the others

    @property
    def precision(self) -> float:
        """The mean of P@1, P@3 and P@5."""
        return sum(self.figures.values()) / len(self.figures)

    def clearly_beats(self, other: Tried, errors: float = 2) -> bool:
        """Whether it is better by more than some standard errors of the difference."""
        more = self.by_row - other.by_row
        return bool(more.mean() > errors * more.std() / math.sqrt(len(more)))

    def make_learner(self) -> Learner:
        """Return the learner that was tried."""
        if self.gamma is None:
            return RidgeLearner(self.alpha)
        return KernelRidgeLearner(RBFKernel(self.gamma), self.alpha)

    def __str__(self) -> str:
        learner = "ridge" if self.gamma is None else f"kernel {self.gamma:g}"
        rows = f"{len(self.by_row):,} rows, " if self.settled else ""
        return f"{rows}{learner}, alpha {self.alpha:g}, features {self.features or 'as they are'}"


@dataclass(frozen=True)
class Choice:
    """What was chosen, and what it was compared with."""

    features: str | None
    learner: Learner
    tried: tuple[Tried, ...]
    curve: list[dict[str, float]]  # n_measurements and precisions, with fewer of the measurements


def choose(X: Any, Y: CSR, budget: Budget, *, scale: bool, kernels: bool, refined: bool, random_state: Any) -> Choice:
    """Choose how to scale features, if they may be, and a learner with its penalty, a kernel if there may be one.

    On a sample of the rows, each setting predicts the measurements of every row by a model that has not seen the row
    (leave-one-out in closed form), these are decoded, and the most precise one wins. If what is decoded will be
    refined, that is the mean precision of all that refinement hears: the decoder, a linear decoder, which does not mind
    how much a penalty shrinks measurements, and the centroids of labels, which see the features alone. Of the scalings,
    the first one does unless another is clearly better; one that is clearly worse with the penalty that was best for
    another is given up, unless the budget is thorough.
    """
    random = check_random_state(random_state)
    rows, some = sample(Y, budget.sample, random)
    seconds = _kernel_seconds(X, choose_measurements(Y.shape[1], budget)) if kernels else math.inf
    choice = choose_by(X[rows], some, budget, random, refined, scalings(X) if scale else [None], seconds)
    if not budget.thorough or len(rows) == X.shape[0]:
        return choice
    rows, some = sample(Y, SETTLED_ROWS, random)
    return settle(choice, X[rows], some, budget, random, refined)


def choose_by(
    X: Any,
    Y: CSR,
    budget: Budget,
    random: Any,
    refined: bool,
    words: Sequence[str | None] = (None,),
    kernel_seconds: float = math.inf,
) -> Choice:
    """Do what :func:`choose` does, given the sample, the scalings to try, and how long fits with a kernel take."""
    trial = _Trial(X, Y, choose_measurements(Y.shape[1], budget), refined, random.randint(2**31))
    scaled = {word: X if word is None else make_features(word).fit_transform(X) for word in words}
    place = len(ALPHAS) // 2
    for word, F in scaled.items():
        learner = RidgeLearner(solver="primal" if F.shape[1] < Y.shape[0] else "dual")
        place = trial.walk_penalties(word, F, learner, place, hopeful=budget.thorough)
    first, best = trial.best(words[0]), trial.best()
    if not best.clearly_beats(first):
        best = first
    if kernel_seconds <= budget.kernel_seconds:
        for word in words if budget.thorough else [best.features]:
            trial.walk_kernels(word, scaled[word])
        rival = trial.best()
        if rival.precision > (1 + budget.gain) * best.precision:
            best = rival
    learner = best.make_learner()
    operator, decoder, _ = trial.reconstruction
    curve = precision_curve(scaled[best.features], trial.Y, learner, operator, decoder, fewer(operator.n_measurements))
    return Choice(best.features, learner, tuple(trial.tried), curve)


def settle(choice: Choice, X: Any, Y: CSR, budget: Budget, random: Any, refined: bool) -> Choice:
    """Choose the penalty again on more rows: what is best depends on how many there are."""
    word = choice.features
    F = X if word is None else make_features(word).fit_transform(X)
    trial = _Trial(X, Y, choose_measurements(Y.shape[1], budget), refined, random.randint(2**31))
    trial.walk_penalties(word, F, clone(choice.learner), _place(choice.learner, F))
    settled = [replace(tried, settled=True) for tried in trial.tried]
    return replace(choice, learner=trial.best().make_learner(), tried=(*choice.tried, *settled))


def fewer(m: int) -> list[int]:
    """Return some numbers of measurements up to m, ascending.

    Examples
    --------
    >>> fewer(200)
    [25, 50, 100, 200]
    """
    return sorted({-(-m // part) for part in (8, 4, 2, 1)})


def precision_curve(
    X: Any, Y: CSR, learner: Learner, operator: Operator, decoder: Decoder, ms: Sequence[int], ks: Sequence[int] = KS
) -> list[dict[str, float]]:
    """Return the precision that some of the measurements give, without refinement, for several numbers of them.

    The regressions do not depend on each other, so one fit has all of them. Rows are predicted out of sample.
    """
    H = learner.fit_out_of_sample(X, operator.compress(Y))
    curve = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # supports that do not fit are tried on purpose
        for m in ms:
            some = first_measurements(operator, m)
            reconstruction = Reconstruction.by(decoder, operator.subset(some))
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


def precision_by_row(reconstruction: Reconstruction, H: FloatArray, Y: CSR, ks: Sequence[int]) -> FloatArray:
    """Return P@k of each row, of the labels that measurements are decoded to, (ks, n)."""
    _, decoder, state = reconstruction
    parts = map_rows(lambda rows: decoder.decode(state, H[rows]), len(H), DECODED_ROWS, -1)
    return _share_of_hits(Y, top_k(sp.vstack(parts, format="csr"), max(ks)).labels, ks)


def linear_precision_by_row(H: FloatArray, Y: CSR, ks: Sequence[int]) -> FloatArray:
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
    return _share_of_hits(Y, labels, ks)


def centroid_precision_by_row(X: CSR, Y: CSR, ks: Sequence[int]) -> FloatArray:
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

    return _share_of_hits(Y, np.concatenate(map_rows(find, X.shape[0], DECODED_ROWS, -1)), ks)


def _best(scores: FloatArray, k: int) -> IntArray:
    """Return the columns of the k largest numbers of each row, the largest first."""
    best = np.argpartition(-scores, k - 1, axis=1)[:, :k]
    order = np.argsort(-np.take_along_axis(scores, best, 1), axis=1, kind="stable")
    return np.take_along_axis(best, order, 1)


def _share_of_hits(Y: CSR, labels: IntArray, ks: Sequence[int]) -> FloatArray:
    hits = are_true(Y, np.arange(Y.shape[0])[:, None], labels)
    return np.stack([hits[:, :k].sum(axis=1) / k for k in ks])


def sample(Y: CSR, size: int, random: Any) -> tuple[IntArray, CSR]:
    """Return about so many rows, and their labels.

    Where a label has less than one row in a random sample on average, nothing could be learned from it. Then some
    labels are taken with all their rows, and no others.
    """
    n, d = Y.shape
    labels = sample_labels(np.bincount(Y.indices, minlength=d), n, size, random)
    if labels is None:
        rows = np.sort(random.permutation(n)[:size])
        return rows, Y[rows]
    some = sp.csc_array(Y)[:, labels].tocsr()
    rows = np.sort(random.permutation(np.flatnonzero(np.diff(some.indptr)))[:size])
    return rows, sp.csr_array(some[rows])


def sample_labels(counts: IntArray, n: int, size: int, random: Any) -> IntArray | None:
    """Return the labels that :func:`sample` takes of those that so many of n rows have; None if it takes all."""
    if n <= size or counts.sum() * size / n >= RARE * len(counts):
        return None
    order = random.permutation(len(counts))
    ends = np.cumsum(counts[order])  # rows that have several labels count several times
    return np.sort(order[: max(2, int(np.searchsorted(ends, size, "right")))])


def choose_measurements(n_labels: int, budget: Budget) -> int:
    """Return how many measurements a refined model has: some times the square root of d, from 100 on.

    Examples
    --------
    >>> [choose_measurements(d, BUDGETS["balanced"]) for d in (20, 1000, 100_000)]
    [20, 143, 1424]
    """
    return min(n_labels, max(LEAST_MEASUREMENTS, math.ceil(budget.roots * math.sqrt(n_labels))))


def choose_compressor(n_labels: int, budget: Budget) -> Compressor:
    """Return the compressor of a model for which none was given: whitened, if there is memory for its A."""
    m = choose_measurements(n_labels, budget)
    fits = 4.0 * m * (2 * m + n_labels) <= min(2**32, MEMORY_SHARE * available_memory())
    return WhitenedCompressor(m) if fits else HadamardCompressor(m)


def choose_decoder(compressor: Compressor) -> Decoder:
    """Return the decoder of a model for which none was given: orthogonal matching pursuit, or what suits A."""
    if isinstance(compressor, PLSTCompressor) and not compressor.random_share:
        return ProjectionDecoder()
    return OMPDecoder(penalty=0.1 if isinstance(compressor, (WhitenedCompressor, PLSTCompressor)) else 0.0)


def choose_refiner(budget: Budget) -> Refiner:
    """Return the refiner of a model for which none was given."""
    return Refiner(n_calibration=budget.n_calibration)


def scalings(X: Any) -> list[str | None]:
    """Return how features may be scaled, in words; None leaves them as they are."""
    values = X.data if sp.issparse(X) else X
    size = X.shape[0] * X.shape[1]
    filled = X.nnz / max(1, size) if sp.issparse(X) else np.count_nonzero(X) / max(1, size)
    if filled > SPARSE:
        return ["standard", "unit", None]
    return ["counts", "unit", None] if values.size == 0 or values.min() >= 0 else ["unit", None]


class _Trial:
    """Rows on which settings are compared, and what was seen."""

    def __init__(self, X: Any, Y: CSR, m: int, refined: bool, seed: int) -> None:
        self.X, self.Y, self.refined, self.tried = X, Y, refined, list[Tried]()
        self.nearest: dict[str | None, FloatArray] = {}  # the precision of centroids, by scaling
        operator = WhitenedCompressor(m, random_state=seed).fit(Y).operator_
        self.Z = operator.compress(Y)
        self.reconstruction = Reconstruction.by(OMPDecoder(penalty=0.1), operator)

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
        scale = _penalty_scale(learner, F)
        found: dict[int, float] = {}

        def loss(i: int) -> float:
            if i not in found:
                found[i] = -self._try(word, F, learner.set_params(alpha=float(f"{scale * ALPHAS[i]:.3g}")))
            return found[i]

        if not hopeful and self.tried:
            best = self.best()
            loss(start)
            if best.clearly_beats(self.tried[-1], errors=1):
                return start
        return descend(loss, len(ALPHAS), start)

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
        H = learner.fit_out_of_sample(F, self.Z)
        by_row = precision_by_row(self.reconstruction, H, self.Y, KS)
        if self.refined:
            if word not in self.nearest:
                self.nearest[word] = centroid_precision_by_row(as_rows(F), self.Y, KS)
            judges = [by_row, linear_precision_by_row(H, self.Y, KS), self.nearest[word]]
            by_row = np.mean(judges, axis=0, dtype=np.float32)
        figures = {f"P@{k}": float(values.mean()) for k, values in zip(KS, by_row, strict=True)}
        tried = Tried(word, learner.alpha, gamma, figures, by_row.mean(axis=0), time.perf_counter() - start)
        log("tried %s: precision %.4f", tried, tried.precision)
        self.tried.append(tried)
        return tried.precision


def _penalty_scale(learner: Learner, X: Any) -> float:
    """Return what penalties are multiples of: a kernel has ones on its diagonal."""
    return 1.0 if isinstance(learner, KernelRidgeLearner) else mean_square(X)


def _place(learner: Any, X: Any) -> int:
    """Return the place of its penalty in the grid."""
    return int(np.argmin(np.abs(np.log(np.array(ALPHAS) * _penalty_scale(learner, X) / learner.alpha))))


def mean_square(X: Any) -> float:
    """Return the mean squared length of a row."""
    values = X.data if sp.issparse(X) else X
    return max(float(np.square(values, dtype=np.float64).sum() / X.shape[0]), 1e-12)


def _kernel_seconds(X: Any, m: int) -> float:
    """Return how long the fits of a kernel take, infinite without the memory for them."""
    cost = KernelRidgeLearner().cost(X, m)
    assert cost.work_bytes is not None
    return FITS * cost.seconds if cost.work_bytes <= MEMORY_SHARE * available_memory() else math.inf
