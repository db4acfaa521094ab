"""Rows in chunks against the same rows in memory: products, and models of all solvers."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from labelsense import HadamardCompressor, RidgeLearner
from labelsense._chunks import ListChunks
from labelsense.regress.chunked import ChunkedDesign
from labelsense.regress.in_memory import as_design

FORMS = {"dense": lambda X: X.toarray(), "sparse": sp.csr_array}


def in_chunks(X, Y, cuts, memory=np.inf):
    """Return X, sparse or dense, in chunks, with labels Y."""
    bounds = [0, *cuts, X.shape[0]]
    chunks = [SimpleNamespace(X=X[a:b], Y=Y[a:b]) for a, b in pairwise(bounds)]
    return ChunkedDesign(ListChunks(chunks, np.diff(bounds)), X.shape[1], sparse=sp.issparse(X), memory=memory)


def check_products(design, X, rng):
    n, p = X.shape
    B, C, v, w = rng.normal(size=(p, 9)), rng.normal(size=(n, 9)), rng.normal(size=p), rng.uniform(size=n)
    S = rng.normal(size=(p, p))
    S, close = S + S.T, {"rtol": 1e-4, "atol": 1e-4}
    assert design.shape == (n, p)
    np.testing.assert_allclose(design.times(B), X @ B, **close)
    np.testing.assert_allclose(design.times_vector(v), X @ v, **close)
    for form in (C, C.astype(np.float32), sp.csr_array(C)):
        np.testing.assert_allclose(design.transposed_times(form), X.T @ C, **close)
    np.testing.assert_allclose(design.weighted_sum(w), X.T @ w, **close)
    np.testing.assert_allclose(design.weighted_sum(None), X.sum(axis=0), **close)
    assert design.total_square() == pytest.approx((X**2).sum(), rel=1e-4)
    np.testing.assert_allclose(design.column_squares(), (X**2).sum(axis=0), **close)
    np.testing.assert_allclose(design.row_squares(), (X**2).sum(axis=1), **close)
    for kind in (np.float32, np.float64):
        assert design.gram(kind).dtype == kind
        np.testing.assert_allclose(np.tril(design.gram(kind)), np.tril(X.T @ X), **close)
    forms = np.einsum("ij,jk,ik->i", X, S, X)
    np.testing.assert_allclose(design.quadratic_forms(S.astype(np.float32)), forms, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(design.dense_rows(slice(0, None, 2)), X[::2], **close)
    shift = rng.normal(size=9).astype(np.float32)
    for s in (None, w):
        H = X @ B - np.outer(np.ones(n) if s is None else s, shift)
        product, sums = design.normal_times(B.astype(np.float32), shift, s)
        np.testing.assert_allclose(product, X.T @ H, rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(sums, (np.ones(n) if s is None else s) @ H, rtol=1e-3, atol=1e-3)
    return w


class TestProducts:
    @pytest.mark.parametrize("form", FORMS)
    @given(
        n=st.integers(2, 30),
        p=st.integers(1, 20),
        density=st.floats(0, 1),
        cuts=st.sets(st.integers(1, 29), max_size=12),
        seed=st.integers(0, 99),
    )
    def test_equal_those_of_numpy(self, form, n, p, density, cuts, seed):
        rng = np.random.default_rng(seed)
        sparse = sp.random_array((n, p), density=density, rng=rng, dtype=np.float32).tocsr()
        X = sparse.toarray().astype(np.float64)
        design = in_chunks(FORMS[form](sparse), sparse, sorted(cut for cut in cuts if cut < n))
        w = check_products(design, X, rng)
        check_products(design.scaled(w), w[:, None] * X, rng)
        some = np.sort(rng.permutation(n)[: (n + 1) // 2])
        check_products(design.rows(some), X[some], rng)
        check_products(design.scaled(w).rows(some).rows(slice(0, 2)), (w[:, None] * X)[some][:2], rng)
        centred, left = design.centred(X.mean(axis=0))
        np.testing.assert_allclose(centred.dense_rows(slice(None)) - left, X - X.mean(axis=0), atol=1e-5)
        assert design.size() == as_design(FORMS[form](sparse)).size()

    def test_more_rows_than_a_block(self, monkeypatch):
        monkeypatch.setattr("labelsense.regress.chunked.BLOCK_NUMBERS", 30)
        X = sp.random_array((40, 9), density=0.5, rng=0, dtype=np.float32).tocsr()
        check_products(in_chunks(X, X, [13]), X.toarray().astype(np.float64), np.random.default_rng(0))


class TestTargets:
    def test_are_those_of_the_labels(self):
        Y = sp.random_array((20, 16), density=0.2, rng=0, dtype=np.float32).tocsr()
        X = sp.random_array((20, 7), density=0.5, rng=1, dtype=np.float32).tocsr()
        operator = HadamardCompressor(5, random_state=0).fit(16).operator_
        Z = operator.compress(Y)
        design = in_chunks(X, Y, [3, 4, 11])
        targets = design.targets(operator.compress, 5)
        np.testing.assert_array_equal(np.asarray(targets), Z)
        rows = np.array([1, 3, 12, 19])
        some = targets.part(rows, np.array([1, 4])).part(slice(1, None), slice(1, 2))
        np.testing.assert_array_equal(np.asarray(some), Z[rows[1:], 4:])
        np.testing.assert_allclose(targets.weighted_sum(None), Z.sum(axis=0), atol=1e-5)
        np.testing.assert_allclose(targets.weighted_sum(np.arange(20.0)), np.arange(20.0) @ Z, atol=1e-4)
        np.testing.assert_allclose(design.transposed_times(targets), X.T @ Z, atol=1e-5)
        np.testing.assert_allclose(
            design.rows(rows).transposed_times(targets.part(rows)), X[rows].T @ Z[rows], atol=1e-5
        )


def problem(form, n=400, p=30, d=64, m=20):
    rng = np.random.default_rng(0)
    X = FORMS[form](sp.random_array((n, p), density=0.2, rng=rng, dtype=np.float32).tocsr())
    Y = sp.csr_array((X @ rng.normal(size=(p, d)) > 1).astype(np.float32))
    return X, Y, HadamardCompressor(m, random_state=0).fit(d).operator_


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "learner",
    [
        RidgeLearner(0.5, solver="primal"),
        RidgeLearner(0.5, solver="cg", tol=1e-6),
        RidgeLearner("loo", solver="primal", random_state=0),
        RidgeLearner("loo", solver="cg", tol=1e-6, random_state=0),
        RidgeLearner(0.5, solver="primal", fit_intercept=False),
        RidgeLearner(0.5, updatable=True),
    ],
    ids=str,
)
def test_a_model_of_chunks_is_that_of_the_rows(form, learner):
    X, Y, operator = problem(form)
    expected = learner.fit(X, operator.compress(Y))
    alpha, W, b = expected.alpha_, expected.coef_, expected.intercept_
    design = in_chunks(X, Y, [100, 101, 350])
    learner.fit(design, design.targets(operator.compress, 20))
    assert learner.alpha_ == pytest.approx(alpha)
    np.testing.assert_allclose(learner.coef_, W, atol=2e-4)
    np.testing.assert_allclose(learner.intercept_, b, atol=2e-4)
    if learner.updatable:
        np.testing.assert_allclose(
            learner.partial_fit(X, operator.compress(Y)).coef_,
            RidgeLearner(0.25).fit(X, operator.compress(Y)).coef_,
            atol=2e-4,
        )


def test_updates_by_chunks():
    X, Y, operator = problem("sparse")
    learner = RidgeLearner(0.5)
    for rows in (slice(0, 150), slice(150, 400)):
        design = in_chunks(X[rows], Y[rows], [60])
        learner.partial_fit(design, design.targets(operator.compress, 20))
    np.testing.assert_allclose(learner.coef_, RidgeLearner(0.5).fit(X, operator.compress(Y)).coef_, atol=1e-5)


class TestBoundedMemory:
    def test_columns_are_solved_for_in_turn(self):
        X, Y, operator = problem("sparse")
        design = in_chunks(X, Y, [100], memory=14 * 4 * 30 * 6)  # six at a time
        learner = RidgeLearner(0.5, tol=1e-6).fit(design, design.targets(operator.compress, 20))
        assert learner.solver_ == "cg"
        expected = RidgeLearner(0.5).fit(X, operator.compress(Y))
        np.testing.assert_allclose(learner.coef_, expected.coef_, atol=1e-4)

    def test_least_squares_need_memory(self):
        X, Y, operator = problem("sparse")
        design = in_chunks(X, Y, [100], memory=10_000)
        with pytest.raises(ValueError, match="alpha must be positive: least squares of 30 features needs"):
            RidgeLearner(0).fit(design, design.targets(operator.compress, 20))

    def test_what_needs_all_rows_is_refused(self):
        X, Y, operator = problem("sparse")
        design = in_chunks(X, Y, [100])
        with pytest.raises(ValueError, match="solver must be 'primal' or 'cg' for rows that are not in memory"):
            RidgeLearner(1, solver="dual").fit(design, design.targets(operator.compress, 20))
