"""What every model offers to scikit-learn's tools: parameters of parts, searches, pipelines, weights of rows."""

import numpy as np
import pandas as pd
import pytest
import reference
from predictors import MODELS, TAGS, TEXTS, names
from predictors import documents as documents
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline

from labelsense import HadamardCompressor, InputError, KernelRidgeLearner, OMPDecoder, RidgeLearner


class TestParameters:
    @pytest.mark.parametrize("model", MODELS)
    def test_parts_given_as_words_have_parameters(self, model):
        clf = model(features="words")
        found = clf.get_params()
        assert found["learner__alpha"] == 1.0
        assert found["features__countvectorizer__max_features"] == 50_000
        assert found["learner"] == "ridge"
        clf.set_params(learner__alpha=3.0, features__countvectorizer__max_features=7)
        assert (clf.learner.alpha, clf.features["countvectorizer"].max_features) == (3.0, 7)
        assert clone(clf).get_params()["learner__alpha"] == 3.0

    def test_those_of_the_classifier(self, documents):
        X, Y, _, _ = documents
        clf = reference.paper(random_state=0)
        clf.set_params(decoder__n_nonzero=5, compressor__n_measurements=30, learner__alpha=0.5)
        expected = reference.paper(HadamardCompressor(30), RidgeLearner(0.5), OMPDecoder(5), random_state=0)
        assert repr(clf) == repr(expected)
        scores = clf.fit(X, Y).predict_scores(X)
        assert (scores != expected.fit(X, Y).predict_scores(X)).nnz == 0

    def test_a_word_and_its_parameter_in_one_call(self):
        clf = reference.paper().set_params(decoder__n_nonzero=5, decoder="foba")
        assert repr(clf.decoder) == "FoBaDecoder(n_nonzero=5)"
        assert reference.paper(decoder="lars").set_params(decoder="omp").decoder == "omp"

    def test_unknown_names_are_refused(self):
        with pytest.raises(ValueError, match="Invalid parameter 'n_non_zero' for estimator OMPDecoder"):
            reference.paper().set_params(decoder__n_non_zero=5)
        with pytest.raises(InputError, match="decoder must be one of 'omp'.*Got 'lars'"):
            reference.paper(decoder="lars").set_params(decoder__n_nonzero=5)

    def test_objects_keep_theirs(self):
        clf = reference.paper(learner=Ridge())
        assert clf.set_params(learner__alpha=2.0).learner.alpha == 2.0


class TestScikitLearnTools:
    @pytest.mark.parametrize("form", [lambda Y: Y, names], ids=["sparse", "lists"])
    def test_grid_search_over_parts_given_as_words(self, documents, form):
        X, Y, _, _ = documents
        grid = {"decoder__n_nonzero": [2, 8], "compressor__n_measurements": [20], "learner__alpha": [0.1, 1.0]}
        search = GridSearchCV(reference.paper(random_state=0), grid, cv=2).fit(X, form(Y))
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        assert search.best_estimator_.compressor_.operator_.n_measurements == 20

    @pytest.mark.parametrize("model", MODELS)
    @pytest.mark.parametrize(
        "form",
        [names, lambda Y: pd.Series(names(Y)), lambda Y: Y.toarray(), lambda Y: pd.DataFrame(Y.toarray())],
        ids=["lists", "series", "array", "frame"],
    )
    def test_cross_validation(self, documents, model, form):
        X, Y, _, _ = documents
        y, clf = form(Y), model(learner=RidgeLearner(1.0))
        if "random_state" in clf.get_params():
            clf.set_params(random_state=0)
        scores = cross_val_score(clf, X, y, cv=3)
        assert scores.min() > 0.2
        np.testing.assert_array_equal(cross_validate(clf, X, y, cv=3)["test_score"], scores)

    @pytest.mark.parametrize("model", MODELS)
    def test_a_pipeline_reaches_the_scores(self, model):
        pipeline = make_pipeline(TfidfVectorizer(), model(learner=RidgeLearner(0.01))).fit(TEXTS, TAGS)
        scores = pipeline.decision_function(TEXTS)
        assert (scores != pipeline[-1].predict_scores(pipeline[0].transform(TEXTS))).nnz == 0
        assert pipeline.classes_.tolist() == pipeline[-1].labels_

    @pytest.mark.parametrize("model", MODELS)
    def test_classes_are_the_labels_in_column_order(self, documents, model):
        X, Y, _, _ = documents
        clf = model().fit(X, Y)
        assert not hasattr(model(), "classes_")
        assert clf.classes_.tolist() == clf.labels_ == list(range(60))
        clf.fit(X, names(Y))
        assert clf.classes_.tolist() == clf.labels_ == sorted({name for row in names(Y) for name in row})


class TestSampleWeight:
    @pytest.mark.parametrize("compressor", ["hadamard", "whitened"])
    @pytest.mark.parametrize("solver", ["primal", "dual"])
    def test_weights_are_repetitions(self, documents, compressor, solver):
        X, Y, X_test, _ = documents
        times = np.random.default_rng(0).integers(0, 4, 300)
        learner = RidgeLearner(1.0, solver=solver)
        weighted = reference.paper(compressor, learner, random_state=0).fit(X, Y, sample_weight=times)
        repeated = reference.paper(compressor, learner, random_state=0)
        repeated.fit(X[np.repeat(np.arange(300), times)], Y[np.repeat(np.arange(300), times)])
        assert weighted.compressor_.operator_.n_measurements == repeated.compressor_.operator_.n_measurements
        np.testing.assert_allclose(weighted.measure(X_test), repeated.measure(X_test), atol=1e-4)

    def test_they_count_in_the_number_of_measurements(self):
        X, Y = np.random.default_rng(0).random((40, 3)), np.zeros((40, 500))
        Y[:20, :4] = Y[20:, :12] = 1
        sizes = [
            reference.paper(random_state=0).fit(X, Y, weights).compressor_.operator_.n_measurements
            for weights in (np.r_[np.ones(20), np.zeros(20)], np.ones(40), np.r_[np.zeros(20), np.ones(20)])
        ]
        assert sizes[0] < sizes[1] < sizes[2]

    def test_updates_take_them(self, documents):
        X, Y, X_test, _ = documents
        weights = np.random.default_rng(0).uniform(0.5, 2, 300)
        parts = reference.paper(HadamardCompressor(40), RidgeLearner(1.0), random_state=0)
        for rows in (slice(0, 200), slice(200, 300), slice(0, 50)):
            parts.partial_fit(X[rows], Y[rows], weights[rows])
        parts.forget(X[:50], Y[:50], weights[:50])
        whole = reference.paper(HadamardCompressor(40), RidgeLearner(1.0), random_state=0)
        whole.fit(X, Y, sample_weight=weights)
        np.testing.assert_allclose(parts.measure(X_test), whole.measure(X_test), atol=1e-4)

    def test_refusals(self, documents):
        X, Y, _, _ = documents
        with pytest.raises(TypeError, match="KernelRidgeLearner does not take sample_weight. Use RidgeLearner"):
            reference.paper(learner=KernelRidgeLearner()).fit(X, Y, sample_weight=np.ones(300))
        for weights in (-np.ones(300), np.ones(3), np.zeros(300), np.full(300, np.nan)):
            with pytest.raises(InputError, match="sample_weight|Sample weights"):
                reference.paper().fit(X, Y, sample_weight=weights)
