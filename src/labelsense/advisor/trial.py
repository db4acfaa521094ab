"""How many measurements to try, what decoding alone loses, and what more rows will help."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np
from scipy.special import expit, logit
from sklearn.exceptions import ConvergenceWarning

from labelsense._typing import CSR
from labelsense.compress import Operator
from labelsense.reconstruct import Decoder
from labelsense.refine import Reconstruction
from labelsense.trials import decoded_precision, first_measurements

GRID = (5, 8, 12, 20, 32, 50, 80, 125, 200, 320, 500, 800, 1250, 2000)
MOST_WEIGHTS = 2**25  # numbers in the coefficients of a trial: 128 MB, and a few times that while solving
DAMPING = 0.85  # of the growth of the odds per doubling of the rows: the best fit to five real data sets


def measurement_grid(n_labels: int, n_features: int) -> list[int]:
    """Return the numbers of measurements to try, from about 50 to d or what is cheap enough."""
    top = min(n_labels, GRID[-1], max(GRID[5], MOST_WEIGHTS // n_features))
    return [m for m in GRID if min(50, n_labels / 4) <= m < top] + [top]


def perfect_curve(
    Y: CSR, operator: Operator, decoder: Decoder, ms: Sequence[int], ks: Sequence[int]
) -> list[dict[str, float]]:
    """Return the precision of labels that are decoded from their own measurements, for several numbers of these."""
    curve = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # supports that do not fit are tried on purpose
        for m in ms:
            some = operator.subset(first_measurements(operator, m))
            curve.append(decoded_precision(Reconstruction.by(decoder.at_most(m), some), some.compress(Y), Y, ks))
    return curve


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
