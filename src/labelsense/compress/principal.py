"""Principal label space: the directions in which label vectors vary most, alone or stacked on random rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh, qr, solve_triangular
from sklearn.utils import check_random_state

from labelsense._storage import storable
from labelsense._typing import CSR, DoubleArray
from labelsense._validation import check_real
from labelsense.compress.base import Compressor, DenseOperator
from labelsense.compress.hadamard import HadamardCompressor
from labelsense.compress.whitened import FREQUENT, NOISE
from labelsense.errors import InputError

EXACT = 2048  # labels up to which the directions come from the covariance of the labels, (d, d)
NOTHING = 1e-24  # the squared length of a column that is rounding
ITERATIONS = 4  # of subspace iteration beyond; each narrows in on the directions by the square of the gap


@storable()
class PLSTCompressor(Compressor):
    """The m directions in which the label vectors vary most: principal label space transformation.

    The rows of A are the first m right singular vectors of Y less its mean: no other m measurements lose less of Y in
    squared error. Use it with :class:`~labelsense.ProjectionDecoder`, where labels are correlated and m is small; what
    is rare is not in it, so with thousands of labels random rows find more. Greedy decoders search for columns that
    are alike in length, and these are not: give them ``random_share``.

    Parameters
    ----------
    n_measurements, k, random_state
        See :class:`~labelsense.compress.base.Compressor`. At most the rank that Y can have.
    random_share : float
        The share of the measurements that are random rows of the Hadamard matrix instead. With some of each, the
        measurements are made uncorrelated as in :class:`~labelsense.WhitenedCompressor`, for
        ``OMPDecoder(penalty=0.1)``.
    reserve : int
        Needs random rows: directions learned from labels say nothing about others.

    References
    ----------
    Tai, Lin (2012), Multilabel classification with principal label space transformation.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsense import PLSTCompressor
    >>> Y = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1], [0, 0, 0]])
    >>> PLSTCompressor(n_measurements=1).fit(Y).operator_.columns([0, 1, 2]).astype(float).round(2).tolist()
    [[0.64, 0.64, -0.41]]
    """

    def __init__(
        self,
        n_measurements: int | str = "auto",
        *,
        random_share: float = 0.0,
        k: float | None = None,
        reserve: int = 0,
        random_state: Any = None,
    ) -> None:
        super().__init__(n_measurements, k=k, reserve=reserve, random_state=random_state)
        self.random_share = random_share

    def fit_rows(self, X: Any, Y: CSR, weights: DoubleArray | None = None) -> PLSTCompressor:
        n, d = Y.shape
        shares = row_shares(n, weights)
        frequencies, k = shares @ Y, float(shares @ np.diff(Y.indptr)) if self.k is None else self.k
        m = self._count_measurements(d, k, min(n, d), "the rank that so many rows and labels can have")
        reserve = self._check_reserve()
        self._refuse_large(d + reserve, m)
        random_state = check_random_state(self.random_state)
        n_random = round(m * check_real(self.random_share, "random_share", low=0, high=1))
        V = self._directions(X, Y, m - n_random, weights, random_state)
        self.n_features_in_ = d
        if n_random:
            V = np.pad(V, [(0, reserve), (0, 0)])
            R = HadamardCompressor(n_random, random_state=random_state).fit(d + reserve).operator_
            V = _whiten(np.hstack([V, R.columns(np.arange(d + reserve)).T]), np.pad(frequencies, (0, reserve)))
        self.operator_ = DenseOperator(V.astype(np.float32), d)
        return self

    def _directions(
        self, X: Any, Y: CSR, m: int, weights: DoubleArray | None, random_state: np.random.RandomState
    ) -> DoubleArray:
        """Return m orthonormal directions, (d, m)."""
        return principal_directions(Y, m, row_shares(Y.shape[0], weights), random_state)

    def _check_reserve(self) -> int:
        reserve = self._count_reserve()
        if reserve and not self.random_share:
            raise InputError(
                f"reserve must be 0 for {type(self).__name__} without random rows. Got {reserve}. Give it a "
                "random_share, such as 0.75, or use WhitenedCompressor."
            )
        return reserve

    def _make_operator(self, n_labels: int, k: float, frequencies: Any, random_state: Any) -> DenseOperator:
        raise InputError(
            f"{type(self).__name__} learns A from label vectors. Got {n_labels} labels without any. Fit it on a label "
            "matrix Y, or in a classifier."
        )


def row_shares(n: int, weights: DoubleArray | None) -> DoubleArray:
    """Return how much each row counts, as shares of all."""
    return np.full(n, 1 / n) if weights is None else weights / weights.sum()


def principal_directions(Y: CSR, m: int, shares: DoubleArray, random_state: np.random.RandomState) -> DoubleArray:
    """Return the first m right singular vectors of Y less its mean, (d, m), for rows that count by their shares.

    Exact up to 2,048 labels, or where m is near the rank; beyond by subspace iteration from random vectors. Each has a
    positive entry where it is largest in size.

    References
    ----------
    Halko, Martinsson, Tropp (2011), Finding structure with randomness.
    """
    n, d = Y.shape
    mean = shares @ Y
    if not m:
        return np.zeros((d, 0))
    if d <= EXACT:
        covariance = (Y.T @ (Y * shares[:, None])).toarray() - np.outer(mean, mean)
        V = eigh(covariance, subset_by_index=(d - m, d - 1))[1][:, ::-1]
    else:
        width = min(m + max(10, m // 10), n, d)
        V = random_state.normal(size=(d, width))
        for _ in range(1 + ITERATIONS):
            V = qr(_covariance_times(Y, V, mean, shares), mode="economic", overwrite_a=True)[0]
        V = V @ eigh(V.T @ _covariance_times(Y, V, mean, shares))[1][:, : -m - 1 : -1]
    V[(V**2).sum(axis=1) < NOTHING] = 0  # a label that does not vary must not be found, however short its column
    largest = np.abs(V).argmax(axis=0)
    return V * np.where(V[largest, np.arange(m)] < 0, -1, 1)


def _covariance_times(Y: CSR, B: DoubleArray, mean: DoubleArray, shares: DoubleArray) -> DoubleArray:
    return Y.T @ ((Y @ B - mean @ B) * shares[:, None])


def _whiten(C: DoubleArray, frequencies: DoubleArray) -> DoubleArray:
    """Return T A, as columns (d, m), in whose measurements labels that are not found yet are white noise."""
    N = (C * (frequencies / (frequencies + FREQUENT))[:, None]).T @ C
    scale = 1 / np.sqrt(np.diag(N))
    N = N * scale * scale[:, None]
    N[np.diag_indices_from(N)] += NOISE
    whitened = solve_triangular(np.linalg.cholesky(N), scale[:, None] * C.T, lower=True).T
    return whitened / np.sqrt((whitened**2).sum(axis=1).mean())
