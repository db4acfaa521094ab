"""A trial on a sample: held-out measurements once, then any number of rows of A and any decoder.

The regressions of a learner do not depend on each other, so one fit of the most measurements holds every smaller A: a
subset of the rows of a Hadamard matrix is again a compressor, only scaled.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from labelsense._blocks import map_rows
from labelsense._labels import top_k
from labelsense._progress import say
from labelsense._typing import CSR, FloatArray, IntArray
from labelsense.compress.hadamard import HadamardOperator, hadamard_order
from labelsense.metrics import precision_at_k
from labelsense.reconstruct import Decoder
from labelsense.regress import Learner

GRID = (5, 8, 12, 20, 32, 50, 80, 125, 200, 320, 500, 800, 1250, 2000)
MOST_WEIGHTS = 2**25  # numbers in the coefficients of a trial: 128 MB, and a few times that while solving
HELD_OUT = 3000  # rows that are decoded: the standard error of a precision is then below one point
DECODED_NUMBERS = 2**26  # held-out rows times the order of the Hadamard matrix, at most (but 256 rows at least)
RUN = 50  # rows next to each other that are held out together
FOLDS = 5
DECAY = 0.4  # what is still missing falls as n^-0.4: the best fit to real and made-up data (0.3 to 0.5 are as good)


def measurement_grid(n_labels: int, n_features: int) -> list[int]:
    """Return the numbers of measurements to try, from about 50 to d or what is cheap enough."""
    top = min(n_labels, GRID[-1], max(GRID[5], MOST_WEIGHTS // n_features))
    return [m for m in GRID if min(50, n_labels / 4) <= m < top] + [top]


@dataclass(frozen=True)
class Split:
    """Rows to learn from, in random order, and rows to test on."""

    train: IntArray
    test: IntArray


def make_splits(n: int, sample: int, n_labels: int, random: np.random.RandomState) -> list[Split]:
    """Return one split if there are rows enough, else five that take turns.

    Rows next to each other are often related: they come from one source, or one day. Held-out rows are therefore taken
    in runs, as new data would come; where the order of the rows means nothing, that makes no difference.
    """
    wanted = min(HELD_OUT, max(256, DECODED_NUMBERS // hadamard_order(n_labels)))
    length = max(1, min(RUN, n // 50))
    run = np.arange(n) // length
    order = random.permutation(run[-1] + 1)
    if n >= sample + wanted:
        groups = [order[: -(-wanted // length)]]
    else:
        groups = np.array_split(order, min(FOLDS, len(order)))
    splits = []
    for group in groups:
        out = np.isin(run, group)
        test = np.flatnonzero(out)
        if len(test) * len(groups) > wanted + length:
            test = np.sort(random.permutation(test)[: -(-wanted // len(groups))])
        splits.append(Split(random.permutation(np.flatnonzero(~out))[:sample], test))
    return splits


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

    def operator(self, m: int) -> HadamardOperator:
        """Return A with the first m rows."""
        d = self.Y.shape[1]
        return HadamardOperator(self.rows[:m], hadamard_order(d), d)

    def measure(self, size: int) -> FloatArray:
        """Return the measurements of the held-out rows as predicted after learning from ``size`` rows."""
        A = self.operator(len(self.rows))
        parts = []
        self.predict_seconds = 0.0
        for split in self.splits:
            train = split.train[:size]
            start = time.perf_counter()
            Z = A.compress(self.Y[train])
            compressed = time.perf_counter()
            model = clone(self.learner).fit(self.X[train], Z)
            fitted = time.perf_counter()
            H = np.asarray(model.predict(self.X[split.test]), np.float32)
            parts.append(H.reshape(len(split.test), -1))
            self.compress_seconds, self.fit_seconds = compressed - start, fitted - compressed
            self.predict_seconds += time.perf_counter() - fitted
        say("advise: learned %d regressions from %d rows in %.1f s", len(self.rows), size, self.fit_seconds)
        return np.concatenate(parts)

    def subset(self, H: FloatArray, m: int) -> FloatArray:
        """Return the measurements by the first m rows of A out of those by all rows."""
        every, some = np.sort(self.rows), np.sort(self.rows[:m])
        scale = np.float32(np.sqrt(len(every) / m))
        return np.ascontiguousarray(H[:, np.searchsorted(every, some)] * scale)

    def decode(self, decoder: Decoder, m: int, H: FloatArray, sizes: Sequence[int]) -> list[CSR]:
        """Return the labels decoded from measurements by the first m rows, for each support size."""
        state = decoder.prepare(self.operator(m))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # what does not fit is tried here on purpose
            parts = map_rows(lambda rows: decoder.path(state, H[rows], sizes), len(H), 128, -1)
        return [sp.vstack(column, format="csr") for column in zip(*parts, strict=True)]

    def precision(self, scores: CSR) -> dict[str, float]:
        """Return P@k of the held-out rows for each k."""
        best = top_k(scores, max(self.ks))
        return {f"P@{k}": precision_at_k(self.truth, best, k) for k in self.ks}


def extrapolate(sizes: Sequence[int], values: Sequence[float], n: int) -> float:
    """Return the value to expect after learning from n rows, by values = a - b sizes^-0.4, counted from the last one.

    Examples
    --------
    >>> round(extrapolate([1000, 2000, 4000], [0.5, 0.6, 0.65], 8000), 3)
    0.699
    """
    places = np.asarray(sizes, float) ** -DECAY
    if len(sizes) < 2:
        return float(values[-1])
    slope = min(0.0, float(np.polyfit(places, values, 1)[0]))
    return float(values[-1] + slope * (n**-DECAY - places[-1]))
