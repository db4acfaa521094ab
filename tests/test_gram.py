"""Products of a matrix with itself, against the plain product in double."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelsense import _gram
from labelsense._gram import add_gram, copied, gram, mirror


@pytest.fixture(autouse=True, scope="module")
def small_blocks():
    """Make blocks small, so that there are many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_gram, "STRIP", 7)
        patch.setattr(_gram, "ROWS", 5)
        yield


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.ascontiguousarray, np.asfortranarray, lambda A: np.repeat(A, 2, axis=1)[:, ::2]])
@given(n=st.integers(0, 30), p=st.integers(0, 30), seed=st.integers(0, 99))
def test_equals_the_plain_product(form, kind, n, p, seed):
    rng = np.random.default_rng(seed)
    A, G = rng.normal(size=(n, p)), rng.normal(size=(p, p))
    close = {"rtol": 1e-5, "atol": 1e-5} if kind is np.float32 else {"rtol": 1e-12, "atol": 1e-12}
    product = gram(form(A.astype(kind)))
    assert product.dtype == kind
    np.testing.assert_allclose(product, A.T @ A, **close)
    np.testing.assert_array_equal(product, product.T)
    total = G.astype(kind)
    add_gram(total, form(A.astype(kind)))
    np.testing.assert_allclose(np.tril(total), np.tril(G + A.T @ A), **close)


def test_another_precision():
    A = np.array([[1.0, 2**-20]], np.float32)
    assert gram(A, np.float64)[1, 1] == 2.0**-40
    assert gram(A.astype(np.float64), np.float32).dtype == np.float32


def test_blocks_of_rows_are_summed_in_double():
    A = np.ones((2**14, 1), np.float32)
    A[0] = 2**12  # its square is 2^24, after which float32 counts no more
    assert gram(A)[0, 0] > 2**24 + 2**14 - 8


@given(p=st.integers(0, 30), seed=st.integers(0, 99))
def test_mirror_and_copy(p, seed):
    G = np.random.default_rng(seed).normal(size=(p, p))
    whole = copied(G)
    mirror(whole)
    np.testing.assert_array_equal(whole, np.tril(G) + np.tril(G, -1).T)
    np.testing.assert_array_equal(copied(G, np.float32), G.astype(np.float32))
