"""DeVore's explicit matrix: no randomness, and a coherence that is known beforehand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labelsense._storage import storable
from labelsense.compress.base import Compressor, DenseOperator, auto_measurements
from labelsense.errors import InputError


@storable()
class DeVoreCompressor(Compressor):
    """DeVore's binary matrix from polynomials over a prime field F_q.

    It has m = q^2 rows, one for each pair (x, v) in F_q x F_q. Column j is the graph of the j-th polynomial P of degree
    at most r: 1/sqrt(q) at the q rows (x, P(x)), 0 elsewhere. Two polynomials agree in at most r places, so
    the coherence is at most r/q. The degree is the smallest for which q^(r+1) polynomials suffice for d labels.

    Use it where a guarantee is worth more measurements, or where measurements must be sums of few labels.

    Parameters
    ----------
    n_measurements : int or "auto"
        The square of a prime. "auto" takes the smallest that is at least :func:`~labelsense.compress.base.\
auto_measurements`.
    k, reserve, random_state
        See :class:`~labelsense.compress.base.Compressor`; there is nothing random here.

    Examples
    --------
    >>> from labelsense import DeVoreCompressor
    >>> A = DeVoreCompressor(n_measurements=11**2).fit(1000).operator_
    >>> round(A.coherence(), 3)  # degree 2: at most 2/11
    0.182
    """

    def _make_operator(
        self, n_labels: int, k: float, frequencies: Any, random_state: np.random.RandomState
    ) -> DenseOperator:
        q = self._field_size(n_labels, k)
        self._refuse_large(n_labels, q * q)
        degree = 0
        while q ** (degree + 1) < n_labels:
            degree += 1
        # The digits of j in base q are the coefficients of its polynomial; Horner's rule evaluates all of them at once.
        digits = np.arange(n_labels)[:, None] // q ** np.arange(degree, -1, -1) % q
        x = np.arange(q)
        values = np.zeros((n_labels, q), np.int64)
        for coefficient in digits.T:
            values = (values * x + coefficient[:, None]) % q
        columns = np.zeros((n_labels, q * q), np.float32)
        np.put_along_axis(columns, x * q + values, 1 / math.sqrt(q), axis=1)
        return DenseOperator(columns)

    def _field_size(self, n_labels: int, k: float) -> int:
        if self.n_measurements == "auto":
            q = math.isqrt(auto_measurements(k, n_labels) - 1) + 1
            while not _is_prime(q):
                q += 1
            return q
        m = self._count_measurements(n_labels, k, 2**31, "the largest supported")
        q = math.isqrt(m)
        if q * q != m or not _is_prime(q):
            below, above = q, q + 1
            while below > 1 and not _is_prime(below):
                below -= 1
            while not _is_prime(above):
                above += 1
            near = " or ".join(f"{p}^2 = {p * p}" for p in (below, above) if p > 1)
            raise InputError(f"n_measurements of DeVoreCompressor must be the square of a prime. Got {m}. Use {near}.")
        return q


def _is_prime(q: int) -> bool:
    return q > 1 and all(q % p for p in range(2, math.isqrt(q) + 1))
