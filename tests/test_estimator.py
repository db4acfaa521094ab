"""The classifier: shapes, forms of input, identities with one-against-all, and refusals."""

import pickle
import threading

import numpy as np
import pandas as pd
import pytest
import reference
import scipy.sparse as sp
from conftest import dense, real_data
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from labelsense import (
    BernoulliCompressor,
    CompressedLabelClassifier,
    CorrelationDecoder,
    GaussianCompressor,
    HadamardCompressor,
    InputError,
    OMPDecoder,
    OneVsAllClassifier,
    RidgeLearner,
    fitted,
)
from labelsense.data import make_tagged_documents
from labelsense.metrics import precision_at_k
from labelsense.refine import Refiner
from labelsense.regress.moments import Moments


@pytest.fixture(scope="module")
def documents():
    X, Y = make_tagged_documents(800, 300, 100, noise=0.1, random_state=0)
    return X[:600], Y[:600], X[600:], Y[600:]


def names(Y):
    """Label lists with string labels for an indicator matrix."""
    return [[f"tag{j:03d}" for j in Y.indices[a:b]] for a, b in zip(Y.indptr[:-1], Y.indptr[1:], strict=True)]


@pytest.mark.parametrize("compressor", ["hadamard", "gaussian", "bernoulli", "devore"])
@pytest.mark.parametrize("decoder", ["omp", "foba", "cosamp", "lasso", "correlation"])
def test_every_combination_learns(documents, compressor, decoder):
    X, Y, X_test, Y_test = documents
    clf = reference.paper(compressor, decoder=decoder, random_state=0).fit(X, Y)
    frequent = np.tile(np.argsort(-np.asarray(Y.sum(axis=0)).ravel())[:3], (len(Y_test.indptr) - 1, 1))
    always = sp.csr_array((np.tile([3.0, 2, 1], len(frequent)), frequent.ravel(), 3 * np.arange(len(frequent) + 1)))
    always.resize(Y_test.shape)
    assert precision_at_k(Y_test, clf.predict_topk(X_test, 3), 3) > 1.3 * precision_at_k(Y_test, always, 3)


class TestOutputs:
    def test_shapes_and_types(self, documents):
        X, Y, X_test, _ = documents
        clf = reference.paper(HadamardCompressor(64), decoder=OMPDecoder(6), random_state=0).fit(X, Y)
        assert clf.measure(X_test).shape == (200, 64)
        assert clf.measure(X_test).dtype == np.float32
        scores = clf.predict_scores(X_test)
        assert sp.issparse(scores)
        assert scores.shape == (200, 100)
        assert np.diff(scores.indptr).max() <= 6
        assert clf.labels_ == list(range(100))

    def test_topk_is_the_best_of_the_scores(self, documents):
        X, Y, X_test, _ = documents
        clf = reference.paper(decoder=OMPDecoder(6), random_state=0).fit(X, Y)
        scores = clf.predict_scores(X_test).toarray()
        labels, values = clf.predict_topk(X_test, k=4)
        for row, found, value in zip(scores, labels, values, strict=True):
            np.testing.assert_array_equal(row[found], value)
            assert (np.diff(value) <= 0).all()
            assert value[0] == row.max()

    def test_missing_places_are_marked(self, documents):
        X, Y, X_test, _ = documents
        clf = reference.paper(HadamardCompressor(3), decoder=OMPDecoder(2), random_state=0).fit(X, Y)
        labels, scores = clf.predict_topk(X_test, k=5)
        assert (labels[:, 2:] == -1).all()
        assert (scores[:, 2:] == 0).all()
        named = reference.paper(HadamardCompressor(3), decoder=OMPDecoder(2), random_state=0).fit(X, names(Y))
        assert named.predict_topk(X_test, k=5).labels[0, 4] is None

    def test_predict_is_the_scores_above_one_half(self, documents):
        X, Y, X_test, _ = documents
        clf = reference.paper(random_state=0).fit(X, Y)
        expected = clf.predict_scores(X_test).toarray() >= 0.5
        np.testing.assert_array_equal(clf.predict(X_test).toarray(), expected)
        assert expected.any()

    def test_labels_come_back_as_they_went_in(self, documents):
        X, Y, X_test, _ = documents
        plain = reference.paper(random_state=0).fit(X, Y)
        named = reference.paper(random_state=0).fit(X, names(Y))
        seen = np.unique(Y.indices)  # labels without rows have no name
        if len(seen) == 100:
            np.testing.assert_allclose(named.predict_scores(X_test).toarray(), plain.predict_scores(X_test).toarray())
        top = named.predict_topk(X_test, 3).labels
        assert all(isinstance(label, str) for label in top.ravel())
        assert all(isinstance(row, list) for row in named.predict(X_test))
        assert set(named.labels_) == {f"tag{j:03d}" for j in seen}


class TestForms:
    def test_arrays_sparse_matrices_and_data_frames_alike(self, documents):
        X, Y, X_test, _ = documents
        expected = reference.paper(random_state=0).fit(X, Y).predict_scores(X_test).toarray()
        for form in (lambda M: M.toarray(), sp.csc_array, sp.csr_matrix, lambda M: pd.DataFrame(M.toarray())):
            clf = reference.paper(random_state=0).fit(form(X), form(Y))
            np.testing.assert_allclose(clf.predict_scores(form(X_test)).toarray(), expected, atol=1e-4)

    def test_any_scikit_learn_regressor(self, documents):
        X, Y, X_test, _ = documents
        X, X_test = X.toarray(), X_test.toarray()
        ours = reference.paper(learner=RidgeLearner(0), random_state=0).fit(X, Y)
        theirs = reference.paper(learner=LinearRegression(), random_state=0).fit(X, Y)
        np.testing.assert_allclose(theirs.measure(X_test), ours.measure(X_test), atol=1e-3)

    def test_rows_without_labels_and_labels_without_rows(self, documents):
        X, Y, X_test, _ = documents
        Y = sp.lil_array(Y)
        Y[:50] = 0
        Y[:, 7] = 0
        clf = reference.paper(random_state=0).fit(X, Y.tocsr())
        assert np.isfinite(clf.predict_scores(X_test).data).all()


class TestReproducible:
    def test_same_seed_same_bytes_whatever_n_jobs(self, documents):
        X, Y, X_test, _ = documents
        results = [reference.paper(random_state=5, n_jobs=jobs).fit(X, Y).predict_scores(X_test) for jobs in (1, 2, 3)]
        for other in results[1:]:
            np.testing.assert_array_equal(results[0].data, other.data)
            np.testing.assert_array_equal(results[0].indices, other.indices)

    def test_a_copy_through_pickle_predicts_the_same(self, documents):
        X, Y, X_test, _ = documents
        clf = reference.paper(random_state=5).fit(X, Y)
        copy = pickle.loads(pickle.dumps(clf))
        np.testing.assert_array_equal(copy.predict_scores(X_test).data, clf.predict_scores(X_test).data)


class TestIdentities:
    """Ridge output is A times one-against-all's: what is lost is lost in decoding."""

    def test_all_rows_of_the_hadamard_matrix_reproduce_one_against_all(self, documents):
        X, Y, X_test, _ = documents
        clf = reference.paper(HadamardCompressor(128), RidgeLearner(1.0), CorrelationDecoder(100)).fit(X, Y)
        one_vs_all = OneVsAllClassifier(RidgeLearner(1.0), n_nonzero=100).fit(X, Y)
        np.testing.assert_allclose(
            clf.predict_scores(X_test).toarray(), one_vs_all.predict_scores(X_test).toarray(), atol=1e-4
        )

    @pytest.mark.parametrize("compressor", [HadamardCompressor, GaussianCompressor, BernoulliCompressor])
    @pytest.mark.parametrize("alpha", [0.0, 0.1, 10.0])
    def test_measurements_are_A_times_one_against_all(self, documents, compressor, alpha):
        X, Y, X_test, _ = documents
        clf = reference.paper(compressor(30), RidgeLearner(alpha), random_state=0).fit(X, Y)
        one_vs_all = OneVsAllClassifier(RidgeLearner(alpha), n_nonzero=100).fit(X, Y)
        A = dense(clf.compressor_.operator_)
        np.testing.assert_allclose(
            clf.measure(X_test), one_vs_all.predict_scores(X_test).toarray() @ A.T, atol=1e-3, rtol=1e-3
        )


class TestUpdates:
    """partial_fit equals one fit on all rows, and forget is its inverse."""

    def test_batches_equal_one_fit(self, documents):
        X, Y, X_test, _ = documents
        parts = reference.paper(HadamardCompressor(60), random_state=0)
        for start in (0, 200, 400):
            parts.partial_fit(X[start : start + 200], Y[start : start + 200])
        whole = reference.paper(HadamardCompressor(60), random_state=0).fit(X, Y)
        np.testing.assert_allclose(parts.measure(X_test), whole.measure(X_test), atol=1e-4)

    @pytest.mark.parametrize("compressor", [HadamardCompressor, GaussianCompressor, BernoulliCompressor])
    def test_new_labels_get_the_next_columns(self, documents, compressor):
        X, Y, X_test, _ = documents
        first, rest = Y[:300, :90], Y[300:]  # ten labels appear later
        first.eliminate_zeros()
        padded = sp.hstack([first, sp.csr_array((300, 10))]).tocsr()
        parts = reference.paper(compressor(60, reserve=38), random_state=0)
        parts.partial_fit(X[:300], first).partial_fit(X[300:], rest)
        assert parts.predict_scores(X_test).shape == (200, 100)
        whole = reference.paper(compressor(60, reserve=28), random_state=0)
        whole.fit(X, sp.vstack([padded, rest]).tocsr())
        np.testing.assert_allclose(parts.measure(X_test), whole.measure(X_test), atol=1e-4)

    def test_new_names(self, documents):
        X, Y, _, _ = documents
        clf = reference.paper(HadamardCompressor(60), random_state=0).partial_fit(X, names(Y))
        before = clf.labels_
        clf.partial_fit(X[:50], [["zebra", "aardvark"]] * 50)
        assert clf.labels_ == [*before, "aardvark", "zebra"]
        assert {"aardvark", "zebra"} <= set(clf.predict_topk(X[:20], 5).labels.ravel())

    def test_more_labels_than_reserved_are_refused(self, documents):
        X, Y, _, _ = documents
        clf = reference.paper(HadamardCompressor(60), random_state=0).partial_fit(X, Y)
        assert clf.compressor_.operator_.capacity == 128
        with pytest.raises(ValueError, match=r"has columns for 128 labels, and 129 are needed. .*reserve=1000"):
            clf.partial_fit(X[:2], sp.csr_array((2, 129)))

    def test_a_refused_update_changes_nothing(self, documents):
        X, Y, X_test, _ = documents
        clf = reference.paper(HadamardCompressor(60), random_state=0).fit(X, names(Y))
        before, labels = clf.predict_scores(X_test), clf.labels_
        with pytest.raises(ValueError, match="fitted without updatable=True"):
            clf.partial_fit(X[:2], [["new"], ["newer"]])
        assert clf.labels_ == labels
        assert (clf.predict_scores(X_test) != before).nnz == 0

    def test_forget(self, documents):
        X, Y, X_test, _ = documents
        clf = reference.paper(HadamardCompressor(60), random_state=0).partial_fit(X, Y)
        clf.forget(X[300:], Y[300:])
        fresh = reference.paper(HadamardCompressor(60), random_state=0).fit(X[:300], Y[:300])
        np.testing.assert_allclose(clf.measure(X_test), fresh.measure(X_test), atol=1e-3)

    def test_rows_that_were_not_learned_cannot_be_forgotten(self, documents):
        X, Y, X_test, _ = documents
        clf = reference.paper(HadamardCompressor(60), random_state=0).partial_fit(X[:300], names(Y[:300]))
        clf.partial_fit(X[300:], names(Y[300:])).forget(X[300:], names(Y[300:]))
        np.testing.assert_array_equal(
            clf.label_counts_[: len(np.unique(Y[:300].indices))], np.unique(Y[:300].indices, return_counts=True)[1]
        )
        before = clf.predict_scores(X_test)
        rare = clf.labels_[int(np.argmin(clf.label_counts_))]
        count = clf.label_counts_.min()
        with pytest.raises(
            InputError, match=f"the label '{rare}' in {count + 1} rows, and {count} of the rows learned"
        ):
            clf.forget(X[: count + 1], [[rare]] * (count + 1))
        with pytest.raises(InputError, match="not in the training data: 'zebra' in row 1"):
            clf.forget(X[:2], [[], ["zebra"]])
        with pytest.raises(ValueError, match="forget would take out as many rows as were learned, or more"):
            clf.forget(X[:300], [[]] * 300)
        assert (clf.predict_scores(X_test) != before).nnz == 0

    def test_a_prediction_is_by_one_model_whatever_happens_on_other_threads(self, documents, monkeypatch):
        X, Y, X_test, _ = documents

        def make():
            clf = reference.paper(HadamardCompressor(60), random_state=0)
            return clf.partial_fit(X[:300], Y[:300, :90])  # the update brings ten more labels

        clf, before, after = make(), make().predict_scores(X_test), make().partial_fit(X[300:], Y[300:])
        measure, blocks = fitted.predict_measurements, []

        def update_on_the_way(learner, X_block):
            blocks.append(len(blocks))
            if len(blocks) == 2:
                update = threading.Thread(target=clf.partial_fit, args=(X[300:], Y[300:]))
                update.start()
                update.join()
            return measure(learner, X_block)

        monkeypatch.setattr(fitted, "MEASURE_ROWS", 50)
        monkeypatch.setattr(fitted, "predict_measurements", update_on_the_way)
        during = clf.predict_scores(X_test)
        assert (during != before).nnz == 0
        assert (clf.predict_scores(X_test) != after.predict_scores(X_test)).nnz == 0
        assert len(blocks) == 3 * 4  # blocks of 200 rows

    def test_weights_solved_while_rows_come_are_not_kept(self, documents, monkeypatch):
        X, Y, X_test, _ = documents

        def make():
            return reference.paper(HadamardCompressor(60), random_state=0).partial_fit(X[:300], Y[:300])

        clf, expected = make(), make().partial_fit(X[300:], Y[300:]).predict_scores(X_test)
        solve, solving, go = Moments.solve, threading.Event(), threading.Event()

        def slow(self, *args):
            result = solve(self, *args)
            solving.set()
            go.wait(10)
            return result

        monkeypatch.setattr(Moments, "solve", slow)
        prediction = threading.Thread(target=clf.predict_scores, args=(X_test,))
        prediction.start()
        solving.wait(10)
        update = threading.Thread(target=clf.partial_fit, args=(X[300:], Y[300:]))
        update.start()
        update.join(0.2)  # it waits for the weights
        go.set()
        prediction.join()
        update.join()
        assert (clf.predict_scores(X_test) != expected).nnz == 0

    def test_a_learner_that_cannot_says_so(self, documents):
        X, Y, _, _ = documents
        with pytest.raises(TypeError, match="KernelRidgeLearner cannot be updated. Use RidgeLearner"):
            reference.paper(learner="kernel_ridge").partial_fit(X, Y)


class TestScikitLearnTools:
    @pytest.mark.parametrize("form", [lambda Y: Y, names], ids=["sparse", "lists"])
    def test_grid_search_over_the_decoder(self, documents, form):
        X, Y, _, _ = documents
        search = GridSearchCV(reference.paper(decoder=OMPDecoder(), random_state=0), {"decoder__n_nonzero": [2, 8]})
        search.fit(X, form(Y))
        assert search.best_params_["decoder__n_nonzero"] in (2, 8)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()

    @pytest.mark.parametrize("form", [lambda Y: Y, names], ids=["sparse", "lists"])
    def test_pipeline_from_text(self, form):
        texts = [f"word{i % 7} word{i % 11} filler" for i in range(120)]
        Y = sp.csr_array(np.array([[i % 7 == j or i % 11 == j for j in range(11)] for i in range(120)], dtype=float))
        pipeline = make_pipeline(TfidfVectorizer(), reference.paper(learner=RidgeLearner(0.01), random_state=0))
        pipeline.fit(texts, form(Y))
        assert pipeline.score(texts, form(Y)) > 0.9

    def test_cross_validation_with_label_lists(self, documents):
        X, Y, _, _ = documents  # scikit-learn's cross_val_score refuses any sparse y; GridSearchCV takes it
        assert cross_val_score(reference.paper(random_state=0), X, names(Y), cv=3).min() > 0.2

    def test_labels_unseen_in_training_count_as_not_found(self, documents):
        X, Y, X_test, Y_test = documents
        clf = reference.paper(random_state=0).fit(X, names(Y))
        known = names(Y_test)
        with_unknown = [[*row, f"new{i}"] for i, row in enumerate(known)]
        assert clf.score(X_test, with_unknown) < clf.score(X_test, known)


class TestBadInput:
    """design: the message says the name, the rule, the value got and the remedy, before any work is done."""

    @pytest.mark.parametrize(
        ("X", "Y", "message"),
        [
            (np.full((4, 3), np.nan), np.eye(4), "Input X contains NaN"),
            (np.full((4, 3), np.inf), np.eye(4), "Input X contains infinity"),
            (np.ones((4, 3)), np.full((4, 2), np.nan), "Input y contains NaN"),
            (np.ones((4, 3)), -np.eye(4), "Negative values in data: y must be 1 where"),
            (np.ones((5, 3)), np.eye(4), "Got 5 rows of X and 4 of y"),
            (np.ones((0, 3)), np.ones((0, 2)), "0 sample"),
            (np.ones((4, 3)), np.zeros((4, 2)), "y has no labels: every row is empty"),
            (np.ones((4, 3)), [[], [], [], []], "y has no labels"),
            (np.ones((4, 3)), np.ones((4, 1)), "y has only one label"),
            (np.ones((4, 3)), [["a"], ["a"], [], ["a"]], "y has only one label"),
            (np.ones((4, 3)), None, "requires y to be passed"),
        ],
    )
    def test_training_data(self, X, Y, message):
        for model in (reference.paper(), OneVsAllClassifier()):
            with pytest.raises(ValueError, match=message):
                model.fit(X, Y)

    @pytest.mark.parametrize(
        ("parameters", "error", "message"),
        [
            ({"compressor": HadamardCompressor(129)}, ValueError, "n_measurements must be between 1 and 128. Got 129"),
            ({"compressor": "walsh"}, ValueError, "compressor must be one of 'hadamard', 'gaussian'.*Got 'walsh'"),
            ({"decoder": "lars"}, ValueError, "decoder must be one of 'omp', 'foba'.*Got 'lars'"),
            ({"learner": "svm"}, ValueError, "learner must be one of 'ridge'.*Got 'svm'"),
            (
                {"compressor": HadamardCompressor(5), "decoder": OMPDecoder(6)},
                ValueError,
                "n_nonzero must be between 1 and 5. Got 6. A support larger than the number of measurements",
            ),
        ],
    )
    def test_parameters(self, documents, parameters, error, message):
        X, Y, _, _ = documents
        with pytest.raises(error, match=message):
            reference.paper(**parameters).fit(X, Y)

    @pytest.mark.parametrize(
        ("parameters", "error", "message"),
        [
            ({"n_candidates": "many"}, TypeError, "n_candidates must be an integer. Got 'many'.*'auto' chooses"),
            ({"n_candidates": 0}, ValueError, "n_candidates must be at least 1. Got 0. 'auto' chooses"),
            ({"C": "much"}, TypeError, "C must be a number. Got 'much' of type str. 'auto' chooses"),
            ({"C": 0}, ValueError, "C must be finite and at least 1e-09. Got 0. 'auto' chooses"),
            ({"n_calibration": 2}, ValueError, "n_calibration must be at least 10. Got 2"),
        ],
    )
    def test_parameters_of_the_refiner(self, documents, monkeypatch, parameters, error, message):
        monkeypatch.setattr("labelsense.plan.choose", lambda *_, **__: pytest.fail("work was done"))
        X, Y, _, _ = documents
        with pytest.raises(error, match=message):
            CompressedLabelClassifier(refiner=Refiner(**parameters)).fit(X, Y)

    def test_prediction(self, documents):
        X, Y, X_test, _ = documents
        with pytest.raises(NotFittedError, match="not fitted yet"):
            reference.paper().predict_topk(X_test)
        clf = reference.paper(random_state=0).fit(X, Y)
        with pytest.raises(ValueError, match="X has 299 features, but CompressedLabelClassifier is expecting 300"):
            clf.predict_scores(X_test[:, :299])
        with pytest.raises(ValueError, match="k must be at least 1. Got 0"):
            clf.predict_topk(X_test, k=0)
        with pytest.raises(ValueError, match="same number of rows.*Got 200 rows of X and 600 of y"):
            clf.score(X_test, Y)


def test_delicious():
    X, Y, X_test, Y_test = real_data("delicious")
    clf = reference.paper(HadamardCompressor(400), RidgeLearner(1.0), "omp", random_state=0).fit(X, Y)
    assert precision_at_k(Y_test, clf.predict_topk(X_test, 1), 1) >= 0.63
