"""Sums over rows, sparse and dense: merged in any order, and solved."""

import functools

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from conftest import problem
from hypothesis import given
from hypothesis import strategies as st

from labelsense import RidgeLearner
from labelsense.regress import moments
from labelsense.regress.in_memory import as_design
from labelsense.regress.moments import Moments


class TestMoments:
    @given(
        st.lists(st.integers(1, 9), min_size=2, max_size=6),
        st.sampled_from([False, None, True]),
        st.booleans(),
        st.integers(0, 99),
    )
    def test_chunks_merge_in_any_order(self, sizes, sparse, weighted, seed):
        rng = np.random.default_rng(seed)
        X, Z = problem(sum(sizes), 5, 3, seed)
        w = rng.uniform(0.5, 2, len(X)) if weighted else None
        chunks = np.split(np.arange(len(X)), np.cumsum(sizes)[:-1])
        form = np.asarray if sparse is None else sp.csr_array
        parts = [Moments.of(as_design(form(X[c])), Z[c], None if w is None else w[c], 1, sparse) for c in chunks]
        rng.shuffle(parts)
        merged = functools.reduce(Moments.merge, parts)
        assert merged.is_sparse == bool(sparse)
        W, b = reference.ridge(X, Z, 0.5, w)
        got = merged.solve(0.5, True)
        np.testing.assert_allclose(got[0], W, atol=1e-4)
        np.testing.assert_allclose(got[1], b, atol=1e-4)
        assert merged.total == pytest.approx(len(X) if w is None else w.sum())

    def test_the_opposite_sign_takes_rows_out(self):
        X, Z = problem(30, 5, 3)
        design = as_design(X)
        left = Moments.of(design, Z).merge(Moments.of(as_design(X[20:]), Z[20:], sign=-1))
        for got, expected in zip(left.solve(0.5, True), reference.ridge(X[:20], Z[:20], 0.5), strict=True):
            np.testing.assert_allclose(got, expected, atol=1e-8)


class TestSparseMoments:
    """Of many features that hardly ever meet, X'X is sparse, and all that can be done with it is as if it were not."""

    @pytest.fixture(autouse=True)
    def few_are_many(self, monkeypatch):
        monkeypatch.setattr(moments, "MOST_DENSE", 50)
        monkeypatch.setattr(moments, "FULLEST", 0.2)

    def rows(self, n=90, density=0.03, seed=0):
        rng = np.random.default_rng(seed)
        X = sp.random_array((n, 200), density=density, rng=rng, dtype=np.float32).tocsr()
        return X, rng.normal(size=(n, 4)).astype(np.float32)

    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("alpha", [0.1, 1.0])
    @pytest.mark.parametrize("weighted", [True, False])
    def test_solves_to_what_the_dense_way_does(self, alpha, fit_intercept, weighted):
        X, Z = self.rows()
        w = np.random.default_rng(0).uniform(0, 2, 90) if weighted else None
        sparse, dense = (Moments.of(as_design(X), Z, w, 1, way) for way in (True, False))
        np.testing.assert_allclose(sparse.gram.toarray(), np.tril(dense.gram), rtol=1e-12)
        for got, expected in zip(sparse.solve(alpha, fit_intercept), dense.solve(alpha, fit_intercept), strict=True):
            np.testing.assert_allclose(got, expected, atol=2e-4)

    def test_without_a_penalty_it_is_the_solution_of_least_norm(self):
        X, Z = self.rows(30)
        sparse, dense = (Moments.of(as_design(X), Z, None, 1, way).solve(0.0, True) for way in (True, False))
        np.testing.assert_allclose(sparse[0], dense[0], atol=1e-6)

    def test_updates_are_those_of_a_model_of_all_rows(self, tmp_path):
        X, Z = self.rows()
        expected = RidgeLearner(0.5).fit(X, Z)
        model = RidgeLearner(0.5, updatable=True).fit(X[:40], Z[:40])
        assert model._moments.is_sparse
        assert model.update_bytes < 8 * 200 * 204 / 4
        model.partial_fit(X[40:], Z[40:])
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-4)
        more, others = self.rows(20, density=0.9)  # whose own X'X is full; dense rows
        model.partial_fit(more.toarray(), others).forget(more, others)
        assert model._moments.is_sparse
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-4)

    def test_full_ones_are_dense(self):
        X, Z = self.rows(density=0.5)
        full = Moments.of(as_design(X), Z)
        assert not full.is_sparse
        few, others = self.rows(20)
        both = Moments.of(as_design(few), others).merge(full)  # of chunks of a file, some may be fuller than others
        assert not both.is_sparse
        expected = RidgeLearner(0.5).fit(sp.vstack([few, X]), np.concatenate([others, Z]))
        np.testing.assert_allclose(both.solve(0.5, True)[0], expected.coef_, atol=1e-4)

    def test_parts_of_a_file_are_checked(self):
        X, Z = self.rows()
        parts = Moments.of(as_design(X), Z)._to_parts()
        np.testing.assert_array_equal(Moments._from_parts(parts).gram.toarray(), parts["gram"].toarray())
        for wrong in (parts["gram"].T.tocsr(), parts["gram"] * np.inf, parts["gram"][:50], parts["right"]):
            with pytest.raises(ValueError, match="X'X must be"), np.errstate(invalid="ignore"):
                Moments._from_parts({**parts, "gram": wrong})
