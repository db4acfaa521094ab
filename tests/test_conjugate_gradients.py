"""Conjugate gradients against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from labelsense.regress.conjugate_gradients import add_ridge, conjugate_gradients


def system(p, m, seed=0):
    """Return a positive definite matrix, right-hand sides, and what applies the matrix."""
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(2 * p, p)) / np.sqrt(p)).astype(np.float32)
    M = X.T @ X + 0.5 * np.eye(p, dtype=np.float32)
    right = rng.normal(size=(p, m)).astype(np.float32)
    return M, right, lambda P: add_ridge(X.T @ (X @ P), P, 0.5)


PRECONDITIONERS = {
    "none": lambda M: np.ones(len(M), np.float32),
    "diagonal": lambda M: 1 / M.diagonal(),
    "function": lambda M: lambda R: R / M.diagonal()[:, None],
    "inverse": lambda M: lambda R: np.linalg.solve(M, R),
}


@pytest.mark.parametrize("precondition", PRECONDITIONERS)
@given(p=st.integers(1, 60), m=st.integers(1, 5), tol=st.sampled_from([1e-1, 1e-3, 1e-5]))
def test_every_column_reaches_the_tolerance(precondition, p, m, tol):
    M, right, apply = system(p, m)
    W, steps = conjugate_gradients(apply, right, PRECONDITIONERS[precondition](M), tol, 300)
    residual = np.linalg.norm(right - M.astype(np.float64) @ W, axis=0) / np.linalg.norm(right, axis=0)
    assert (residual <= tol + 1e-5).all()
    assert 1 <= steps <= 300


def test_a_diagonal_is_the_same_given_as_numbers_or_as_a_function():
    M, right, apply = system(40, 3)
    numbers, function = (
        conjugate_gradients(apply, right, PRECONDITIONERS[kind](M), 1e-4, 300) for kind in ("diagonal", "function")
    )
    assert numbers[1] == function[1]
    np.testing.assert_allclose(numbers[0], function[0], atol=1e-5)


def test_starts_where_it_is_told_and_leaves_that_as_it_is():
    M, right, apply = system(40, 3)
    start = np.linalg.solve(M, right)
    kept = start.copy()
    W, steps = conjugate_gradients(apply, right, 1 / M.diagonal(), 1e-4, 300, start=start)
    assert steps == 1
    np.testing.assert_allclose(W, start, atol=1e-4)
    np.testing.assert_array_equal(start, kept)


def test_columns_of_zeros_have_the_solution_zero():
    M, right, apply = system(20, 3)
    right[:, 1] = 0
    W, _ = conjugate_gradients(apply, right, 1 / M.diagonal(), 1e-5, 300)
    assert not W[:, 1].any()
    np.testing.assert_allclose(W, np.linalg.solve(M, right), atol=1e-4)


def test_too_few_steps_are_reported_with_what_else_to_do():
    M, right, apply = system(60, 2)
    message = r"did not reach tol=1e-06 in max_iter=2 steps. Raise alpha, tol or max_iter, or pray\."
    with pytest.warns(ConvergenceWarning, match=message):
        _, steps = conjugate_gradients(apply, right, 1 / M.diagonal(), 1e-6, 2, remedy=", or pray")
    assert steps == 2


def test_adds_a_ridge_and_takes_off_a_mean():
    rng = np.random.default_rng(0)
    Q, P = (rng.normal(size=(9, 4)).astype(np.float32) for _ in range(2))
    mean, shift = rng.normal(size=9), rng.normal(size=4).astype(np.float32)
    expected = Q + 0.3 * P - np.outer(mean, shift)
    got, inner = add_ridge(Q, P, 0.3, mean, shift)
    np.testing.assert_allclose(got, expected, atol=1e-5)
    np.testing.assert_allclose(inner, (P * expected).sum(axis=0), atol=1e-4)
