"""Products of rows, sparse and dense, against NumPy in double."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from labelsense._kernels import FEATURE_TILE
from labelsense.regress.in_memory import as_design, dense_product, product

FORMS = {"dense": lambda X: X.toarray(), "in double": lambda X: X.toarray().astype(np.float64), "sparse": sp.csr_array}


def check_products(design, X, rng):
    """Compare all that a design in memory offers with the same by an array of doubles."""
    n, p = X.shape
    B, C, v, w = rng.normal(size=(p, 70)), rng.normal(size=(n, 70)), rng.normal(size=p), rng.uniform(size=n)
    S = rng.normal(size=(p, p))
    S = S + S.T
    assert design.shape == (n, p)
    close = {"rtol": 1e-4, "atol": 1e-4}
    np.testing.assert_allclose(design.times(B), X @ B, **close)
    np.testing.assert_allclose(design.times_vector(v), X @ v, **close)
    np.testing.assert_allclose(design.transposed_times(C), X.T @ C, **close)
    np.testing.assert_allclose(design.transposed_times(C.astype(np.float32)), X.T @ C, **close)
    np.testing.assert_allclose(design.transposed_times(sp.csr_array(C)), X.T @ C, **close)
    np.testing.assert_allclose(design.weighted_sum(w), X.T @ w, **close)
    assert design.total_square() == pytest.approx((X**2).sum(), rel=1e-4)
    np.testing.assert_allclose(design.column_squares(), (X**2).sum(axis=0), **close)
    np.testing.assert_allclose(design.row_squares(), (X**2).sum(axis=1), **close)
    for kind in (np.float32, np.float64):
        assert design.gram(kind).dtype == design.outer_gram(kind).dtype == kind
        np.testing.assert_allclose(np.tril(design.gram(kind)), np.tril(X.T @ X), **close)
        np.testing.assert_allclose(np.tril(design.outer_gram(kind)), np.tril(X @ X.T), **close)
    np.testing.assert_allclose(
        design.quadratic_forms(S.astype(np.float32)), np.einsum("ij,jk,ik->i", X, S, X), rtol=1e-3, atol=1e-3
    )
    np.testing.assert_allclose(design.dense_rows(slice(0, 2)), X[:2], **close)
    return w


class TestDesign:
    @pytest.mark.parametrize("form", FORMS)
    @given(n=st.integers(1, 30), p=st.integers(1, 30), density=st.floats(0, 1), seed=st.integers(0, 99))
    def test_products_equal_those_of_numpy(self, form, n, p, density, seed):
        rng = np.random.default_rng(seed)
        sparse = sp.random_array((n, p), density=density, rng=rng, dtype=np.float32).tocsr()
        X, design = sparse.toarray().astype(np.float64), as_design(FORMS[form](sparse))
        w = check_products(design, X, rng)
        check_products(design.scaled(w), w[:, None] * X, rng)
        some = np.sort(rng.permutation(n)[: (n + 1) // 2])
        check_products(design.rows(some), X[some], rng)
        centred, left = design.centred(X.mean(axis=0))
        np.testing.assert_allclose(centred.dense_rows(slice(None)) - left, X - X.mean(axis=0), atol=1e-5)
        for other in FORMS.values():
            right = as_design(other(sparse[::2]))
            np.testing.assert_allclose(design.times_rows_of(right), X @ X[::2].T, atol=1e-4)

    def test_more_features_than_a_tile(self):
        X = sp.random_array((50, FEATURE_TILE + 100), density=0.01, rng=0, dtype=np.float32).tocsr()
        np.testing.assert_allclose(np.tril(as_design(X).gram()), np.tril((X.T @ X).toarray()), atol=1e-5)

    @pytest.mark.parametrize("form", FORMS)
    def test_more_rows_than_a_block(self, form, monkeypatch):
        monkeypatch.setattr("labelsense.regress.in_memory.DENSE_ROWS", 7)
        monkeypatch.setattr("labelsense.regress.in_memory.DOUBLE_ROWS", 5)
        rng = np.random.default_rng(0)
        sparse = sp.random_array((40, 9), density=0.5, rng=rng, dtype=np.float32).tocsr()
        check_products(as_design(FORMS[form](sparse)), sparse.toarray().astype(np.float64), rng)

    def test_rows_of_other_features_are_refused(self):
        with pytest.raises(ValueError, match="Rows of 3 features cannot be compared with rows of 4"):
            as_design(np.ones((2, 3))).times_rows_of(as_design(np.ones((2, 4))))


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


def test_a_row_of_a_dense_product_does_not_depend_on_the_others():
    rng = np.random.default_rng(0)
    X, B = rng.normal(size=(300, 100)).astype(np.float32), rng.normal(size=(100, 64)).astype(np.float32)
    whole = dense_product(X, B)
    for rows in (slice(7, 8), slice(5, 18), slice(None, None, -1), rng.permutation(300)[:33]):
        np.testing.assert_array_equal(dense_product(X[rows], B), whole[rows])


def test_large_dense_products_are_in_single_precision(monkeypatch):
    rng = np.random.default_rng(0)
    X, B = rng.normal(size=(30, 100)).astype(np.float32), rng.normal(size=(100, 64)).astype(np.float32)
    exact = dense_product(X, B)
    monkeypatch.setattr("labelsense.regress.in_memory.EXACT_WORK", 0)
    np.testing.assert_allclose(dense_product(X, B), exact, atol=1e-4)


@pytest.mark.parametrize("column", [-1, 20, 10**6, -(10**9)])
def test_a_column_number_out_of_range_is_refused(column):
    X = sp.random_array((50, 20), density=0.3, rng=0, dtype=np.float32).tocsr()
    X.indices[5] = column
    with pytest.raises(ValueError, match=f"X must have column numbers from 0 to 19. Got {column}"):
        as_design(X)
    with pytest.raises(ValueError, match=f"X must have column numbers from 0 to 19. Got {column}"):
        product(X, np.ones((20, 3), np.float32))


@pytest.mark.parametrize("start", [-5, 10**9])
def test_a_row_that_starts_out_of_range_is_refused(start):
    X = sp.random_array((50, 20), density=0.3, rng=0, dtype=np.float32).tocsr()
    X.indptr[7] = start
    with pytest.raises(ValueError, match="X has an indptr that does not fit its shape and data"):
        product(X, np.ones((20, 3), np.float32))
