"""Kernel ridge against scikit-learn, and beyond memory."""

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import problem
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import KFold

from labelsense import CosineKernel, KernelRidgeLearner, PolynomialKernel, RBFKernel
from labelsense.regress import lapack


class TestKernelRidge:
    @pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
    @pytest.mark.parametrize(
        ("ours", "theirs"),
        [
            (RBFKernel(0.7), {"kernel": "rbf", "gamma": 0.7}),
            (PolynomialKernel(3, 0.5), {"kernel": "poly", "degree": 3, "coef0": 0.5, "gamma": 1}),
            (CosineKernel(), {"kernel": "cosine"}),
            (RBFKernel(0.7) + CosineKernel(), {"kernel": lambda x, y: _rbf(x, y) + _cosine(x, y)}),
        ],
        ids=["rbf", "polynomial", "cosine", "sum"],
    )
    def test_equals_scikit_learn(self, form, ours, theirs):
        X, Z = problem(50, 8, 3)
        new = X[:10] + 0.1
        expected = KernelRidge(alpha=0.2, **theirs).fit(X, Z).predict(new)
        got = KernelRidgeLearner(ours, 0.2).fit(form(X), Z).predict(form(new))
        np.testing.assert_allclose(got, expected, atol=2e-3)

    def test_features_that_most_rows_have_are_not_lost(self):
        X = sp.random_array((80, 40), density=0.05, rng=0, dtype=np.float32).toarray()
        X[:, :3] += 0.5  # these go through BLAS, the others entry by entry
        Z = np.random.default_rng(0).normal(size=(80, 2))
        dense, sparse = (
            KernelRidgeLearner("rbf", 0.1).fit(form(X), Z).predict(form(X)) for form in (np.asarray, sp.csr_array)
        )
        np.testing.assert_allclose(sparse, dense, atol=1e-4)

    @pytest.mark.parametrize("max_memory", [0, 2e-5, 7e-5])  # nothing kept, some strips, most strips; whole: 9e-5
    @pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
    def test_beyond_memory_equals_the_factorisation(self, max_memory, form, monkeypatch):
        monkeypatch.setattr("labelsense.regress.kernel_blocks.STRIP_ROWS", 32)
        monkeypatch.setattr("labelsense.regress.kernel_blocks.LANDMARKS", 40)
        X, Z = problem(150, 8, 4)
        whole = KernelRidgeLearner(RBFKernel(0.5), 0.1).fit(form(X), Z)
        strips = KernelRidgeLearner(RBFKernel(0.5), 0.1, max_memory=max_memory, tol=1e-5, random_state=0).fit(
            form(X), Z
        )
        assert whole.n_iter_ == 1
        assert strips.n_iter_ > 1
        np.testing.assert_allclose(strips.predict(X), whole.predict(X), atol=1e-3)

    def test_beyond_memory_folds_are_held_out(self, monkeypatch):
        monkeypatch.setattr("labelsense.regress.kernel_blocks.LANDMARKS", 40)
        X, Z = problem(100, 8, 4)
        learner = KernelRidgeLearner(RBFKernel(0.5), 0.1, max_memory=0, tol=1e-5, random_state=0)
        H = learner.fit_out_of_sample(X, Z)
        for rest, out in KFold(5, shuffle=True, random_state=0).split(X):
            expected = KernelRidgeLearner(RBFKernel(0.5), 0.1).fit(X[rest], Z[rest]).predict(X[out])
            np.testing.assert_allclose(H[out], expected, atol=1e-3)

    def test_a_kernel_matrix_without_a_factor_is_made_again(self, monkeypatch):
        X, Z = problem(50, 8, 3)
        expected = KernelRidgeLearner(RBFKernel(0.5), 0.2).fit(X, Z).predict(X)

        def fail(A):
            A[:] = 7  # an attempt overwrites the matrix
            raise lapack.NotPositiveDefiniteError

        monkeypatch.setattr(lapack, "cholesky", fail)
        model = KernelRidgeLearner(RBFKernel(0.5), 0.2)
        np.testing.assert_allclose(model.fit(X, Z).predict(X), expected, atol=1e-3)
        residuals = KernelRidgeLearner(RBFKernel(0.5), 0.2).fit_out_of_sample(X, Z) - Z
        monkeypatch.undo()
        np.testing.assert_allclose(residuals, model.fit_out_of_sample(X, Z) - Z, atol=1e-2)

    @pytest.mark.parametrize("how", ["kept", "made anew", "beyond memory"])
    def test_a_path_of_penalties_equals_one_fit_each(self, how, monkeypatch):
        monkeypatch.setattr("labelsense.regress.kernel_blocks.LANDMARKS", 40)
        monkeypatch.setattr("labelsense.regress.kernel_ridge.KEPT_ROWS", 1000 if how == "kept" else 10)
        X, Z = problem(60, 8, 4)
        memory = 0 if how == "beyond memory" else None
        learner = KernelRidgeLearner(RBFKernel(0.5), "loo", max_memory=memory, tol=1e-6, random_state=0)
        path = learner.fit_path(X, Z)
        for alpha in (0.1, 1.0, 0.3):
            model, H = path(alpha)
            alone = clone(learner).set_params(alpha=alpha)
            np.testing.assert_allclose(H, alone.fit_out_of_sample(X, Z), atol=1e-4)
            np.testing.assert_allclose(model.predict(X), alone.predict(X), atol=1e-4)
            assert (model.alpha, model.alpha_) == (alpha, alpha)

    @pytest.mark.parametrize("max_memory", [0, None], ids=["beyond memory", "without a factor"])
    def test_folds_are_left_out_by_fits_where_there_is_no_closed_form(self, max_memory, monkeypatch):
        monkeypatch.setattr("labelsense.regress.kernel_blocks.LANDMARKS", 40)
        X, Z = problem(100, 8, 4)
        fold = np.arange(30, 100), np.arange(30)
        ((own, others),) = KernelRidgeLearner(RBFKernel(0.5), 0.1).fit_leaving_out(X, Z, [fold])

        def fail(*_):
            raise lapack.NotPositiveDefiniteError

        if max_memory is None:
            monkeypatch.setattr("labelsense.regress.kernel_ridge.leave_fold_out", fail)
        learner = KernelRidgeLearner(RBFKernel(0.5), 0.1, max_memory=max_memory, tol=1e-5, random_state=0)
        ((said, of_others),) = learner.fit_leaving_out(X, Z, [fold])
        np.testing.assert_allclose(of_others, others, atol=1e-3)
        assert (max_memory == 0) or np.abs(said - own).max() < 1e-3

    def test_too_few_steps_are_reported(self):
        X, Z = problem(150, 8, 4)
        with pytest.warns(ConvergenceWarning, match="did not reach tol=1e-06 in max_iter=1 steps"):
            KernelRidgeLearner(alpha=1e-3, max_memory=0, tol=1e-6, max_iter=1).fit(X, Z)

    def test_what_cannot_fit_is_refused_before_anything_is_allocated(self, monkeypatch):
        X, Z = problem()
        monkeypatch.setattr("labelsense.regress.kernel_ridge.available_memory", lambda: 1e4)
        with pytest.raises(
            MemoryError, match="for 60 rows and 5 targets, even without the kernel matrix.*RidgeLearner"
        ):
            KernelRidgeLearner().fit(X, Z)

    def test_bad_parameters(self):
        X, Z = problem()
        with pytest.raises(ValueError, match="alpha must be finite and at least 1e-09. Got 0"):
            KernelRidgeLearner(alpha=0).fit(X, Z)
        with pytest.raises(ValueError, match="kernel must be one of 'rbf', 'polynomial', 'cosine'.*Got 'tanh'"):
            KernelRidgeLearner("tanh").fit(X, Z)
        with pytest.raises(ValueError, match="gamma must be finite and at least 0. Got -1"):
            KernelRidgeLearner(RBFKernel(-1)).fit(X, Z)
        with pytest.raises(ValueError, match="offset must be finite and at least 0. Got -1. A negative offset"):
            KernelRidgeLearner(PolynomialKernel(2, -1)).fit(X, Z)


def _rbf(x, y):
    return float(np.exp(-0.7 * ((x - y) ** 2).sum()))


def _cosine(x, y):
    return float(x @ y / np.linalg.norm(x) / np.linalg.norm(y))
