"""How close A comes to keeping the length of sparse vectors: coherence and restricted isometry."""

from __future__ import annotations

import math
from itertools import combinations, islice
from typing import Any

import numpy as np
from sklearn.utils import check_array, check_random_state

from labelsense._gram import gram
from labelsense._typing import IntArray
from labelsense._validation import check_count
from labelsense.compress.base import DenseOperator, Operator
from labelsense.errors import InputError

MAX_SUPPORTS = 200_000  # that rip_constant looks at: seconds
BATCH = 4096


def as_operator(A: Any) -> Operator:
    """Return A as an operator: itself, or a dense matrix (m, d) in float32."""
    if isinstance(A, Operator):
        return A
    return DenseOperator(check_array(A, dtype=np.float32, input_name="A").T)


def coherence(A: Any) -> float:
    """Return mu(A), the largest absolute cosine between two columns of A.

    Certifies, by Lemma 7, restricted isometry (:func:`rip_upper_bound`) and, by Theorem 2, OMP
    (:func:`omp_sparsity`). It is the worst pair: a large value does not mean that decoding fails on your data.

    Parameters
    ----------
    A : Operator or array (m, d)
        Such as ``clf.compressor_.operator_``.

    Examples
    --------
    >>> round(coherence([[1.0, 3.0], [0.0, 4.0]]), 6)
    0.6
    """
    return as_operator(A).coherence()


def omp_sparsity(A: Any) -> int:
    """Return the largest k for which Theorem 2 covers OMP with 2k steps: mu(A) <= 0.1 / k.

    Certifies that for such k the squared residual of OMP is at most 23 times that of any k-sparse vector. 0 certifies
    nothing, and is common: a random A needs some 100 k^2 log d measurements for the theorem to cover k.

    Examples
    --------
    >>> from labelsense import DeVoreCompressor
    >>> omp_sparsity(DeVoreCompressor(n_measurements=31**2).fit(900).operator_)  # coherence 1/31
    3
    """
    operator = as_operator(A)
    mu = operator.coherence()
    return operator.n_labels if mu == 0 else min(operator.n_labels, math.floor(0.1 / mu))


def rip_upper_bound(A: Any, k: int) -> float:
    """Return an upper bound on the restricted isometry constant delta_k of A, from its coherence (Lemma 7).

    Any k columns of norm one have a Gram matrix whose eigenvalues are within (k - 1) mu(A) of 1, by Gershgorin. Other
    norms stretch these ends by the least and the greatest squared norm.

    Certifies the (k, delta)-RIP for every k-sparse vector. It cannot show that A has no RIP: the true
    constant of a random A is often much smaller.

    Examples
    --------
    >>> from labelsense import DeVoreCompressor
    >>> round(rip_upper_bound(DeVoreCompressor(n_measurements=31**2).fit(900).operator_, k=3), 4)  # 2/31
    0.0645
    """
    operator = as_operator(A)
    spread = (check_count(k, "k", high=operator.n_labels) - 1) * operator.coherence()
    squares = operator.column_norms.astype(np.float64) ** 2
    return max(float(squares.max()) * (1 + spread) - 1, 1 - float(squares.min()) * max(0.0, 1 - spread))


def rip_lower_bound(A: Any, k: int, *, n_trials: int = 100, random_state: Any = None) -> float:
    """Return a lower bound on the restricted isometry constant delta_k of A, by search.

    Random supports are improved by swaps: the column that matters least for the worst vector on the support goes, the
    one most correlated with its measurement comes, for as long as that makes it worse.

    Certifies that no delta below it is a RIP constant of A, whatever a theorem says about matrices of its kind. It
    cannot certify the RIP: worse supports may exist.

    Parameters
    ----------
    A : Operator or array (m, d)
        The matrix.
    k : int
        The size of the supports.
    n_trials : int
        How many supports to begin with.
    random_state : int, RandomState or None
        Seed.

    Examples
    --------
    >>> from labelsense import HadamardCompressor
    >>> A = HadamardCompressor(n_measurements=40, random_state=0).fit(64).operator_
    >>> round(rip_lower_bound(A, k=2, random_state=0), 4) == round(A.coherence(), 4)
    True
    """
    operator = as_operator(A)
    k = check_count(k, "k", high=operator.n_labels)
    rng = check_random_state(random_state)
    worst = float(np.abs(operator.column_norms.astype(np.float64) ** 2 - 1).max())  # delta_1
    for _ in range(check_count(n_trials, "n_trials")):
        support = rng.choice(operator.n_labels, k, replace=False)
        worst = max(worst, _improve(operator, support, -1), _improve(operator, support, 0))
    return worst


def _improve(operator: Operator, J: IntArray, end: int) -> float:
    """Return how far the last (-1) or first (0) eigenvalue on a support gets from 1 by swaps."""
    worst = -1.0
    while True:
        columns = operator.columns(J).astype(np.float64)
        values, vectors = np.linalg.eigh(gram(columns))
        if abs(values[end] - 1) <= worst:
            return worst
        worst, vector = float(abs(values[end] - 1)), vectors[:, end]
        if len(J) == operator.n_labels:  # nothing to swap in
            return worst
        correlation = np.abs(operator.correlate((columns @ vector)[None])[0])
        correlation[J] = -1
        J = J.copy()
        J[np.argmin(np.abs(vector))] = np.argmax(correlation)


def rip_constant(A: Any, k: int) -> float:
    """Return the restricted isometry constant delta_k of A, by looking at every support of k columns.

    It is the least delta with (1 - delta) |x|^2 <= |A x|^2 <= (1 + delta) |x|^2 for all k-sparse x. 1 or more means
    that A does not have the property. Certifies everything about k, at the price of "d choose k" eigenproblems: for
    tiny A only, to see how loose the bounds are.

    Examples
    --------
    >>> round(rip_constant([[1.0, 0.6, 0.0], [0.0, 0.8, 1.0]], k=2), 4)
    0.8
    """
    operator = as_operator(A)
    d = operator.n_labels
    k = check_count(k, "k", high=d)
    if math.comb(d, k) > MAX_SUPPORTS:
        raise InputError(
            f"k must leave at most {MAX_SUPPORTS} supports to look at. Got {math.comb(d, k)} of size {k}. "
            "Use rip_lower_bound and rip_upper_bound."
        )
    columns = operator.columns(np.arange(d)).astype(np.float64)
    products = gram(columns)
    supports = combinations(range(d), k)
    worst = 0.0
    while batch := list(islice(supports, BATCH)):
        J = np.array(batch)
        values = np.linalg.eigvalsh(products[J[:, :, None], J[:, None, :]])
        worst = max(worst, float(np.abs(values[:, [0, -1]] - 1).max()))
    return worst
