"""The contract of every learner, and ridge against independent solutions."""

import pickle

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from conftest import LEARNERS, problem
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import KFold
from sklearn.svm import SVR

from labelsense import KernelRidgeLearner, PolynomialKernel, RBFKernel, RidgeLearner, SklearnLearner
from labelsense.regress import moments
from labelsense.regress.ridge_cost import Size, cheapest_solver, seconds


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
    def test_least_squares_of_rows_that_add_up_to_a_constant(self, solver):
        X = np.eye(6)[np.arange(60) % 6]  # after centring one eigenvalue of X'X is rounding, and must not be inverted
        Z = X @ np.random.default_rng(0).normal(size=(6, 32))
        np.testing.assert_allclose(RidgeLearner(0, solver=solver).fit(X, Z).predict(X), Z, atol=1e-5)

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


def refits_without_each_row(learner, X, Z):
    """Predict each row by a model of all others: the slow way to leave one out."""
    H = np.empty(Z.shape)
    for i in range(len(Z)):
        rest = np.arange(len(Z)) != i
        H[i] = clone(learner).fit(X[rest], Z[rest]).predict(X[i : i + 1])[0]
    return H


LEAVE_ONE_OUT = [
    RidgeLearner(0.5, solver="primal"),
    RidgeLearner(0.5, solver="dual"),
    RidgeLearner(0.5, solver="primal", fit_intercept=False),
    RidgeLearner(0.5, solver="dual", fit_intercept=False),
    KernelRidgeLearner(RBFKernel(0.3), 0.2),
    KernelRidgeLearner(PolynomialKernel(2), 0.2),
]


class TestLeaveOneOut:
    @pytest.mark.parametrize("learner", LEAVE_ONE_OUT, ids=str)
    @pytest.mark.parametrize(("n", "p"), [(25, 6), (12, 20)])
    @pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
    def test_equals_refits(self, learner, n, p, form):
        X, Z = problem(n, p, 3)
        got = clone(learner).fit_out_of_sample(form(X), Z)
        np.testing.assert_allclose(got, refits_without_each_row(learner, X, Z), atol=2e-3, rtol=2e-3)

    @pytest.mark.parametrize("solver", ["primal", "dual"])
    def test_equals_refits_with_weights(self, solver):
        X, Z = problem(20, 5, 2)
        w = np.random.default_rng(1).uniform(0.2, 3, 20)
        got = RidgeLearner(0.5, solver=solver).fit_out_of_sample(X, Z, sample_weight=w)
        for i in range(20):
            rest = np.arange(20) != i
            expected = Ridge(0.5).fit(X[rest], Z[rest], sample_weight=w[rest]).predict(X[i : i + 1])[0]
            np.testing.assert_allclose(got[i], expected, atol=1e-3)

    @pytest.mark.parametrize("solver", ["primal", "dual"])
    def test_chooses_the_penalty_that_refits_would(self, solver):
        X, Z = problem(40, 30, 4)
        Z += np.random.default_rng(0).normal(size=Z.shape)
        alphas = [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]
        model = RidgeLearner("loo", alphas=alphas, solver=solver).fit(X, Z)
        errors = {a: ((refits_without_each_row(RidgeLearner(a), X, Z) - Z) ** 2).mean() for a in alphas}
        assert model.alpha_ == min(errors, key=errors.get)
        for alpha, error in model.alpha_errors_.items():
            assert error == pytest.approx(errors[alpha], rel=1e-3)

    def test_kernel_ridge_chooses_penalty_and_width(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(-3, 3, size=(200, 1))
        Z = np.sin(3 * X) + 0.1 * rng.normal(size=(200, 1))
        model = KernelRidgeLearner("rbf", "loo").fit(X, Z)
        grid = np.linspace(-2.5, 2.5, 50)[:, None]
        assert np.abs(model.predict(grid) - np.sin(3 * grid)).mean() < 0.1
        assert len({gamma for gamma, _ in model.alpha_errors_}) >= 2
        best = min(model.alpha_errors_, key=model.alpha_errors_.get)
        assert (model.kernel_.gamma, model.alpha_) == best

    def test_conjugate_gradients_hold_rows_out(self):
        X, Z = problem(300, 40, 4)
        Z += 3 * np.random.default_rng(0).normal(size=Z.shape)
        model = RidgeLearner("loo", solver="cg", random_state=0)
        honest = ((model.fit_out_of_sample(sp.csr_array(X), Z) - Z) ** 2).mean()
        assert ((model.predict(X) - Z) ** 2).mean() < honest
        exact = RidgeLearner(model.alpha_, solver="primal").fit_out_of_sample(X, Z)
        assert honest == pytest.approx(((exact - Z) ** 2).mean(), rel=0.05)

    def test_conjugate_gradients_hold_weighted_rows_out(self):
        X, Z = problem(200, 20, 3)
        model = RidgeLearner(2.0, solver="cg", tol=1e-6, random_state=0)
        w = np.random.default_rng(0).uniform(0.5, 2, 200)
        weighted = clone(model).fit_out_of_sample(sp.csr_array(X), Z, sample_weight=w)
        for rest, out in KFold(5, shuffle=True, random_state=0).split(X):
            expected = Ridge(2.0).fit(X[rest], Z[rest], sample_weight=w[rest]).predict(X[out])
            np.testing.assert_allclose(weighted[out], expected, atol=1e-3)
        # The same weight for all, and as much more penalty, changes nothing.
        plain = clone(model).fit_out_of_sample(X, Z)
        heavy = clone(model).set_params(alpha=8.0).fit_out_of_sample(X, Z, sample_weight=np.full(200, 4.0))
        np.testing.assert_allclose(heavy, plain, atol=1e-3)

    def test_bad_grids(self):
        X, Z = problem()
        with pytest.raises(ValueError, match="alphas must be positive, ascending and not empty"):
            RidgeLearner("loo", alphas=[1.0, 0.1]).fit(X, Z)


class TestSolvers:
    def test_large_systems_in_float32_equal_small_ones_in_double(self, monkeypatch):
        X, Z = problem(200, 60, 4)
        expected = {s: RidgeLearner(0.3, solver=s).fit(sp.csr_array(X), Z).coef_ for s in ("primal", "dual")}
        monkeypatch.setattr("labelsense.regress.primal.SMALL", 0)
        monkeypatch.setattr("labelsense.regress.dual.SMALL", 0)
        for solver, coef in expected.items():
            np.testing.assert_allclose(RidgeLearner(0.3, solver=solver).fit(sp.csr_array(X), Z).coef_, coef, atol=1e-4)

    @pytest.mark.parametrize("alpha", [0.0, 1e-7, 1e-3])
    def test_ill_conditioned_systems_fall_back_to_double(self, alpha, monkeypatch):
        monkeypatch.setattr("labelsense.regress.primal.SMALL", 0)
        rng = np.random.default_rng(0)
        X = rng.normal(size=(100, 10)) * 10.0 ** np.arange(-2, 3, 0.5) + 0.5
        Z = rng.normal(size=(100, 3))
        ours, theirs = RidgeLearner(alpha, solver="primal").fit(sp.csr_array(X), Z), Ridge(alpha).fit(X, Z)
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-3)

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


class TestUpdates:
    @given(st.lists(st.integers(1, 20), min_size=1, max_size=5), st.booleans(), st.sampled_from([0.0, 0.1, 10.0]))
    def test_batches_equal_one_fit(self, sizes, sparse, alpha):
        X, Z = problem(sum(sizes), 7, 3)
        X = sp.csr_array(X) if sparse else X
        model = RidgeLearner(alpha)
        for start, size in zip(np.cumsum([0, *sizes[:-1]]), sizes, strict=True):
            model.partial_fit(X[start : start + size], Z[start : start + size])
        whole = RidgeLearner(alpha, solver="primal").fit(X, Z)
        np.testing.assert_allclose(model.predict(X), whole.predict(X), atol=1e-3)

    @given(st.integers(5, 30), st.integers(1, 20), st.integers(0, 99))
    def test_forgetting_is_the_inverse(self, kept, gone, seed):
        X, Z = problem(kept + gone, 6, 3, seed)
        model = RidgeLearner(0.5).partial_fit(X, Z).forget(X[kept:], Z[kept:])
        np.testing.assert_allclose(model.coef_, RidgeLearner(0.5).fit(X[:kept], Z[:kept]).coef_, atol=1e-4)

    def test_goes_on_from_a_fit_that_chose_its_penalty(self):
        X, Z = problem(90, 7, 3)
        model = RidgeLearner("loo", updatable=True).fit(X[:60], Z[:60])
        model.partial_fit(X[60:], Z[60:])
        np.testing.assert_allclose(model.coef_, RidgeLearner(model.alpha_).fit(X, Z).coef_, atol=1e-4)

    def test_weighted_batches(self):
        X, Z = problem(50, 7, 3)
        w = np.random.default_rng(0).uniform(0.5, 2, 50)
        model = RidgeLearner(0.5).partial_fit(X[:20], Z[:20], w[:20]).partial_fit(X[20:], Z[20:], w[20:])
        np.testing.assert_allclose(model.coef_, RidgeLearner(0.5).fit(X, Z, w).coef_, atol=1e-4)

    def test_the_state_does_not_grow(self):
        X, Z = problem(500, 7, 3)
        model = RidgeLearner(0.5).partial_fit(X, Z)
        before = len(pickle.dumps(model))
        for _ in range(5):
            model.partial_fit(X, Z)
        assert len(pickle.dumps(model)) == pytest.approx(before, abs=200)

    def test_refusals(self):
        X, Z = problem()
        with pytest.raises(ValueError, match="fitted without updatable=True.*Fit it with RidgeLearner.updatable=True"):
            RidgeLearner().fit(X, Z).partial_fit(X, Z)
        with pytest.raises(ValueError, match="alpha must be a number for partial_fit.*Got 'loo'"):
            RidgeLearner("loo").partial_fit(X, Z)
        with pytest.raises(ValueError, match="y must have 5 targets, as before. Got 4"):
            RidgeLearner().partial_fit(X, Z).partial_fit(X, Z[:, :4])
        with pytest.raises(ValueError, match="forget would take out as many rows as were learned"):
            RidgeLearner().partial_fit(X, Z).forget(X, Z)


class TestSklearnLearner:
    def test_one_model_for_all_targets_where_possible(self):
        X, Z = problem()
        assert len(SklearnLearner(LinearRegression()).fit(X, Z).regressors_) == 1
        assert len(SklearnLearner(SVR(kernel="linear")).fit(X, Z).regressors_) == 5

    @pytest.mark.parametrize("regressor", [LinearRegression(), SVR(kernel="linear")], ids=str)
    def test_out_of_sample_predictions_are_by_models_that_did_not_see_the_row(self, regressor):
        X, Z = problem(50, 6, 3)
        H = SklearnLearner(regressor, random_state=0).fit_out_of_sample(X, Z)
        for rest, out in KFold(5, shuffle=True, random_state=0).split(X):
            expected = SklearnLearner(regressor).fit(X[rest], Z[rest]).predict(X[out])
            np.testing.assert_allclose(H[out], expected, atol=1e-5)

    def test_does_not_depend_on_n_jobs(self):
        X, Z = problem()
        one, two = (SklearnLearner(SVR(kernel="linear"), n_jobs=jobs).fit(X, Z).predict(X) for jobs in (1, 2))
        np.testing.assert_array_equal(one, two)


def test_updates_that_do_not_fit_in_memory_are_refused_beforehand(monkeypatch):
    monkeypatch.setattr(moments, "available_memory", lambda: 1e6)
    X, Z = problem(p=300)
    with pytest.raises(MemoryError, match="A model of 300 features that can be updated .* Use fewer features"):
        RidgeLearner(updatable=True).fit(X, Z)
