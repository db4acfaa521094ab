"""Updates of ridge: equal to one fit of all rows, also by several threads, and refused where they cannot be."""

import pickle
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import problem
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from labelsense import RidgeLearner
from labelsense.regress import moments
from labelsense.regress.moments import Moments


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


def test_updates_that_do_not_fit_in_memory_are_refused_beforehand(monkeypatch):
    monkeypatch.setattr(moments, "available_memory", lambda: 1e6)
    X, Z = problem(p=300)
    with pytest.raises(MemoryError, match="A model of 300 features that can be updated .* Use fewer features"):
        RidgeLearner(updatable=True).fit(X, Z)
