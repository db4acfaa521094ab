"""The contract of every learner, and regressors of scikit-learn as learners."""

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import LEARNERS, problem
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold
from sklearn.svm import SVR
from sklearn.utils.validation import has_fit_parameter

from labelsense import KernelRidgeLearner, LandmarkRidgeLearner, SklearnLearner


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
        folds = [(np.sort(rows[n:]), np.sort(rows[:n])) for n in (20, 1, 0)]
        said = list(learner.fit_leaving_out(X, Z, folds))
        np.testing.assert_allclose(learner.predict(X), clone(learner).fit(X, Z).predict(X), atol=1e-5)
        for (rest, held), (own, others) in zip(folds, said, strict=True):
            model = learner.unfitted()
            np.testing.assert_allclose(own, model.fit_out_of_sample(X[rest], Z[rest]), atol=2e-3)
            np.testing.assert_allclose(others, model.predict(X)[held], atol=2e-3)
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
    if isinstance(model, LandmarkRidgeLearner):
        return model.dual_coef_, model.intercept_, model._landmarks.X
    return model.coef_, model.intercept_


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
