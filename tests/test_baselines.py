"""One-against-all and output codes, with the same learners and methods."""

import numpy as np
import pytest
import reference
from conftest import dense
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor

from labelsense import ECOCClassifier, OneVsAllClassifier, RidgeLearner, SECOCClassifier, baselines
from labelsense.data import make_tagged_documents
from labelsense.labels import keep_best
from labelsense.metrics import precision_at_k, squared_error

CODES = [ECOCClassifier, SECOCClassifier]
LOSSES = {  # the loss of a margin, and the slope at 0 of (L(-f) - L(f)) / 2, which scores are divided by
    "squared": (lambda f: (1 - f) ** 2, 2.0),
    "hinge": (lambda f: max(0.0, 1 - f), 1.0),
    "exponential": (lambda f: np.exp(-f), 1.0),
    "hamming": (lambda f: (1 - np.sign(f)) / 2, 0.5),
}


def one_hot(d=24, n=40, k=3, seed=0):
    """Return rows of their own and label sets: least squares predicts every target exactly."""
    rng = np.random.default_rng(seed)
    Y = np.zeros((n, d))
    for y in Y:
        y[rng.choice(d, rng.integers(1, k + 1), replace=False)] = 1
    return np.eye(n), Y


def code_of(clf):
    """Return the code of a fitted model as signs (m, d)."""
    return np.vstack([np.sign(dense(part)) for part, _ in clf.parts_])


def test_equals_one_ridge_per_label():
    X, Y = make_tagged_documents(300, 100, 40, random_state=0)
    ours = OneVsAllClassifier(RidgeLearner(2.0), n_nonzero=40).fit(X, Y).predict_scores(X)
    theirs = Ridge(2.0).fit(X.toarray(), Y.toarray()).predict(X.toarray())
    np.testing.assert_allclose(ours.toarray(), theirs, atol=1e-4)


@given(st.integers(1, 5), st.integers(1, 8), st.data())
def test_keeps_the_best_scores_ties_to_the_lowest_column(n, d, data):
    keep = data.draw(st.integers(1, d))
    scores = np.random.default_rng(data.draw(st.integers(0, 999))).integers(1, 4, (n, d)).astype(np.float32)
    got = keep_best(scores, keep)
    for i, row in enumerate(scores):
        expected = sorted(np.argsort(-row, kind="stable")[:keep])
        assert got.indices[got.indptr[i] : got.indptr[i + 1]].tolist() == expected
        np.testing.assert_array_equal(got.data[got.indptr[i] : got.indptr[i + 1]], row[expected])


class TestECOC:
    @pytest.mark.parametrize("loss", LOSSES)
    def test_scores_are_the_losses_of_the_slow_version(self, loss):
        X, Y = make_tagged_documents(120, 60, 30, labels_per_row=2, random_state=0)
        clf = ECOCClassifier(RidgeLearner(2.0), n_subproblems=35, loss=loss, n_nonzero=30, random_state=0).fit(X, Y)
        M, X, Y = code_of(clf), X.toarray(), Y.toarray()
        k = Y.sum() / len(Y)
        margins = Ridge(2.0).fit(X, Y @ M.T / k).predict(X)
        function, slope = LOSSES[loss]
        for f, scores in zip(margins[:10], clf.predict_scores(X).toarray(), strict=False):
            total = reference.loss_decoding(M, f, function)
            expected = -total * k / (slope * len(M))
            np.testing.assert_allclose(scores - scores.mean(), expected - expected.mean(), atol=1e-4)
            assert np.argmax(scores) == np.argmin(total)

    def test_with_one_label_a_row_the_nearest_codeword_wins(self):
        X, Y = one_hot(k=1)
        clf = ECOCClassifier(RidgeLearner(0.5), n_subproblems=40, random_state=0).fit(X, Y)
        M = code_of(clf)
        F = Ridge(0.5).fit(X, Y @ M.T).predict(X)
        nearest = ((F[:, :, None] - M[None]) ** 2).sum(axis=1).argmin(axis=1)
        np.testing.assert_array_equal(clf.predict_topk(X, k=1).labels[:, 0], nearest)

    def test_the_squared_loss_is_unbiased_and_its_error_falls_with_the_number_of_subproblems(self):
        X, Y = one_hot()
        errors, mean = {}, 0
        for m in (20, 80, 320):
            runs = [
                ECOCClassifier(RidgeLearner(1e-6), n_subproblems=m, n_nonzero=24, random_state=seed).fit(X, Y)
                for seed in range(20)
            ]
            scores = [clf.predict_scores(X).toarray() for clf in runs]
            errors[m], mean = np.mean([squared_error(Y, s) for s in scores]), np.mean(scores, axis=0)
        np.testing.assert_allclose(mean, Y, atol=0.1)
        assert errors[80] == pytest.approx(errors[20] / 4, rel=0.2)  # the variance is proportional to 1/m
        assert errors[320] == pytest.approx(errors[80] / 4, rel=0.2)

    def test_auto_is_ten_bits_a_bit_of_label_number(self):
        X, Y = one_hot(d=24)
        assert ECOCClassifier(random_state=0).fit(X, Y).n_subproblems_ == int(np.ceil(10 * np.log2(24)))

    def test_wild_margins_stay_finite(self):
        X, Y = one_hot()
        clf = ECOCClassifier(RidgeLearner(1e-6), loss="exponential", random_state=0).fit(X, Y)
        assert np.isfinite(clf.predict_scores(1e6 * X).data).all()


class TestSECOC:
    def test_equals_averages_over_explicit_subsets(self):
        X, Y = make_tagged_documents(100, 50, 13, labels_per_row=2, random_state=1)
        clf = SECOCClassifier(RidgeLearner(2.0), n_nonzero=13).fit(X, Y)
        X, Y = X.toarray(), Y.toarray()
        subsets = [{j for j in range(13) if row[j] > 0} for row in reference.hadamard(16)]
        targets = [[2 * y[list(s)].sum() - y.sum() for s in subsets] for y in Y]
        Z = Ridge(2.0).fit(X, targets).predict(X)
        expected = [reference.subset_average(subsets, z, 13) for z in Z]
        np.testing.assert_allclose(clf.predict_scores(X).toarray(), expected, atol=1e-4)

    def test_with_a_linear_learner_it_is_one_against_all(self):
        X, Y = make_tagged_documents(200, 80, 50, random_state=0)
        code = SECOCClassifier(RidgeLearner(1.0), n_nonzero=50).fit(X, Y)
        direct = OneVsAllClassifier(RidgeLearner(1.0), n_nonzero=50).fit(X, Y)
        assert code.n_subproblems_ == 64
        np.testing.assert_allclose(code.predict_scores(X).toarray(), direct.predict_scores(X).toarray(), atol=1e-4)

    def test_a_part_of_the_code_is_worse_and_all_of_it_is_exact(self):
        X, Y = one_hot(d=32)
        errors = [
            squared_error(
                Y,
                SECOCClassifier(RidgeLearner(1e-6), n_subproblems=m, n_nonzero=32, random_state=0)
                .fit(X, Y)
                .predict_scores(X),
            )
            for m in (8, 16, 32)
        ]
        assert errors[0] > errors[1] > 1
        assert errors[2] < 1e-4


@pytest.mark.parametrize("code", CODES)
class TestBoth:
    def test_memory_blocks_do_not_change_the_scores(self, code, monkeypatch):
        X, Y = make_tagged_documents(90, 50, 20, random_state=0)
        whole = code(random_state=0).fit(X, Y)
        expected = whole.predict_scores(X).toarray()
        monkeypatch.setattr(baselines, "SCORE_NUMBERS", 100)
        np.testing.assert_allclose(whole.predict_scores(X).toarray(), expected, atol=1e-6)
        if code is SECOCClassifier:  # the parts of a random code are drawn one by one
            monkeypatch.setattr(baselines, "TARGET_NUMBERS", 500)
            parts = code(random_state=0).fit(X, Y)
            assert len(parts.parts_) == 7
            np.testing.assert_allclose(parts.predict_scores(X).toarray(), expected, atol=1e-4)

    def test_more_subproblems_than_labels_fit_in_parts(self, code, monkeypatch):
        X, Y = one_hot(d=10)
        monkeypatch.setattr(baselines, "TARGET_NUMBERS", 200)  # 5 targets of 40 rows
        clf = code(random_state=0).fit(X, Y)
        assert max(part.n_measurements for part, _ in clf.parts_) <= 5
        assert precision_at_k(Y, clf.predict_scores(X), 1) > 0.9

    def test_any_regressor_and_named_labels(self, code):
        X = np.repeat(np.eye(3), 4, axis=0)
        Y = [["a"], ["b", "c"], ["d"]]
        clf = code(KNeighborsRegressor(4), random_state=0).fit(X, [Y[i // 4] for i in range(12)])
        assert clf.predict_topk(np.eye(3), k=1).labels[0, 0] == "a"
        assert set(clf.predict_topk(np.eye(3), k=2).labels[1]) == {"b", "c"}

    def test_the_seed_decides_and_the_number_of_jobs_does_not(self, code):
        X, Y = make_tagged_documents(60, 30, 20, random_state=0)

        def scores(**options):
            return code(Ridge(), n_subproblems=8, **options).fit(X, Y).predict_scores(X).toarray()

        first = scores(random_state=0)
        np.testing.assert_array_equal(first, scores(random_state=0, n_jobs=2))
        assert (first != scores(random_state=1)).any()

    def test_bad_parameters(self, code):
        X, Y = make_tagged_documents(50, 20, 10, random_state=0)
        with pytest.raises(ValueError, match="n_nonzero must be at least 1. Got 0"):
            code(n_nonzero=0).fit(X, Y)
        with pytest.raises(ValueError, match="n_subproblems must be an integer or 'auto'. Got 'all'"):
            code(n_subproblems="all").fit(X, Y)
        with pytest.raises(ValueError, match="n_subproblems must be .* Got 0"):
            code(n_subproblems=0).fit(X, Y)


def test_bad_parameters():
    X, Y = make_tagged_documents(50, 20, 10, random_state=0)
    with pytest.raises(ValueError, match="n_nonzero must be at least 1. Got 0"):
        OneVsAllClassifier(n_nonzero=0).fit(X, Y)
    with pytest.raises(ValueError, match="between 1 and 16. Got 17. The Hadamard matrix has no more rows"):
        SECOCClassifier(n_subproblems=17).fit(X, Y)
    with pytest.raises(
        ValueError, match="loss must be one of 'squared', 'hinge', 'exponential', 'hamming'.* Got 'log'"
    ):
        ECOCClassifier(loss="log").fit(X, Y)
