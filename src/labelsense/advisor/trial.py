"""A trial on a sample: held-out measurements once, then any number of rows of A and any decoder.

The regressions of a learner do not depend on each other, so one fit of the most measurements holds every smaller A: a
subset of the rows of a Hadamard matrix is again a compressor, only scaled.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize

from labelsense._blocks import map_rows
from labelsense._progress import log
from labelsense._typing import CSR, FloatArray, IntArray
from labelsense.compress import Operator
from labelsense.compress.hadamard import HadamardOperator, hadamard_order
from labelsense.labels import top_k
from labelsense.metrics import precision_at_k
from labelsense.reconstruct import Decoder
from labelsense.regress import Learner

GRID = (5, 8, 12, 20, 32, 50, 80, 125, 200, 320, 500, 800, 1250, 2000)
MOST_WEIGHTS = 2**25  # numbers in the coefficients of a trial: 128 MB, and a few times that while solving
HELD_OUT = 3000  # rows that are decoded: the standard error of a precision is then below one point
DECODED_NUMBERS = 2**26  # held-out rows times the order of the Hadamard matrix, at most (but 256 rows at least)
PAIRS = 2000  # of rows that are compared
FOLDS = 5
DAMPING = 0.85  # of the growth of the odds per doubling of the rows: the best fit to five real data sets


def measurement_grid(n_labels: int, n_features: int) -> list[int]:
    """Return the numbers of measurements to try, from about 50 to d or what is cheap enough."""
    top = min(n_labels, GRID[-1], max(GRID[5], MOST_WEIGHTS // n_features))
    return [m for m in GRID if min(50, n_labels / 4) <= m < top] + [top]


@contextmanager
def quiet() -> Iterator[None]:
    """Ignore what decoders warn of: supports that do not fit are tried here on purpose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


@dataclass(frozen=True)
class Split:
    """Rows to learn from and rows to test on, both in random order."""

    train: IntArray
    test: IntArray


def make_splits(n: int, sample: int, n_labels: int, run: int, random: np.random.RandomState) -> list[Split]:
    """Return one split if there are rows enough, else five that take turns. Rows are held out in runs of so many."""
    wanted = min(HELD_OUT, max(256, DECODED_NUMBERS // hadamard_order(n_labels)))
    length = max(1, min(run, n // 50))
    run_of_row = np.arange(n) // length
    order = random.permutation(run_of_row[-1] + 1)
    if n >= sample + wanted:
        groups = [order[: -(-wanted // length)]]
    else:
        groups = np.array_split(order, min(FOLDS, len(order)))
    splits = []
    for group in groups:
        out = np.isin(run_of_row, group)
        test = random.permutation(np.flatnonzero(out))
        if len(test) * len(groups) > wanted + length:
            test = test[: -(-wanted // len(groups))]
        splits.append(Split(random.permutation(np.flatnonzero(~out))[:sample], test))
    return splits


def likeness(X: Any, random: np.random.RandomState) -> tuple[float, float]:
    """Return the mean cosine of rows next to each other, and of rows at random."""
    n = X.shape[0]
    first = random.permutation(n - 1)[:PAIRS]
    return _cosine(X[first], X[first + 1]), _cosine(X[first], X[random.permutation(n)[: len(first)]])


def _cosine(A: Any, B: Any) -> float:
    A, B = normalize(A), normalize(B)
    return float((A.multiply(B) if sp.issparse(A) else A * B).sum() / A.shape[0])


@dataclass
class Trial:
    """Held-out measurements of a learner for the most rows of A, and how precise labels decoded from them are.

    Parameters
    ----------
    X, Y : features (n, p) and labels (n, d), CSR
    learner : Learner
    splits : list of Split
    rows : array (m,)
        Rows of the Hadamard matrix; the first ones are those of the smaller matrices.
    ks : sequence of int
        The k of the precisions.
    """

    X: Any
    Y: CSR
    learner: Learner
    splits: list[Split]
    rows: IntArray
    ks: Sequence[int]
    fit_seconds: float = field(init=False, default=0.0)  # of the last fit
    predict_seconds: float = field(init=False, default=0.0)  # of the last prediction of all held-out rows
    compress_seconds: float = field(init=False, default=0.0)  # of the rows of the last fit

    def __post_init__(self) -> None:
        self.truth = sp.csr_array(sp.vstack([self.Y[split.test] for split in self.splits], format="csr"))
        self.largest = min(len(split.train) for split in self.splits)
        d = self.Y.shape[1]
        self.whole = HadamardOperator(self.rows, hadamard_order(d), d)
        self.places = np.searchsorted(self.whole.rows, self.rows)  # of the rows within A, in the order of smaller ones

    def operator(self, m: int) -> Operator:
        """Return A with the first m rows."""
        return self.whole.subset(self.places[:m])

    def measure(self, size: int) -> FloatArray:
        """Return the measurements of the held-out rows as predicted after learning from ``size`` rows."""
        parts = []
        self.predict_seconds = 0.0
        for split in self.splits:
            train = split.train[:size]
            start = time.perf_counter()
            Z = self.whole.compress(self.Y[train])
            compressed = time.perf_counter()
            model = clone(self.learner).fit(self.X[train], Z)
            fitted = time.perf_counter()
            H = np.asarray(model.predict(self.X[split.test]), np.float32)
            parts.append(H.reshape(len(split.test), -1))
            self.compress_seconds, self.fit_seconds = compressed - start, fitted - compressed
            self.predict_seconds += time.perf_counter() - fitted
        log("advise: learned %d regressions from %d rows in %.1f s", len(self.rows), size, self.fit_seconds)
        return np.concatenate(parts)

    def subset(self, H: FloatArray, m: int) -> FloatArray:
        """Return the measurements by the first m rows of A out of those by all rows."""
        return self.whole.subset_measurements(H, self.places[:m])

    def decode(self, decoder: Decoder, m: int, H: FloatArray, sizes: Sequence[int]) -> list[CSR]:
        """Return the labels decoded from measurements by the first m rows, for each support size."""
        state = decoder.prepare(self.operator(m))
        with quiet():
            parts = map_rows(lambda rows: decoder.path(state, H[rows], sizes), len(H), 128, -1)
        return [sp.vstack(column, format="csr") for column in zip(*parts, strict=True)]

    def precision(self, scores: CSR) -> dict[str, float]:
        """Return P@k of the first held-out rows, as many as there are scores, for each k."""
        best, truth = top_k(scores, max(self.ks)), self.truth[: scores.shape[0]]
        return {f"P@{k}": precision_at_k(truth, best, k) for k in self.ks}


def extrapolate(sizes: Sequence[int], values: Sequence[float], n: int, top: float = 1.0) -> float:
    """Return the value to expect after learning from n rows, never above ``top``.

    The odds of what is possible, values / (top - values), grow by about the same factor each time the rows are
    doubled, at first; each further doubling is taken to add 0.85 times as much to their logarithm as the one before.

    Examples
    --------
    >>> round(extrapolate([1000, 2000, 4000], [0.5, 0.55, 0.6], 8000), 3)
    0.641
    """
    if len(sizes) < 2 or top <= 0:
        return float(values[-1])
    odds = logit(np.clip(np.asarray(values, float) / top, 1e-3, 1 - 1e-3))
    slope = max(0.0, float(np.polyfit(np.log2(sizes), odds, 1)[0]))
    doublings = math.log2(n / sizes[-1])
    gain = slope * DAMPING * (1 - DAMPING**doublings) / (1 - DAMPING)
    return max(float(values[-1]), top * float(expit(odds[-1] + gain)))
