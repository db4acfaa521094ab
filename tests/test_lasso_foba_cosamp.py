"""The Lasso, FoBa, CoSaMP and the correlation, each against an independent implementation."""

import numpy as np
import pytest
import reference
from conftest import COMPRESSORS, RANDOM_COMPRESSORS, decode, dense, make_operator, planted

from labelsense import (
    CorrelationDecoder,
    CoSaMPDecoder,
    FoBaDecoder,
    HadamardCompressor,
    LassoDecoder,
    OMPDecoder,
    WhitenedCompressor,
)


def lasso_penalty(A, h, y):
    """Return the lambda for which y solves the Lasso, checking the optimality conditions."""
    c = A.T @ (h - A @ y)
    penalty = np.abs(c).max()
    np.testing.assert_allclose(c[y != 0], penalty * np.sign(y[y != 0]), atol=1e-5)
    return penalty


def knot(A, h, y):
    """Return the direction w of the path at a Lasso solution, and how fast lambda and the joining column close in."""
    c, J = A.T @ (h - A @ y), np.flatnonzero(y)
    joining = np.setdiff1d(np.flatnonzero(np.abs(c) > np.abs(c).max() - 1e-9), J)
    w = np.linalg.lstsq(A[:, J].T @ A[:, J], np.sign(y[J]), rcond=None)[0]
    rates = 1 - np.sign(c[joining]) * (A[:, joining].T @ A[:, J] @ w)
    return w, rates.min(where=rates > 1e-9, initial=1)  # columns that depend on those of J stay at lambda


@pytest.mark.parametrize("compressor", RANDOM_COMPRESSORS)
def test_lasso_equals_lars_path_at_every_size_with_drops(compressor):
    drops = ties = 0
    for seed in range(100):
        operator = make_operator(compressor, 250, 40, seed)
        A = dense(operator)
        H, _ = planted(A, 5, 1, noise=0.5, seed=seed)
        h = H[0].astype(np.float64)
        coefs = reference.lasso_path(A, h, 28)
        sizes = (np.abs(coefs) > 1e-10).sum(axis=0)
        # Correlations are floats: one rounding for each stage of the transform, and one for each step of the path.
        rounding = (8 + 28) * 2.0**-24 * np.linalg.norm(h) * np.linalg.norm(A, axis=0).max()
        for size, solution in enumerate(LassoDecoder().path(operator.kernel(), H, range(1, 16)), start=1):
            got, expected = solution.toarray()[0], coefs[:, int(np.argmax(sizes >= size))]
            # A knot is where a correlation meets lambda: the more slowly they close in, the less is its place known.
            w, closing = knot(A, h, expected)
            error = rounding / closing
            assert lasso_penalty(A, h, got) == pytest.approx(lasso_penalty(A, h, expected), abs=error)
            if np.abs(got - expected).max() > error * (1 + np.abs(w).max()):
                ties += 1  # dependent columns of a small Hadamard matrix: two solutions
                break
        # Where a column joins, the support grows from knot to knot; where one is dropped, it does not.
        drops += int((np.diff(sizes[: int(np.argmax(sizes >= 15)) + 1]) <= 0).sum())
    assert drops >= 5
    assert ties <= (2 if compressor in (HadamardCompressor, WhitenedCompressor) else 0)


@pytest.mark.parametrize("compressor", RANDOM_COMPRESSORS)
def test_foba_equals_the_slow_version_with_real_deletions(compressor):
    deletions = 0
    for seed in range(60):
        operator = make_operator(compressor, 120, 36, seed)
        A = dense(operator)
        H, _ = planted(A, 5, 3, noise=0.3, seed=seed)
        got = decode(FoBaDecoder(n_nonzero=10), operator, H)
        for h, y in zip(H.astype(np.float64), got, strict=True):
            expected, deleted = reference.foba(A, h, 10)
            np.testing.assert_allclose(y, expected, atol=1e-4)
            deletions += deleted
    assert deletions >= 10


@pytest.mark.parametrize("compressor", RANDOM_COMPRESSORS)
@pytest.mark.parametrize("noise", [0.0, 0.5, 1.5])
def test_cosamp_equals_the_slow_version(compressor, noise):
    operator = make_operator(compressor, 200, 80)
    A = dense(operator)
    H, _ = planted(A, 5, 60, noise, seed=6)
    got = decode(CoSaMPDecoder(n_nonzero=5), operator, H)
    expected = np.vstack([reference.cosamp(A, h, 5) for h in H.astype(np.float64)])
    np.testing.assert_allclose(got, expected, atol=1e-4)


@pytest.mark.parametrize("compressor", COMPRESSORS)
def test_correlation_equals_the_slow_version(compressor):
    operator = make_operator(compressor, 200, 80)
    A = dense(operator)
    H, _ = planted(A, 5, 60, noise=0.5, seed=7)
    got = decode(CorrelationDecoder(n_nonzero=6), operator, H)
    expected = np.vstack([reference.correlation(A, h, 6) for h in H.astype(np.float64)])
    np.testing.assert_allclose(got, expected, atol=1e-4)


def test_foba_without_deletions_is_omp():
    operator = make_operator(HadamardCompressor, 300, 60)
    H, _ = planted(dense(operator), 5, 50, noise=1, seed=8)
    np.testing.assert_array_equal(
        decode(FoBaDecoder(n_nonzero=10, nu=0), operator, H), decode(OMPDecoder(n_nonzero=10), operator, H)
    )
    with pytest.raises(ValueError, match="nu must be finite and between 0 and 0.999. Got 1"):
        decode(FoBaDecoder(nu=1), operator, H)


def test_cosamp_needs_a_round():
    with pytest.raises(ValueError, match="max_rounds must be at least 1. Got 0"):
        decode(CoSaMPDecoder(max_rounds=0), make_operator(HadamardCompressor, 50, 20), np.zeros((1, 20)))
