"""What every model offers: a ranking that does not depend on k, forms of input, parameters of parts, refusals."""

import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import reference
import scipy.sparse as sp
from sklearn import get_config
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.utils import validation as sklearn_validation

from labelsense import (
    ECOCClassifier,
    HadamardCompressor,
    InputError,
    KernelRidgeLearner,
    OMPDecoder,
    OneVsAllClassifier,
    RidgeLearner,
    SECOCClassifier,
    _validation,
    labels,
    load_model,
    predictor,
)
from labelsense.data import make_tagged_documents
from labelsense.reconstruct import DECODERS

MODELS = [reference.paper, OneVsAllClassifier, ECOCClassifier, SECOCClassifier]
TEXTS = [f"word{i % 5} text{i % 3}" for i in range(40)]
TAGS = [[f"a{i % 5}", f"b{i % 3}"] for i in range(40)]
FRAMES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": lambda columns: pa.table({name: np.asarray(values) for name, values in columns.items()}),
}


@pytest.fixture(scope="module")
def documents():
    X, Y = make_tagged_documents(400, 150, 60, noise=0.1, random_state=0)
    return X[:300], Y[:300], X[300:], Y[300:]


def names(Y):
    return [[f"tag{j:03d}" for j in Y.indices[a:b]] for a, b in zip(Y.indptr[:-1], Y.indptr[1:], strict=True)]


RANKING = {
    **{word: reference.paper(decoder=word, random_state=0) for word in DECODERS},
    "whitened": reference.paper("whitened", decoder=OMPDecoder(8, penalty=0.1), random_state=0),
    **{model.__name__: model(learner=RidgeLearner(1.0)) for model in MODELS[1:]},
}


@pytest.mark.parametrize("model", RANKING.values(), ids=RANKING)
class TestRanking:
    def test_the_first_labels_do_not_depend_on_how_many_are_asked_for(self, documents, model):
        X, Y, X_test, Y_test = documents
        clf = clone(model).fit(X, Y)
        most = clf.predict_topk(X_test, 50)
        for k in (1, 5, 10, 20):
            top = clf.predict_topk(X_test, k)
            np.testing.assert_array_equal(top.labels, most.labels[:, :k])
            np.testing.assert_array_equal(top.scores, most.scores[:, :k])
        figures = clf.evaluate(X_test, Y_test, [1, 3, 5, 50])
        for k in (1, 3, 5):
            alone = clf.evaluate(X_test, Y_test, [k])
            assert alone == {name: figures[name] for name in alone}

    def test_there_are_no_more_places_than_labels(self, documents, model):
        X, Y, X_test, Y_test = documents
        clf = clone(model).fit(X, Y)
        top = clf.predict_topk(X_test, 20_000_000)
        assert top.labels.shape == top.scores.shape == (100, 60)
        figures = clf.evaluate(X_test, Y_test, [60, 600])
        assert figures["P@600"] == pytest.approx(figures["P@60"] / 10)
        assert figures["recall@600"] == figures["recall@60"]
        assert figures["nDCG@600"] == figures["nDCG@60"]


class TestPlaces:
    def test_places_beyond_the_support_are_empty(self, documents):
        X, Y, X_test, _ = documents
        clf = reference.paper(decoder=OMPDecoder(6), random_state=0)
        top = clf.fit(X, Y).predict_topk(X_test, 20)
        assert (top.labels[:, :6] >= 0).all()
        assert (top.labels[:, 6:] == -1).all()
        assert (top.scores[:, 6:] == 0).all()
        top = clf.fit(X, names(Y)).predict_topk(X_test, 20)
        assert (top.labels[:, 6:] == None).all()  # noqa: E711

    def test_baselines_score_as_many_as_are_asked_for(self, documents):
        X, Y, X_test, _ = documents
        assert (OneVsAllClassifier().fit(X, Y).predict_topk(X_test, 20).labels >= 0).all()

    def test_the_decoder_is_asked_to_decode_and_for_nothing_else(self, documents):
        class Constant(OMPDecoder):
            def decode(self, state, H):
                return sp.csr_array((np.ones(len(H), np.float32), [[7] * len(H)][0], range(len(H) + 1)), (len(H), 60))

            path = _run = None

        X, Y, X_test, _ = documents
        clf = reference.paper(decoder=Constant(), random_state=0).fit(X, Y)
        assert clf.predict_topk(X_test, 2).labels.tolist() == [[7, -1]] * 100


class TestAllowAndBlock:
    @pytest.mark.parametrize("model", [reference.paper(random_state=0), OneVsAllClassifier()])
    def test_labels_are_chosen_from_those_allowed_and_not_blocked(self, documents, model):
        X, Y, X_test, _ = documents
        clf = clone(model).fit(X, names(Y))
        allow, block = clf.labels_[:40], clf.labels_[10:20]
        scores = clf.predict_scores(X_test).toarray()
        may = np.isin(clf.classes_, allow) & ~np.isin(clf.classes_, block)
        top = clf.predict_topk(X_test, 3, allow=allow, block=block)
        for row, found, values in zip(scores, top.labels, top.scores, strict=True):
            stored = [j for j in np.flatnonzero(row) if may[j]]
            expected = sorted(stored, key=lambda j: (-row[j], j))[:3]
            assert [label for label in found if label is not None] == [clf.labels_[j] for j in expected]
            np.testing.assert_array_equal(values[: len(expected)], row[expected])

    def test_columns_where_labels_have_no_names(self, documents):
        X, Y, X_test, _ = documents
        clf = reference.paper(random_state=0).fit(X, Y)
        best = clf.predict_topk(X_test, 1).labels.ravel()
        assert not set(clf.predict_topk(X_test, 5, block=np.unique(best)).labels.ravel()) & set(best)
        assert set(clf.predict_topk(X_test, 5, allow=[3, 4]).labels.ravel()) <= {3, 4, -1}
        np.testing.assert_array_equal(clf.predict_topk(X_test, allow=range(60), block=[]), clf.predict_topk(X_test))

    def test_unknown_labels_are_refused(self, documents):
        X, Y, X_test, _ = documents
        clf = reference.paper(random_state=0).fit(X, names(Y))
        with pytest.raises(InputError, match="allow must hold labels of the training data. Got 'new'"):
            clf.predict_topk(X_test, allow=["new"])
        with pytest.raises(InputError, match="block must hold labels of the training data. Got 3"):
            clf.predict_topk(X_test, block=[3])


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


class TestForms:
    @pytest.mark.parametrize("form", FRAMES)
    @pytest.mark.parametrize("model", MODELS)
    def test_data_frames(self, documents, model, form):
        X, Y = documents[0].toarray()[:, :20], documents[1]
        frame = FRAMES[form]({f"x{j}": X[:, j] for j in range(20)})
        labels = FRAMES[form]({f"y{j}": Y[:, [j]].toarray().ravel() for j in range(60)})
        clf = model(learner=RidgeLearner(1.0)).set_params(
            **({} if model is OneVsAllClassifier else {"random_state": 0})
        )
        plain = clone(clf).fit(X, Y)
        framed = clf.fit(frame, labels)
        assert framed.labels_ == [f"y{j}" for j in range(60)]
        assert framed.feature_names_in_.tolist() == [f"x{j}" for j in range(20)]
        np.testing.assert_array_equal(framed.predict_scores(frame).toarray(), plain.predict_scores(X).toarray())
        assert framed.score(frame, labels) == plain.score(X, Y)
        assert framed.predict(frame) == [[f"y{j}" for j in row.nonzero()[0]] for row in plain.predict(X).toarray()]

    def test_columns_of_features_are_checked_by_name(self, documents):
        X, Y = documents[0].toarray()[:, :3], documents[1]
        clf = reference.paper(random_state=0).fit(pd.DataFrame(X, columns=["a", "b", "c"]), Y)
        with pytest.raises(InputError, match="feature names should match"):
            clf.predict(pd.DataFrame(X, columns=["a", "c", "b"]))

    @pytest.mark.parametrize("model", MODELS)
    @pytest.mark.parametrize(
        "form",
        [list, tuple, np.array, lambda t: np.array(t, object), pd.Series, pl.Series, pa.array,
         lambda t: pd.Series(t, dtype="string")],
        ids=["list", "tuple", "array", "objects", "pandas", "polars", "pyarrow", "pandas strings"],
    )  # fmt: skip
    def test_texts(self, model, form):
        clf = model(learner=RidgeLearner(0.01), features="words")
        if "random_state" in clf.get_params():
            clf.set_params(random_state=0)
        texts = form(TEXTS)
        clf.fit(texts, TAGS)
        assert clf.score(texts, TAGS) > 0.99
        assert set(clf.predict_topk(form(["word2 text1"]), 2).labels[0]) == {"a2", "b1"}
        with pytest.raises(TypeError, match="X holds texts where features are expected. Pass features='words'"):
            model().fit(texts, TAGS)


def test_labels_that_can_be_learned_can_be_saved(tmp_path):
    kinds = ["a", 3, 2.5, True, ("t", 1, (2.5, "x")), np.int64(7), np.str_("b"), -1, "", float("inf")]
    X, y = np.random.default_rng(0).random((60, 3)), [[kinds[i % 10], f"long{i}"] for i in range(60)]
    clf = reference.paper(random_state=0).fit(X, y)
    clf.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert again.labels_ == clf.labels_
    assert list(map(type, again.labels_)) == list(map(type, clf.labels_))
    assert (again.predict_topk(X, 3).labels == clf.predict_topk(X, 3).labels).all()


class TestBadRows:
    @pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
    def test_texts_that_are_missing(self, missing):
        clf = reference.paper(features="words", random_state=0).fit(TEXTS, TAGS)
        for call in (clf.predict, lambda texts: clf.fit(texts, TAGS)):
            with pytest.raises(InputError, match="X must hold texts. Got .* in row 7. Leave the row out, or pass ''"):
                call([*TEXTS[:7], missing, *TEXTS[8:]])

    @pytest.mark.parametrize(
        ("X", "message"),
        [
            ("a text", "Got str. Pass a list, even for one text"),
            (pd.DataFrame({"text": TEXTS}), r"Got DataFrame of shape \(40, 1\). Pass the column of texts"),
            (np.ones((40, 2)), r"Got ndarray of shape \(40, 2\)"),
            (sp.eye_array(40).tocsr(), r"Got csr_array of shape \(40, 40\)"),
            ([1] * 40, "Got 1 of type int in row 0"),
            (7, "Got int"),
        ],
    )
    def test_what_is_no_texts(self, X, message):
        with pytest.raises(TypeError, match=f"X must hold texts.*{message}"):
            reference.paper(features="words").fit(X, TAGS)

    def test_lengths_are_compared_before_the_features_are_made(self):
        class Never(TfidfVectorizer):
            def fit_transform(self, X, y=None):
                raise AssertionError

        with pytest.raises(InputError, match="Got 39 rows of X and 40 of y"):
            reference.paper(features=Never()).fit(TEXTS[1:], TAGS)

    @pytest.mark.parametrize("number", [-1, 80, 10**6, -(10**9)])
    @pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "lil"])
    @pytest.mark.parametrize("features", [None, "counts"])
    def test_places_out_of_range(self, number, form, features):
        rng = np.random.default_rng(0)
        X = sp.csr_array(rng.random((80, 6)).astype("f4"))
        Y = (rng.random((80, 20)) < 0.2).astype(int)
        clf = reference.paper(features=features, random_state=0).fit(X, Y)
        bad = X.asformat(form)
        if form == "coo":
            bad.col[5] = number
        elif form == "lil":
            bad.rows[0][3] = number
        else:
            bad.indices[5] = number
        for call in (clf.predict_topk, lambda X: clf.fit(X, Y)):
            with pytest.raises(InputError, match=f"numbers from 0 to .* Got {number}. Build|outside of its shape"):
                call(bad)

    @pytest.mark.parametrize(
        "break_it",
        [
            lambda M: M.indptr.__setitem__(3, 999),
            lambda M: M.indptr.__setitem__(0, 1),
            lambda M: M.indptr.__setitem__(-1, 10**6),
            lambda M: setattr(M, "indices", M.indices[:-1]),
            lambda M: setattr(M, "indptr", M.indptr[:-1]),
        ],
    )
    def test_an_indptr_that_does_not_fit(self, break_it):
        rng = np.random.default_rng(0)
        good = sp.csr_array(rng.random((80, 6)))
        Y = sp.csr_array((rng.random((80, 20)) < 0.2).astype(float))
        bad_X, bad_Y = good.copy(), Y.copy()
        break_it(bad_X)
        break_it(bad_Y)
        with pytest.raises(InputError, match="X has an indptr that does not fit its shape and data"):
            reference.paper().fit(bad_X, Y)
        with pytest.raises(InputError, match="y has an indptr that does not fit its shape and data"):
            reference.paper().fit(good, bad_Y)

    @pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
    @pytest.mark.parametrize("model", MODELS)
    def test_values_that_float32_does_not_hold(self, documents, model, form):
        X, Y = documents[0].toarray(), documents[1]
        clf = model().fit(form(X), Y)
        for sign in (-1, 1):
            large = X.astype(np.float64)
            large[3, 5] = sign * 1e39
            for call in (clf.predict, lambda X: model().fit(X, Y)):
                with pytest.raises(InputError, match=r"at most 3.4e\+38 in size.*Got 1e\+39. Scale the features"):
                    call(form(large))

    @pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
    def test_values_whose_differences_float32_does_not_hold(self, form):
        rng = np.random.default_rng(0)
        X, Y = rng.normal(size=(100, 4)), rng.integers(0, 2, (100, 5))
        X[:, 1] = 7.1  # a constant is lost to nobody
        X[rng.uniform(size=100) < 0.1, 3] = 0
        fits = reference.paper(random_state=0).fit
        fits(form(X), Y)
        fits(form(X + np.array([1e3, 1e8, 0, 0])), Y)
        # Column 3 has zeros, which differ from large numbers in any precision.
        shifted = np.where(X == 0, 0, X + np.array([0, 0, 1e8, 1e8]))
        with pytest.raises(InputError, match=r"1 of them lose it: feature 2 varies by [01].* around 1e\+08. Scale"):
            fits(form(shifted), Y)
        fits(form(shifted.astype(np.float32)), Y)  # nothing is lost here


class Count:
    """Counts the calls of a function that it stands for."""

    def __init__(self, function):
        self.function, self.calls = function, 0

    def __call__(self, *args, **options):
        self.calls += 1
        return self.function(*args, **options)


@pytest.mark.parametrize("form", [lambda Y: Y, names], ids=["sparse", "lists"])
@pytest.mark.parametrize("model", MODELS)
class TestValidateOnce:
    def test_y(self, documents, model, form, monkeypatch):
        X, Y, X_test, Y_test = documents
        read, check = Count(labels.read_labels), Count(_validation.check_indicator)
        monkeypatch.setattr(labels, "read_labels", read)
        for name, module in list(sys.modules.items()):
            if name.startswith("labelsense") and hasattr(module, "check_indicator"):
                monkeypatch.setattr(module, "check_indicator", check)
        clf = model(learner=RidgeLearner(1.0)).fit(X, form(Y))
        assert (read.calls, check.calls) == (1, form is not names)
        clf.evaluate(X_test, form(Y_test), [1, 3, 5, 10])
        assert (read.calls, check.calls) == (2, 2 * (form is not names))

    def test_x(self, documents, model, form, monkeypatch):
        """Our own check looks at all values; scikit-learn's, which would do so again at each level, do not."""
        X, Y, X_test, Y_test = documents
        theirs, ours = Count(sklearn_validation._assert_all_finite), Count(predictor.check_representable)

        def scan(values, *args, **options):
            all_of_x = np.size(values) in (X.nnz, X_test.nnz) and not get_config()["assume_finite"]
            return (theirs if all_of_x else theirs.function)(values, *args, **options)

        monkeypatch.setattr(sklearn_validation, "_assert_all_finite", scan)
        monkeypatch.setattr(predictor, "check_representable", ours)
        clf = model(learner=RidgeLearner(1.0)).fit(X, form(Y))
        clf.evaluate(X_test, form(Y_test))
        assert (ours.calls, theirs.calls) == (2, 0)


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
