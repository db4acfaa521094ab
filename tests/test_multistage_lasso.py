"""The Lasso in stages: equal to the slow version, and what it finds that the Lasso shrinks or misses."""

import numpy as np
import pytest
import reference
from conftest import RANDOM_COMPRESSORS, decode, dense, make_operator, planted

from labelsense import GaussianCompressor, HadamardCompressor, LassoDecoder, MultistageLassoDecoder


@pytest.mark.parametrize("compressor", RANDOM_COMPRESSORS)
@pytest.mark.parametrize("theta", [0.1, 0.25, 0.6])
def test_equals_the_slow_version(compressor, theta):
    stages = []
    for seed in range(20):
        operator = make_operator(compressor, 150, 49, seed)
        A = dense(operator)
        H, _ = planted(A, 5, 3, noise=0.5, seed=seed)
        for h, y in zip(H.astype(np.float64), decode(MultistageLassoDecoder(8, theta=theta), operator, H), strict=True):
            expected, stage = reference.multistage_lasso(A, h, 8, theta)
            np.testing.assert_allclose(y, expected, atol=1e-4)
            stages.append(stage)
    assert max(stages) >= 3


@pytest.mark.parametrize("compressor", [HadamardCompressor, GaussianCompressor])
def test_finds_what_the_lasso_misses_and_does_not_shrink(compressor):
    operator = make_operator(compressor, 250, 80)
    H, Y = planted(dense(operator), 8, 300, noise=0.2, seed=0)
    lasso, staged = (decode(decoder(8), operator, H) for decoder in (LassoDecoder, MultistageLassoDecoder))
    exact = [((y != 0) == (Y != 0)).all(axis=1).mean() for y in (lasso, staged)]
    errors = [((y - Y) ** 2).sum(axis=1).mean() for y in (lasso, staged)]
    assert exact[1] > 0.9 > 0.7 > exact[0]
    assert errors[1] < 0.15 * errors[0]


def test_large_coefficients_are_those_of_least_squares_and_small_ones_are_shrunk():
    operator = make_operator(HadamardCompressor, 150, 60)
    A = dense(operator)
    H, _ = planted(A, 5, 50, noise=0.5, seed=1)
    first = np.abs(decode(MultistageLassoDecoder(8, max_stages=1), operator, H)).max(axis=1)
    shrunk = 0
    for h, y, largest in zip(H.astype(np.float64), decode(MultistageLassoDecoder(8), operator, H), first, strict=True):
        c = A.T @ (h - A @ y)
        penalty = np.abs(c).max()
        free = (np.abs(y) > 0.25 * largest) & (np.abs(c) < 1e-5)
        penalised = (y != 0) & ~free
        np.testing.assert_allclose(c[penalised], penalty * np.sign(y[penalised]), atol=1e-5)
        assert free.any()
        shrunk += penalised.any()
    assert shrunk > 10


def test_one_stage_is_the_lasso():
    operator = make_operator(HadamardCompressor, 150, 40)
    H, _ = planted(dense(operator), 5, 50, noise=0.5, seed=0)
    staged = MultistageLassoDecoder(8, max_stages=1)
    np.testing.assert_array_equal(decode(staged, operator, H), decode(LassoDecoder(8), operator, H))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"theta": 0.0}, "theta must be finite and between 1e-06 and 1. Got 0. It is a share of the largest"),
        ({"theta": 1.5}, "theta must be finite and between 1e-06 and 1. Got 1.5"),
        ({"max_stages": 0}, "max_stages must be at least 1. Got 0"),
    ],
)
def test_refusals(settings, message):
    with pytest.raises(ValueError, match=message):
        decode(MultistageLassoDecoder(**settings), make_operator(HadamardCompressor, 50, 20), np.zeros((1, 20)))
