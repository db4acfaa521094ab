"""The advisor: a trial on a sample, and what follows from it."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.random import sample_without_replacement

from labelsense._progress import log, verbosity
from labelsense._typing import CSR, FloatArray, RandomState
from labelsense._validation import check_choice, check_count, holds_texts
from labelsense.advisor.advice import Advice, Option
from labelsense.advisor.costs import Costs, peak_bytes
from labelsense.advisor.reasons import explain
from labelsense.advisor.sparsity import Sparsity
from labelsense.advisor.trial import Trial, extrapolate, likeness, make_splits, measurement_grid, quiet
from labelsense.compress import HadamardCompressor
from labelsense.compress.hadamard import hadamard_order
from labelsense.errors import InputError
from labelsense.estimator import CompressedLabelClassifier
from labelsense.metrics import squared_error
from labelsense.predictor import make_learner
from labelsense.reconstruct import DECODERS
from labelsense.reconstruct.base import AUTO_NONZERO
from labelsense.regress import Learner, RidgeLearner
from labelsense.regress.penalty import descend

LEAST_ROWS = 10
POINT = 0.01
RUNS = {"rows": 1, "runs": 50}
COMPARED = 1000  # held-out rows on which decoders and support sizes are compared
ALPHA_MEASUREMENTS = 500  # measurements that stand for all in the choice of alpha
TIMED_ROWS = 256  # rows on which decoding is timed


def advise(
    X: Any,
    y: Any,
    *,
    learner: Learner | BaseEstimator | str = "ridge",
    features: BaseEstimator | str | None = None,
    k: int = 5,
    sample: int = 6000,
    held_out: str = "rows",
    random_state: RandomState = 0,
    verbose: int = 0,
) -> Advice:
    """Tell how many measurements and which decoder to take, what precision to expect, and what it will cost.

    It learns the most measurements once, from a sample of the rows, and decodes rows that were held out, with every
    decoder and from fewer and fewer measurements: a few of the rows of A are a smaller A. Trials
    on a half and a quarter of the sample show how much more rows help. The cost is bounded whatever n and d are: about
    three fits of ``sample`` rows (if there are hardly more rows than that, of five folds of them), and at most 3,000
    rows decoded some eighty times.

    Parameters
    ----------
    X : array or CSR (n, p), or texts
        The rows that the classifier will be fitted on.
    y : indicator matrix (n, d), or one list of labels per row
    learner : Learner, scikit-learn regressor or {"ridge", "kernel_ridge"}
        "ridge", or a ``RidgeLearner`` with alpha="loo", has its penalty chosen by the precision of held-out rows.
    features : transformer or {"words", "hashing", "counts", "images"}, optional
        What makes features of X first, as in :class:`~labelsense.CompressedLabelClassifier`; by default "words" for
        texts.
    k : int
        Recommend by P@k: the number of labels that will be shown, at most d.
    sample : int
        How many rows to learn from, at most.
    held_out : {"rows", "runs"}
        How new rows will come. "rows": they are like those given, and single rows are held out. "runs": rows next to
        each other are related (one source, one day) and new rows come from elsewhere, so runs of 50 are held out. What
        is expected depends on it where related rows are many; the reasons say so.
    random_state : int, RandomState or None
        Seed of the sample and of A.
    verbose : int
        1 logs each step.

    Returns
    -------
    Advice

    Examples
    --------
    >>> from labelsense.advisor import advise
    >>> from labelsense.data import make_tagged_documents
    >>> X, Y = make_tagged_documents(400, 200, 60, noise=0.1, random_state=0)
    >>> advice = advise(X, Y)
    >>> [option.n_measurements for option in advice.options]
    [20, 32, 50, 60]
    >>> advice.make_classifier().fit(X, Y).predict_topk(X, 2).labels.shape
    (400, 2)
    """
    start = time.perf_counter()
    if features is None and holds_texts(X):
        features = "words"
    X, Y = _check(X, y, features)
    k = min(check_count(k, "k"), Y.shape[1])
    check_count(sample, "sample", low=LEAST_ROWS)
    random = check_random_state(random_state)
    seed = int(random.randint(2**31))
    ms = measurement_grid(Y.shape[1], X.shape[1])
    rows = sample_without_replacement(hadamard_order(Y.shape[1]), ms[-1], method="pool", random_state=random)
    ks = (1, 3, 5) if k in (1, 3, 5) else tuple(sorted({1, 3, k}))
    ks = tuple(each for each in ks if each <= Y.shape[1])
    run = check_choice(held_out, "held_out", RUNS)
    splits = make_splits(X.shape[0], sample, Y.shape[1], run, random)
    with verbosity(verbose):
        trial = Trial(X, Y, make_learner(learner, None), splits, rows, ks)
        tried = _choose_alpha(trial, learner, k)
        sparsity = Sparsity.of(Y)
        options = _weigh(trial, ms, sparsity, k, seed)
    best = _choose(options, f"P@{k}")
    advice = Advice(
        sparsity=sparsity,
        options=options,
        n_measurements=best.n_measurements,
        decoder=best.decoder,
        n_nonzero=best.n_nonzero,
        learner=trial.learner,
        features=features,
        k=k,
        best_possible=best_possible(trial.truth, ks),
        standard_error=_standard_error(best.expected["P@1"], trial.truth.shape[0]),
        costs=_costs(trial, best),
        reasons=(),
        n_learned=trial.largest,
        n_held_out=int(trial.truth.shape[0]),
        held_out=held_out,
        likeness=likeness(X, random),
        random_state=seed,
        seconds=time.perf_counter() - start,
    )
    return replace(advice, reasons=explain(advice, tried))


def _check(X: Any, y: Any, features: Any) -> tuple[Any, CSR]:
    X, Y, _ = CompressedLabelClassifier(features=features)._check_training(X, y)  # as it will be fitted
    if X.shape[0] < LEAST_ROWS:
        raise InputError(
            f"advise needs at least {LEAST_ROWS} rows, to learn from some and test on others. Got {X.shape[0]}."
        )
    return X, Y


def best_possible(Y: CSR, ks: Any) -> dict[str, float]:
    """Return the best possible P@k: rows with fewer than k labels cannot reach 1."""
    per_row = np.diff(Y.indptr)
    return {f"P@{k}": float(np.minimum(per_row, k).mean() / k) for k in ks}


def _choose_alpha(trial: Trial, learner: Any, k: int) -> dict[float, float]:
    """Set the penalty of a ridge learner that leaves it open; return what was tried, with the P@k of each.

    By half of the sample and a few measurements: the best penalty hardly depends on the numbers of either.
    """
    if not isinstance(trial.learner, RidgeLearner) or (learner != "ridge" and trial.learner.alpha != "loo"):
        return {}
    values = trial.X.data if hasattr(trial.X, "tocsr") else trial.X
    scale = max(float(np.vdot(values, values)) / trial.X.shape[0], 1e-12)
    grid = [float(f"{scale * 10 ** (half / 2):.3g}") for half in range(-6, 7)]
    tried: dict[float, float] = {}
    m = min(len(trial.rows), ALPHA_MEASUREMENTS)
    part = Trial(trial.X, trial.Y, trial.learner, trial.splits[:1], trial.rows[:m], (k,))

    def loss(i: int) -> float:
        alpha = grid[i]
        if alpha not in tried:
            part.learner = clone(trial.learner).set_params(alpha=alpha)
            H = part.measure(max(1, part.largest // 2))
            scores = part.decode(DECODERS["omp"](), m, H, [_support(m, trial.Y.shape[1], k)])[0]
            tried[alpha] = part.precision(scores)[f"P@{k}"]
            log("advise: alpha %g, P@%d %.4f", alpha, k, tried[alpha])
        return -tried[alpha]

    trial.learner = clone(trial.learner).set_params(alpha=grid[descend(loss, len(grid))])
    return tried


def _support(m: int, n_labels: int, k: int) -> int:
    return min(max(AUTO_NONZERO, k), m, n_labels)


def _weigh(trial: Trial, ms: list[int], sparsity: Sparsity, k: int, seed: int) -> tuple[Option, ...]:
    """Return what to expect of each number of measurements, with the best decoder for it."""
    sizes = sorted({max(1, trial.largest // part) for part in (4, 2, 1)})
    measured = [trial.measure(size) for size in sizes]
    return tuple(_option(trial, m, sizes, measured, sparsity, k, seed) for m in ms)


def _option(
    trial: Trial, m: int, sizes: list[int], measured: list[FloatArray], sparsity: Sparsity, k: int, seed: int
) -> Option:
    d, goal = sparsity.n_labels, f"P@{k}"
    H = [trial.subset(each, m) for each in measured]
    base, some = _support(m, d, k), H[-1][:COMPARED]
    decoders = {
        word: trial.precision(trial.decode(kind(), m, some, [base])[0])[goal]
        for word, kind in DECODERS.items()
        if not kind.learns
    }
    best = max(decoders, key=lambda word: decoders[word])
    word = best if decoders[best] > decoders["omp"] + POINT / 2 else "omp"
    decoder = DECODERS[word]()
    n_nonzero = _choose_support(trial, decoder, m, some, base, min(math.ceil(sparsity.most), m, d), goal)
    curve = [trial.precision(trial.decode(decoder, m, each, [n_nonzero])[0]) for each in H]
    possible = best_possible(trial.truth, trial.ks)
    expected = {
        name: extrapolate(sizes, [point[name] for point in curve], sparsity.n_rows, possible[name])
        for name in curve[-1]
    }
    perfect = trial.decode(decoder, m, trial.operator(m).compress(trial.truth), [n_nonzero])[0]
    log("advise: m %d, %s, %s %.4f expected", m, word, goal, expected[goal])
    return Option(
        n_measurements=m,
        coherence=HadamardCompressor(m, random_state=seed).fit(d).operator_.coherence(),
        decoder=word,
        n_nonzero=n_nonzero,
        decoders=decoders,
        perfect=trial.precision(perfect),
        perfect_error=squared_error(trial.truth, perfect) / max(trial.truth.nnz / trial.truth.shape[0], 1e-12),
        curve={size: point[goal] for size, point in zip(sizes, curve, strict=True)},
        expected=expected,
    )


def _choose_support(trial: Trial, decoder: Any, m: int, H: FloatArray, base: int, most: int, goal: str) -> int:
    """Return the largest support up to what 95 % of the rows need that costs less than half a point."""
    if most <= base:
        return base
    sizes = sorted({base, (base + most) // 2, most})
    found = {
        size: trial.precision(scores)[goal]
        for size, scores in zip(sizes, trial.decode(decoder, m, H, sizes), strict=True)
    }
    return max(size for size in sizes if found[size] >= max(found.values()) - POINT / 2)


def _choose(options: tuple[Option, ...], goal: str) -> Option:
    """Return the option with the fewest measurements within a point of the best."""
    top = max(option.expected[goal] for option in options)
    return next(option for option in options if option.expected[goal] >= top - POINT)


def _standard_error(precision: float, n: int) -> float:
    return math.sqrt(max(precision * (1 - precision), 0.0) / n)


def _costs(trial: Trial, best: Option) -> Costs:
    X, Y, learner, m = trial.X, trial.Y, trial.learner, best.n_measurements
    part, n = m / len(trial.rows), trial.truth.shape[0]
    sampled = trial.splits[-1].train[: trial.largest]
    rows = slice(0, min(TIMED_ROWS, n))
    H = trial.operator(m).compress(trial.truth[rows])
    decoder = DECODERS[best.decoder](best.n_nonzero)
    state = decoder.prepare(trial.operator(m))
    start = time.perf_counter()
    with quiet():
        decoder.decode(state, H)
    decoding = (time.perf_counter() - start) / len(H)
    whole, tried = learner.cost(X, m), learner.cost(X[sampled], len(trial.rows))
    return Costs(
        solver=whole.solver,
        compress_seconds=trial.compress_seconds * part * Y.nnz / max(1, Y[sampled].nnz),
        fit_seconds=trial.fit_seconds * whole.seconds / tried.seconds,
        predict_seconds=1000 * (trial.predict_seconds * part / n + decoding),
        model_bytes=whole.model_bytes,
        peak_bytes=peak_bytes(learner, X, Y, m),
    )
