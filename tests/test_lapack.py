"""Factorisations in blocks against NumPy."""

import numpy as np
import pytest

from labelsense.regress import lapack


class TestLapack:
    @pytest.mark.parametrize("kind", [np.float32, np.float64])
    @pytest.mark.parametrize("n", [1, 5, 16, 130])
    def test_factor_solve_and_invert_in_blocks(self, kind, n, monkeypatch):
        monkeypatch.setattr(lapack, "BLOCK", 16)
        monkeypatch.setattr(lapack, "RIGHT_HAND_SIDES", 3)
        rng = np.random.default_rng(0)
        A = rng.normal(size=(n, 2 * n))
        A = (A @ A.T / n + np.eye(n)).astype(kind)
        B = rng.normal(size=(n, 7)).astype(kind)
        L, X = np.tril(A), B.copy()
        above = np.triu_indices(n, 1)
        L[above] = 7  # nobody looks there
        lapack.cholesky(L)
        lapack.solve(L, X)
        np.testing.assert_allclose(np.tril(L), np.linalg.cholesky(A), atol=1e-4)
        np.testing.assert_allclose(X, np.linalg.solve(A, B), atol=1e-4)
        assert lapack.largest_eigenvalue(np.tril(A)) == pytest.approx(np.linalg.eigvalsh(A)[-1], rel=0.2)
        lapack.invert(L)
        np.testing.assert_allclose(np.tril(L), np.tril(np.linalg.inv(A)), atol=1e-4)
        assert (L[above] == 7).all()

    def test_refuses_what_it_cannot_do(self):
        with pytest.raises(lapack.NotPositiveDefiniteError):
            lapack.cholesky(-np.eye(3))
        with pytest.raises(ValueError, match="must be C-contiguous"):
            lapack.cholesky(np.asfortranarray(np.ones((3, 3))))
