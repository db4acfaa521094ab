"""The contract of every learner, and ridge against independent solutions."""

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from conftest import LEARNERS
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.svm import SVR

from labelsense import RidgeLearner, SklearnLearner


def problem(n=60, p=12, m=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * (rng.uniform(size=(n, p)) < 0.4) + 0.3
    return X, X @ rng.normal(size=(p, m)) + 2 + 0.1 * rng.normal(size=(n, m))


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
class TestContract:
    def test_learns_all_targets(self, learner):
        X, Z = problem()
        H = clone(learner).fit(X, Z).predict(X)
        assert H.shape == Z.shape
        assert H.dtype == np.float32
        assert ((H - Z) ** 2).sum() < 0.5 * ((Z - Z.mean(axis=0)) ** 2).sum()

    def test_sparse_and_dense_rows_alike(self, learner):
        X, Z = problem()
        X *= np.abs(X) > 0.3
        dense, sparse = (clone(learner).fit(form, Z).predict(form) for form in (X, sp.csr_array(X)))
        np.testing.assert_allclose(sparse, dense, atol=2e-3)

    def test_sparse_targets(self, learner):
        X, Z = problem()
        Z = Z * (Z > 1)
        np.testing.assert_allclose(
            clone(learner).fit(X, sp.csr_array(Z)).predict(X), clone(learner).fit(X, Z).predict(X), atol=1e-4
        )

    def test_targets_are_learned_independently(self, learner):
        X, Z = problem()
        both = clone(learner).fit(X, Z).predict(X)
        one = clone(learner).fit(X, Z[:, 2]).predict(X)
        assert one.shape == (60,)
        np.testing.assert_allclose(both[:, 2], one, atol=1e-4)


class TestRidge:
    @given(
        n=st.integers(2, 40),
        p=st.integers(1, 40),
        alpha=st.floats(1e-3, 100),
        solver=st.sampled_from(["primal", "dual"]),
    )
    def test_equals_the_augmented_least_squares_problem(self, n, p, alpha, solver):
        X, Z = problem(n, p, 3, seed=n * 100 + p)
        model = RidgeLearner(alpha, solver=solver).fit(X, Z)
        W, b = reference.ridge(X, Z, alpha)
        np.testing.assert_allclose(model.coef_, W, atol=1e-4)
        np.testing.assert_allclose(model.intercept_, b, atol=1e-3)

    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("solver", ["auto", "primal", "dual"])
    def test_equals_scikit_learn(self, fit_intercept, solver):
        X, Z = problem(50, 80)
        ours = RidgeLearner(0.7, fit_intercept=fit_intercept, solver=solver).fit(sp.csr_array(X), Z)
        theirs = Ridge(0.7, fit_intercept=fit_intercept).fit(X, Z)
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-4)

    @pytest.mark.parametrize("solver", ["primal", "dual"])
    @pytest.mark.parametrize(("n", "p"), [(60, 20), (20, 60), (30, 30)])
    @pytest.mark.parametrize("rank", [5, 12])
    def test_least_squares_of_least_norm_when_rank_deficient(self, solver, n, p, rank):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, p))
        Z = rng.normal(size=(n, 4))
        model = RidgeLearner(0, solver=solver).fit(X, Z)
        expected = LinearRegression().fit(X, Z)
        np.testing.assert_allclose(model.predict(X), expected.predict(X), atol=1e-4)
        np.testing.assert_allclose(model.coef_.T, expected.coef_, atol=1e-4)

    def test_a_constant_column_changes_nothing(self):
        X, Z = problem()
        with_constant = np.hstack([X, np.full((60, 1), 7.0)])
        np.testing.assert_allclose(
            RidgeLearner(0).fit(with_constant, Z).predict(with_constant),
            RidgeLearner(0).fit(X, Z).predict(X),
            atol=1e-4,
        )

    def test_bad_parameters(self):
        X, Z = problem()
        with pytest.raises(ValueError, match="alpha must be finite and at least 0. Got -1"):
            RidgeLearner(alpha=-1).fit(X, Z)
        with pytest.raises(TypeError, match="alpha must be a number. Got '1' of type str"):
            RidgeLearner(alpha="1").fit(X, Z)
        with pytest.raises(ValueError, match="solver must be one of 'auto', 'primal', 'dual'.*Got 'svd'"):
            RidgeLearner(solver="svd").fit(X, Z)


class TestSklearnLearner:
    def test_one_model_for_all_targets_where_possible(self):
        X, Z = problem()
        assert len(SklearnLearner(LinearRegression()).fit(X, Z).regressors_) == 1
        assert len(SklearnLearner(SVR(kernel="linear")).fit(X, Z).regressors_) == 5

    def test_does_not_depend_on_n_jobs(self):
        X, Z = problem()
        one, two = (SklearnLearner(SVR(kernel="linear"), n_jobs=jobs).fit(X, Z).predict(X) for jobs in (1, 2))
        np.testing.assert_array_equal(one, two)
