"""A decoder in plain Python does all that the classifier asks of one."""

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from conftest import COMPRESSORS, dense, make_operator
from sklearn.model_selection import GridSearchCV

from labelsense import HadamardCompressor, theory
from labelsense._validation import check_measurements
from labelsense.reconstruct import Decoder


class Correlations(Decoder):
    """In plain Python: all that a decoder has to have, as CONTRIBUTING.md promises."""

    def decode(self, state, H):
        H, s = check_measurements(H, state.n_measurements), self.support_size(state)
        C = state.correlate(H)
        top = np.argsort(-np.abs(C), axis=1, kind="stable")[:, :s]
        Y = np.zeros_like(C)
        np.put_along_axis(Y, top, np.take_along_axis(C, top, axis=1), axis=1)
        return sp.csr_array(Y)


class TestPlainPython:
    def problem(self, n=300):
        rng = np.random.default_rng(0)
        Y = (rng.uniform(size=(n, 50)) < 0.08).astype(int)
        Y[:, 0] = 1
        return Y + 0.2 * rng.normal(size=Y.shape), Y

    @pytest.mark.parametrize("compressor", COMPRESSORS)
    def test_every_method_of_the_classifier(self, compressor):
        X, Y = self.problem()
        clf = reference.paper(compressor(49), decoder=Correlations(6), random_state=0, n_jobs=2)
        clf.fit(X[:200], Y[:200])
        scores = clf.predict_scores(X[200:])
        A, H = dense(clf.compressor_.operator_), clf.measure(X[200:])
        nth = np.sort(np.abs(H @ A), axis=1)[:, [-6]]
        np.testing.assert_allclose(scores.toarray(), np.where(np.abs(H @ A) >= nth, H @ A, 0), atol=1e-4)
        assert clf.predict_topk(X[200:], k=3).labels.shape == (100, 3)
        assert clf.predict(X[200:]).shape == (100, 50)
        assert clf.evaluate(X[200:], Y[200:])["P@1"] > 0.9
        assert clf.diagnose(X[200:], Y[200:], k=3).n_rows == 100

    def test_a_path_is_a_run_for_each_size(self):
        operator = make_operator(HadamardCompressor, 60, 20)
        H = np.random.default_rng(0).normal(size=(10, 20)).astype(np.float32)
        decoder = Correlations()
        state = decoder.prepare(operator)
        for size, solution in zip([5, 1, 5], decoder.path(state, H, [5, 1, 5]), strict=True):
            assert (np.diff(solution.indptr) == size).all()
            np.testing.assert_array_equal(solution.toarray(), Correlations(size).decode(state, H).toarray())
        assert decoder.n_nonzero == "auto"
        with pytest.raises(ValueError, match="sizes must name at least one"):
            decoder.path(state, H, [])

    def test_grid_search(self):
        X, Y = self.problem()
        clf = reference.paper(HadamardCompressor(40), decoder=Correlations(), random_state=0)
        search = GridSearchCV(clf, {"decoder__n_nonzero": [1, 5]}, cv=2).fit(X, Y)
        assert (search.cv_results_["mean_test_score"] > 0.3).all()
        assert search.best_estimator_.decoder_.n_nonzero == search.best_params_["decoder__n_nonzero"] == 5

    def test_what_it_need_not_say(self):
        assert (Correlations.output_sparsity(3), Correlations.guarantee, Correlations.learns) == (
            3,
            "none stated",
            False,
        )
        assert not theory.guaranteed(Correlations(4), np.eye(40), 2)
        with pytest.raises(TypeError, match="abstract method"):
            Decoder()
