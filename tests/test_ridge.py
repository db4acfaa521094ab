"""Ridge against independent solutions, by each of its solvers."""

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from conftest import problem
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, Ridge

from labelsense import RidgeLearner
from labelsense.regress.ridge_cost import Size, cheapest_solver, seconds


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
    def test_least_squares_of_rows_that_add_up_to_a_constant(self, solver):
        X = np.eye(6)[np.arange(60) % 6]  # after centring one eigenvalue of X'X is rounding, and must not be inverted
        Z = X @ np.random.default_rng(0).normal(size=(6, 32))
        np.testing.assert_allclose(RidgeLearner(0, solver=solver).fit(X, Z).predict(X), Z, atol=1e-5)

    @pytest.mark.parametrize("solver", ["primal", "dual"])
    @pytest.mark.parametrize(("n", "p"), [(60, 20), (20, 60), (30, 30)])
    @pytest.mark.parametrize("rank", [5, 12, 20])
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


class TestSolvers:
    def test_large_systems_in_float32_equal_small_ones_in_double(self, monkeypatch):
        X, Z = problem(200, 60, 4)
        expected = {s: RidgeLearner(0.3, solver=s).fit(sp.csr_array(X), Z).coef_ for s in ("primal", "dual")}
        monkeypatch.setattr("labelsense.regress.primal.SMALL", 0)
        monkeypatch.setattr("labelsense.regress.dual.SMALL", 0)
        for solver, coef in expected.items():
            np.testing.assert_allclose(RidgeLearner(0.3, solver=solver).fit(sp.csr_array(X), Z).coef_, coef, atol=1e-4)

    @pytest.mark.parametrize("alpha", [0.0, 1e-7, 1e-3])
    @pytest.mark.parametrize(
        ("scales", "mean"),
        [(2.5, 0.5), (2.5, 0.0), (1.3, 0.0)],
        ids=["a mean", "useless in float32", "poor in float32"],
    )
    def test_ill_conditioned_systems_are_solved_as_in_double(self, alpha, scales, mean, monkeypatch):
        monkeypatch.setattr("labelsense.regress.primal.SMALL", 0)
        rng = np.random.default_rng(0)
        X = rng.normal(size=(100, 10)) * 10.0 ** np.linspace(-scales, scales, 10) + mean
        Z = rng.normal(size=(100, 3))
        ours, theirs = RidgeLearner(alpha, solver="primal").fit(sp.csr_array(X), Z), Ridge(alpha).fit(X, Z)
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-3)
        errors = RidgeLearner("loo", alphas=[alpha or 1e-3], solver="primal").fit(sp.csr_array(X), Z)
        assert errors.alpha_ == (alpha or 1e-3)

    def test_conjugate_gradients_reach_the_stated_tolerance(self):
        X, Z = problem(300, 80, 5)
        Xs = sp.csr_array(X * (np.abs(X) > 0.5))
        for tol in (1e-1, 1e-3, 1e-5):
            W = RidgeLearner(0.5, solver="cg", tol=tol).fit(Xs, Z).coef_.astype(np.float64)
            Xc, Zc = Xs.toarray() - Xs.mean(axis=0), Z - Z.mean(axis=0)
            right = Xc.T @ Zc
            residual = np.linalg.norm(right - Xc.T @ (Xc @ W) - 0.5 * W, axis=0) / np.linalg.norm(right, axis=0)
            assert (residual < 1.5 * tol + 1e-5).all()

    def test_too_few_steps_are_reported(self):
        X, Z = problem(100, 50, 3)
        with pytest.warns(ConvergenceWarning, match="did not reach tol=1e-06 in max_iter=2 steps. Raise alpha"):
            RidgeLearner(1e-3, solver="cg", tol=1e-6, max_iter=2).fit(X, Z)

    @pytest.mark.parametrize(
        ("n", "p", "words", "m", "expected"),
        [(5000, 300, 30, 100, "primal"), (200, 5000, 50, 100, "dual"), (15_000, 20_000, 37, 150, "cg")],
    )
    def test_the_cost_model_takes_the_obvious_solver(self, n, p, words, m, expected):
        X = sp.random_array((n, p), density=words / p, rng=0, dtype=np.float32).tocsr()
        assert cheapest_solver(Size.of(X), m, 1.0) == expected
        assert cheapest_solver(Size.of(X), m, 0) != "cg"

    def test_costs_grow_as_they_should(self):
        X = sp.random_array((2000, 1000), density=0.01, rng=0).tocsr()
        once, twice = Size.of(X), Size.of(sp.hstack([X, X]))
        few, many = (Size.of(sp.csr_array((100, p))) for p in (10_000, 20_000))
        assert 6 < seconds("primal", many, 1) / seconds("primal", few, 1) < 9
        assert seconds("cg", once, 200) == pytest.approx(2 * seconds("cg", once, 100))
        assert seconds("cg", twice, 100) == pytest.approx(2 * seconds("cg", once, 100), rel=0.01)

    def test_weights_equal_repetitions(self):
        X, Z = problem(40, 8, 3)
        counts = np.random.default_rng(0).integers(0, 4, 40)
        for solver in ("primal", "dual", "cg"):
            model = RidgeLearner(0.5, solver=solver, tol=1e-6)
            weighted = clone(model).fit(X, Z, sample_weight=counts).predict(X)
            repeated = clone(model).fit(np.repeat(X, counts, axis=0), np.repeat(Z, counts, axis=0)).predict(X)
            np.testing.assert_allclose(weighted, repeated, atol=1e-4)
