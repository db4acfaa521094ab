"""The contract of every learner, and ridge against independent solutions."""

import functools
import pickle
import threading

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from conftest import LEARNERS, problem
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import KFold
from sklearn.svm import SVR
from sklearn.utils.validation import has_fit_parameter

from labelsense import KernelRidgeLearner, PolynomialKernel, RBFKernel, RidgeLearner, SklearnLearner
from labelsense.errors import InputError
from labelsense.regress import moments
from labelsense.regress.checks import all_finite
from labelsense.regress.in_memory import as_design
from labelsense.regress.lapack import NotPositiveDefiniteError
from labelsense.regress.moments import Moments
from labelsense.regress.ridge_cost import Size, cheapest_solver, closed_form_pays, seconds


def fail_to_factor(*_):
    raise NotPositiveDefiniteError


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

    def test_predictions_out_of_sample_are_by_models_that_did_not_see_the_row(self, learner):
        X, Z = problem(40)
        learner = clone(learner).set_params(random_state=0)
        if "alpha" in learner.get_params() and learner.alpha == "loo":
            learner.set_params(alpha=0.1)  # which all rows choose
        H = learner.fit_out_of_sample(X, Z)
        assert (H.shape, H.dtype) == (Z.shape, np.float32)
        np.testing.assert_allclose(learner.predict(X), clone(learner).fit(X, Z).predict(X), atol=1e-5)
        changed = Z.copy()
        changed[7] += 100  # no say in its own prediction
        again = clone(learner)
        np.testing.assert_allclose(again.fit_out_of_sample(X, changed)[7], H[7], atol=1e-3)
        assert np.abs(again.predict(X)[7] - learner.predict(X)[7]).max() > 1e-2
        one = clone(learner).fit_out_of_sample(X, Z[:, 2])
        np.testing.assert_allclose(one, H[:, 2], atol=1e-4)

    def test_what_models_without_a_fold_say_is_what_a_fit_without_it_says(self, learner):
        X, Z = problem()
        learner = clone(learner).set_params(random_state=0)
        rows = np.random.default_rng(0).permutation(60)
        folds = [(np.sort(rows[n:]), np.sort(rows[:n])) for n in (20, 1)]
        said = list(learner.fit_leaving_out(X, Z, folds))
        np.testing.assert_allclose(learner.predict(X), clone(learner).fit(X, Z).predict(X), atol=1e-5)
        for (rest, held), (own, others) in zip(folds, said, strict=True):
            model = learner.unfitted()
            np.testing.assert_allclose(own, model.fit_out_of_sample(X[rest], Z[rest]), atol=2e-3)
            np.testing.assert_allclose(others, model.predict(X[held]), atol=2e-3)
            assert (own.dtype, others.dtype) == (np.float32, np.float32)

    def test_one_row_cannot_be_left_out(self, learner):
        with pytest.raises(ValueError, match="X must have at least 2 rows.*Got n_samples = 1|minimum of 2|n_neighbors"):
            clone(learner).fit_out_of_sample([[1.0, 2.0]], [[1.0]])

    def test_what_it_can_do_is_what_it_has(self, learner):
        assert learner.takes_weights == has_fit_parameter(getattr(learner, "regressor", learner), "sample_weight")
        assert learner.takes_updates == hasattr(learner, "partial_fit") == hasattr(learner, "forget")

    def test_weights_are_taken_or_refused(self, learner):
        X, Z = problem()
        weights = np.linspace(0.1, 3, len(X))
        if learner.takes_weights:
            weighted = clone(learner).fit(X, Z, sample_weight=weights).predict(X)
            assert np.abs(weighted - clone(learner).fit(X, Z).predict(X)).max() > 1e-4
        else:
            with pytest.raises(TypeError, match="sample_weight"):
                clone(learner).fit(X, Z, sample_weight=weights)

    def test_says_what_it_costs(self, learner):
        X, Z = problem(200)
        small, large = learner.cost(X[:100], 5), learner.cost(X, 5)
        assert 1 < large.seconds / small.seconds <= 8.1
        assert isinstance(large.solver, str)
        if large.model_bytes is not None:
            model = clone(learner).fit(X.astype(np.float32), Z)
            held = sum(a.nbytes for a in _arrays(model))
            assert learner.cost(X.astype(np.float32), 5).model_bytes == held


def _arrays(model):
    if isinstance(model, KernelRidgeLearner):
        return model.dual_coef_, model._design.X
    return model.coef_, model.intercept_


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

    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize(("n", "form"), [(60, np.asarray), (60, sp.csr_array), (1100, sp.csr_array)])
    def test_folds_left_out_in_closed_form_equal_refits(self, n, form, weighted, fit_intercept):
        X, Z = problem(n, 80)
        X, Z = form((X * (np.abs(X) > 0.3)).astype(np.float32)), Z + 3
        weights = np.linspace(0.1, 3, n) if weighted else None
        folds = [(np.arange(n // 3, n), np.arange(n // 3)), (np.arange(n), np.arange(0))]
        learner = RidgeLearner(0.5, solver="dual", fit_intercept=fit_intercept)
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
        solver = "primal" if why == "solver" else "auto"
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
        alphas = [0.1, 10.0, 1.0]
        for alpha, (model, H) in zip(alphas, learner.fit_path(X, Z, alphas, weights), strict=True):
            alone = clone(learner).set_params(alpha=alpha)
            np.testing.assert_allclose(H, alone.fit_out_of_sample(X, Z, weights), atol=1e-4)
            np.testing.assert_allclose(model.predict(X), alone.predict(X), atol=1e-4)
            assert (model.alpha, model.alpha_, model.n_features_in_) == (alpha, alpha, 20)

    def test_models_of_a_path_can_be_updated(self):
        X, Z = problem(50, 6, 3)
        for model, _ in RidgeLearner(updatable=True).fit_path(X[:40], Z[:40], [0.1, 1.0]):
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


def outcomes(learner, X, Z):
    """Fit and predict; return the predictions, or what fit says against it."""
    try:
        model = clone(learner).fit(X, Z)
    except ValueError as error:
        return str(error)
    return model.predict(X)


NUMBERS = [
    RidgeLearner(),
    RidgeLearner(solver="dual"),
    RidgeLearner(solver="cg"),
    RidgeLearner("loo", solver="cg"),
    RidgeLearner("loo", fit_intercept=False),
    RidgeLearner(0),
    KernelRidgeLearner(),
    KernelRidgeLearner("polynomial"),
    KernelRidgeLearner("cosine", "loo"),
    KernelRidgeLearner(max_memory=0),
]


class TestMagnitude:
    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    @pytest.mark.parametrize("learner", NUMBERS, ids=str)
    @pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
    @given(exponent=st.integers(-44, 40), targets=st.sampled_from([-44, 0, 38]))
    @settings(max_examples=25)
    def test_fit_refuses_what_predict_could_not_do(self, learner, form, exponent, targets):
        X, Z = problem(20, 6, 2)
        with np.errstate(all="raise", under="ignore"):
            H = outcomes(learner, form(X / np.abs(X).max() * 10.0**exponent), Z / np.abs(Z).max() * 10.0**targets)
        assert "Scale the" in H if isinstance(H, str) else np.isfinite(H).all()
        assert isinstance(H, str) or exponent < 20
        assert isinstance(H, str) or exponent > -44  # what underflows has lost its variation
        assert not (-20 < exponent < 5 and targets <= 0 and isinstance(H, str))

    @pytest.mark.parametrize("scale", [1e19, 3e37])
    def test_ridge_names_the_rule_and_the_remedy(self, scale):
        X, Z = problem()
        with pytest.raises(
            ValueError, match="X is too large for sums of squares in float32.*Scale the features.*MaxAbs"
        ):
            RidgeLearner().fit(X * scale, Z)
        with pytest.raises(ValueError, match="X is too large for sums of squares in float32"):
            RidgeLearner().partial_fit(X * scale, Z)

    def test_kernel_ridge_names_the_kernel(self):
        X, Z = problem()
        with pytest.raises(
            ValueError, match=r"too large for PolynomialKernel\(\): rows of length.*inf.*Scale the rows"
        ):
            KernelRidgeLearner("polynomial").fit(X * 1e10, Z)

    def test_targets_that_do_not_fit_are_refused(self):
        X, Z = problem()
        with pytest.raises(ValueError, match="y must fit in float32, up to 3.4e.38. Got .*Scale the targets"):
            RidgeLearner().fit(X, Z * 1e40)

    @pytest.mark.parametrize("learner", [RidgeLearner(), KernelRidgeLearner("polynomial")], ids=str)
    @pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
    def test_rows_that_overflow_are_refused_by_predict(self, learner, form):
        X, Z = problem()
        model = clone(learner).fit(form(X), 100 * Z)
        with pytest.raises(
            ValueError, match="The predictions do not fit in float32: X has entries up to .*Scale it as"
        ):
            model.predict(form(X * 1e37))
        with pytest.raises(ValueError, match="Input X contains infinity or a value too large for dtype..float32"):
            model.predict(form(X * 1e300))

    def test_sums_that_overflow_are_not_taken_for_entries_that_do(self):
        assert all_finite(np.full((3, 3), 3e38, np.float32))
        assert not all_finite(np.array([1.0, np.inf, -np.inf], np.float32))

    @pytest.mark.parametrize("learner", [RidgeLearner(), KernelRidgeLearner()], ids=str)
    @pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
    def test_features_that_float32_takes_for_constant_are_refused(self, learner, form):
        X, Z = problem()
        X[:, 3] += 1e8
        steps = [learner.fit, learner.fit_out_of_sample, *([learner.partial_fit] if learner.takes_updates else [])]
        for step in steps:
            with pytest.raises(InputError, match="1 of them lose it: feature 3 varies by .* around 1e.08. Scale the"):
                step(form(X), Z)
        X[:, 3] = 1e8 + 0.1  # constant indeed
        clone(learner).fit(form(X), Z)
        X[:, 3] = np.arange(60) * 1e8  # not small beside its size
        clone(learner).fit(form(X), Z)


@pytest.mark.parametrize("learner", [RidgeLearner(), KernelRidgeLearner()], ids=str)
@pytest.mark.parametrize("column", [-1, 12, 10**6, -(10**9)])
def test_column_numbers_out_of_range_are_refused(learner, column):
    X, Z = problem()
    X = sp.csr_array(X.astype(np.float32))
    model = clone(learner).fit(X, Z)
    X.indices[5] = column
    with pytest.raises(ValueError, match=f"X must have column numbers from 0 to 11. Got {column}"):
        model.predict(X)
    with pytest.raises(ValueError, match=f"X must have column numbers from 0 to 11. Got {column}"):
        model.fit(X, Z)


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

    def test_weights_that_are_all_zero_teach_nothing(self):
        X, Z = problem()
        with pytest.raises(ValueError, match="sample_weight must not be all zero|at least one non-zero"):
            RidgeLearner().partial_fit(X, Z, np.zeros(60))

    def test_a_failed_first_fit_leaves_a_learner_that_is_not_fitted(self):
        X, Z = problem()
        model = RidgeLearner()
        with pytest.raises(ValueError, match="too large"):
            model.fit(X * 1e30, Z)
        with pytest.raises(NotFittedError):
            model.predict(X)

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


class TestThreads:
    def test_a_solution_that_was_begun_before_an_update_is_not_kept(self, monkeypatch):
        X, Z = problem(90, 7, 3)
        model = RidgeLearner(0.5).partial_fit(X[:30], Z[:30])
        begun, go_on, solve = threading.Event(), threading.Event(), Moments.solve

        def slow(self, *args):
            result = solve(self, *args)
            begun.set()
            assert go_on.wait(10)
            return result

        monkeypatch.setattr(Moments, "solve", slow)
        seen = []
        thread = threading.Thread(target=lambda: seen.append(model.predict(X)))
        thread.start()
        assert begun.wait(10)
        monkeypatch.setattr(Moments, "solve", solve)
        model.partial_fit(X[30:], Z[30:])  # does not wait for the solution
        go_on.set()
        thread.join()
        before, after = RidgeLearner(0.5).fit(X[:30], Z[:30]), RidgeLearner(0.5).fit(X, Z)
        np.testing.assert_allclose(seen[0], before.predict(X), atol=1e-3)
        np.testing.assert_allclose(model.coef_, after.coef_, atol=1e-4)

    def test_predictions_go_on_while_rows_are_learned(self, monkeypatch):
        X, Z = problem(90, 7, 3)
        model = RidgeLearner(0.5).partial_fit(X[:30], Z[:30])
        expected = model.predict(X)
        begun, go_on, of = threading.Event(), threading.Event(), Moments.of

        def slow(*args):
            begun.set()
            assert go_on.wait(10)
            return of(*args)

        monkeypatch.setattr(Moments, "of", slow)
        thread = threading.Thread(target=model.partial_fit, args=(X[30:], Z[30:]))
        thread.start()
        assert begun.wait(10)
        np.testing.assert_array_equal(model.predict(X), expected)
        go_on.set()
        thread.join()
        np.testing.assert_allclose(model.coef_, RidgeLearner(0.5).fit(X, Z).coef_, atol=1e-4)

    def test_no_update_is_lost(self):
        X, Z = problem(120, 7, 3)
        model = RidgeLearner(0.5)
        together = threading.Barrier(8)

        def learn(rows):
            together.wait()
            model.partial_fit(X[rows], Z[rows])
            model.predict(X[rows])

        threads = [threading.Thread(target=learn, args=(np.arange(i, 120, 8),)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        np.testing.assert_allclose(model.coef_, RidgeLearner(0.5).fit(X, Z).coef_, atol=1e-4)


class TestSklearnLearner:
    def test_one_model_for_all_targets_where_possible(self):
        X, Z = problem()
        assert len(SklearnLearner(LinearRegression()).fit(X, Z).regressors_) == 1
        assert len(SklearnLearner(SVR(kernel="linear")).fit(X, Z).regressors_) == 5

    @pytest.mark.parametrize("regressor", [LinearRegression(), SVR(kernel="linear")], ids=str)
    def test_folds_are_held_out_with_their_weights(self, regressor):
        X, Z = problem(50, 6, 3)
        w = np.random.default_rng(0).uniform(0.5, 2, 50)
        H = SklearnLearner(regressor, random_state=0).fit_out_of_sample(X, Z, w)
        for rest, out in KFold(5, shuffle=True, random_state=0).split(X):
            expected = SklearnLearner(regressor).fit(X[rest], Z[rest], w[rest]).predict(X[out])
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
