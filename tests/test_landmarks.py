"""Kernel ridge regression by landmarks: against scikit-learn's ridge on features of the same kernel."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import problem
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from test_chooser import pick

from labelsense import KernelRidgeLearner, LandmarkRidgeLearner, PolynomialKernel, RBFKernel, RidgeLearner
from labelsense.chooser import BUDGETS, FITS
from labelsense.regress.landmarks import JITTER


def features_of(model, X, kernel):
    """Return features whose inner products are Nystroem's kernel, by a symmetric root."""
    landmarks = np.asarray(model._landmarks.dense_rows(slice(None)), np.float64)
    K = kernel(landmarks, landmarks)
    values, vectors = np.linalg.eigh(K + JITTER * K.diagonal().mean() * np.eye(len(K)))
    return kernel(X, landmarks) @ (vectors / np.sqrt(values)) @ vectors.T


def rbf(X, Y):
    return rbf_kernel(X, Y, gamma=0.3)


class TestLandmarkRidge:
    @pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
    @pytest.mark.parametrize(
        ("ours", "theirs"),
        [(RBFKernel(0.3), rbf), (PolynomialKernel(2, 0.5), lambda x, y: polynomial_kernel(x, y, 2, 1, 0.5))],
        ids=["rbf", "polynomial"],
    )
    def test_equals_ridge_on_features_of_the_kernel(self, form, ours, theirs):
        X, Z = problem(80, 8, 3)
        new, weights = X[:10] + 0.1, np.random.default_rng(0).uniform(0.5, 2, 80)
        model = LandmarkRidgeLearner(ours, 0.2, n_landmarks=25, random_state=0).fit(form(X), Z, weights)
        F = features_of(model, X, theirs)
        expected = Ridge(0.2).fit(F, Z, weights).predict(features_of(model, new, theirs))
        np.testing.assert_allclose(model.predict(form(new)), expected, atol=5e-3)

    def test_rows_are_left_out_as_by_refits(self):
        X, Z = problem(60, 8, 3)
        model = LandmarkRidgeLearner(RBFKernel(0.3), 0.2, n_landmarks=20, random_state=0)
        H = model.fit_out_of_sample(X, Z)
        F, every = features_of(model, X, rbf), np.arange(60)
        for i in range(60):
            refit = Ridge(0.2).fit(F[every != i], Z[every != i])
            np.testing.assert_allclose(H[i], refit.predict(F[[i]])[0], atol=5e-3)
        fold = every[15:], every[:15]
        ((_, held),) = clone(model).fit_leaving_out(X, Z, [fold])
        np.testing.assert_allclose(held, Ridge(0.2).fit(F[15:], Z[15:]).predict(F[:15]), atol=5e-3)

    def test_a_path_is_one_fit_for_each_penalty(self):
        X, Z = problem(60, 8, 3)
        learner = LandmarkRidgeLearner(RBFKernel(0.3), n_landmarks=20, random_state=0)
        at = learner.fit_path(X, Z)
        for alpha in (0.1, 3.0):
            model, H = at(alpha)
            alone = clone(learner).set_params(alpha=alpha)
            np.testing.assert_array_equal(H, alone.fit_out_of_sample(X, Z))
            np.testing.assert_array_equal(model.predict(X), alone.predict(X))
            assert model.alpha_ == alpha

    def test_rows_that_are_there_twice(self):
        X, Z = problem(30, 4, 2)
        model = LandmarkRidgeLearner(RBFKernel(0.3), 0.2, random_state=0).fit(np.vstack([X, X]), np.vstack([Z, Z]))
        once = LandmarkRidgeLearner(RBFKernel(0.3), 0.1, random_state=0).fit(X, Z)
        np.testing.assert_allclose(model.predict(X), once.predict(X), atol=0.02)

    def test_more_landmarks_are_closer_to_the_kernel(self):
        X, Z = problem(300, 6, 2)
        Z -= Z.mean(axis=0)
        exact = KernelRidgeLearner(RBFKernel(0.1), 0.3).fit(X, Z).predict(X)
        missed = [
            np.abs(
                LandmarkRidgeLearner(RBFKernel(0.1), 0.3, n_landmarks=k, random_state=0).fit(X, Z).predict(X) - exact
            )
            for k in (5, 40, 300)
        ]
        assert missed[0].mean() > 2 * missed[1].mean() > 4 * missed[2].mean()

    def test_costs_what_it_makes(self):
        X = np.ones((5000, 100), np.float32)
        cost, exact = LandmarkRidgeLearner(n_landmarks=500).cost(X, 50), KernelRidgeLearner().cost(X, 50)
        assert cost.seconds < exact.seconds / 5
        assert cost.model_bytes == 4 * (500 * 100 + 501 * 50)


class TestChoice:
    @pytest.fixture
    def little_time(self, monkeypatch):
        """Time for landmarks, and not for all rows."""
        X = np.zeros((1200, 2), np.float32)
        seconds = FITS * LandmarkRidgeLearner(n_landmarks=100).cost(X, 2).seconds
        assert FITS * KernelRidgeLearner().cost(X, 2).seconds > seconds
        few = replace(BUDGETS["balanced"], sample=200, settled=600, landmarks=100, kernel_seconds=seconds)
        monkeypatch.setitem(BUDGETS, "balanced", few)

    def test_landmarks_are_taken_where_labels_are_not_linear_and_rows_are_many(self, little_time):
        X = np.random.default_rng(0).normal(size=(1200, 2))
        signs = X > 0
        Y = np.stack([signs[:, 0] ^ signs[:, 1], signs[:, 0] == signs[:, 1]], axis=1).astype(int)
        choice = pick(X, Y, budget="balanced")
        assert isinstance(choice.learner, LandmarkRidgeLearner)
        assert choice.learner.n_landmarks == 100
        assert any(tried.settled and tried.gamma == choice.learner.kernel.gamma for tried in choice.tried)
        assert not any(tried.gamma for tried in choice.tried if not tried.settled)
        again = pick(X, Y, budget="balanced")
        assert [tried.figures for tried in again.tried] == [tried.figures for tried in choice.tried]

    def test_and_not_where_they_are_linear_or_features_are_many(self, little_time):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(1200, 2))
        assert isinstance(pick(X, (X > 0).astype(int), budget="balanced").learner, RidgeLearner)
        wide = pick(rng.normal(size=(1200, 101)), (X > 0).astype(int), budget="balanced")
        assert isinstance(wide.learner, RidgeLearner)
        assert not any(tried.settled for tried in wide.tried)
