"""Products of sparse rows against dense ones."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from labelsense.regress.in_memory import as_design, product


class TestDesign:
    @given(n=st.integers(1, 30), p=st.integers(1, 30), density=st.floats(0, 1), seed=st.integers(0, 99))
    def test_products_equal_dense_ones(self, n, p, density, seed):
        rng = np.random.default_rng(seed)
        X = sp.random_array((n, p), density=density, rng=rng, dtype=np.float32).tocsr()
        dense = X.toarray().astype(np.float64)
        design = as_design(X)
        B, C = rng.normal(size=(p, 70)), rng.normal(size=(n, 70))
        S = rng.normal(size=(p, p))
        S = S + S.T
        np.testing.assert_allclose(design.times(B), dense @ B, atol=1e-4)
        np.testing.assert_allclose(design.transposed_times(C), dense.T @ C, atol=1e-4)
        np.testing.assert_allclose(np.tril(design.gram(np.float64)), np.tril(dense.T @ dense), atol=1e-5)
        np.testing.assert_allclose(np.tril(design.outer_gram()), np.tril(dense @ dense.T), atol=1e-5)
        np.testing.assert_allclose(design.times_rows_of(as_design(X[::2])), dense @ dense[::2].T, atol=1e-5)
        np.testing.assert_allclose(
            design.quadratic_forms(S.astype(np.float32)), np.einsum("ij,jk,ik->i", dense, S, dense), atol=1e-3
        )

    def test_more_features_than_a_tile(self):
        X = sp.random_array((50, 5000), density=0.01, rng=0, dtype=np.float32).tocsr()
        np.testing.assert_allclose(np.tril(as_design(X).gram()), np.tril((X.T @ X).toarray()), atol=1e-5)


def test_the_rows_of_the_caller_stay_as_they_are():
    rng = np.random.default_rng(0)
    columns = rng.integers(0, 20, 600)  # in any order, with duplicates
    X = sp.csr_array((rng.normal(size=600).astype(np.float32), columns, np.arange(0, 601, 12)), shape=(50, 20))
    data, indices, dense = X.data.copy(), X.indices.copy(), X.toarray()
    B = rng.normal(size=(20, 3))
    np.testing.assert_allclose(as_design(X).times(B), dense @ B, atol=1e-5)
    np.testing.assert_allclose(product(X, B.astype(np.float32)), dense @ B, atol=1e-5)
    with pytest.raises(ValueError, match="Rows of 20 features cannot be multiplied by weights of 3"):
        product(X, B[:3])
    np.testing.assert_array_equal(X.data, data)
    np.testing.assert_array_equal(X.indices, indices)
