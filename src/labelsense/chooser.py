"""The settings that nobody has given: chosen by the precision of rows that the trial models have not seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import check_random_state

from labelsense._blocks import plain_algebra
from labelsense._memory import available_memory
from labelsense._typing import CSR, IntArray
from labelsense.compress import Compressor, HadamardCompressor, PLSTCompressor, WhitenedCompressor
from labelsense.features import make_features
from labelsense.reconstruct import Decoder, OMPDecoder, ProjectionDecoder
from labelsense.refine import Refiner
from labelsense.regress import KernelRidgeLearner, LandmarkRidgeLearner, Learner, RBFKernel, RidgeLearner
from labelsense.regress.penalty import mean_square
from labelsense.trials import ALPHAS, Trial, Tried, count_atoms, penalty_scale, precision_curve

SPARSE = 0.25  # the share of numbers that are not zero, up to which features are taken for counts
LEAST_MEASUREMENTS = 100
MEMORY_SHARE = 0.5  # of what is free, for the kernel matrix or for a whitened A
LEAST_LABELS = 2  # in a sample: of fewer, there is nothing to choose
RARE = 1.0  # mean rows of a label in a sample of rows, below which labels are sampled instead
SMOOTH = 0.5  # gamma of the kernel of landmarks, over the mean square of a row: few of them draw no narrower one
SETTLED_PAIRS = 2**24  # of a row and a label: beyond, it would take longer than it is worth to a balanced budget
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
    neighbour_rows : int
        Up to how many rows refinement hears the labels of similar ones.
    landmarks : int
        That stand for all rows where a kernel of all would take longer, and features are not more.
    settled : int
        Rows on which what a sample is too small for is settled, at most.
    """

    sample: int
    kernel_seconds: float
    gain: float
    thorough: bool
    n_calibration: int
    roots: float
    neighbour_rows: int = 0
    landmarks: int = 0
    settled: int = 0


BUDGETS = {
    "fast": Budget(sample=1000, kernel_seconds=0, gain=0, thorough=False, n_calibration=1000, roots=4.0),
    "balanced": Budget(
        sample=1500,
        kernel_seconds=15,
        gain=0.007,
        thorough=False,
        n_calibration=2500,
        roots=4.5,
        neighbour_rows=30_000,
        landmarks=1100,
        settled=4000,
    ),
    "accurate": Budget(
        sample=4000,
        kernel_seconds=400,
        gain=0,
        thorough=True,
        n_calibration=6000,
        roots=6.3,
        neighbour_rows=100_000,
        landmarks=3000,
        settled=12_000,
    ),
}


@dataclass(frozen=True)
class Choice:
    """What was chosen, and what it was compared with."""

    features: str | None
    learner: Learner
    tried: tuple[Tried, ...]
    curve: list[dict[str, float]]  # n_measurements and precisions, with fewer of the measurements


def choose(
    X: Any,
    Y: CSR,
    budget: Budget,
    *,
    scale: bool,
    kernels: bool,
    refined: bool,
    random_state: Any,
    in_runs: bool = False,
) -> Choice:
    """Choose how to scale features, if they may be, and a learner with its penalty, a kernel if there may be one.

    On a sample of the rows, each setting predicts the measurements of every row by a model that has not seen the row
    (leave-one-out in closed form), these are decoded, and the most precise one wins. If what is decoded will be
    refined, that is the mean precision of all that refinement hears: the decoder, a linear decoder, which does not mind
    how much a penalty shrinks measurements, and the centroids of labels, which see the features alone. Of the scalings,
    the first one does unless another is clearly better; one that is clearly worse with the penalty that was best for
    another is given up, unless the budget is thorough.

    A kernel needs more rows than a sample has to show what it is worth. Where one of all rows would take too long, but
    landmarks would not, these are compared with the best other setting on more rows.

    If rows come in runs of related ones, those next to a row tell much of it that nothing will tell of new rows, and
    are left out with it.
    """
    random = check_random_state(random_state)
    rows, some = sample(Y, budget.sample, random)
    kernel = _choose_kernel(X, choose_measurements(Y.shape[1], budget), budget) if kernels else None
    landmarks = kernel if isinstance(kernel, LandmarkRidgeLearner) else None
    exact = kernel is not None and landmarks is None
    words = scalings(X) if scale else [None]
    with plain_algebra:
        choice = choose_by(X[rows], some, budget, random, refined, words, exact, in_runs)
        size = budget.settled if budget.thorough else min(budget.settled, SETTLED_PAIRS // Y.shape[1])
        if len(rows) == X.shape[0] or size <= len(rows) or not (budget.thorough or landmarks):
            return choice
        rows, some = sample(Y, size, random)
        return settle(choice, X[rows], some, budget, random, refined, landmarks, in_runs)


def choose_by(
    X: Any,
    Y: CSR,
    budget: Budget,
    random: Any,
    refined: bool,
    words: Sequence[str | None] = (None,),
    kernels: bool = False,
    in_runs: bool = False,
) -> Choice:
    """Do what :func:`choose` does, given the sample, the scalings to try, and whether there is time for kernels."""
    Y = drop_absent(Y)
    trial = Trial(X, Y, choose_measurements(Y.shape[1], budget), refined, random.randint(2**31), in_runs)
    scaled = {word: X if word is None else make_features(word).fit_transform(X) for word in words}
    place = len(ALPHAS) // 2
    for word, F in scaled.items():
        solver = "primal" if F.shape[1] < Y.shape[0] else "dual"
        learner = RidgeLearner(solver=solver)
        place = trial.walk_penalties(word, F, learner, place, hopeful=budget.thorough)
    first, best = trial.best(words[0]), trial.best()
    if not best.clearly_beats(first):
        best = first
    if kernels:
        for word in words if budget.thorough else [best.features]:
            trial.walk_kernels(word, scaled[word])
        rival = trial.best()
        if rival.precision > (1 + budget.gain) * best.precision:
            best = rival
    operator, decoder, _ = trial.reconstruction
    curve = precision_curve(trial.said[best.family], Y, operator, decoder, fewer(operator.n_measurements))
    learner = RidgeLearner() if best.gamma is None else KernelRidgeLearner()
    return Choice(best.features, best.make_learner(learner), tuple(trial.tried), curve)


def settle(
    choice: Choice,
    X: Any,
    Y: CSR,
    budget: Budget,
    random: Any,
    refined: bool,
    landmarks: LandmarkRidgeLearner | None = None,
    in_runs: bool = False,
) -> Choice:
    """Choose on more rows what depends on how many there are: a thorough penalty, and whether landmarks are better."""
    word, Y = choice.features, drop_absent(Y)
    F = X if word is None else make_features(word).fit_transform(X)
    trial = Trial(X, Y, choose_measurements(Y.shape[1], budget), refined, random.randint(2**31), in_runs)
    seed = random.randint(2**31)  # of folds and landmarks
    learner, place = clone(choice.learner).set_params(random_state=seed), _place(choice.learner, F)
    if budget.thorough:
        trial.walk_penalties(word, F, learner, place)
    else:
        trial.try_penalty(word, F, learner, place)
    best = trial.best()
    if landmarks is not None:
        kernel = RBFKernel(float(f"{SMOOTH / mean_square(F):.3g}"))
        landmarks = clone(landmarks).set_params(kernel=kernel, random_state=seed)
        trial.walk_penalties(word, F, landmarks)
        rival = trial.best()
        if rival.clearly_beats(best):
            best, learner = rival, landmarks
    settled = [replace(tried, settled=True) for tried in trial.tried]
    return replace(choice, learner=best.make_learner(learner), tried=(*choice.tried, *settled))


def fewer(m: int) -> list[int]:
    """Return some numbers of measurements up to m, ascending.

    Examples
    --------
    >>> fewer(200)
    [25, 50, 100, 200]
    """
    return sorted({-(-m // part) for part in (8, 4, 2, 1)})


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


def drop_absent(Y: CSR) -> CSR:
    """Return labels without those that no row has: they cost as much as others, and tell nothing.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> drop_absent(sp.csr_array(np.eye(3, 5))).shape
    (3, 3)
    """
    present = np.flatnonzero(np.bincount(Y.indices, minlength=Y.shape[1]))
    return Y if len(present) < LEAST_LABELS else sp.csr_array(Y[:, present])


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


def choose_decoder(compressor: Compressor, n_labels: int, refined: bool) -> Decoder:
    """Return the decoder of a model for which none was given: orthogonal matching pursuit, or what suits A."""
    if isinstance(compressor, PLSTCompressor) and not compressor.random_share:
        return ProjectionDecoder()
    penalty = 0.1 if isinstance(compressor, (WhitenedCompressor, PLSTCompressor)) else 0.0
    m = n_labels if isinstance(compressor.n_measurements, str) else compressor.n_measurements  # "auto" is more than few
    return OMPDecoder(count_atoms(m, n_labels, refined), penalty=penalty)


def choose_refiner(budget: Budget, neighbours: bool) -> Refiner:
    """Return the refiner of a model for which none was given, and whether it may hear the labels of similar rows."""
    return Refiner(n_calibration=budget.n_calibration, neighbour_rows=budget.neighbour_rows if neighbours else 0)


def scalings(X: Any) -> list[str | None]:
    """Return how features may be scaled, in words; None leaves them as they are."""
    values = X.data if sp.issparse(X) else X
    size = X.shape[0] * X.shape[1]
    filled = X.nnz / max(1, size) if sp.issparse(X) else np.count_nonzero(X) / max(1, size)
    if filled > SPARSE:
        return ["standard", "unit", None]
    return ["counts", "unit", None] if values.size == 0 or values.min() >= 0 else ["unit", None]


def _choose_kernel(X: Any, m: int, budget: Budget) -> Learner | None:
    """Return what learns with a kernel within time and memory; None if nothing does."""
    learners: list[Learner] = [KernelRidgeLearner()]
    if X.shape[1] <= budget.landmarks:
        learners.append(LandmarkRidgeLearner(n_landmarks=budget.landmarks))
    for learner in learners:
        cost = learner.cost(X, m)
        assert cost.work_bytes is not None
        if FITS * cost.seconds <= budget.kernel_seconds and cost.work_bytes <= MEMORY_SHARE * available_memory():
            return learner
    return None


def _place(learner: Any, X: Any) -> int:
    """Return the place of its penalty in the grid."""
    return int(np.argmin(np.abs(np.log(np.array(ALPHAS) * penalty_scale(learner, X) / learner.alpha))))
