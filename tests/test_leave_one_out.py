"""Predictions of rows and folds that were left out, and penalties chosen by them: equal to refits without them."""

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import problem
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import KFold

from labelsense import KernelRidgeLearner, PolynomialKernel, RBFKernel, RidgeLearner
from labelsense.regress.lapack import NotPositiveDefiniteError
from labelsense.regress.ridge_cost import Size, cheapest_solver, closed_form_pays, leaving_out_pays


def fail_to_factor(*_):
    raise NotPositiveDefiniteError


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
    def test_of_features_that_are_there_twice(self):
        X, Z = problem(40, 6, 3)
        X = np.hstack([X, X[:, :2]])
        learner = RidgeLearner(1e-12, solver="primal", fit_intercept=False)
        expected = np.empty(Z.shape)
        for i in range(40):
            rest = np.arange(40) != i
            expected[i] = X[i] @ np.linalg.lstsq(X[rest], Z[rest], rcond=None)[0]
        np.testing.assert_allclose(learner.fit_out_of_sample(X, Z), expected, atol=1e-3)

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

    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
    @pytest.mark.parametrize(
        ("solver", "n", "p", "alpha"),
        [("dual", 60, 80, 0.5), ("dual", 1100, 80, 0.5), ("primal", 60, 20, 0.5), ("primal", 1100, 1030, 50)],
    )
    def test_folds_left_out_in_closed_form_equal_refits(
        self, solver, n, p, alpha, form, weighted, fit_intercept, monkeypatch
    ):
        monkeypatch.setattr("labelsense.regress.primal.FOLD_ROWS", 300)
        monkeypatch.setattr("labelsense.regress.ridge_cost.leaving_out_pays", lambda *sizes: True)
        X, Z = problem(n, p)
        X, Z = form((X * (np.abs(X) > 0.3)).astype(np.float32)), Z + 3
        weights = np.linspace(0.1, 3, n) if weighted else None
        folds = [(np.arange(n // 3, n), np.arange(n // 3)), (np.arange(n), np.arange(0))]
        learner = RidgeLearner(alpha, solver=solver, fit_intercept=fit_intercept)
        said = list(learner.fit_leaving_out(X, Z, folds, weights))
        fitted = clone(learner).fit(X, Z, weights)
        np.testing.assert_allclose(learner.predict(X), fitted.predict(X), atol=1e-3)
        for fold, (own, others) in zip(folds, said, strict=True):
            expected = learner._fit_without(X, Z, fold, weights)
            np.testing.assert_allclose(own, expected[0], atol=5e-3)
            np.testing.assert_allclose(others, expected[1], atol=5e-3)

    @pytest.mark.parametrize("why", ["alpha", "weights", "solver", "memory", "rounding"])
    def test_folds_are_left_out_by_fits_where_there_is_no_closed_form(self, why, monkeypatch):
        X, Z = problem(60, 80)
        weights = np.where(np.arange(60) == 40, 0, 1.0) if why == "weights" else None
        solver = "cg" if why == "solver" else "auto"
        learner = RidgeLearner(0 if why == "alpha" else 0.5, solver=solver, random_state=0)
        fold = np.arange(20, 60), np.arange(20)
        ((own, others),) = clone(learner).fit_leaving_out(X, Z, [fold], weights)
        if why == "memory":
            monkeypatch.setattr("labelsense.regress.ridge.available_memory", lambda: 0)
        monkeypatch.setattr("labelsense.regress.dual.leave_fold_out", fail_to_factor)
        ((again, of_others),) = learner.fit_leaving_out(X, Z, [fold], weights)
        np.testing.assert_allclose(again, own, atol=1e-3)
        np.testing.assert_allclose(of_others, others, atol=1e-3)

    def test_many_folds_of_rows_with_many_features_are_left_out_in_closed_form(self):
        few, many = (Size(n, 50_000, 100 * n, 5000.0 * n, n**2 / 10, True) for n in (15_000, 60_000))
        assert cheapest_solver(few, 200, 1.0) == cheapest_solver(many, 200, 1.0) == "cg"
        assert closed_form_pays(few, 200, 5)
        assert not closed_form_pays(many, 200, 5)

    def test_rows_are_left_out_in_closed_form_where_they_are_few_beside_the_features(self):
        wide, narrow = (Size(13_000, p, 20 * 13_000, 400.0 * 13_000, 13_000**2 / 10, True) for p in (5000, 500))
        assert cheapest_solver(wide, 200, 1.0) == cheapest_solver(narrow, 200, 1.0) == "primal"
        assert leaving_out_pays(wide, 200, 2000)
        assert leaving_out_pays(narrow, 200, 200)
        assert not leaving_out_pays(narrow, 200, 2000)

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

    @pytest.mark.parametrize("solver", ["primal", "dual", "cg"])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_a_path_of_penalties_equals_one_fit_each(self, solver, weighted):
        X, Z = problem(50, 20, 3)
        weights = np.arange(50) % 4 if weighted else None
        learner = RidgeLearner("loo", solver=solver, tol=1e-6, random_state=0)
        path = learner.fit_path(X, Z, weights)
        for alpha in (0.1, 10.0, 1.0):
            model, H = path(alpha)
            alone = clone(learner).set_params(alpha=alpha)
            np.testing.assert_allclose(H, alone.fit_out_of_sample(X, Z, weights), atol=1e-4)
            np.testing.assert_allclose(model.predict(X), alone.predict(X), atol=1e-4)
            assert (model.alpha, model.alpha_, model.n_features_in_) == (alpha, alpha, 20)

    def test_models_of_a_path_can_be_updated(self):
        X, Z = problem(50, 6, 3)
        path = RidgeLearner(updatable=True).fit_path(X[:40], Z[:40])
        for model, _ in map(path, (0.1, 1.0)):
            model.partial_fit(X[40:], Z[40:])
            np.testing.assert_allclose(model.coef_, RidgeLearner(model.alpha).fit(X, Z).coef_, atol=1e-4)

    @pytest.mark.parametrize("solver", ["primal", "dual"])
    @pytest.mark.parametrize(("n", "p"), [(30, 6), (12, 20)])
    def test_without_a_penalty_folds_are_held_out(self, solver, n, p):
        X, Z = problem(n, p, 3)
        H = RidgeLearner(0, solver=solver, random_state=0).fit_out_of_sample(X, Z)
        for rest, out in KFold(5, shuffle=True, random_state=0).split(X):
            np.testing.assert_allclose(H[out], LinearRegression().fit(X[rest], Z[rest]).predict(X[out]), atol=1e-3)

    @pytest.mark.parametrize("solver", ["primal", "dual", "cg"])
    def test_rows_without_weight_are_predicted_by_the_model_of_all_others(self, solver):
        X, Z = problem(40, 5, 2)
        weights = np.ones(40)
        weights[[3, 11]] = 0
        model = RidgeLearner(0.5, solver=solver, random_state=0)
        H = model.fit_out_of_sample(X, Z, weights)
        others = weights > 0
        np.testing.assert_allclose(H[~others], model.predict(X[~others]), atol=1e-6)
        np.testing.assert_allclose(H[others], clone(model).fit_out_of_sample(X[others], Z[others]), atol=1e-4)

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
        with pytest.raises(ValueError, match="alphas must be positive, ascending and not empty. Got .0.0, 1.0."):
            RidgeLearner("loo", alphas=[0.0, 1.0]).fit(X, Z)
